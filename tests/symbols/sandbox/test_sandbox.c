// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sandbox: a reader that was taken over can reach nothing; one that dies, hangs, forges or takes
 * all memory costs one call only. The whole life in one process: started before the tests.
 * Live: calls that a sandbox refuses.
 */
#include "tests/prelude.h"

#include "tests/escapes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbols/sandbox/internal.h"
#include "symbols/base/base.h"

#define SECOND	    1000000000ULL
#define LONG	    (20 * SECOND)
#define MEMORY_MAX  (256UL << 20)
#define ANSWER_SIZE 100000U

/* Kinds of calls to the reader below: the first byte. */
enum {
	ECHO,
	COUNT,
	ESCAPE,
	DIE,
	HANG,
	GREEDY,
	DESCRIPTOR,
	TWICE,
	EARLY,
	WRONG_SIZE,
	NO_BYTES,
	MAPPED,
	SPARSE,
	PAID,
	LARGER,
	LOCKED,
	FILL,
	READ_FD,
	SLEEP,
	NAP,
	FAIL
};

/* Of the last packet: the call that a worker serves, and its socket. */
static uint32_t last_serial;
static int last_sock;

/* In the place of the C library's. */
ssize_t recvmsg(int sock, struct msghdr *msg, int flags)
{
	ssize_t got = syscall(SYS_recvmsg, sock, msg, flags);

	last_sock = sock;
	if (got >= (ssize_t)sizeof(last_serial))
		memcpy(&last_serial, msg->msg_iov->iov_base, sizeof(last_serial));
	return got;
}

/* Send an answer past the functions of the sandbox, as a reader that was taken over does. */
static void forge(uint32_t serial, uint64_t size, int fd)
{
	struct {
		uint32_t serial;
		int32_t code;
		uint64_t size;
	} head = { serial, 0, size };
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .bytes = { 0 } };
	struct iovec part = { &head, sizeof(head) };
	struct msghdr msg = { .msg_iov = &part, .msg_iovlen = 1 };

	if (fd >= 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
		CMSG_FIRSTHDR(&msg)->cmsg_level = SOL_SOCKET;
		CMSG_FIRSTHDR(&msg)->cmsg_type = SCM_RIGHTS;
		CMSG_FIRSTHDR(&msg)->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), &fd, sizeof(fd));
	}
	if ((fd < 0 ? writev(last_sock, &part, 1) : sendmsg(last_sock, &msg, MSG_NOSIGNAL)) < 0)
		abort();
}

/* Write to the file of the call without end. */
static int fill(const struct sandbox_reply *r)
{
	static const char bytes[1 << 16];

	while (write(r->file, bytes, sizeof(bytes)) > 0)
		;
	return -EFBIG;
}

/* Answer with a file that has a hole. */
static void sparse(const struct sandbox_reply *r)
{
	if (pwrite(r->file, "x", 1, ANSWER_SIZE - 1) == 1)
		forge(last_serial, ANSWER_SIZE, -1);
}

/* Answer with a file that is larger than it says: with a hole and the pages that it lacks, or not.
 */
static void larger(const struct sandbox_reply *r, off_t from)
{
	static char bytes[ANSWER_SIZE];

	if (pwrite(r->file, bytes, sizeof(bytes), from) == sizeof(bytes) &&
	    pwrite(r->file, bytes, sizeof(bytes), ANSWER_SIZE) == sizeof(bytes))
		forge(last_serial, ANSWER_SIZE, -1);
}

/* Answer, then hold the locks of the file: its write waits for a page of the hanging file @fd. */
static void lock(const struct sandbox_reply *r, int fd)
{
	static char bytes[ANSWER_SIZE];
	const void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);

	if (page == MAP_FAILED || pwrite(r->file, bytes, sizeof(bytes), 0) < 0)
		return;
	forge(last_serial, ANSWER_SIZE, -1);
	if (write(r->file, page, 1) < 0)
		abort();
}

/* Answer with a file that can be changed later. */
static int map(struct sandbox_reply *r)
{
	static char bytes[ANSWER_SIZE];
	uint8_t *mapped = mmap(NULL, ANSWER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, r->file, 0);

	memset(bytes, 'm', sizeof(bytes));
	sandbox_put(r, bytes, sizeof(bytes));
	return mapped == MAP_FAILED ? -ENOMEM : 0;
}

