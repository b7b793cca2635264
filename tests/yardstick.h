/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Limits of time that hold on any machine: stretched by the factor by which this one (and this
 * build of the test) is slower at a fixed piece of work than the machine that the limits were
 * measured on: at the work, or at system calls, whichever is more. Times are CPU times of the
 * calling thread, so that other programs do not count.
 */
#ifndef TESTS_YARDSTICK_H
#define TESTS_YARDSTICK_H

#include <signal.h>
#include <stdint.h>
#include <time.h>

#define YARDSTICK_NR 65536
/* Time of yardstick_work() there, at -O2. */
#define YARDSTICK_REF_NS 5600000.0
/* And of yardstick_calls(). */
#define YARDSTICK_CALLS_REF_NS 1400000.0

/* Also in a test that is built without optimization. */
#ifdef __clang__
#define YARDSTICK_BUILT
#else
#define YARDSTICK_BUILT __attribute__((optimize("O2")))
#endif

static inline uint64_t yardstick_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000U + (uint64_t)ts.tv_nsec;
}

/* Sort numbers that are always the same (Shell's sort): branches, and memory that no first cache
 * holds. */
YARDSTICK_BUILT static inline void yardstick_work(void)
{
	static uint32_t v[YARDSTICK_NR];
	uint32_t seed = 1;

	for (uint32_t i = 0; i < YARDSTICK_NR; i++)
		v[i] = seed = seed * 1664525U + 1013904223U;
	for (uint32_t gap = YARDSTICK_NR / 2; gap; gap = gap > 2 ? gap * 5 / 11 : gap / 2)
		for (uint32_t i = gap; i < YARDSTICK_NR; i++) {
			uint32_t x = v[i], k = i;

			for (; k >= gap && v[k - gap] > x; k -= gap)
				v[k] = v[k - gap];
			v[k] = x;
		}
	__asm__ volatile("" : : "r"(v) : "memory");
}

static inline void yardstick_calls(void)
{
	sigset_t set;

	for (int i = 0; i < 10000; i++)
		sigprocmask(SIG_BLOCK, NULL, &set);
}

/* The least CPU time of @work, of five tries. */
static inline double yardstick_measure(void (*work)(void))
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 5; i++) {
		uint64_t begin = yardstick_cpu_ns(), took;

		work();
		took = yardstick_cpu_ns() - begin;
		best = took < best ? took : best;
	}
	return (double)best;
}

/* How many times slower than there, at least 1; measured once a process. */
static inline double yardstick_slowness(void)
{
	static double slowness;
	double calls;

	if (slowness > 0)
		return slowness;
	slowness = yardstick_measure(yardstick_work) / YARDSTICK_REF_NS;
	calls = yardstick_measure(yardstick_calls) / YARDSTICK_CALLS_REF_NS;
	slowness = slowness > calls ? slowness : calls;
	slowness = slowness > 1 ? slowness : 1;
	return slowness;
}

/* Has this thread used no more CPU time since @begin_ns than the limit allows on this machine? */
static inline int yardstick_within(uint64_t begin_ns, double limit_ms)
{
	return (double)(yardstick_cpu_ns() - begin_ns) / 1e6 <= limit_ms * yardstick_slowness();
}

#endif
