// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The guard: waits for proftop and puts the terminal right after it.
 *
 * A process of its own with one thread. All its signals are blocked and read
 * by sigtimedwait(2), so that nothing ever interrupts it half-way.
 * The only file but main.c that exits: it is a main of its own.
 */
#include "ui/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

/* How long proftop may take to leave before it is killed. */
#define LEAVE_SECONDS 2
/* How long it may take to end once it has said its last words. */
#define END_MS 500

/* Attributes off, mouse off, bracketed paste off, cursor keys normal, alternate screen off, cursor
 * on. */
static const char restore[] = "\033[0m\033[?1000l\033[?1002l\033[?1003l\033[?1006l\033[?1015l"
			      "\033[?2004l\033[?1l\033>\033[?1049l\033[?25h\r\033[J";

struct guard {
	int tty; /* -1: none */
	struct termios before;
	pid_t child;
	bool leaving; /* told to; SIGKILL follows */
	bool ending;  /* it has said that it ends, with this: */
	int code;
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

/* As it was at start. What proftop has restored itself, or what is another job's, is left alone. */
static void restore_tty(const struct guard *g)
{
	struct pollfd out = { .fd = g->tty, .events = POLLOUT };
	struct termios now;
	ssize_t n;

	if (g->tty < 0 || tcgetattr(g->tty, &now) || same_termios(&now, &g->before))
		return;
	if (tcgetpgrp(g->tty) != getpgrp())
		return;
	/* What a stalled terminal has not taken yet nobody will miss; waiting for it could be for
	 * ever. */
	if (poll(&out, 1, 0) != 1)
		tcflush(g->tty, TCOFLUSH);
	if (poll(&out, 1, 100) == 1) {
		n = write(g->tty, restore, sizeof(restore) - 1);
		(void)n;
	}
	tcsetattr(g->tty, TCSANOW, &g->before);
}

/* Proftop is no more: restore, tell, leave as it did. */
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
 * Stop as proftop has. By SIGTSTP: without a shell that could continue us the
 * kernel ignores it. The SIGCONT that ends this is passed on by the loop.
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

/* Follow proftop when it stops or dies. */
static void look_at_child(struct guard *g)
{
	int status;

	while (waitpid(g->child, &status, WNOHANG | WUNTRACED) == g->child) {
		if (!WIFSTOPPED(status))
			finish(g, status);
		/* The shell waits for us, not for it: only when both stand still the job does. */
		restore_tty(g);
		stop_too();
	}
}

/* The next signal; -1 (EAGAIN) when patience ends. */
static int next_signal(const struct guard *g, const sigset_t *all, siginfo_t *info)
{
	const struct timespec leave = { .tv_sec = LEAVE_SECONDS },
			      end = { .tv_nsec = END_MS * 1000000L };

	return g->ending    ? sigtimedwait(all, info, &end)
	       : g->leaving ? sigtimedwait(all, info, &leave)
			    : sigwaitinfo(all, info);
}

static void __attribute__((noreturn)) wait_for_child(struct guard *g, const sigset_t *all)
{
	siginfo_t info;

	look_at_child(g);
	for (;;) {
		int sig = next_signal(g, all, &info);

		if (sig < 0 && errno == EAGAIN && g->ending)
			finish(g, W_EXITCODE(g->code, 0));
		if (sig < 0 && errno == EAGAIN)
			kill(g->child, SIGKILL);
		switch (sig) {
		case SIGCHLD:
			look_at_child(g);
			break;
		case SIGTERM:
		case SIGHUP:
			kill(g->child, sig);
			/* One that is stopped cannot leave. */
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
		default: /* the terminal's INT, QUIT, WINCH reach proftop without us */
			break;
		}
	}
}

int guard_start(void)
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
	/* It may have died before it could be noticed. */
	if (getppid() != guard)
		raise(SIGTERM);
	return 0;
}

void guard_end(int code)
{
	const union sigval value = { .sival_int = code };
	int sig = 0;

	/* Only guard_start() asks for that. */
	if (!prctl(PR_GET_PDEATHSIG, &sig) && sig == SIGTERM)
		sigqueue(getppid(), SIGUSR1, value);
}