/* The reader: honest, or not. */
static int serve(struct sandbox_call *c)
{
	static uint32_t nr_calls;
	const uint8_t *bytes = c->request;
	volatile unsigned int forever = 1;
	char text[16];
	ssize_t n;

	nr_calls++;
	switch (c->size ? bytes[0] : FAIL) {
	case ECHO:
		for (unsigned int i = 0; i < ANSWER_SIZE; i++)
			sandbox_put(&c->reply, bytes + 1, 1);
		return 0;
	case COUNT:
		sandbox_put(&c->reply, &nr_calls, sizeof(nr_calls));
		return 0;
	case ESCAPE: {
		long rc = escapes[bytes[1]].try();
		uint8_t reached = rc >= 0;

		sandbox_put(&c->reply, &reached, 1);
		return 0;
	}
	case DIE:
		__builtin_trap();
	case HANG:
		while (forever)
			;
		return 0;
	case GREEDY:
		for (;;) {
			char *p = malloc(1 << 20);

			if (!p)
				return -ENOMEM;
			memset(p, 1, 1 << 20);
		}
	case DESCRIPTOR: /* of any file system */
		forge(last_serial, 0, 0);
		return 0;
	case TWICE: /* the second would answer another call */
		forge(UINT32_MAX - last_serial, 0, -1);
		return 0;
	case EARLY: /* before the next call is made */
		forge(last_serial, 0, -1);
		forge(last_serial + 1, 0, -1);
		return 0;
	case WRONG_SIZE:
		forge(last_serial, 1ULL << 40, -1);
		return 0;
	case NO_BYTES: /* the file has none */
		forge(last_serial, 1000, -1);
		return 0;
	case MAPPED:
		return map(&c->reply);
	case LOCKED:
		lock(&c->reply, c->fds[0]);
		return 0;
	case SPARSE:
		sparse(&c->reply);
		return 0;
	case PAID:
		larger(&c->reply, ANSWER_SIZE);
		return 0;
	case LARGER:
		larger(&c->reply, 0);
		return 0;
	case FILL:
		return fill(&c->reply);
	case READ_FD:
		n = pread(c->fds[0], text, sizeof(text), 0);
		sandbox_put(&c->reply, text, n > 0 ? (size_t)n : 0);
		return 0;
	case NAP: /* as on a machine that gives it little time */
		for (uint64_t end_ns = time_now_ns() + 17 * SECOND / 10; time_now_ns() < end_ns;)
			syscall(SYS_futex, &forever, FUTEX_WAIT, 1,
				&(struct timespec){ 0, 20000000 });
		return 0;
	case SLEEP:
		for (uint64_t end_ns = time_now_ns() + 3 * SECOND / 2; time_now_ns() < end_ns;)
			;
		return 0;
	default:
		return -ENODATA;
	}
}

/* Of each kind, as it would be after it was taken over. */
static struct sandbox_reader readers[SANDBOX_NR_KINDS];
static enum sandbox_kind kind;

static int call(uint8_t what, uint8_t with, uint32_t generation, uint64_t timeout_ns,
		struct sandbox_answer *a)
{
	const uint8_t request[] = { what, with };

	return sandbox_call(&readers[kind], request, sizeof(request), NULL, generation, timeout_ns,
			    a);
}

static void answers(void)
{
	struct sandbox_answer a;
	int fds[SANDBOX_FDS_MAX] = { sandbox_wrap("a file", 6), -1 };
	const uint8_t read_fd = READ_FD;

	assert_int_equal(call(ECHO, 'x', 0, LONG, &a), 0);
	assert_int_equal(a.size, ANSWER_SIZE);
	assert_int_equal(a.mapped, readers[kind].map_reply);
	for (unsigned int i = 0; i < ANSWER_SIZE; i++)
		assert_int_equal(a.bytes[i], 'x');
	sandbox_answer_free(&a);
	assert_int_equal(sandbox_call(&readers[kind], &read_fd, 1, fds, 0, LONG, &a), 0);
	assert_int_equal(a.size, 6);
	assert_memory_equal(a.bytes, "a file", 6);
	sandbox_answer_free(&a);
	/* No reader makes it larger. */
	assert_int_equal(pwrite(fds[0], "b", 1, 0), 1);
	assert_int_equal(pwrite(fds[0], "b", 1, 6), -1);
	close(fds[0]);
	assert_false(a.mapped);
	assert_int_equal(call(FAIL, 0, 0, LONG, &a), -ENODATA);
	assert_null(a.bytes);
	assert_true(sandbox_cpu_ns() > 0);
	assert_false(sandbox_has(getpid()));
	assert_false(sandbox_has(0));
}

/* Replies are copied, or mapped. */
TEST(test_answers)
{
	answers();
	kind = SANDBOX_PERFMAP;
	answers();
	kind = SANDBOX_DWARF;
}

