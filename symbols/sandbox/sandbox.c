// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The client of the sandbox: calls with time limits, workers that are replaced, files in memory,
 * messages.
 */
#include "symbols/sandbox/internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "symbols/base/base.h"

#define SIZE_SEALS  (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW)
#define NOEXEC_SEAL 8U /* MFD_NOEXEC_SEAL of Linux 6.3, which a sysctl may require */

int sandbox_file(void)
{
	const unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create("proftop", flags | NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("proftop", flags);
	return fd < 0 ? -errno : fd;
}

int sandbox_wrap(const void *bytes, size_t size)
{
	int fd = sandbox_file();

	assert(bytes || !size);
	if (fd < 0)
		return fd;
	if (fd_write_all(fd, bytes, size)) {
		close(fd);
		return -ENOMEM;
	}
	sandbox_fix_size(fd);
	return fd;
}

void sandbox_fix_size(int fd)
{
	assert(fd >= 0);
	fcntl(fd, F_ADD_SEALS, SIZE_SEALS);
}

void *sandbox_memory_share(size_t size, int *fd)
{
	void *map;

	assert(size && fd);
	*fd = sandbox_file();
	if (*fd < 0 || ftruncate(*fd, (off_t)size))
		return NULL;
	/* No reader can cut it under its owner. */
	sandbox_fix_size(*fd);
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	return map == MAP_FAILED ? NULL : map;
}

/* Return the bytes of a copy, after sandbox_fix_size(); 0: of another file, which is not looked at.
 */
static size_t sandbox_file_copied(int fd)
{
	int seals = fd < 0 ? -1 : fcntl(fd, F_GET_SEALS);
	struct stat st;

	return seals >= 0 && seals & F_SEAL_GROW && !fstat(fd, &st) ? (size_t)st.st_blocks * 512
								    : 0;
}

/*
 * Seal a reply for good: from here on nothing can change it. False: it is larger than the @size
 * that the caller counts as memory, or smaller; or it has a hole: a read of that would allocate
 * memory here, or end this process.
 */
static bool sandbox_file_seal(int fd, size_t size)
{
	struct stat st;

	return !fcntl(fd, F_ADD_SEALS, SIZE_SEALS | F_SEAL_WRITE) && !fstat(fd, &st) &&
	       (uint64_t)st.st_size == size && lseek(fd, 0, SEEK_HOLE) == st.st_size;
}

/*
 * The client of the sandbox: calls, time limits, and workers that are replaced.
 *
 * Any thread. Invariant: a worker has at most one call, and is killed after an error in a call: no
 * late or second answer is taken for that of another call. Serial numbers are random: no answer is
 * right before its call. A large reply is in a memfd made here: a descriptor of a worker
 * could be of a file system that does not respond, and its own files would have no limit.
 */

/* For the server to fork a worker, on a busy machine. */
#define START_NS  10000000000ULL
#define ERRNO_MAX 4095		 /* of the kernel */
#define RETRY_NS  20000000000ULL /* without requests to a server that did not answer */
#define STEP_NS	  100000000ULL	 /* between two looks whether the caller still waits */
#define SERVER	  SANDBOX_NR_KINDS

/* Of RLIMIT_CPU, see worker.c; checked at each 64th call. */
#define WORN_NS (SANDBOX_CPU_SECONDS * 1000000000ULL / 2)

#define WORN_CALLS 64U

/*
 * Of a worker with more, or with this part of its memory, a new one takes over: one that was taken
 * over keeps all that it gets.
 */
#define SANDBOX_HELD_MAX ((size_t)16 << 20)

#define HELD_PART 64

struct worker {
	pthread_mutex_t lock;
	int sock, pidfd;     /* -1: not running */
	uint32_t generation; /* the number of workers started */
	uint32_t nr_calls;
	int file;	  /* for its reply; -1: not made yet */
	size_t file_size; /* of the largest reply in it */
	size_t held;	  /* bytes of copies and replies that it may have kept */
	bool asks;	  /* it waits in the middle of a call */
	clockid_t clock;  /* its CPU time */
};

static struct {
	pthread_mutex_t lock; /* of the socket of the server */
	bool started;
	int sock, server_fd; /* server_fd: pidfd; -1: none */
	uint32_t serial;     /* of the last request to the server */
	uint64_t failed_ns;  /* time of a request that it did not answer; 0: none */
	struct worker workers[SANDBOX_NR_KINDS];
	/* CPU time of workers that have ended; relaxed. */
	atomic_ullong ended_ns;
	/* For sandbox_has(), relaxed: of the workers, then of the server; 0: none. */
	_Alignas(CACHELINE) atomic_int pids[SANDBOX_NR_KINDS + 1];
} sandbox = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.sock = -1,
	.server_fd = -1,
	.workers = { [0 ... SANDBOX_NR_KINDS - 1] = { .lock = PTHREAD_MUTEX_INITIALIZER,
						      .sock = -1,
						      .pidfd = -1,
						      .file = -1 } },
};

