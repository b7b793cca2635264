// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A child that sleeps in a known call with a known stack, read from outside.
 * Live: waits for threads or processes.
 */
#include "sampler/waits/waits.h"

#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/prelude.h"
#include "symbols/name/name.h"

#define MARK 0x5ca1ab1e0ddba11eULL

/* Sleep for a minute, with a mark on the stack. */
static void sleep_marked(void)
{
	volatile uint64_t marks[4] = { MARK, MARK, MARK, MARK };
	const struct timespec minute = { .tv_sec = 60 };

	nanosleep(&minute, NULL);
	_exit((int)marks[0]);
}

static pid_t start_child(bool busy)
{
	int fds[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid) {
		/* It has begun. */
		assert_int_equal(read(fds[0], &c, 1), 1);
		close(fds[0]);
		close(fds[1]);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (write(fds[1], "x", 1) != 1)
		_exit(1);
	while (busy)
		;
	sleep_marked();
	return 0;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static bool has_mark(const struct asleep *a)
{
	const uint64_t mark = MARK;

	for (size_t i = 0; i + sizeof(mark) <= a->size; i++)
		if (!memcmp(a->stack + i, &mark, sizeof(mark)))
			return true;
	return false;
}

TEST(test_sleeping)
{
	static struct asleep a;
	pid_t pid = start_child(false);

	a.pid = a.tid = pid;
	for (int i = 0; i < 5000 && a.kind != WAIT_SLEEP; i++) {
		usleep(1000);
		asleep_read(&a);
	}
	assert_int_equal(a.kind, WAIT_SLEEP);
	assert_true(a.size > 0 && a.size <= sizeof(a.stack));
	assert_true(a.sp && a.pc);
	assert_true(has_mark(&a));
	end_child(pid);
	asleep_read(&a);
	assert_int_equal(a.kind, WAIT_NO);
	assert_int_equal(a.size, 0);
}

/* A task that runs has no kind and no stack. */
TEST(test_running)
{
	static struct asleep a;
	pid_t pid = start_child(true);

	a.pid = a.tid = pid;
	for (int i = 0; i < 20; i++) {
		asleep_read(&a);
		assert_int_equal(a.kind, WAIT_NO);
		assert_int_equal(a.size, 0);
	}
	end_child(pid);
}

/* A condition is told from a lock by its system call: the wait channel is the same. */
TEST(test_condition)
{
	enum wait_kind kind = WAIT_NO;
	uint32_t word = 0;
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, 0, NULL, NULL, FUTEX_BITSET_MATCH_ANY);
		_exit(0);
	}
	assert_true(pid > 0);
	for (int i = 0; i < 5000 && kind != WAIT_CONDITION; i++) {
		usleep(1000);
		kind = asleep_kind(pid);
	}
	assert_int_equal(kind, WAIT_CONDITION);
	end_child(pid);
}

/* A kernel thread waits for work; where there is none, it is not visible. */
TEST(test_kernel_thread)
{
	FILE *f = fopen("/proc/2/comm", "re");
	char name[32] = "";

	if (!f || !fgets(name, sizeof(name), f) || strcmp(name, "kthreadd\n") || geteuid()) {
		if (f)
			fclose(f);
		skip();
	}
	fclose(f);
	assert_int_equal(asleep_kind(2), WAIT_KTHREAD);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