/* The calls of an untouched worker have their state; another worker says so. */
static uint32_t count(uint32_t *generation)
{
	struct sandbox_answer a;
	uint32_t nr;

	assert_int_equal(call(COUNT, 0, 0, LONG, &a), 0);
	assert_int_equal(a.size, sizeof(nr));
	memcpy(&nr, a.bytes, sizeof(nr));
	free(a.bytes);
	*generation = a.generation;
	return nr;
}

TEST(test_escapes)
{
	unsigned int nr_killed = 0, nr = SANDBOX_NR_KINDS * ARRAY_SIZE(escapes);

	if (SANITIZED)
		skip();
	for (unsigned int try = 0; try < nr; try++) {
		uint8_t i = (uint8_t)(try % ARRAY_SIZE(escapes));
		struct sandbox_answer a;
		int rc;

		kind = (enum sandbox_kind)(try / ARRAY_SIZE(escapes));
		rc = call(ESCAPE, i, 0, LONG, &a);

		if (rc && rc != -EPIPE)
			fail_msg("kind %d: %s: %d", kind, escapes[i].name, rc);
		if (!rc && a.bytes[0])
			fail_msg("kind %d: %s: not held", kind, escapes[i].name);
		nr_killed += rc == -EPIPE;
		free(a.bytes);
	}
	kind = SANDBOX_DWARF;
	print_message("%u of %u killed the worker\n", nr_killed, nr);
	assert_true(nr_killed > nr / 2);
}

/* A worker that fails in any way is replaced, and its state is gone. */
static void fails(uint8_t what, int want, uint64_t timeout_ns)
{
	uint32_t before, after;
	struct sandbox_answer a;
	uint64_t start = time_now_ns();
	int rc;

	count(&before);
	assert_int_equal(call(what, 0, before, timeout_ns, &a), want);
	assert_null(a.bytes);
	rc = call(COUNT, 0, before, LONG, &a);
	assert_int_equal(rc, -ESTALE);
	assert_int_equal(count(&after), 1);
	assert_int_equal(after, before + 1);
	assert_true(time_now_ns() - start < LONG);
}

TEST(test_dies)
{
	fails(DIE, -EPIPE, LONG);
}

TEST(test_hangs)
{
	fails(HANG, -ETIME, SECOND / 10);
}

static void lies(void)
{
	fails(DESCRIPTOR, SANITIZED ? -EBADMSG : -EPIPE, LONG);
	fails(WRONG_SIZE, -EBADMSG, LONG);
	fails(NO_BYTES, -EBADMSG, LONG);
	fails(TWICE, -EBADMSG, LONG);
}

TEST(test_lies)
{
	lies();
	kind = SANDBOX_PERFMAP; /* its replies are mapped */
	lies();
	kind = SANDBOX_DWARF;
}

/* The answer to a call that was not made yet is not taken for that call's. */
TEST(test_early)
{
	struct sandbox_answer a;
	uint32_t generation;

	count(&generation);
	assert_int_equal(call(EARLY, 0, 0, LONG, &a), 0);
	assert_int_equal(a.size, 0);
	free(a.bytes);
	assert_int_equal(call(COUNT, 0, 0, LONG, &a), -EBADMSG);
	assert_int_equal(count(&generation), 1);
}

/* Bytes that are mapped do not change, and are all there. */
static int reset_kind(void **state)
{
	kind = SANDBOX_DWARF;
	return 0;
}

TEST(test_mapped, NULL, reset_kind)
{
	kind = SANDBOX_PERFMAP;
	fails(MAPPED, SANITIZED ? -EBADMSG : -EPIPE, LONG);
	fails(SPARSE, -EBADMSG, LONG);
	fails(PAID, -EBADMSG, LONG);
	fails(LARGER, -EBADMSG, LONG);
}

/* A worker that keeps all that it gets is replaced. */
TEST(test_held)
{
	const uint8_t read_fd = READ_FD;
	uint8_t *bytes = calloc(1, 1 << 20);
	uint32_t before, after;

	count(&before);
	for (int i = 0; i < 40; i++) {
		int fds[SANDBOX_FDS_MAX] = { sandbox_wrap(bytes, 1 << 20), -1 };
		struct sandbox_answer a;

		assert_int_equal(sandbox_call(&readers[kind], &read_fd, 1, fds, 0, LONG, &a), 0);
		sandbox_answer_free(&a);
		close(fds[0]);
	}
	free(bytes);
	count(&after);
	assert_int_equal(after, before + 2);
	/* Not one with a large state, for many replies in the same file. */
	for (int i = 0; i < 400; i++) {
		struct sandbox_answer a;

		assert_int_equal(call(ECHO, 'x', after, LONG, &a), 0);
		free(a.bytes);
	}
}

