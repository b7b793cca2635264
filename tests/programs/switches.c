// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A known rate of switches: two processes on one CPU that answer each other over pipes.
 *
 * switches RATE: in each 10 ms RATE / 200 round trips of two switches, with a real-time priority if
 * permitted, until it is killed.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS 10000000L

static int there[2], back[2];

static __attribute__((noinline)) void answer(void)
{
	char c;

	if (read(there[0], &c, 1) != 1 || write(back[1], &c, 1) != 1)
		_exit(1);
}

static __attribute__((noinline)) void request(void)
{
	char c = 0;

	if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1)
		_exit(1);
}

static void stay_on_last_cpu(void)
{
	const struct sched_param param = { .sched_priority = 1 };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((int)sysconf(_SC_NPROCESSORS_ONLN) - 1, &set);
	sched_setaffinity(0, sizeof(set), &set);
	sched_setscheduler(0, SCHED_FIFO, &param);
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) / 200 : 0;
	struct timespec next;

	if (rounds <= 0 || pipe(there) || pipe(back))
		return 2;
	stay_on_last_cpu();
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			answer();
	}
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (;;) {
		for (long i = 0; i < rounds; i++)
			request();
		next.tv_nsec += PERIOD_NS;
		next.tv_sec += next.tv_nsec / 1000000000;
		next.tv_nsec %= 1000000000;
		/* No catching up: with a real-time priority that would take the whole CPU. */
		if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL) == 0)
			clock_gettime(CLOCK_MONOTONIC, &next);
	}
}