bool sandbox_is_on(void)
{
	return sandbox.started;
}

int sandbox_start(const struct sandbox_reader *const readers[SANDBOX_NR_KINDS])
{
	pid_t parent = getpid(), pid;
	int pair[2];

	/* From here on nothing is read by this process, also when there is no server. */
	sandbox.started = true;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	pid = fork();
	if (pid < 0) {
		close(pair[0]);
		close(pair[1]);
		return -EAGAIN;
	}
	if (!pid) {
		close(pair[0]);
		sandbox_server_main(pair[1], parent, readers);
	}
	close(pair[1]);
	if (sandbox.sock >= 0)
		close(sandbox.sock);
	if (sandbox.server_fd >= 0)
		close(sandbox.server_fd);
	sandbox.sock = pair[0];
	sandbox.server_fd = (int)syscall(SYS_pidfd_open, pid, 0); /* Linux 5.3 */
	sandbox.failed_ns = 0;
	atomic_store_explicit(&sandbox.pids[SERVER], pid, memory_order_relaxed);
	return 0;
}

/* End the worker: it may be in the middle of a call. Under its lock. */
static void end_worker(struct worker *w)
{
	bool ran = w->sock >= 0 && w->clock != CLOCK_MONOTONIC;
	uint64_t cpu_ns = ran ? time_clock_ns(w->clock) : 0;

	/* First: the sum of both may be too large for a moment, but never falls. */
	atomic_fetch_add_explicit(&sandbox.ended_ns, cpu_ns, memory_order_relaxed);
	if (w->pidfd >= 0) {
		syscall(SYS_pidfd_send_signal, w->pidfd, SIGKILL, NULL, 0);
		close(w->pidfd);
	}
	if (w->sock >= 0)
		close(w->sock);
	if (w->file >= 0)
		close(w->file);
	w->sock = w->pidfd = w->file = -1;
	w->held = w->file_size = 0;
	w->asks = false;
	atomic_store_explicit(&sandbox.pids[w - sandbox.workers], 0, memory_order_relaxed);
}

