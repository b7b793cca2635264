// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Opening a recording: progress and cancellation.
 *
 * Runs on: the main thread, before the screen.
 */
#include "ui/cli/reading.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define SHOW_NS	 250000000ULL
#define DRAIN_NS 2000000000ULL

static struct {
	int tty; /* 0: none */
	bool keys, shown;
	struct termios before;
	uint64_t show_ns;  /* time of the next line */
	uint64_t drain_ns; /* ^C was pressed: stop then; 0: it was not */
	int ended_by;	   /* -1: not ended; 0: q; else a signal */
} reading;

void reading_begin(bool keys)
{
	int fd = keys			 ? open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)
		 : isatty(STDERR_FILENO) ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)
					 : -1;
	struct termios raw;

	memset(&reading, 0, sizeof(reading));
	reading.ended_by = -1;
	reading.show_ns = time_now_ns() + SHOW_NS;
	if (fd < 0)
		return;
	reading.tty = fd;
	if (!keys || tcgetpgrp(fd) != getpgrp() || tcgetattr(fd, &reading.before))
		return;
	raw = reading.before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	reading.keys = !tcsetattr(fd, TCSANOW, &raw);
}

/* Return the next pending signal; 0: none. */
static int next_signal(void)
{
	static const struct timespec now = { 0, 0 };
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sig = sigtimedwait(&set, NULL, &now);
	return sig > 0 ? sig : 0;
}

/* Return whether q was pressed; other keys are left out. */
static bool is_quit_pressed(void)
{
	char keys[64];
	ssize_t nr = reading.keys ? read(reading.tty, keys, sizeof(keys)) : 0;

	return nr > 0 && memchr(keys, 'q', (size_t)nr);
}

static void show(uint64_t bytes)
{
	uint64_t now = time_now_ns();

	if (reading.tty <= 0 || now < reading.show_ns)
		return;
	reading.show_ns = now + SHOW_NS;
	reading.shown = true;
	if (!bytes) {
		dprintf(reading.tty, "\rreading   %s: quit\033[K", reading.keys ? "q" : "^C");
		return;
	}
	dprintf(reading.tty, "\rreading %.1f MB   %s%s\033[K", (double)bytes / 1e6,
		reading.drain_ns ? "stopping" : "^C: show it now",
		reading.keys ? "   q: quit" : "");
}

enum sampler_reading reading_step(uint64_t bytes)
{
	int sig = next_signal();

	if (is_quit_pressed()) {
		reading.ended_by = 0;
		return SAMPLER_READING_CANCEL;
	}
	if ((sig && sig != SIGINT) || (sig == SIGINT && !bytes)) {
		reading.ended_by = sig;
		return SAMPLER_READING_CANCEL;
	}
	if (reading.drain_ns && (sig || time_now_ns() > reading.drain_ns))
		return SAMPLER_READING_STOP;
	if (sig)
		reading.drain_ns = time_now_ns() + DRAIN_NS;
	show(bytes);
	return reading.drain_ns ? SAMPLER_READING_DRAIN : SAMPLER_READING_GO;
}

int reading_end(void)
{
	if (reading.tty > 0) {
		if (reading.shown)
			dprintf(reading.tty, "\r\033[K");
		if (reading.keys)
			tcsetattr(reading.tty, TCSANOW, &reading.before);
		close(reading.tty);
	}
	reading.tty = 0;
	return reading.ended_by;
}
