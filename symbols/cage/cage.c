// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The client of the cage: calls, time limits, and workers that are replaced.
 *
 * Any thread. Invariant: a worker has at most one call, and after an error in a call it is killed,
 * so that a late or second answer cannot be taken for that of another call.
 */
#include "symbols/cage/cage.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "symbols/cage/cage_server.h"
#include "symbols/cage/cage_wire.h"

#define SEALS	 (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define START_NS 2000000000ULL /* for the server to fork a worker */

struct worker {
	pthread_mutex_t lock;
	int sock, pidfd;     /* -1: not running */
	uint32_t generation; /* the number of workers started */
	uint32_t serial;     /* of the last call */
	const struct cage_reader *direct;
	atomic_int pid; /* relaxed: for cage_has() */
};

static struct {
	pthread_mutex_t lock; /* of the socket of the server */
	bool started;
	int sock;
	uint32_t serial; /* of the last request to the server */
	atomic_int pid;
	struct worker workers[CAGE_NR_KINDS];
} cage = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.sock = -1,
	.workers = { [0 ... CAGE_NR_KINDS -
		      1] = { .lock = PTHREAD_MUTEX_INITIALIZER, .sock = -1, .pidfd = -1 } },
};

int cage_start(const struct cage_reader *const readers[CAGE_NR_KINDS])
{
	pid_t parent = getpid(), pid;
	int pair[2];

	/* From here on nothing is read by this process, also when there is no server. */
	cage.started = true;
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
		cage_server_main(pair[1], parent, readers);
	}
	close(pair[1]);
	cage.sock = pair[0];
	atomic_store_explicit(&cage.pid, pid, memory_order_relaxed);
	return 0;
}

/* End the worker: it may be in the middle of a call. Under its lock. */
static void end_worker(struct worker *w)
{
	if (w->pidfd >= 0) {
		syscall(SYS_pidfd_send_signal, w->pidfd, SIGKILL, NULL, 0);
		close(w->pidfd);
	}
	if (w->sock >= 0)
		close(w->sock);
	w->sock = w->pidfd = -1;
	atomic_store_explicit(&w->pid, 0, memory_order_relaxed);
}