void sandbox_stop(void)
{
	pid_t pid = atomic_exchange_explicit(&sandbox.pids[SERVER], 0, memory_order_relaxed);

	/* A call that still runs keeps its lock: the kernel ends its worker with the server. */
	for (int i = 0; i < SANDBOX_NR_KINDS; i++) {
		if (pthread_mutex_trylock(&sandbox.workers[i].lock))
			continue;
		end_worker(&sandbox.workers[i]);
		pthread_mutex_unlock(&sandbox.workers[i].lock);
	}
	if (pid <= 0)
		return;
	/* Not permitted: it ends after this process. */
	if (syscall(SYS_pidfd_send_signal, sandbox.server_fd, SIGKILL, NULL, 0))
		return;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* Wait until @sock has a packet or is closed. 0, -ETIME or -ECANCELED. */
static int wait_for(int sock, const struct sandbox_wait *wait)
{
	uint64_t deadline_ns = time_now_ns() + wait->timeout_ns, now_ns;
	struct pollfd fd = { .fd = sock, .events = POLLIN };

	assert(sock >= 0);
	while ((now_ns = time_now_ns()) < deadline_ns) {
		uint64_t left_ns = deadline_ns - now_ns;
		int rc;

		if (wait->stopped)
			left_ns = MIN(left_ns, STEP_NS);
		rc = poll(&fd, 1, (int)(left_ns / 1000000) + 1);
		if (rc > 0)
			return 0;
		if (rc && errno != EINTR)
			break;
		if (wait->stopped && wait->stopped(wait->ctx))
			return -ECANCELED;
	}
	return -ETIME;
}

/*
 * Wait for the answer of @w: for wait->timeout_ns, and as long again, SANDBOX_WAITS times in all,
 * while it has little CPU time because the machine is busy; not if it had none in the last one.
 * @cpu_ns: its CPU time before.
 */
static int wait_answer(const struct worker *w, const struct sandbox_wait *wait, uint64_t cpu_ns)
{
	uint64_t used_ns = 0;

	for (int i = 0; i < SANDBOX_WAITS; i++) {
		int rc = wait_for(w->sock, wait);
		uint64_t now_ns = rc == -ETIME ? time_clock_ns(w->clock) - cpu_ns : used_ns;

		if (rc != -ETIME || now_ns == used_ns || now_ns >= wait->timeout_ns / 2)
			return rc;
		used_ns = now_ns;
	}
	return -ETIME;
}

static void close_fds(const int *fds, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/*
 * Send @head to the server and take its answer: a worker. Under the lock of its socket. An answer
 * to an earlier request was late; its worker ends, since its socket is closed here.
 */
static int ask_server(struct sandbox_head *head, int fds[SANDBOX_MESSAGE_FDS])
{
	const uint64_t deadline_ns = time_now_ns() + START_NS;
	uint32_t serial = ++sandbox.serial;
	struct sandbox_wait wait = { .stopped = NULL };
	size_t size;
	int rc;

	/* Not each call waits for a server that hangs. */
	if (sandbox.failed_ns && time_now_ns() - sandbox.failed_ns < RETRY_NS)
		return -ETIME;
	head->serial = serial;
	rc = sandbox_message_send(sandbox.sock, head, NULL, 0, NULL);
	while (!rc) {
		const uint64_t now_ns = time_now_ns();

		wait.timeout_ns = deadline_ns - MIN(now_ns, deadline_ns);
		rc = wait_for(sandbox.sock, &wait);
		if (!rc)
			rc = sandbox_message_receive(sandbox.sock, head, NULL, 0, &size, fds);
		if (!rc && head->serial == serial)
			break;
		close_fds(fds, SANDBOX_MESSAGE_FDS);
		for (uint32_t i = 0; i < SANDBOX_MESSAGE_FDS; i++)
			fds[i] = -1;
	}
	sandbox.failed_ns = rc == -ETIME ? time_now_ns() : 0;
	return rc;
}

/* Have the server fork a worker. Under its lock. 0 or -ENOSYS. */
static int start_worker(struct worker *w, enum sandbox_kind kind)
{
	struct sandbox_head head = { .size = kind };
	int fds[SANDBOX_MESSAGE_FDS] = SANDBOX_NO_FDS;
	int rc;

	assert(kind < SANDBOX_NR_KINDS);
	assert(w->sock < 0);
	pthread_mutex_lock(&sandbox.lock);
	rc = ask_server(&head, fds);
	pthread_mutex_unlock(&sandbox.lock);
	if (rc || head.code <= 0 || fds[0] < 0 || fds[1] < 0) {
		close_fds(fds, SANDBOX_MESSAGE_FDS);
		return -ENOSYS;
	}
	w->sock = fds[0];
	w->pidfd = fds[1];
	w->generation++;
	if (clock_getcpuclockid(head.code, &w->clock))
		w->clock = CLOCK_MONOTONIC;
	atomic_store_explicit(&sandbox.pids[kind], head.code, memory_order_relaxed);
	return 0;
}

void sandbox_answer_free(struct sandbox_answer *a)
{
	if (a->mapped)
		munmap(a->bytes, a->size);
	else
		free(a->bytes);
	*a = (struct sandbox_answer){ 0 };
}

/*
 * Map the bytes of the reply file, which nothing can change from here on: the next call has another
 * one.
 */
static int map_bytes(struct worker *w, size_t size, struct sandbox_answer *out)
{
	void *bytes;

	assert(w->file >= 0 && size);
	if (!sandbox_file_seal(w->file, size))
		return -EBADMSG;
	bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, w->file, 0);
	close(w->file);
	w->file = -1;
	if (bytes == MAP_FAILED)
		return -ENOMEM;
	*out = (struct sandbox_answer){ .bytes = bytes, .size = size, .mapped = true };
	return 0;
}

/*
 * Copy the bytes of the reply file: its worker may change it until it is killed. Only pread(2) does
 * not wait: a write of the worker, from a page of a file that does not respond, holds its locks.
 */
static int copy_bytes(int file, size_t size, struct sandbox_answer *out)
{
	size_t done = 0;

	out->bytes = malloc(size + 1);
	if (!out->bytes)
		return -ENOMEM;
	out->size = size;
	while (done < size) {
		ssize_t n = pread(file, out->bytes + done, size - done, (off_t)done);

		if (n <= 0)
			break;
		done += (size_t)n;
	}
	if (done == out->size)
		return 0;
	free(out->bytes);
	*out = (struct sandbox_answer){ 0 };
	return -EBADMSG;
}

/* Take a reply of @size bytes out of the reply file. 0, -EBADMSG or -ENOMEM. */
static int take_file(struct worker *w, const struct sandbox_reader *reader, uint64_t size,
		     struct sandbox_answer *out)
{
	assert(w->file >= 0);
	if (!size || size > (reader->reply_max ? reader->reply_max : SANDBOX_REPLY_MAX))
		return -EBADMSG;
	if (reader->map_reply) {
		w->held += size;
		return map_bytes(w, size, out);
	}
	/* The next reply is written over this one. */
	w->held += size - MIN(size, w->file_size);
	w->file_size = MAX(size, w->file_size);
	return copy_bytes(w->file, size, out);
}

/*
 * Take the reply of the answer @got: @more bytes in @packet, or in the reply file. 0, -EBADMSG or
 * -ENOMEM.
 */
static int take_reply(struct worker *w, const struct sandbox_reader *reader,
		      const struct sandbox_head *got, const uint8_t *packet, size_t more,
		      struct sandbox_answer *out)
{
	if (!got->code && got->size == more) {
		out->bytes = malloc(more + 1);
		if (!out->bytes)
			return -ENOMEM;
		memcpy(out->bytes, packet, more);
		out->size = more;
		return 0;
	}
	if (more || (got->code && got->size))
		return -EBADMSG;
	return got->code ? 0 : take_file(w, reader, got->size, out);
}

/*
 * Take the answer to the call @serial. *@code: of the reader. The packet is on the stack: a
 * hundred a second of this size would leave holes among the small blocks of the heap.
 */
static int take_answer(struct worker *w, const struct sandbox_reader *reader, uint32_t serial,
		       int *code, struct sandbox_answer *out)
{
	uint8_t packet[SANDBOX_PACKET_MAX];
	struct sandbox_head got;
	size_t more;
	bool asks;
	int rc;

	rc = sandbox_message_receive(w->sock, &got, packet, sizeof(packet), &more, NULL);
	asks = !rc && reader->asks && got.code == SANDBOX_ASKS;
	if (asks)
		got.code = 0;
	if (!rc && (got.serial != serial || got.code > 0 || got.code < -ERRNO_MAX))
		rc = -EBADMSG;
	if (!rc)
		rc = take_reply(w, reader, &got, packet, more, out);
	if (rc)
		sandbox_answer_free(out);
	out->asks = !rc && asks;
	*code = rc ? rc : got.code;
	return rc;
}

/* Send the request and take the answer. Under the lock. *@code: of the reader. */
static int exchange(struct worker *w, const struct sandbox_reader *reader, const void *request,
		    size_t size, const int fds[SANDBOX_FDS_MAX], const struct sandbox_wait *wait,
		    int *code, struct sandbox_answer *out)
{
	struct sandbox_head head = { .size = size };
	int sent[SANDBOX_MESSAGE_FDS] = SANDBOX_NO_FDS;
	uint64_t cpu_ns = time_clock_ns(w->clock);
	int rc;

	assert(w->sock >= 0 && size <= SANDBOX_REQUEST_MAX);
	if (getrandom(&head.serial, sizeof(head.serial), 0) != sizeof(head.serial))
		return -EPIPE;
	w->nr_calls++;
	for (unsigned int i = 0; i < SANDBOX_FDS_MAX; i++)
		w->held += sandbox_file_copied(fds[i]);
	sent[0] = w->file;
	memcpy(sent + 1, fds, SANDBOX_FDS_MAX * sizeof(*fds));
	rc = sandbox_message_send(w->sock, &head, request, size, sent);
	if (!rc)
		rc = wait_answer(w, wait, cpu_ns);
	if (rc)
		return rc == -ETIME || rc == -ECANCELED ? rc : -EPIPE;
	rc = take_answer(w, reader, head.serial, code, out);
	if (!rc && reader->asks)
		out->cpu_ns = time_clock_ns(w->clock) - cpu_ns;
	return rc && rc != -EBADMSG && rc != -ENOMEM ? -EPIPE : rc;
}

/* Run the reader in this thread. Under the lock. */
static int call_direct(const struct sandbox_reader *reader, const void *request, size_t size,
		       const int fds[SANDBOX_FDS_MAX], struct sandbox_answer *out)
{
	struct sandbox_call call = { .request = request, .size = size };

	assert(size <= SANDBOX_REQUEST_MAX);
	int rc;

	for (unsigned int i = 0; i < SANDBOX_FDS_MAX; i++)
		call.fds[i] = fds[i] >= 0 ? fcntl(fds[i], F_DUPFD_CLOEXEC, 3) : -1;
	call.reply.limit = reader->reply_max;
	rc = reader->serve(&call);
	close_fds(call.fds, SANDBOX_FDS_MAX);
	if (!rc && call.reply.full)
		rc = -EFBIG;
	if (rc) {
		free(call.reply.bytes);
		return rc;
	}
	*out = (struct sandbox_answer){ .bytes = call.reply.bytes, .size = call.reply.size };
	return 0;
}

/* End a worker between two calls, before it reaches its limit of CPU time in the middle of one. */
static void replace_worn(struct worker *w)
{
	if (w->sock >= 0 && w->nr_calls % WORN_CALLS == 0 && time_clock_ns(w->clock) > WORN_NS)
		end_worker(w);
}

/* Have a worker, and a file for its reply. Under the lock. */
static int prepare(struct worker *w, enum sandbox_kind kind)
{
	if (w->file < 0)
		w->file = sandbox_file();
	if (w->file < 0)
		return -ENOMEM;
	return w->sock < 0 ? start_worker(w, kind) : 0;
}

/* Call the worker, started if needed. Under the lock. */
static int call_worker(struct worker *w, const struct sandbox_reader *reader, const void *request,
		       size_t size, const int fds[SANDBOX_FDS_MAX], uint32_t generation,
		       const struct sandbox_wait *wait, struct sandbox_answer *out)
{
	uint64_t start_ns, cpu_ns;
	int code = 0, rc;

	/* Its question has no answer any more: the call was given up. */
	if (w->asks && !generation)
		end_worker(w);
	if (!reader->stateful && !w->asks)
		replace_worn(w);
	if (generation && (w->sock < 0 || w->generation != generation))
		return -ESTALE;
	rc = prepare(w, reader->kind);
	if (rc)
		return rc;
	start_ns = time_now_ns();
	cpu_ns = time_clock_ns(w->clock);
	rc = exchange(w, reader, request, size, fds, wait, &code, out);
	cpu_ns = time_clock_ns(w->clock) - cpu_ns;
	out->took_ns = MAX(cpu_ns, (time_now_ns() - start_ns) / SANDBOX_WAITS);
	if (rc) {
		end_worker(w);
		return rc;
	}
	out->generation = w->generation;
	w->asks = out->asks;
	if (!reader->stateful && !w->asks &&
	    w->held > MAX(SANDBOX_HELD_MAX, reader->memory_max / HELD_PART))
		end_worker(w);
	return code;
}

int sandbox_call_until(const struct sandbox_reader *reader, const void *request, size_t size,
		       const int fds[SANDBOX_FDS_MAX], uint32_t generation,
		       const struct sandbox_wait *wait, struct sandbox_answer *out)
{
	static const int none[SANDBOX_FDS_MAX] = { -1, -1 };
	struct worker *w = &sandbox.workers[reader->kind];
	int rc;

	assert(reader->kind < SANDBOX_NR_KINDS && reader->serve);
	assert(request || !size);
	*out = (struct sandbox_answer){ 0 };
	if (size > SANDBOX_REQUEST_MAX)
		return -E2BIG;
	pthread_mutex_lock(&w->lock);
	/* Its time begins here: a file is not blamed for the calls before. */
	if (sandbox.started)
		rc = call_worker(w, reader, request, size, fds ? fds : none, generation, wait, out);
	else
		rc = call_direct(reader, request, size, fds ? fds : none, out);
	pthread_mutex_unlock(&w->lock);
	return rc;
}

int sandbox_call(const struct sandbox_reader *reader, const void *request, size_t size,
		 const int fds[SANDBOX_FDS_MAX], uint32_t generation, uint64_t timeout_ns,
		 struct sandbox_answer *out)
{
	const struct sandbox_wait wait = { .timeout_ns = timeout_ns };

	assert(timeout_ns);
	return sandbox_call_until(reader, request, size, fds, generation, &wait, out);
}

void sandbox_end(const struct sandbox_reader *reader)
{
	struct worker *w = &sandbox.workers[reader->kind];

	assert(reader->kind < SANDBOX_NR_KINDS);
	pthread_mutex_lock(&w->lock);
	if (w->sock >= 0)
		end_worker(w);
	pthread_mutex_unlock(&w->lock);
}

void sandbox_refuse(const struct sandbox_reader *reader, uint32_t generation)
{
	struct worker *w = &sandbox.workers[reader->kind];

	assert(reader->kind < SANDBOX_NR_KINDS);
	if (pthread_mutex_trylock(&w->lock))
		return;
	if (w->sock >= 0 && w->generation == generation)
		end_worker(w);
	pthread_mutex_unlock(&w->lock);
}

enum sandbox_kind sandbox_idle(enum sandbox_kind first, enum sandbox_kind last)
{
	assert(first <= last && last < SANDBOX_NR_KINDS);
	for (unsigned int kind = first; kind <= (unsigned int)last; kind++) {
		if (pthread_mutex_trylock(&sandbox.workers[kind].lock))
			continue;
		pthread_mutex_unlock(&sandbox.workers[kind].lock);
		return (enum sandbox_kind)kind;
	}
	return first;
}

bool sandbox_has(pid_t pid)
{
	bool has = false;

	for (unsigned int i = 0; i < ARRAY_SIZE(sandbox.pids); i++)
		has |= pid == atomic_load_explicit(&sandbox.pids[i], memory_order_relaxed);
	return has && pid > 0;
}

uint64_t sandbox_cpu_ns(void)
{
	uint64_t sum = atomic_load_explicit(&sandbox.ended_ns, memory_order_relaxed);

	for (unsigned int i = 0; i < SANDBOX_NR_KINDS; i++) {
		pid_t pid = atomic_load_explicit(&sandbox.pids[i], memory_order_relaxed);
		clockid_t clock;

		if (pid > 0 && !clock_getcpuclockid(pid, &clock))
			sum += time_clock_ns(clock);
	}
	return sum;
}
