// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The guard on a real pseudo-terminal: after every kind of end the terminal is as before, and the
 * exit code is right.
 * Live: waits for threads or processes.
 */
#include "tests/prelude.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include "ui/internal.h"

#define RESTORED "\033[?1049l"

struct run {
	int master, slave;
	pid_t pid;
	struct termios before;
	char out[8192];
	size_t size;
	int status;
};

/* As the screen does: raw, on the alternate screen. */
static void spoil(void)
{
	struct termios raw;

	tcgetattr(0, &raw);
	cfmakeraw(&raw);
	tcsetattr(0, TCSANOW, &raw);
	dprintf(1, "\033[?1049h\033[?25l\033[?1000hREADY");
}

static void start(struct run *r, void (*body)(int), int arg)
{
	char name[128];

	memset(r, 0, sizeof(*r));
	assert_int_equal(openpty(&r->master, &r->slave, name, NULL, NULL), 0);
	assert_int_equal(tcgetattr(r->slave, &r->before), 0);
	r->pid = fork();
	if (r->pid == 0) {
		struct rlimit none = { 0, 0 };

		close(r->master);
		login_tty(r->slave);
		setrlimit(RLIMIT_CORE, &none);
		/* The test program's own handlers are not proftop's. */
		for (int sig = 1; sig < 32; sig++)
			signal(sig, SIG_DFL);
		body(arg);
		_exit(99);
	}
	assert_true(r->pid > 0);
}

/* Read the output until @text is there, or two seconds of silence. */
static bool read_until(struct run *r, const char *text)
{
	struct pollfd p = { .fd = r->master, .events = POLLIN };

	while (!text || !memmem(r->out, r->size, text, strlen(text))) {
		ssize_t n;

		if (poll(&p, 1, text ? 5000 : 100) != 1)
			return false;
		n = read(r->master, r->out + r->size, sizeof(r->out) - r->size - 1);
		if (n <= 0)
			return false;
		r->size += (size_t)n;
	}
	return true;
}

static void finish(struct run *r)
{
	struct termios now;

	assert_int_equal(waitpid(r->pid, &r->status, 0), r->pid);
	read_until(r, NULL);
	assert_int_equal(tcgetattr(r->slave, &now), 0);
	assert_int_equal(now.c_iflag, r->before.c_iflag);
	assert_int_equal(now.c_oflag, r->before.c_oflag);
	assert_int_equal(now.c_lflag, r->before.c_lflag);
	assert_memory_equal(now.c_cc, r->before.c_cc, sizeof(now.c_cc));
	close(r->master);
	close(r->slave);
}

static bool said(const struct run *r, const char *text)
{
	return memmem(r->out, r->size, text, strlen(text)) != NULL;
}

static void die_by(int sig)
{
	term_guard_start();
	spoil();
	signal(sig, SIG_DFL);
	kill(getpid(), sig);
	for (;;)
		pause();
}

TEST(test_deaths)
{
	static const int signals[] = { SIGSEGV, SIGABRT, SIGBUS, SIGILL,  SIGFPE, SIGKILL,
				       SIGTERM, SIGHUP,	 SIGINT, SIGQUIT, SIGSYS };

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		struct run r;
		bool quiet = signals[i] == SIGTERM || signals[i] == SIGHUP || signals[i] == SIGINT;

		start(&r, die_by, signals[i]);
		finish(&r);
		assert_true(WIFEXITED(r.status));
		assert_int_equal(WEXITSTATUS(r.status), 128 + signals[i]);
		assert_true(said(&r, RESTORED));
		assert_true(said(&r, "\033[?25h") && said(&r, "\033[?1000l"));
		assert_int_equal(said(&r, "proftop: killed by signal"), !quiet);
	}
}

static void *stay(void *arg)
{
	while (!arg)
		pause();
	return arg;
}

/* The first thread ends, another one does not: as if it were in a read that cannot be killed. */
static void end_in_part(int status)
{
	pthread_t thread;

	term_guard_start();
	spoil();
	pthread_create(&thread, NULL, stay, NULL);
	syscall(SYS_exit, status);
}

TEST(test_ends_in_part)
{
	struct run r;

	start(&r, end_in_part, 3);
	finish(&r);
	assert_true(WIFEXITED(r.status));
	assert_int_equal(WEXITSTATUS(r.status), 3);
	assert_true(said(&r, RESTORED));
}

static void leave_well(int code)
{
	term_guard_start();
	_exit(code);
}

/* Nothing happened: not a byte is written. */
TEST(test_exit_code)
{
	for (int code = 0; code < 5; code++) {
		struct run r;

		start(&r, leave_well, code);
		finish(&r);
		assert_true(WIFEXITED(r.status) && WEXITSTATUS(r.status) == code);
		assert_int_equal(r.size, 0);
	}
}

static void on_term(int sig)
{
	dprintf(1, "BYE");
	_exit(5);
}

