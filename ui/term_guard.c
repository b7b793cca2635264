// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The guard: waits for proftop and restores the terminal after it.
 *
 * A separate process with one thread. All its signals are blocked and read by
 * sigtimedwait(2): nothing interrupts it. It ends here, by _exit(2).
 */
#include "ui/term_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

/* Time for proftop to end before it is killed. */
#define LEAVE_SECONDS 2
/* Time for it to end after term_guard_end(). */
#define END_MS 500
/* Interval of tests for the end of its first thread; after this number in a row it has ended. */
#define LOOK_SECONDS 1
#define DEAD_LOOKS   2U

/* Attributes off, mouse off, bracketed paste off, cursor keys normal, alternate screen off, cursor
 * on. */
static const char restore[] = "\033[0m\033[?1000l\033[?1002l\033[?1003l\033[?1006l\033[?1015l"
			      "\033[?2004l\033[?1l\033>\033[?1049l\033[?25h\r\033[J";

struct guard {
	int tty; /* -1: none */
	struct termios before;
	pid_t child;
	bool leaving; /* SIGTERM was sent; SIGKILL follows */
	bool ending;  /* term_guard_end() was called, with this code: */
	int code;
	unsigned int nr_dead; /* tests in a row that found its first thread ended */
};

static int find_tty(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (isatty(fd))
			return fd;
	return open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
}

static bool same_termios(const struct termios *a, const struct termios *b)
{
	return a->c_iflag == b->c_iflag && a->c_oflag == b->c_oflag && a->c_cflag == b->c_cflag &&
	       a->c_lflag == b->c_lflag && !memcmp(a->c_cc, b->c_cc, sizeof(a->c_cc));
}

/* Restore the terminal as it was at start, unless proftop did, or another job has it. */
static void restore_tty(const struct guard *g)
{
	struct pollfd out = { .fd = g->tty, .events = POLLOUT };
	struct termios now;
	ssize_t n;

	if (g->tty < 0 || tcgetattr(g->tty, &now) || same_termios(&now, &g->before))
		return;
	if (tcgetpgrp(g->tty) != getpgrp())
		return;
	/* Discard the output that a stalled terminal did not accept: waiting for it may never end.
	 */
	if (poll(&out, 1, 0) != 1)
		tcflush(g->tty, TCOFLUSH);
	if (poll(&out, 1, 100) == 1) {
		n = write(g->tty, restore, sizeof(restore) - 1);
		(void)n;
	}
	tcsetattr(g->tty, TCSANOW, &g->before);
}

/* Proftop has ended: restore the terminal, report a signal, and exit as it did. */
static void __attribute__((noreturn)) finish(const struct guard *g, int status)
{
	char line[160];
	int sig, n;
	ssize_t written;

	if (WIFEXITED(status)) {
		restore_tty(g);
		_exit(WEXITSTATUS(status));
	}
	sig = WTERMSIG(status);
	restore_tty(g);
	if (sig != SIGTERM && sig != SIGHUP && sig != SIGINT && sig != SIGPIPE) {
		n = snprintf(line, sizeof(line), "proftop: killed by signal %d (%s)%s\n", sig,
			     strsignal(sig),
			     g->leaving ? ", since it did not leave in time"
					: "; the terminal is restored");
		written = write(STDERR_FILENO, line, (size_t)n);
		(void)written;
	}
	_exit(128 + sig);
}

/*
 * Stop as proftop did. By SIGTSTP: the kernel ignores it if no shell could
 * continue us. The loop passes on the SIGCONT that ends this.
 */