/* The file of a reply is limited, which is memory outside of its address space. */
TEST(test_fill)
{
	if (SANITIZED)
		skip();
	fails(FILL, -EPIPE, LONG);
}

struct hanging {
	char folder[32];
	FILE *words;
	pid_t pid;
	int file;
};

/* Mount a file system of one file; false: not permitted. Then its reads hang. */
static bool begin_hanging(struct hanging *h)
{
	char program[PATH_MAX], path[64];
	int in[2], out[2];
	ssize_t size = readlink("/proc/self/exe", program, sizeof(program) - 32);

	signal(SIGPIPE, SIG_IGN); /* the program may end early */
	strcpy(h->folder, "/tmp/proftop-hang.XXXXXX");
	assert_true(size > 0 && !pipe2(in, O_CLOEXEC) && !pipe2(out, O_CLOEXEC));
	assert_non_null(mkdtemp(h->folder));
	program[size] = '\0';
	strcpy(strstr(program, "/symbols/sandbox/test_sandbox"), "/programs/hangfs");
	h->pid = fork();
	if (!h->pid) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		execl(program, "hangfs", h->folder, "/proc/self/exe", "1", NULL);
		_exit(1);
	}
	close(in[0]);
	close(out[1]);
	h->words = fdopen(in[1], "w");
	h->file = -1;
	if (read(out[0], path, 1) == 1) {
		snprintf(path, sizeof(path), "%s/f0", h->folder);
		h->file = open(path, O_RDONLY | O_CLOEXEC);
		assert_true(h->file >= 0);
		fputs("read\n", h->words);
		fflush(h->words);
	}
	close(out[0]);
	return h->file >= 0;
}

static void end_hanging(struct hanging *h)
{
	fputs("ok\n", h->words);
	fclose(h->words);
	if (h->file >= 0)
		close(h->file);
	waitpid(h->pid, NULL, 0);
	umount2(h->folder, MNT_DETACH);
	rmdir(h->folder);
}

/* The client does not wait for the locks of the file that it has in common with a worker. */
TEST(test_locked)
{
	const uint8_t request = LOCKED;
	uint32_t before, after;
	struct sandbox_answer a;
	struct hanging h;

	if (!begin_hanging(&h)) {
		end_hanging(&h);
		print_message("not permitted: mount of FUSE\n");
		skip();
	}
	count(&before);
	usleep(200000); /* until reads hang; if that is too short, the test says nothing */
	alarm(100);
	assert_int_equal(sandbox_call(&readers[kind], &request, 1, (const int[]){ h.file, -1 }, 0,
				      LONG, &a),
			 0);
	assert_int_equal(a.size, ANSWER_SIZE);
	free(a.bytes);
	assert_int_equal(call(COUNT, 0, 0, SECOND / 2, &a), -ETIME);
	count(&after);
	assert_int_equal(after, before + 1);
	alarm(0);
	end_hanging(&h);
}

/* To send does not wait for a reader that takes nothing. */
TEST(test_full_socket)
{
	struct sandbox_head head = { .size = 0 };
	int pair[2], rc = 0;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	for (int i = 0; i < 100000 && !rc; i++)
		rc = sandbox_message_send(pair[0], &head, NULL, 0, NULL);
	assert_int_equal(rc, -EAGAIN);
	close(pair[0]);
	close(pair[1]);
}

/* Its memory is limited; it goes on, since an allocation fails. */
TEST(test_greedy)
{
	struct sandbox_answer a;
	uint32_t generation;

	if (SANITIZED)
		skip();
	assert_int_equal(call(GREEDY, 0, 0, 6 * LONG, &a), -ENOMEM);
	count(&generation);
	/* It has no memory left. */
	sandbox_end(&readers[kind]);
}

#define NR_THREADS 8
#define NR_CALLS   50

static void *many_calls(void *arg)
{
	for (unsigned int i = 0; i < NR_CALLS; i++) {
		uint8_t with = (uint8_t)(uintptr_t)arg;
		struct sandbox_answer a;

		assert_int_equal(call(ECHO, with, 0, LONG, &a), 0);
		assert_int_equal(a.bytes[ANSWER_SIZE - 1], with);
		free(a.bytes);
	}
	return NULL;
}

TEST(test_threads)
{
	pthread_t threads[NR_THREADS];

	for (uintptr_t i = 0; i < NR_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, many_calls, (void *)i), 0);
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void *long_call(void *arg)
{
	struct sandbox_answer a;

	assert_int_equal(call(SLEEP, 0, 0, LONG, &a), 0);
	free(a.bytes);
	return NULL;
}