static void wait_for_term(int unused)
{
	term_guard_start();
	signal(SIGTERM, on_term);
	dprintf(1, "READY");
	for (;;)
		pause();
}

TEST(test_forward)
{
	struct run r;

	start(&r, wait_for_term, 0);
	assert_true(read_until(&r, "READY"));
	/* These are for proftop itself; the guard lets them pass by. */
	kill(r.pid, SIGINT);
	kill(r.pid, SIGQUIT);
	kill(r.pid, SIGWINCH);
	kill(r.pid, SIGTERM);
	finish(&r);
	assert_true(said(&r, "BYE"));
	assert_true(WIFEXITED(r.status) && WEXITSTATUS(r.status) == 5);
}

/* Kill the guard once proftop is there, and wait for the end of proftop. */
static void kill_guard(int unused)
{
	int ready[2];
	pid_t guard;
	char c;

	if (pipe(ready))
		_exit(1);
	guard = fork();
	if (!guard) {
		close(ready[0]);
		term_guard_start();
		signal(SIGTERM, on_term);
		if (write(ready[1], "r", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		_exit(2);
	kill(guard, SIGKILL);
	_exit(read(ready[0], &c, 1) == 0 ? 0 : 3);
}

/* A dead guard takes proftop with it, in good order. */
TEST(test_guard_killed)
{
	struct run r;

	start(&r, kill_guard, 0);
	assert_true(read_until(&r, "BYE"));
	finish(&r);
	assert_true(WIFEXITED(r.status) && WEXITSTATUS(r.status) == 0);
}

static void never_leave(int unused)
{
	term_guard_start();
	signal(SIGTERM, SIG_IGN);
	spoil();
	for (;;)
		pause();
}

TEST(test_will_not_leave)
{
	struct run r;

	start(&r, never_leave, 0);
	assert_true(read_until(&r, "READY"));
	kill(r.pid, SIGTERM);
	finish(&r);
	assert_int_equal(WEXITSTATUS(r.status), 128 + SIGKILL);
	assert_true(said(&r, "did not leave in time"));
}

/* As never_leave, with a terminal that takes nothing any more. */
static void stall(int unused)
{
	static const char much[65536] = "much";
	ssize_t n;

	term_guard_start();
	signal(SIGTERM, SIG_IGN);
	spoil();
	n = write(1, much, sizeof(much));
	_exit(n > 0 ? 98 : 97);
}

TEST(test_stalled)
{
	struct run r;

	start(&r, stall, 0);
	usleep(300000);
	kill(r.pid, SIGTERM);
	finish(&r);
	assert_int_equal(WEXITSTATUS(r.status), 128 + SIGKILL);
}

/* A shell with one job: it must see the whole job stop, and go on after fg. */
static void shell(int sig)
{
	int status;
	pid_t job;

	signal(SIGTTOU, SIG_IGN);
	job = fork();
	if (!job) {
		setpgid(0, 0);
		tcsetpgrp(0, getpid());
		signal(SIGTTOU, SIG_DFL);
		term_guard_start();
		spoil();
		kill(getpid(), sig);
		dprintf(1, "CONTINUED");
		die_by(SIGKILL); /* a guard within the guard: the code passes through */
	}
	setpgid(job, job);
	if (waitpid(job, &status, WUNTRACED) != job || !WIFSTOPPED(status))
		_exit(1);
	tcsetpgrp(0, getpid());
	tcsetpgrp(0, job);
	kill(-job, SIGCONT);
	if (waitpid(job, &status, WUNTRACED) != job || !WIFEXITED(status))
		_exit(2);
	_exit(WEXITSTATUS(status) == 128 + SIGKILL ? 0 : 3);
}

TEST(test_job_control)
{
	static const int signals[] = { SIGTSTP, SIGSTOP };

	for (size_t i = 0; i < 2; i++) {
		struct run r;

		start(&r, shell, signals[i]);
		assert_true(read_until(&r, "CONTINUED"));
		finish(&r);
		assert_int_equal(WEXITSTATUS(r.status), 0);
		assert_true(said(&r, RESTORED));
	}
}

/* Announces its end and does not end, like a process with a thread that hangs in the kernel. */
static void hangs_at_its_end(int code)
{
	term_guard_start();
	spoil();
	term_guard_end(code);
	dprintf(1, "PID %d.", getpid());
	signal(SIGTERM, SIG_IGN);
	for (;;)
		pause();
}

TEST(test_hangs_at_its_end)
{
	struct run r;
	const char *pid;

	start(&r, hangs_at_its_end, 3);
	assert_true(read_until(&r, "."));
	finish(&r);
	assert_true(WIFEXITED(r.status));
	assert_int_equal(WEXITSTATUS(r.status), 3);
	r.out[r.size] = '\0';
	pid = strstr(r.out, "PID ");
	assert_non_null(pid);
	kill((pid_t)atoi(pid + 4), SIGKILL);
}

int main(void)
{
	/* A test that hangs fails. */
	alarm(60);
	return run_unit_tests(NULL, NULL);
}
