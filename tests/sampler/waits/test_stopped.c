// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A task that is stopped for a moment has its registers read, and notices nothing: its calls go on,
 * its signals arrive, and it is not stopped afterwards, whatever happens to the tracer.
 * Live: waits for threads or processes.
 */
#include "sampler/waits/waits.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "tests/prelude.h"

#define SIGNALS 5000

/* Shared with the child. */
static struct shared {
	atomic_int nr_signals, nr_wrong, is_ready, nr_early;
	atomic_ulong turns;
	atomic_int stopped_by; /* pid of the tracer */
} * shared;

static int set_up(void **state)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	return shared == MAP_FAILED;
}

static void nap(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* As fork(); the child ends with this process, also when a test fails: it holds standard output. */
static pid_t fork_child(void)
{
	pid_t parent = getpid(), pid = fork();

	if (!pid && (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent))
		_exit(1);
	assert_true(pid >= 0);
	return pid;
}

static pid_t start(void (*run)(void))
{
	pid_t pid;

	*shared = (struct shared){ 0 };
	pid = fork_child();
	if (!pid) {
		run();
		_exit(0);
	}
	while (!atomic_load(&shared->is_ready))
		nap(1);
	return pid;
}

static void end(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static char state_of(pid_t pid)
{
	char path[64], text[256] = "", *at;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	at = strrchr(text, ')');
	return at ? at[2] : '?';
}

/* Wait for a state other than @state, or for @state (@is). */
static bool wait_state(pid_t pid, char state, bool is)
{
	for (int i = 0; i < 5000; i++, nap(1))
		if ((state_of(pid) == state) == is)
			return true;
	return false;
}

static void sleep_once(void)
{
	struct timespec t = { 1, 500000000 }, left;
	uint64_t begin_ns = time_now_ns();

	atomic_store(&shared->is_ready, 1);
	if (nanosleep(&t, &left) || time_now_ns() < begin_ns + 1500000000)
		atomic_fetch_add(&shared->nr_early, 1);
}

/* Signals are queued: each one has its number. */
static void on_signal(int sig, siginfo_t *info, void *context)
{
	if (info->si_code != SI_QUEUE ||
	    info->si_value.sival_int != atomic_fetch_add(&shared->nr_signals, 1))
		atomic_fetch_add(&shared->nr_wrong, 1);
}

static void count_signals(void)
{
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };

	sigaction(SIGRTMIN, &sa, NULL);
	atomic_store(&shared->is_ready, 1);
	for (;;)
		pause();
}

/* Send all signals, one when the one before has been taken. */
static void send_signals(pid_t pid)
{
	for (int i = 0; i < SIGNALS; i++) {
		sigqueue(pid, SIGRTMIN, (union sigval){ .sival_int = i });
		for (int k = 0; k < 200 && atomic_load(&shared->nr_signals) <= i; k++)
			sched_yield();
	}
}

static void spin(void)
{
	atomic_store(&shared->is_ready, 1);
	for (;;)
		atomic_fetch_add(&shared->turns, 1);
}

static void copy_nothing(void *ctx, const struct stopped *s, uint64_t deadline_ns)
{
	*(uint64_t *)ctx = s->sp;
}

/* The stack pointer is that of the call in progress, which is not disturbed. */
TEST(test_sleeper)
{
	pid_t pid = start(sleep_once);
	uint64_t sp, pc, was;
	struct stopped s;
	int status, nr_whole = 0;

	assert_true(wait_state(pid, 'S', true));
	assert_true(asleep_registers(pid, &was, &pc));
	for (int i = 0; i < 20; i++) {
		assert_int_equal(stopped_read(pid, &s, copy_nothing, &sp), 0);
		/* On a busy machine this thread may be late: the stop ends without it. */
		assert_true(s.whole || s.stop_ns >= 4000000);
		nr_whole += s.whole;
		assert_int_equal(sp, was);
		assert_true(s.stop_ns > 0);
		nap(5);
	}
	assert_true(nr_whole > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(atomic_load(&shared->nr_early), 0);
}

/* No signal is lost, taken twice, or another one: also one that arrives in a stop. */
TEST(test_signals)
{
	pid_t pid = start(count_signals), sender = fork_child();
	struct stopped s;
	uint64_t sp;
	int status;

	if (!sender) {
		send_signals(pid);
		_exit(0);
	}
	while (!waitpid(sender, &status, WNOHANG))
		assert_int_equal(stopped_read(pid, &s, copy_nothing, &sp), 0);
	for (int i = 0; i < 5000 && atomic_load(&shared->nr_signals) < SIGNALS; i++)
		nap(1);
	assert_int_equal(atomic_load(&shared->nr_signals), SIGNALS);
	assert_int_equal(atomic_load(&shared->nr_wrong), 0);
	end(pid);
}

/* A task in a group stop stays in it; its parent is notified once. */
TEST(test_group_stop)
{
	pid_t pid = start(spin);
	struct stopped s;
	uint64_t sp;
	int status;

	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(stopped_read(pid, &s, copy_nothing, &sp), 0);
	assert_true(wait_state(pid, 'T', true));
	assert_int_equal(waitpid(pid, &status, WUNTRACED | WNOHANG), 0);
	kill(pid, SIGCONT);
	assert_true(wait_state(pid, 'T', false));
	end(pid);
}

static void copy_slowly(void *ctx, const struct stopped *s, uint64_t deadline_ns)
{
	unsigned long was = atomic_load(&shared->turns);

	/* The task goes on before this returns: else the memory of a process could hold it. */
	for (int i = 0; i < 10000 && atomic_load(&shared->turns) == was; i++)
		nap(1);
	*(bool *)ctx = atomic_load(&shared->turns) != was;
}

TEST(test_copy_that_hangs)
{
	pid_t pid = start(spin);
	bool went_on = false;
	struct stopped s;

	assert_int_equal(stopped_read(pid, &s, copy_slowly, &went_on), 0);
	assert_true(went_on);
	assert_false(s.whole);
	end(pid);
}

static void die(void *ctx, const struct stopped *s, uint64_t deadline_ns)
{
	kill(getpid(), SIGKILL);
}

/* When the tracer is killed, the kernel lets the task run. */
TEST(test_tracer_that_dies)
{
	pid_t pid = start(spin), tracer = fork_child();
	unsigned long was;
	int status;

	if (!tracer) {
		struct stopped s;

		stopped_read(pid, &s, die, NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(tracer, &status, 0), tracer);
	assert_true(WIFSIGNALED(status));
	was = atomic_load(&shared->turns);
	for (int i = 0; i < 5000 && atomic_load(&shared->turns) == was; i++)
		nap(1);
	assert_int_not_equal(atomic_load(&shared->turns), was);
	assert_true(state_of(pid) == 'R');
	end(pid);
}

/* A task of another tracer, and one that has ended. */
TEST(test_refused)
{
	pid_t pid = start(spin), tracer;
	struct stopped s;
	uint64_t sp;
	int fds[2];
	char c;

	assert_int_equal(pipe(fds), 0);
	tracer = fork_child();
	if (!tracer) {
		c = ptrace(PTRACE_SEIZE, pid, NULL, NULL) ? 'f' : 'o';
		_exit(write(fds[1], &c, 1) != 1 || pause());
	}
	assert_int_equal(read(fds[0], &c, 1), 1);
	assert_int_equal(c, 'o');
	assert_int_equal(stopped_read(pid, &s, copy_nothing, &sp), -EPERM);
	end(tracer);
	end(pid);
	assert_int_equal(stopped_read(pid, &s, copy_nothing, &sp), -ESRCH);
	close(fds[0]);
	close(fds[1]);
}

/* A failed test leaves its child: it does not hold the pipe of the output open. */
TEST(test_left_child)
{
	struct pollfd end = { .events = POLLIN };
	int fds[2], status;
	pid_t pid;
	char c;

	assert_int_equal(pipe(fds), 0);
	pid = fork_child();
	if (!pid) {
		start(count_signals);
		_exit(0);
	}
	close(fds[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	end.fd = fds[0];
	assert_int_equal(poll(&end, 1, 10000), 1);
	assert_int_equal(read(fds[0], &c, 1), 0);
	close(fds[0]);
}

int main(void)
{
	return run_unit_tests(set_up, NULL);
}
