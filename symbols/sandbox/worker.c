// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The sandbox's processes: the server, its workers, the rights that a worker gives up before it
 * reads a byte, and its reply; the server of readers of memory, and its client.
 */
#include "symbols/sandbox/internal.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/thread.h"

/* Make the buffer of @reply @max bytes. False: out of memory. */
static bool grow(struct sandbox_reply *reply, size_t max)
{
	uint8_t *grown = realloc(reply->bytes, max);

	assert(max > reply->size);
	if (!grown)
		return false;
	reply->bytes = grown;
	reply->max = max;
	return true;
}

static bool write_all(struct sandbox_reply *reply, const uint8_t *bytes, size_t size)
{
	assert(reply->file >= 0);
	while (size) {
		ssize_t n = pwrite(reply->file, bytes, size, (off_t)reply->written);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		bytes += n;
		size -= (size_t)n;
		reply->written += (size_t)n;
	}
	return true;
}

/* Write all bytes to the file. False: out of memory. */
static bool sandbox_flush(struct sandbox_reply *reply)
{
	size_t size = reply->size;

	reply->size = 0;
	return write_all(reply, reply->bytes, size);
}

/* Append to the bytes in memory. */
static bool append(struct sandbox_reply *reply, const void *bytes, size_t size)
{
	assert(reply->size <= reply->max);
	if (reply->size + size > reply->max &&
	    !grow(reply, MAX(2 * reply->max, MAX(reply->size + size, 4096U))))
		return false;
	if (size)
		memcpy(reply->bytes + reply->size, bytes, size);
	reply->size += size;
	return true;
}

size_t sandbox_put(struct sandbox_reply *reply, const void *bytes, size_t size)
{
	size_t at = reply->written + reply->size;
	size_t limit = reply->limit ? reply->limit : SANDBOX_REPLY_MAX;

	assert(bytes || !size);
	if (!reply->full && size <= limit - at &&
	    (reply->to_file && size > SANDBOX_PACKET_MAX
		     ? sandbox_flush(reply) && write_all(reply, bytes, size)
		     : append(reply, bytes, size)))
		return at;
	reply->full = true;
	return 0;
}

int sandbox_take(const struct sandbox_call *c, unsigned int i, size_t size, uint8_t **out)
{
	uint8_t *bytes = malloc(size + 1);
	size_t done = 0;

	assert(i < SANDBOX_FDS_MAX && c->fds[i] >= 0);
	if (!bytes)
		return -ENOMEM;
	while (done < size) {
		ssize_t n = pread(c->fds[i], bytes + done, size - done, (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			free(bytes);
			return -EIO;
		}
		done += (size_t)n;
	}
	bytes[size] = '\0';
	*out = bytes;
	return 0;
}

/*
 * Rights that a process gives up: seccomp(2), landlock(7), capabilities(7), user_namespaces(7).
 *
 * Runs in the server and the workers of the sandbox. A sanitizer needs more system calls and memory
 * than the lists allow: such builds have neither.
 */

#define NATIVE_LITTLE  (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
#define FILES_MAX      64U
#define READER_BUSY_US 1000000U	    /* with a real-time priority, without a wait */
#define STACK_SIZE     (16UL << 20) /* a demangler takes up to 8 MiB */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* Not in the headers of older systems; see landlock(7). */
#define LANDLOCK_CREATE 444

#define LANDLOCK_RESTRICT 446
#define LANDLOCK_VERSION  1U

/* Give up all capabilities but @keep, of the first 32. */
static int keep_capabilities(uint64_t keep)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	if (keep && syscall(SYS_capget, &header, data))
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(data); i++) {
		data[i].permitted &= (uint32_t)(keep >> 32 * i);
		data[i].effective &= data[i].permitted;
		data[i].inheritable = 0;
	}
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

static void limit(int which, rlim_t to)
{
	const struct rlimit l = { .rlim_cur = to, .rlim_max = to };

	setrlimit((__rlimit_resource_t)which, &l);
}

/* Make standard input, output and error /dev/null, close all other descriptors but @sock. */
static int only_socket(int sock)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	assert(sock >= 3);
	if (null < 0)
		return -errno;
	for (int fd = 0; fd < 3; fd++)
		if (dup2(null, fd) < 0)
			return -errno;
	for (int fd = 3; fd < sock; fd++)
		close(fd);
	if (syscall(SYS_close_range, sock + 1, ~0U, 0))
		for (int fd = sock + 1; fd < (int)sysconf(_SC_OPEN_MAX); fd++)
			close(fd);
	return 0;
}

