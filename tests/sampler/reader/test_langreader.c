// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * langreader_main, sandbox_memory: a reader that was taken over can read memory of processes, and
 * nothing else; one that is killed is noticed; none is left behind.
 * Live: reads memory of processes.
 */
#include "sampler/reader/reader.c"

#include "tests/prelude.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "sampler/ring/ring.h"
#include "symbols/base/base.h"
#include "symbols/base/thread.h"
#include "symbols/sandbox/internal.h"
#include "tests/escapes.h"
#include "symbols/script/script.h"
#include "sampler/event/event.h"

#define RING_SIZE (16U * 4096)
#define WAIT_NS	  10000000000ULL

/* Do the attempt, after @prepare, in a process with the rights of a reader. True: it succeeded. */
static bool succeeds(const struct escape *e, void (*prepare)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		if (prepare)
			prepare();
		if (sandbox_memory_lock(1ULL << 40))
			_exit(2);
		_exit(e->try() >= 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status)) {
		assert_int_equal(WTERMSIG(status), SIGSYS);
		return false;
	}
	assert_int_not_equal(WEXITSTATUS(status), 2);
	return !WEXITSTATUS(status);
}

TEST(test_escapes)
{
	uint32_t nr = 0;

	if (SANITIZED)
		skip();
	tester = getpid();
	for (size_t i = 0; i < ARRAY_SIZE(escapes); i++) {
		if (escapes[i].try == try_peek)
			continue;
		nr++;
		if (succeeds(&escapes[i], NULL))
			fail_msg("a reader can: %s", escapes[i].name);
	}
	print_message("%u attempts failed\n", nr);
}

static int ring_fd;
static void *ring_page; /* mapped to read */

static void t_map_ring(void)
{
	ring_page = mmap(NULL, 4096 + RING_SIZE, PROT_READ, MAP_SHARED, ring_fd, 0);
	if (ring_page == MAP_FAILED)
		_exit(2);
}

/* A reader maps the ring to read, but its file allows more. */
static long try_write_ring(void)
{
	return syscall(SYS_mprotect, ring_page, 4096 + RING_SIZE, PROT_READ | PROT_WRITE);
}

static long try_stat(void)
{
	struct stat st;

	return syscall(SYS_newfstatat, AT_FDCWD, "/etc/passwd", &st, AT_EMPTY_PATH);
}

/* One that waits for a lock lends its priority to the owner: any task that it names. */
static long try_lend_priority(void)
{
	static uint32_t word;
	const struct timespec past = { 1, 0 };

	word = (uint32_t)tester;
	return syscall(SYS_futex, &word, FUTEX_LOCK_PI, 0, &past) < 0 && errno == EPERM ? -1 : 0;
}

/* A ring that nothing is written to. */
static int open_ring(struct ring *ring)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, getpid(), 0, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0 || ring_open(ring, fd, RING_SIZE))
		skip();
	return fd;
}

/* Attempts that only a reader could make. */
TEST(test_reader_escapes)
{
	static const struct escape own[] = {
		{ "look at a file", try_stat },
		{ "write to the ring", try_write_ring },
		{ "lend its priority", try_lend_priority },
	};
	struct ring ring;

	if (SANITIZED)
		skip();
	ring_fd = open_ring(&ring);
	tester = getpid();
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (succeeds(&own[i], t_map_ring))
			fail_msg("a reader can: %s", own[i].name);
	ring_close(&ring);
	close(ring_fd);
}

/* One that does not wait any more does not keep its CPU, of which it has the highest priority. */
TEST(test_spin)
{
	const struct sched_param param = { .sched_priority = 2 };
	pid_t pid = SANITIZED ? 0 : fork();
	int status;

	if (SANITIZED)
		skip();
	if (!pid) {
		if (sched_setscheduler(0, SCHED_RR, &param) || sandbox_memory_lock(1ULL << 40))
			_exit(2);
		for (;;)
			__asm__ volatile("");
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status))
		skip(); /* no right to the priority */
	assert_true(WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL);
}

/* One that has pauses does not go on either: half of a CPU, and a time for each sample. */
TEST(allowance)
{
	struct langreader_allowance honest = { 0 }, deep = { 0 }, taken_over = { 0 };
	uint64_t time_ns = 1000000000, cpu_ns = 5000000000, nr = 0;

	for (; nr < 1000; nr++) {
		assert_true(langreader_allow(&honest, time_ns + nr * 1000000000,
					     cpu_ns + nr * 45000 * 999, 999));
		assert_true(langreader_allow(&deep, time_ns + nr * 1000000000,
					     cpu_ns + nr * 950000000, 4000));
	}
	/* After a pause it has no more than at first. */
	for (nr = 0; langreader_allow(&taken_over, time_ns, cpu_ns, 99); nr++) {
		time_ns += nr ? 1000000000 : 60000000000;
		cpu_ns += nr ? 940000000 : 0;
	}
	assert_in_range(nr, 5, 7);
}

