// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The server of memory readers, and its client.
 *
 * Processes with one thread each. The server forks readers on request and does nothing else; the
 * kernel collects them. They end with it, and it ends with proftop.
 */
#include "symbols/sandbox/internal.h"

#include <assert.h>
#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
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
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbols/base/base.h"

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
	int out[SANDBOX_MESSAGE_FDS] = { -1, -1, -1 };
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
	if (sandbox_lock_readers(sock, keep) || prctl(PR_SET_PDEATHSIG, SIGKILL) ||
	    getppid() != parent)
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

int sandbox_memory_lock(uint64_t memory_max)
{
	return sandbox_lock_reader(memory_max);
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
