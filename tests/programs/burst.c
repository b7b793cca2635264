// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Computes a little in steady() every 50 ms, and for @2 ms of CPU time (400) in burst() every @1
 * ms, first after that time.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

static double now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

__attribute__((noinline)) static void burst(double end)
{
	while (now(CLOCK_PROCESS_CPUTIME_ID) < end)
		for (unsigned long i = 0; i < 20000; i++)
			sink += i * i;
}

__attribute__((noinline)) static void steady(void)
{
	for (unsigned long i = 0; i < 200000; i++)
		sink += i;
}

int main(int argc, char **argv)
{
	double every = argc > 1 ? atof(argv[1]) / 1000 : 20;
	double length = argc > 2 ? atof(argv[2]) / 1000 : 0.4, next = now(CLOCK_MONOTONIC) + every;

	for (;;) {
		steady();
		usleep(49000);
		if (now(CLOCK_MONOTONIC) < next)
			continue;
		burst(now(CLOCK_PROCESS_CPUTIME_ID) + length);
		next += every;
	}
}