/*
 * Give the new session the weight of its nice value: it is a group for the scheduler, inside of
 * which alone nice values count (sched(7), autogroup). Without that, or the right to, go on.
 */
static void weigh_session(void)
{
	int fd = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	dprintf(fd, "%d", HELPERS_NICE);
	close(fd);
}

/* The server: no terminal, no descriptors but @sock, no capabilities. 0 or -errno. */
static int sandbox_lock_server(int sock)
{
	int rc = only_socket(sock);

	if (rc)
		return rc;
	setsid();
	weigh_session();
	limit(RLIMIT_CORE, 0);
	/* The user of proftop may not trace it; without user namespaces, go on.
	 */
	prctl(PR_SET_DUMPABLE, 0);
	unshare(CLONE_NEWUSER);
	/* Root may without it. */
	if (!chroot("/proc/self/fdinfo") && chdir("/"))
		return -errno;
	rc = keep_capabilities(0);
	if (!rc && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		rc = -errno;
	return rc;
}

/* Forbid every path, if the kernel has Landlock. */
static void forbid_paths(void)
{
	/* The rights of the first version: to execute, write, read, list, remove and make. */
	const struct {
		uint64_t handled_access_fs;
	} rules = { (1U << 13) - 1 };
	long version = syscall(LANDLOCK_CREATE, NULL, 0, LANDLOCK_VERSION);
	long fd = version > 0 ? syscall(LANDLOCK_CREATE, &rules, sizeof(rules), 0) : -1;

	if (fd < 0)
		return;
	syscall(LANDLOCK_RESTRICT, fd, 0);
	close((int)fd);
}

/* The ELF header of this program, made by the linker. */
extern const Elf64_Ehdr __ehdr_start;

#define NR		    offsetof(struct seccomp_data, nr)
#define ARCH		    offsetof(struct seccomp_data, arch)
#define ARG(n)		    (offsetof(struct seccomp_data, args[n]))
#define LOAD(at)	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (at))
#define RETURN(value)	    BPF_STMT(BPF_RET | BPF_K, (value))
#define SANDBOX_LOCK_REFUSE RETURN(SECCOMP_RET_ERRNO | EPERM)
#define KILL		    RETURN(SECCOMP_RET_KILL_PROCESS)
#define ALLOW		    RETURN(SECCOMP_RET_ALLOW)

/* The system call @name has result @then. */
#define ON(name, then) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), then

/* @name is allowed without the bits @mask in argument @n (low word). */
#define WITHOUT(name, n, mask)                                                                     \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 4), LOAD(ARG(n)),                       \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (mask), 0, 1), KILL, ALLOW

#define WITHOUT_BOTH(name, n, mask, n2, mask2)                                                     \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 6), LOAD(ARG(n)),                       \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (mask), 2, 0), LOAD(ARG(n2)),                 \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (mask2), 0, 1), KILL, ALLOW

/* @name is allowed with @value in argument @n, else refused. */
#define WITH(name, n, value)                                                                       \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 4), LOAD(ARG(n)),                       \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, 1), ALLOW, SANDBOX_LOCK_REFUSE

/* A filter in the making. */
struct filter {
	struct sock_filter list[160];
	unsigned short nr;
};

static void add(struct filter *f, const struct sock_filter *list, size_t nr)
{
	assert(f->nr + nr <= ARRAY_SIZE(f->list));
	memcpy(f->list + f->nr, list, nr * sizeof(*list));
	f->nr = (unsigned short)(f->nr + nr);
}

/* Add the calls of workers and readers. */
static void add_calls(struct filter *f)
{
	const struct sock_filter list[] = {
		ON(read, ALLOW),
		ON(pread64, ALLOW),
		ON(lseek, ALLOW),
		ON(write, ALLOW),
		ON(pwrite64, ALLOW),
		ON(close, ALLOW),
		ON(fstat, ALLOW),
		ON(brk, ALLOW),
		ON(munmap, ALLOW),
		ON(mremap, ALLOW),
		ON(madvise, ALLOW),
		ON(futex, ALLOW),
		ON(clock_gettime, ALLOW),
		ON(getrandom, ALLOW),
		ON(sysinfo, ALLOW),
		ON(rt_sigprocmask, ALLOW),
		ON(rt_sigreturn, ALLOW),
		ON(exit, ALLOW),
		ON(exit_group, ALLOW),
		/* Shared memory has no limit: unmapped pages remain. */
		WITHOUT_BOTH(mmap, 2, PROT_EXEC, 3, MAP_SHARED),
		WITHOUT(mprotect, 2, PROT_EXEC),
		/* fstat() of some C libraries. Of any path, but for chroot(2). */
		WITH(newfstatat, 3, AT_EMPTY_PATH),
		ON(fcntl, SANDBOX_LOCK_REFUSE),
		/* libdw looks for files beside its file, and goes on without. */
		ON(openat, SANDBOX_LOCK_REFUSE),
#ifdef SYS_open
		ON(open, SANDBOX_LOCK_REFUSE),
		ON(readlink, SANDBOX_LOCK_REFUSE),
		ON(access, SANDBOX_LOCK_REFUSE),
#endif
		ON(readlinkat, SANDBOX_LOCK_REFUSE),
		ON(faccessat, SANDBOX_LOCK_REFUSE),
		ON(getpid, SANDBOX_LOCK_REFUSE),
		ON(gettid, SANDBOX_LOCK_REFUSE),
		ON(tgkill, SANDBOX_LOCK_REFUSE),
		ON(prlimit64, SANDBOX_LOCK_REFUSE),
		KILL,
	};

	add(f, list, ARRAY_SIZE(list));
}

/* Allow the system calls of workers, or of readers of memory. */
static int filter_calls(bool reader)
{
	/* As the kernel makes AUDIT_ARCH_X86_64 and the like. */
	const uint32_t arch = __ehdr_start.e_machine | __AUDIT_ARCH_64BIT |
			      (NATIVE_LITTLE ? __AUDIT_ARCH_LE : 0);
	const struct sock_filter begin[] = {
		LOAD(ARCH),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, arch, 1, 0),
		KILL,
		LOAD(NR),
	};
	const struct sock_filter workers[] = {
		ON(recvmsg, ALLOW),
		/* Not sendmsg(2): to drop a descriptor may wait for its file system. */
		ON(writev, ALLOW),
	};
	const struct sock_filter readers[] = {
		ON(process_vm_readv, ALLOW),
#ifdef SYS_epoll_wait
		ON(epoll_wait, ALLOW),
#endif
		ON(epoll_pwait, ALLOW),
		ON(getcpu, ALLOW),
		/* They may not write to rings of the kernel, which they map to read. */
		ON(mprotect, SANDBOX_LOCK_REFUSE),
		/* A worker has another root folder, or Landlock. */
		ON(newfstatat, SANDBOX_LOCK_REFUSE),
		/* One thread needs none, and FUTEX_LOCK_PI lends the priority to others. */
		ON(futex, SANDBOX_LOCK_REFUSE),
	};
	struct filter f = { .nr = 0 };
	struct sock_fprog program = { .filter = f.list };

	add(&f, begin, ARRAY_SIZE(begin));
	if (reader)
		add(&f, readers, ARRAY_SIZE(readers));
	else
		add(&f, workers, ARRAY_SIZE(workers));
	add_calls(&f);
	program.len = f.nr;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno : 0;
}