static void stop_too(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

/* Stop or end as proftop does. */
static void look_at_child(struct guard *g)
{
	int status;

	while (waitpid(g->child, &status, WNOHANG | WUNTRACED) == g->child) {
		if (!WIFSTOPPED(status))
			finish(g, status);
		/* The shell waits for this process: the job is stopped when both are. */
		restore_tty(g);
		stop_too();
	}
}

/*
 * Return true if the first thread of proftop has ended, and set *status as waitpid() does. The
 * kernel reports the end of a process after that of all threads; a thread that reads a hanging file
 * does not end.
 */
static bool is_dead(const struct guard *g, int *status)
{
	char path[32], line[1024];
	const char *state = NULL, *last;
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)g->child);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, line, sizeof(line) - 1);
		close(fd);
	}
	if (n > 0) {
		line[n] = '\0';
		state = strrchr(line, ')');
	}
	if (!state || strncmp(state, ") Z", 3))
		return false;
	last = strrchr(state, ' ');
	*status = last ? atoi(last) & 0xff7f : 0;
	/* The status may be hidden. */
	if (!*status)
		*status = SIGKILL;
	return true;
}

/* No signal in time: kill proftop if it did not leave; finish if its first thread has ended. */
static void look_for_end(struct guard *g)
{
	int status;

	if (g->ending)
		finish(g, W_EXITCODE(g->code, 0));
	if (g->leaving)
		kill(g->child, SIGKILL);
	g->nr_dead = is_dead(g, &status) ? g->nr_dead + 1 : 0;
	if (g->nr_dead >= DEAD_LOOKS)
		finish(g, status);
}

/* Wait for a signal; -1 (EAGAIN) on timeout. */
static int next_signal(const struct guard *g, const sigset_t *all, siginfo_t *info)
{
	const struct timespec leave = { .tv_sec = LEAVE_SECONDS },
			      end = { .tv_nsec = END_MS * 1000000L },
			      look = { .tv_sec = LOOK_SECONDS };

	return sigtimedwait(all, info, g->ending ? &end : g->leaving ? &leave : &look);
}

static void __attribute__((noreturn)) wait_for_child(struct guard *g, const sigset_t *all)
{
	siginfo_t info;

	look_at_child(g);
	for (;;) {
		int sig = next_signal(g, all, &info);

		if (sig < 0 && errno == EAGAIN)
			look_for_end(g);
		switch (sig) {
		case SIGCHLD:
			look_at_child(g);
			break;
		case SIGTERM:
		case SIGHUP:
			kill(g->child, sig);
			/* A stopped process cannot end: continue it. */
			kill(g->child, SIGCONT);
			g->leaving = true;
			break;
		case SIGUSR1:
			if (info.si_pid != g->child || info.si_code != SI_QUEUE)
				break;
			g->ending = true;
			g->code = info.si_value.sival_int & 0xff;
			break;
		case SIGTSTP:
		case SIGCONT:
			kill(g->child, sig);
			break;
		default: /* proftop gets the terminal's INT, QUIT and WINCH itself */
			break;
		}
	}
}

int term_guard_start(void)
{
	struct guard g = { .tty = find_tty() };
	pid_t guard = getpid();
	sigset_t all, before;

	if (g.tty >= 0 && tcgetattr(g.tty, &g.before))
		g.tty = -1;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	g.child = fork();
	if (g.child < 0) {
		int code = -errno;

		sigprocmask(SIG_SETMASK, &before, NULL);
		if (g.tty > STDERR_FILENO)
			close(g.tty);
		return code;
	}
	if (g.child > 0) {
		prctl(PR_SET_NAME, "proftop-guard");
		wait_for_child(&g, &all);
	}
	if (g.tty > STDERR_FILENO)
		close(g.tty);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	sigprocmask(SIG_SETMASK, &before, NULL);
	/* It may have ended before SIGCHLD was blocked. */
	if (getppid() != guard)
		raise(SIGTERM);
	return 0;
}

void term_guard_end(int code)
{
	const union sigval value = { .sival_int = code };
	int sig = 0;

	/* Sent by term_guard_start() only. */
	if (!prctl(PR_GET_PDEATHSIG, &sig) && sig == SIGTERM)
		sigqueue(getppid(), SIGUSR1, value);
}
