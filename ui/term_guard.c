// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The guard: waits for proftop and restores the terminal after it.
 *
 * A separate process with one thread. All its signals are blocked and read by
 * signalfd(2): nothing interrupts it. It ends here, by _exit(2). It signals
 * proftop by its pidfd; proftop reports to it by a socket, never by a signal:
 * the parent of a proftop without a guard is a stranger.
 */
#include "ui/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

/* Time for proftop to end before it is killed. */
#define LEAVE_SECONDS 2

/* Time for it to end after term_guard_end(). */
#define END_MS 500

/* Interval of tests for the end of its first thread; after this number in a row it has ended. */
#define LOOK_SECONDS 1

#define DEAD_LOOKS 2U

/* Attributes off, mouse off, bracketed paste off, cursor keys normal, alternate screen off, cursor
 * on. */
static const char restore[] = "\033[0m\033[?1000l\033[?1002l\033[?1003l\033[?1006l\033[?1015l"
			      "\033[?2004l\033[?1l\033>\033[?1049l\033[?25h\r\033[J";

struct guard {
	int tty; /* -1: none */
	struct termios before;
	pid_t child;
	int child_fd;  /* pidfd */
	int signal_fd; /* of all signals */
	int end_fd;    /* socket: receives the code of term_guard_end() */
	bool leaving;  /* SIGTERM was sent; SIGKILL follows */
	bool ending;   /* term_guard_end() was called, with this code: */
	int code;
	unsigned int nr_dead; /* tests in a row that found its first thread ended */
};

/* For proftop: its guard, and the other end of end_fd. */

static int guard_fd = -1;

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

static void signal_child(const struct guard *g, int sig)
{
	syscall(SYS_pidfd_send_signal, g->child_fd, sig, NULL, 0);
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
		signal_child(g, SIGKILL);
	g->nr_dead = is_dead(g, &status) ? g->nr_dead + 1 : 0;
	if (g->nr_dead >= DEAD_LOOKS)
		finish(g, status);
}

/* Wait for a signal or a report of proftop; false: neither arrived in time. */
static bool wait_for_event(const struct guard *g, struct pollfd fds[2])
{
	fds[0] = (struct pollfd){ .fd = g->signal_fd, .events = POLLIN };
	/* One report is enough; the end of all senders is that of proftop. */
	fds[1] = (struct pollfd){ .fd = g->ending ? -1 : g->end_fd, .events = POLLIN };
	return poll(fds, 2,
		    g->ending	 ? END_MS
		    : g->leaving ? LEAVE_SECONDS * 1000
				 : LOOK_SECONDS * 1000) > 0;
}

static void take_report(struct guard *g)
{
	ssize_t n = recv(g->end_fd, &g->code, sizeof(g->code), MSG_DONTWAIT);

	if (n == sizeof(g->code)) {
		g->ending = true;
		g->code &= 0xff;
	} else if (!n) {
		close(g->end_fd);
		g->end_fd = -1;
	}
}

static void take_signal(struct guard *g)
{
	struct signalfd_siginfo info;

	if (read(g->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	switch (info.ssi_signo) {
	case SIGCHLD:
		look_at_child(g);
		break;
	case SIGTERM:
	case SIGHUP:
		signal_child(g, (int)info.ssi_signo);
		/* A stopped process cannot end: continue it. */
		signal_child(g, SIGCONT);
		g->leaving = true;
		break;
	case SIGTSTP:
	case SIGCONT:
		signal_child(g, (int)info.ssi_signo);
		break;
	default: /* proftop gets the terminal's INT, QUIT and WINCH itself */
		break;
	}
}

static void __attribute__((noreturn)) wait_for_child(struct guard *g)
{
	struct pollfd fds[2];

	look_at_child(g);
	for (;;) {
		if (!wait_for_event(g, fds)) {
			look_for_end(g);
			continue;
		}
		if (fds[1].revents)
			take_report(g);
		if (fds[0].revents)
			take_signal(g);
	}
}

/* Open what the guard waits for: -errno if this kernel or its limits refuse it. */
static int open_guard(struct guard *g, const sigset_t *all, int ends[2])
{
	int code;

	/* Linux 5.3; later only the limit of files could refuse it. */
	g->child_fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (g->child_fd < 0)
		return -errno;
	g->signal_fd = signalfd(-1, all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (g->signal_fd >= 0 && !socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return 0;
	code = -errno;
	close(g->child_fd);
	if (g->signal_fd >= 0)
		close(g->signal_fd);
	return code;
}

static void close_guard(struct guard *g)
{
	close(g->child_fd);
	close(g->signal_fd);
	close(g->end_fd);
	if (g->tty > STDERR_FILENO)
		close(g->tty);
}

/* As the guard: until the end of proftop. */
static void __attribute__((noreturn)) be_guard(struct guard *g)
{
	close(g->child_fd);
	/* Not waited for yet: its number is not used again. */
	g->child_fd = (int)syscall(SYS_pidfd_open, g->child, 0);
	prctl(PR_SET_NAME, "proftop-guard");
	wait_for_child(g);
}

pid_t term_guard_start(void)
{
	struct guard g = { .tty = find_tty() };
	pid_t guard = getpid();
	sigset_t all, before;
	int ends[2], code;

	if (g.tty >= 0 && tcgetattr(g.tty, &g.before))
		g.tty = -1;
	sigfillset(&all);
	code = open_guard(&g, &all, ends);
	if (code) {
		if (g.tty > STDERR_FILENO)
			close(g.tty);
		return 0;
	}
	g.end_fd = ends[0];
	sigprocmask(SIG_SETMASK, &all, &before);
	g.child = fork();
	if (g.child > 0) {
		close(ends[1]);
		be_guard(&g);
	}
	close_guard(&g);
	if (g.child < 0) {
		close(ends[1]);
		sigprocmask(SIG_SETMASK, &before, NULL);
		return 0;
	}
	guard_fd = ends[1];
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	sigprocmask(SIG_SETMASK, &before, NULL);
	/* It may have ended before the signal was requested. */
	if (getppid() != guard)
		raise(SIGTERM);
	return guard;
}

void term_guard_end(int code)
{
	if (guard_fd >= 0)
		send(guard_fd, &code, sizeof(code), MSG_NOSIGNAL | MSG_DONTWAIT);
}