void cage_stop(void)
{
	pid_t pid = atomic_exchange_explicit(&cage.pid, 0, memory_order_relaxed);

	/* A call that still runs keeps its lock: the kernel ends its worker with the server. */
	for (int i = 0; i < CAGE_NR_KINDS; i++) {
		if (pthread_mutex_trylock(&cage.workers[i].lock))
			continue;
		end_worker(&cage.workers[i]);
		pthread_mutex_unlock(&cage.workers[i].lock);
	}
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

void cage_direct(enum cage_kind kind, const struct cage_reader *reader)
{
	cage.workers[kind].direct = reader;
}

/* Wait until @sock has a packet or is closed. 0 or -ETIME. */
static int wait_for(int sock, uint64_t deadline_ns)
{
	struct pollfd fd = { .fd = sock, .events = POLLIN };

	for (;;) {
		uint64_t now_ns = time_now_ns();
		int rc = now_ns < deadline_ns
				 ? poll(&fd, 1, (int)((deadline_ns - now_ns) / 1000000) + 1)
				 : 0;

		if (rc > 0)
			return 0;
		if (!rc || errno != EINTR)
			return -ETIME;
	}
}

static void close_fds(const int fds[CAGE_FDS_MAX])
{
	for (unsigned int i = 0; i < CAGE_FDS_MAX; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/*
 * Send @head to the server and take its answer: a worker. Under the lock of its socket. An answer
 * to an earlier request was late; its worker ends, since its socket is closed here.
 */
static int ask_server(struct cage_head *head, int fds[CAGE_FDS_MAX])
{
	uint64_t deadline_ns = time_now_ns() + START_NS;
	uint32_t serial = ++cage.serial;
	size_t size;
	int rc;

	head->serial = serial;
	rc = cage_wire_send(cage.sock, head, NULL, 0, NULL);
	while (!rc) {
		rc = wait_for(cage.sock, deadline_ns);
		if (!rc)
			rc = cage_wire_receive(cage.sock, head, NULL, 0, &size, fds);
		if (!rc && head->serial == serial)
			break;
		close_fds(fds);
		fds[0] = fds[1] = -1;
	}
	return rc;
}

/* Have the server fork a worker. Under its lock. 0 or -ENOSYS. */
static int start_worker(struct worker *w, enum cage_kind kind)
{
	struct cage_head head = { .size = kind };
	int fds[CAGE_FDS_MAX] = { -1, -1 };
	int rc;

	pthread_mutex_lock(&cage.lock);
	rc = ask_server(&head, fds);
	pthread_mutex_unlock(&cage.lock);
	if (rc || head.code <= 0 || fds[0] < 0 || fds[1] < 0) {
		close_fds(fds);
		return -ENOSYS;
	}
	w->sock = fds[0];
	w->pidfd = fds[1];
	w->generation++;
	atomic_store_explicit(&w->pid, head.code, memory_order_relaxed);
	return 0;
}

/* Copy the bytes of an answer: from a sealed memfd of this size only. */
static int take_bytes(int fd, uint64_t size, struct cage_answer *out)
{
	struct stat st;
	size_t done = 0;

	if (size > CAGE_REPLY_MAX || (size && fd < 0) || (!size && fd >= 0))
		return -EBADMSG;
	out->bytes = malloc(size + 1);
	if (!out->bytes)
		return -ENOMEM;
	out->size = size;
	if (size && (fstat(fd, &st) || !S_ISREG(st.st_mode) || (uint64_t)st.st_size != size ||
		     fcntl(fd, F_GET_SEALS) != SEALS))
		size = UINT64_MAX;
	while (done < size && size != UINT64_MAX) {
		ssize_t n = pread(fd, out->bytes + done, size - done, (off_t)done);

		if (n <= 0)
			break;
		done += (size_t)n;
	}
	if (done == out->size)
		return 0;
	free(out->bytes);
	*out = (struct cage_answer){ 0 };
	return -EBADMSG;
}

/* Send the request and take the answer. Under the lock. *@code: of the reader. */
static int exchange(struct worker *w, const void *request, size_t size, const int fds[CAGE_FDS_MAX],
		    uint64_t deadline_ns, int *code, struct cage_answer *out)
{
	struct cage_head head = { .serial = ++w->serial, .size = size }, got;
	int back[CAGE_FDS_MAX];
	size_t more;
	int rc = cage_wire_send(w->sock, &head, request, size, fds);

	if (!rc)
		rc = wait_for(w->sock, deadline_ns);
	if (rc)
		return rc == -ETIME ? rc : -EPIPE;
	rc = cage_wire_receive(w->sock, &got, NULL, 0, &more, back);
	if (!rc && (got.serial != head.serial || got.code > 0 || back[1] >= 0))
		rc = -EBADMSG;
	if (!rc && !got.code)
		rc = take_bytes(back[0], got.size, out);
	if (!rc && got.code && back[0] >= 0)
		rc = -EBADMSG;
	close_fds(back);
	*code = rc ? rc : got.code;
	return rc && rc != -EBADMSG && rc != -ENOMEM ? -EPIPE : rc;
}

/* Run the reader in this thread. Under the lock. */
static int call_direct(struct worker *w, const void *request, size_t size,
		       const int fds[CAGE_FDS_MAX], struct cage_answer *out)
{
	struct cage_call call = { .request = request, .size = size };
	int rc;

	for (unsigned int i = 0; i < CAGE_FDS_MAX; i++)
		call.fds[i] = fds[i] >= 0 ? fcntl(fds[i], F_DUPFD_CLOEXEC, 3) : -1;
	rc = w->direct ? w->direct->serve(&call) : -ENOSYS;
	close_fds(call.fds);
	if (!rc && call.reply.full)
		rc = -EFBIG;
	if (rc) {
		free(call.reply.bytes);
		return rc;
	}
	*out = (struct cage_answer){ call.reply.bytes, call.reply.size, 0 };
	return 0;
}

/* Call the worker, started if needed. Under the lock. */
static int call_worker(struct worker *w, enum cage_kind kind, const void *request, size_t size,
		       const int fds[CAGE_FDS_MAX], uint32_t generation, uint64_t deadline_ns,
		       struct cage_answer *out)
{
	int code = 0, rc = 0;

	if (generation && (w->sock < 0 || w->generation != generation))
		return -ESTALE;
	if (w->sock < 0)
		rc = start_worker(w, kind);
	if (rc)
		return rc;
	rc = exchange(w, request, size, fds, deadline_ns, &code, out);
	if (rc) {
		end_worker(w);
		return rc;
	}
	out->generation = w->generation;
	return code;
}

int cage_call(enum cage_kind kind, const void *request, size_t size, const int fds[CAGE_FDS_MAX],
	      uint32_t generation, uint64_t timeout_ns, struct cage_answer *out)
{
	static const int none[CAGE_FDS_MAX] = { -1, -1 };
	struct worker *w = &cage.workers[kind];
	uint64_t deadline_ns;
	int rc;

	*out = (struct cage_answer){ 0 };
	if (size > CAGE_REQUEST_MAX)
		return -E2BIG;
	pthread_mutex_lock(&w->lock);
	/* Calls before this one do not use up its time: its file would be blamed for them. */
	deadline_ns = time_now_ns() + timeout_ns;
	if (cage.started)
		rc = call_worker(w, kind, request, size, fds ? fds : none, generation, deadline_ns,
				 out);
	else
		rc = call_direct(w, request, size, fds ? fds : none, out);
	pthread_mutex_unlock(&w->lock);
	return rc;
}

bool cage_has(pid_t pid)
{
	bool has = pid == atomic_load_explicit(&cage.pid, memory_order_relaxed);

	for (int i = 0; i < CAGE_NR_KINDS; i++)
		has |= pid == atomic_load_explicit(&cage.workers[i].pid, memory_order_relaxed);
	return has && pid > 0;
}

uint64_t cage_cpu_ns(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < CAGE_NR_KINDS; i++) {
		pid_t pid = atomic_load_explicit(&cage.workers[i].pid, memory_order_relaxed);
		struct timespec ts;
		clockid_t clock;

		if (pid > 0 && !clock_getcpuclockid(pid, &clock) && !clock_gettime(clock, &ts))
			sum += (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
	}
	return sum;
}
