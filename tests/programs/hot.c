/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One hot function between two idle ones of its size: its name, and the source of the name, depend
 * on the build (tests/e2e/sources.py). -DNAME=..., -DSTUBS: it calls through the PLT;
 * -DVDSO, -DKERNEL: the time goes there; -DINLINED: into an inlined function.
 */
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef NAME
#define NAME hot
#endif
#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
#ifndef SCOPE
#define SCOPE static
#endif
#define FUNCTION __attribute__((noinline, noclone, used))

volatile uint64_t sink;

#ifdef STUBS
uint64_t hot_target(uint64_t x);
#endif

#ifdef INLINED
static inline __attribute__((always_inline)) uint64_t JOIN(NAME, _inlined)(uint64_t x)
{
	for (int i = 0; i < 1000; i++) /* the line that is hot */
		x = x * 6364136223846793005U + 1442695040888963407U;
	return x;
}
#endif

/* Much the same three times: a neighbour's name would be as good a guess. */
FUNCTION uint64_t JOIN(NAME, _before)(uint64_t x)
{
	for (int i = 0; i < 1000; i++)
		x = x * 2862933555777941757U + 3037000493U;
	return x;
}

SCOPE FUNCTION uint64_t NAME(uint64_t x)
{
#if defined(STUBS)
	for (int i = 0; i < 1000; i++)
		x = hot_target(x);
#elif defined(VDSO)
	struct timespec ts;

	for (int i = 0; i < 1000; i++)
		clock_gettime(CLOCK_MONOTONIC, &ts);
	x += (uint64_t)ts.tv_nsec;
#elif defined(KERNEL)
	for (int i = 0; i < 1000; i++)
		x += (uint64_t)syscall(SYS_getppid);
#elif defined(INLINED)
	x = JOIN(NAME, _inlined)(x);
#else
	for (int i = 0; i < 1000; i++)
		x = x * 6364136223846793005U + 1442695040888963407U;
#endif
	return x;
}

FUNCTION uint64_t JOIN(NAME, _after)(uint64_t x)
{
	for (int i = 0; i < 1000; i++)
		x = x * 3202034522624059733U + 1U;
	return x;
}

int main(int argc, char **argv)
{
	sink = argc > 100 ? JOIN(NAME, _before)(sink) + JOIN(NAME, _after)(sink) : 1;
	for (;;)
		sink = NAME(sink);
}