/* Wake-ups that are the switches of the reader end; those of a clock, and of reads, go on. */
TEST(test_idle)
{
	struct langreader_idle own = { 0 }, clocked = { 0 }, reads = { 0 };
	uint64_t now_ns = 1000000000, nr;

	for (nr = 0; nr < 100 && !langreader_should_rest(&own, now_ns + nr * 20000); nr++)
		;
	assert_in_range(nr, 4, 20);
	for (nr = 0; nr < 1000; nr++) {
		assert_false(langreader_should_rest(&clocked, now_ns + nr * 250000));
		assert_false(langreader_should_rest(&reads, now_ns + nr * 20000));
		reads.nr = 0;
	}
}

static bool dies(const struct sandbox_memory_reader *p)
{
	const uint64_t deadline_ns = time_now_ns() + WAIT_NS;

	while (!sandbox_memory_is_dead(p) && time_now_ns() < deadline_ns)
		usleep(1000);
	return sandbox_memory_is_dead(p);
}

/* The only child. */
static pid_t server_of_readers(void)
{
	char path[64], text[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	f = fopen(path, "re");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	fclose(f);
	return (pid_t)strtol(text, NULL, 10);
}

/* A server that was stopped is waited for once. */
static void check_stopped_server(const struct langreader_start *start,
				 const int fds[SANDBOX_MEMORY_FDS])
{
	uint64_t begin_ns = time_now_ns();
	struct sandbox_memory_reader p;

	kill(server_of_readers(), SIGSTOP);
	for (int i = 0; i < 5; i++)
		assert_int_equal(sandbox_memory_fork(&p, start, sizeof(*start), fds), -ETIME);
	assert_in_range(time_now_ns() - begin_ns, 1, 5000000000);
	kill(server_of_readers(), SIGCONT);
}

TEST(test_readers)
{
	struct langreader_start start = { .cpu = 0, .ring_size = RING_SIZE };
	struct sandbox_memory_reader a, b;
	struct ring ring;
	int fds[SANDBOX_MEMORY_FDS] = { open_ring(&ring), -1, wake_new() };
	void *share = sandbox_memory_share(sizeof(struct reader_share), &fds[LANGREADER_SHARE]);
	const int no_ring[SANDBOX_MEMORY_FDS] = { fds[2], fds[1], fds[2] };

	assert_non_null(share);
	sandbox_memory_start(langreader_process);
	if (!sandbox_memory_is_on())
		skip(); /* no CAP_SYS_PTRACE */
	assert_int_equal(sandbox_memory_fork(&a, &start, sizeof(start), fds), 0);
	assert_int_equal(sandbox_memory_fork(&b, &start, sizeof(start), fds), 0);
	assert_true(sandbox_memory_has(a.pid));
	assert_true(sandbox_memory_has(b.pid));
	assert_false(sandbox_memory_has(getpid()));
	/* On a loaded machine it is a while until one of them runs. */
	for (int i = 0; i < 500 && !sandbox_memory_cpu_ns(); i++)
		usleep(10000);
	usleep(20000);
	assert_true(sandbox_memory_cpu_ns() > 0);
	assert_false(sandbox_memory_is_dead(&a));
	assert_false(sandbox_memory_is_dead(&b));
	kill(a.pid, SIGKILL);
	assert_true(dies(&a));
	assert_false(sandbox_memory_is_dead(&b));
	sandbox_memory_end(&a);
	assert_false(sandbox_memory_has(a.pid));
	/* One without a ring ends by itself. */
	assert_int_equal(sandbox_memory_fork(&a, &start, sizeof(start), no_ring), 0);
	assert_true(dies(&a));
	sandbox_memory_end(&a);
	check_stopped_server(&start, fds);
	/* They end with the server. */
	sandbox_memory_stop();
	assert_true(dies(&b));
	assert_true(sandbox_memory_fork(&a, &start, sizeof(start), fds) < 0);
	sandbox_memory_end(&b);
	ring_close(&ring);
	munmap(share, sizeof(struct reader_share));
	for (uint32_t i = 0; i < SANDBOX_MEMORY_FDS; i++)
		close(fds[i]);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