static int nr_looks;

static bool give_up(void *ctx)
{
	return ++nr_looks == *(const int *)ctx;
}

/* A call is given up when its caller does so; its worker is killed, and the next call has another.
 */
TEST(test_stopped)
{
	const struct sandbox_wait wait = { LONG, give_up, &(int){ 3 } };
	const uint8_t hang = HANG, echo[2] = { ECHO, 'e' };
	uint64_t begin_ns = time_now_ns();
	uint32_t before, after;
	struct sandbox_answer a;

	count(&before);
	assert_int_equal(sandbox_call_until(&readers[kind], &hang, 1, NULL, 0, &wait, &a),
			 -ECANCELED);
	assert_null(a.bytes);
	print_message("%llu ms\n", (unsigned long long)(time_now_ns() - begin_ns) / 1000000);
	assert_true(time_now_ns() - begin_ns < LONG / 2);
	count(&after);
	assert_int_equal(after, before + 1);
	assert_int_equal(sandbox_call_until(&readers[kind], echo, 2, NULL, 0, &wait, &a), 0);
	free(a.bytes);
}

/*
 * The time limit of a call begins when the worker is free: a call behind a long one would be
 * blamed for it, and the worker lost with all that it has open.
 */
TEST(test_queued)
{
	uint32_t before, after;
	struct sandbox_answer a;
	pthread_t thread;

	count(&before);
	assert_int_equal(pthread_create(&thread, NULL, long_call, NULL), 0);
	usleep(200000); /* if that is too short, the test says nothing */
	assert_int_equal(call(COUNT, 0, 0, SECOND, &a), 0);
	free(a.bytes);
	pthread_join(thread, NULL);
	count(&after);
	assert_int_equal(after, before);
}

/* A worker that had little CPU time is not killed at the first limit. */
TEST(test_starved)
{
	uint32_t before, after;
	struct sandbox_answer a;

	count(&before);
	assert_int_equal(call(NAP, 0, 0, SECOND / 2, &a), 0);
	free(a.bytes);
	count(&after);
	assert_int_equal(after, before);
}

static int nr_fds(void)
{
	int nr = 0;

	for (int fd = 0; fd < 256; fd++)
		nr += fcntl(fd, F_GETFD) >= 0;
	return nr;
}

/* After all that, no descriptor is left, and no process. */
TEST(test_end)
{
	struct sandbox_answer a;
	uint32_t generation;
	int before;

	count(&generation);
	before = nr_fds();
	for (int i = 0; i < 20; i++) {
		call(i % 2 ? DESCRIPTOR : DIE, 0, 0, LONG, &a);
		count(&generation);
	}
	assert_int_equal(nr_fds(), before);
	sandbox_stop();
	assert_int_equal(call(ECHO, 0, 0, LONG, &a), -ENOSYS);
}

static int start(void)
{
	const struct sandbox_reader *table[SANDBOX_NR_KINDS];

	for (unsigned int i = 0; i < SANDBOX_NR_KINDS; i++) {
		readers[i] = (struct sandbox_reader){
			.kind = (enum sandbox_kind)i,
			.name = "cage-test",
			.serve = serve,
			.memory_max = MEMORY_MAX,
			.map_reply = i == SANDBOX_PERFMAP,
		};
		table[i] = &readers[i];
	}
	tester = getpid();
	return sandbox_start(table);
}

static int set_up(void **state)
{
	return start();
}

static pid_t server(void)
{
	char path[64];
	FILE *f;
	int pid = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	f = fopen(path, "r");
	assert_non_null(f);
	while (fscanf(f, "%d", &pid) == 1 && !sandbox_has(pid))
		;
	fclose(f);
	return pid;
}

/* A server that does not answer costs one wait, not one for each call. */
TEST(test_stopped_server)
{
	uint32_t generation;
	struct sandbox_answer a;
	uint64_t start_ns;

	assert_int_equal(start(), 0);
	count(&generation);
	assert_int_equal(kill(server(), SIGSTOP), 0);
	assert_int_equal(call(DIE, 0, 0, LONG, &a), -EPIPE);
	start_ns = time_now_ns();
	alarm(100); /* it waited 600 s, or without end for its full socket */
	for (int i = 0; i < 300; i++)
		assert_int_equal(call(ECHO, 0, 0, LONG, &a), -ENOSYS);
	alarm(0);
	print_message("%llu ms\n", (unsigned long long)(time_now_ns() - start_ns) / 1000000);
	sandbox_stop();
}

int main(void)
{
	return run_unit_tests(set_up, NULL);
}