/* Take the limits of both kinds. */
static void take_limits(void)
{
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_NPROC, 0);
	limit(RLIMIT_NOFILE, FILES_MAX);
	limit(RLIMIT_STACK, STACK_SIZE);
	prctl(PR_SET_DUMPABLE, 0);
}

/* A worker: all of the above, with only descriptor @sock. 0 or -errno: it must not read then. */
static int sandbox_lock_worker(uint64_t memory_max, uint64_t file_max)
{
	assert(memory_max);
	take_limits();
	forbid_paths();
	limit(RLIMIT_CPU, SANDBOX_CPU_SECONDS);
	if (SANITIZED)
		return 0;
	limit(RLIMIT_AS, memory_max);
	limit(RLIMIT_FSIZE, file_max);
	return filter_calls(false);
}

/* The server of readers of memory: no descriptors but @sock, the capabilities in @keep. */
static int lock_readers(int sock, uint64_t keep)
{
	int rc = only_socket(sock);

	if (rc)
		return rc;
	limit(RLIMIT_CORE, 0);
	prctl(PR_SET_DUMPABLE, 0);
	rc = keep_capabilities(keep);
	if (!rc && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		rc = -errno;
	return rc;
}

int sandbox_memory_lock(uint64_t memory_max)
{
	int rc = keep_capabilities(1ULL << CAP_SYS_PTRACE);

	assert(memory_max);
	if (!rc && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		rc = -errno;
	/* Not Landlock: it would forbid the memory of others. */
	take_limits();
	if (rc || SANITIZED)
		return rc;
	limit(RLIMIT_AS, memory_max);
	limit(RLIMIT_FSIZE, 0);
	limit(RLIMIT_RTTIME, READER_BUSY_US);
	return filter_calls(true);
}

/*
 * The server of the sandbox, and its workers.
 *
 * Two processes with one thread each. The server forks workers on request and does nothing else;
 * the kernel collects them. A worker serves calls until the other end of its socket is closed.
 */

/* Fewer bytes are not worth a page. */
#define MAPPED_MIN 2048U

/* The connection of a worker to its caller. */
struct sandbox_link {
	int sock;
	const struct sandbox_reader *reader;
	struct sandbox_head head;
	uint8_t request[SANDBOX_REQUEST_MAX];
};

/* Send the reply of @call with the result @code, or SANDBOX_ASKS; close its descriptors. */
static int send_reply(struct sandbox_link *l, struct sandbox_call *call, int code)
{
	struct sandbox_reply *reply = &call->reply;
	size_t packet, packet_max = l->reader->map_reply ? MAPPED_MIN : SANDBOX_PACKET_MAX;
	int rc;

	if (code >= 0 && reply->full)
		code = -EFBIG;
	for (unsigned int i = 0; i < SANDBOX_FDS_MAX; i++)
		if (call->fds[i] >= 0)
			close(call->fds[i]);
	if (code >= 0 && (reply->written || reply->size > packet_max) && !sandbox_flush(reply))
		code = -ENOMEM;
	/* A reply is in the packet, or in the file. */
	packet = code < 0 || reply->written ? 0 : reply->size;
	l->head.code = code;
	l->head.size = code < 0 ? 0 : reply->written + packet;
	rc = sandbox_message_answer(l->sock, &l->head, reply->bytes, packet);
	close(reply->file);
	return rc;
}

/*
 * Make @reply empty, with its file. A buffer that fits into a packet is kept: new pages cost more
 * than names.
 */
static void empty(struct sandbox_reply *reply, int file)
{
	bool keep = reply->max <= 2 * SANDBOX_PACKET_MAX;
	const struct sandbox_reply was = *reply;

	if (!keep)
		free(was.bytes);
	*reply = (struct sandbox_reply){
		.bytes = keep ? was.bytes : NULL,
		.max = keep ? was.max : 0,
		.limit = was.limit,
		.to_file = true,
		.file = file,
	};
}

/* Take the next request into @call; its reply becomes empty. */
static int take_request(struct sandbox_link *l, struct sandbox_call *call)
{
	int fds[SANDBOX_MESSAGE_FDS];
	int rc = sandbox_message_receive(l->sock, &l->head, l->request, sizeof(l->request),
					 &call->size, fds);

	if (rc)
		return rc;
	call->request = l->request;
	/* The file of the reply is the first one. */
	empty(&call->reply, fds[0]);
	memcpy(call->fds, fds + 1, sizeof(call->fds));
	return 0;
}

int sandbox_ask(struct sandbox_call *c)
{
	if (!c->link)
		return -ENOSYS;
	if (send_reply(c->link, c, SANDBOX_ASKS) || take_request(c->link, c))
		_exit(0);
	return 0;
}

static void __attribute__((noreturn))
worker_main(int sock, pid_t server, const struct sandbox_reader *reader)
{
	/* Static: a stack copy of a sample would hold nothing else. One thread, one worker. */
	static struct sandbox_link link;
	struct sandbox_call call = { .reply.limit = reader->reply_max, .link = &link };

	prctl(PR_SET_NAME, reader->name);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != server ||
	    sandbox_lock_worker(reader->memory_max,
				reader->reply_max ? reader->reply_max : SANDBOX_REPLY_MAX))
		_exit(1);
	link.sock = sock;
	link.reader = reader;
	while (!take_request(&link, &call) && !send_reply(&link, &call, reader->serve(&call)))
		;
	_exit(0);
}

/* Fork a worker: its socket and its pidfd go to the client. 0 or -errno. */
static int start_worker(int sock, const struct sandbox_reader *reader, struct sandbox_head *head)
{
	int pair[2], fds[SANDBOX_MESSAGE_FDS] = SANDBOX_NO_FDS;
	pid_t server = getpid(), pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	pid = fork();
	if (!pid) {
		close(sock);
		close(pair[0]);
		worker_main(pair[1], server, reader);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return -EAGAIN;
	}
	fds[0] = pair[0];
	fds[1] = (int)syscall(SYS_pidfd_open, pid, 0); /* Linux 5.3 */
	head->code = pid;
	sandbox_message_send(sock, head, NULL, 0, fds);
	close(pair[0]);
	if (fds[1] >= 0)
		close(fds[1]);
	return 0;
}

void sandbox_server_main(int sock, pid_t parent,
			 const struct sandbox_reader *const readers[SANDBOX_NR_KINDS])
{
	struct sandbox_head head;
	sigset_t none;
	size_t size;

	prctl(PR_SET_NAME, "proftop-sandbox");
	setpriority(PRIO_PROCESS, 0, HELPERS_NICE); /* needs CAP_SYS_NICE */
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	signal(SIGCHLD, SIG_IGN); /* workers are collected by the kernel */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (unsigned int i = 0; i < SANDBOX_NR_KINDS; i++)
		if (readers[i] && readers[i]->prepare)
			readers[i]->prepare();
	/* After the change of rights, which clears the signal. */
	if (sandbox_lock_server(sock) || prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(1);
	while (!sandbox_message_receive(sock, &head, NULL, 0, &size, NULL)) {
		if (head.size >= SANDBOX_NR_KINDS || !readers[head.size] ||
		    start_worker(sock, readers[head.size], &head)) {
			head.code = 0;
			sandbox_message_send(sock, &head, NULL, 0, NULL);
		}
	}
	_exit(0);
}

/*
 * The server of memory readers, and its client.
 *
 * Processes with one thread each. The server forks readers on request and does nothing else; the
 * kernel collects them. They end with it, and it ends with proftop.
 */

#define SLOTS	  1024U /* of readers; a power of two */
#define PROBES	  8U
#define ANSWER_NS 2000000000ULL
#define REST_NS	  20000000000ULL /* no request after one without an answer: it was stopped */

static struct {
	pthread_mutex_t lock; /* of the socket */
	sandbox_memory_fn run;
	int sock;		/* -1: there is no server */
	uint64_t rest_until_ns; /* 0: all requests were answered */
	bool is_refused;
	int pidfd;
	atomic_int pid;
	atomic_ullong ended_ns;			       /* CPU time of readers that have ended */
	_Alignas(CACHELINE) atomic_int readers[SLOTS]; /* by pid; relaxed. 0: free */
	atomic_ullong cpu_ns[SLOTS];		       /* of each, as last seen */
} server = { .lock = PTHREAD_MUTEX_INITIALIZER, .sock = -1, .pidfd = -1 };

bool sandbox_memory_is_on(void)
{
	return server.sock >= 0;
}

bool sandbox_memory_is_refused(void)
{
	return server.is_refused;
}

/* ---- the server ---- */

static void close_all(const int fds[SANDBOX_MESSAGE_FDS])
{
	for (unsigned int i = 0; i < SANDBOX_MESSAGE_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* Fork a reader: its pidfd goes to the client. */
static void serve(int sock, struct sandbox_head *head, const void *start, size_t size,
		  const int fds[SANDBOX_MESSAGE_FDS])
{
	int out[SANDBOX_MESSAGE_FDS] = SANDBOX_NO_FDS;
	pid_t parent = getpid(), pid = -1;
	int probe = (int)syscall(SYS_pidfd_open, parent, 0); /* Linux 5.3 */

	/* Without a pidfd its owner could not end it. */
	if (probe >= 0)
		pid = fork();
	if (!pid) {
		close(sock);
		close(probe);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			server.run(start, size, fds);
		_exit(1);
	}
	if (probe >= 0)
		close(probe);
	if (pid > 0)
		out[0] = (int)syscall(SYS_pidfd_open, pid, 0);
	head->code = pid < 0 ? -EAGAIN : (int)pid;
	sandbox_message_send(sock, head, NULL, 0, out);
	close_all(out);
}

static void __attribute__((noreturn)) server_main(int sock, pid_t parent)
{
	const uint64_t keep = 1ULL << CAP_SYS_PTRACE | 1ULL << CAP_SYS_NICE;
	_Alignas(8) uint8_t start[SANDBOX_MEMORY_START];
	int fds[SANDBOX_MESSAGE_FDS];
	struct sandbox_head head;
	sigset_t none;
	size_t size;

	prctl(PR_SET_NAME, "proftop-readers");
	/* No signal of the terminal. */
	setpgid(0, 0);
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	signal(SIGCHLD, SIG_IGN); /* readers are collected by the kernel */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* After the change of rights, which clears the signal. */
	if (lock_readers(sock, keep) || prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(1);
	while (!sandbox_message_receive(sock, &head, start, sizeof(start), &size, fds)) {
		serve(sock, &head, start, size, fds);
		close_all(fds);
	}
	_exit(0);
}

/* Return whether @cap is in the effective set of this thread. */
static bool has_cap(unsigned int cap)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	return !syscall(SYS_capget, &header, data) && data[cap / 32].effective & 1U << cap % 32;
}

void sandbox_memory_start(sandbox_memory_fn run)
{
	pid_t parent = getpid(), pid;
	int pair[2];

	if (!has_cap(CAP_SYS_PTRACE))
		return;
	server.is_refused = true;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return;
	server.run = run;
	pid = fork();
	if (!pid) {
		close(pair[0]);
		server_main(pair[1], parent);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return;
	}
	server.is_refused = false;
	server.sock = pair[0];
	server.pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	atomic_store_explicit(&server.pid, pid, memory_order_relaxed);
}

void sandbox_memory_stop(void)
{
	pid_t pid = atomic_exchange_explicit(&server.pid, 0, memory_order_relaxed);

	if (pid <= 0 || syscall(SYS_pidfd_send_signal, server.pidfd, SIGKILL, NULL, 0))
		return;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* ---- the client ---- */

/* Keep the pid of a reader. False: there are too many. */
static bool keep_pid(struct sandbox_memory_reader *p)
{
	for (uint32_t i = 0; i < PROBES; i++) {
		uint32_t slot = ((uint32_t)p->pid + i) & (SLOTS - 1);
		int none = 0;

		if (!atomic_compare_exchange_strong_explicit(&server.readers[slot], &none, p->pid,
							     memory_order_relaxed,
							     memory_order_relaxed))
			continue;
		p->slot = slot;
		return true;
	}
	return false;
}

bool sandbox_memory_has(pid_t pid)
{
	if (server.sock < 0 || pid <= 0)
		return false;
	for (uint32_t i = 0; i < PROBES; i++)
		if (atomic_load_explicit(&server.readers[((uint32_t)pid + i) & (SLOTS - 1)],
					 memory_order_relaxed) == pid)
			return true;
	return pid == atomic_load_explicit(&server.pid, memory_order_relaxed);
}

/* Return the CPU time of @pid; 0: it has ended. */
static uint64_t cpu_ns_of(pid_t pid)
{
	clockid_t clock;

	return pid <= 0 || clock_getcpuclockid(pid, &clock) ? 0 : time_clock_ns(clock);
}

/* Return the CPU time of the reader in @slot; of one that was killed as last seen. */
static uint64_t reader_cpu_ns(uint32_t slot)
{
	uint64_t was_ns = atomic_load_explicit(&server.cpu_ns[slot], memory_order_relaxed);
	uint64_t cpu_ns =
		cpu_ns_of(atomic_load_explicit(&server.readers[slot], memory_order_relaxed));

	assert(slot < ARRAY_SIZE(server.readers));
	if (cpu_ns <= was_ns)
		return was_ns;
	atomic_store_explicit(&server.cpu_ns[slot], cpu_ns, memory_order_relaxed);
	return cpu_ns;
}

uint64_t sandbox_memory_reader_cpu_ns(const struct sandbox_memory_reader *p)
{
	return p->pid > 0 ? reader_cpu_ns(p->slot) : 0;
}

uint64_t sandbox_memory_cpu_ns(void)
{
	uint64_t sum = atomic_load_explicit(&server.ended_ns, memory_order_relaxed);

	if (server.sock < 0)
		return 0;
	for (uint32_t i = 0; i < SLOTS; i++)
		sum += reader_cpu_ns(i);
	return sum;
}

static void kill_process(int pidfd)
{
	if (pidfd < 0)
		return;
	syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	close(pidfd);
}

bool sandbox_memory_is_dead(const struct sandbox_memory_reader *p)
{
	/* A pidfd is readable from the end of its process on; there is none if that was before. */
	struct pollfd fd = { .fd = p->pidfd, .events = POLLIN };

	return p->pid > 0 && (p->pidfd < 0 || poll(&fd, 1, 0) > 0);
}

void sandbox_memory_end(struct sandbox_memory_reader *p)
{
	if (p->pid <= 0)
		return;
	atomic_fetch_add_explicit(&server.ended_ns, reader_cpu_ns(p->slot), memory_order_relaxed);
	atomic_store_explicit(&server.cpu_ns[p->slot], 0, memory_order_relaxed);
	kill_process(p->pidfd);
	atomic_store_explicit(&server.readers[p->slot], 0, memory_order_relaxed);
	p->pid = 0;
}

/* Wait for an answer of the server until @deadline_ns. 0 or -errno. */
static int wait_for_answer(uint64_t deadline_ns)
{
	struct pollfd fd = { .fd = server.sock, .events = POLLIN };

	for (;;) {
		uint64_t now_ns = time_now_ns();
		int ms = now_ns < deadline_ns ? (int)((deadline_ns - now_ns) / 1000000) + 1 : 0;
		int nr = poll(&fd, 1, ms);

		if (nr == 1)
			return 0;
		if (!nr || errno != EINTR)
			return -ETIME;
	}
}

/* Have the server fork a reader. 0 or -errno. Under the lock. */
static int request(struct sandbox_memory_reader *out, const void *start, size_t start_size,
		   const int fds[SANDBOX_MESSAGE_FDS])
{
	static uint32_t serial;
	struct sandbox_head head = { .serial = ++serial, .size = start_size };
	const uint64_t now_ns = time_now_ns();
	int got[SANDBOX_MESSAGE_FDS], rc = -ETIME;
	size_t size;

	if (now_ns >= server.rest_until_ns)
		rc = sandbox_message_send(server.sock, &head, start, start_size, fds);
	while (!rc) {
		rc = wait_for_answer(now_ns + ANSWER_NS);
		if (rc)
			server.rest_until_ns = time_now_ns() + REST_NS;
		else
			rc = sandbox_message_receive(server.sock, &head, NULL, 0, &size, got);
		if (rc)
			return rc;
		if (head.serial == serial)
			break;
		/* The answer to a request that was given up. */
		kill_process(got[0]);
	}
	if (!rc && head.code <= 0)
		rc = head.code ? head.code : -EIO;
	if (!rc)
		*out = (struct sandbox_memory_reader){ .pid = head.code, .pidfd = got[0] };
	return rc;
}

void sandbox_memory_tidy(void)
{
	struct pollfd fd = { .fd = server.sock, .events = POLLIN };
	int got[SANDBOX_MESSAGE_FDS];
	struct sandbox_head head;
	size_t size;

	if (pthread_mutex_trylock(&server.lock))
		return;
	while (server.rest_until_ns && poll(&fd, 1, 0) == 1 &&
	       !sandbox_message_receive(server.sock, &head, NULL, 0, &size, got))
		kill_process(got[0]);
	pthread_mutex_unlock(&server.lock);
}

int sandbox_memory_fork(struct sandbox_memory_reader *out, const void *start, size_t size,
			const int fds[SANDBOX_MESSAGE_FDS])
{
	int rc;

	*out = (struct sandbox_memory_reader){ .pid = 0 };
	if (size > SANDBOX_MEMORY_START)
		return -E2BIG;
	pthread_mutex_lock(&server.lock);
	rc = request(out, start, size, fds);
	pthread_mutex_unlock(&server.lock);
	if (rc || keep_pid(out))
		return rc;
	kill_process(out->pidfd);
	out->pid = 0;
	return -EAGAIN;
}
