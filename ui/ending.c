// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ^C at the end of the program: see ending.h.
 */
#include "ui/ending.h"

#include <signal.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_SECONDS 2

static void say(int sig)
{
	static const char text[] = "proftop: still ending: ^C leaves work that is not done\n";
	ssize_t n = write(STDERR_FILENO, text, sizeof(text) - 1);

	(void)n;
}

void ending_begin(void)
{
	const struct sigaction action = { .sa_handler = say, .sa_flags = SA_RESTART };
	const struct timespec now = { 0 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	/* Pressed twice: the first one was taken already. */
	while (sigtimedwait(&set, NULL, &now) > 0)
		;
	signal(SIGINT, SIG_DFL);
	sigaction(SIGALRM, &action, NULL);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	alarm(PATIENCE_SECONDS);
}
