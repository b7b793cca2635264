// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * truth_throw SECONDS: C++ exceptions in flight, through destructors, caught and thrown again. The
 * chain of its own functions is known from the innermost one alone (tests/e2e/stacks.py).
 */
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <sys/prctl.h>
#include <unistd.h>

#ifdef __clang__
#define ALONE __attribute__((noinline))
#else
#define ALONE __attribute__((noipa))
#endif

static volatile long sink;

struct guard {
	ALONE ~guard()
	{
		sink = sink + 1;
	}
};

ALONE static void throw_6(int n)
{
	if (n)
		throw std::runtime_error("on purpose");
	sink = sink + 1;
}

#define LINK(name, next)                                                                           \
	ALONE static void name(int n)                                                              \
	{                                                                                          \
		guard g;                                                                           \
		next(n);                                                                           \
		sink = sink + n;                                                                   \
	}

LINK(throw_5, throw_6)
LINK(throw_4, throw_5)

ALONE static void throw_3(int n)
{
	try {
		throw_4(n);
	} catch (const std::logic_error &) {
		sink = sink + 2;
	} catch (...) {
		throw;
	}
	sink = sink + n;
}

LINK(throw_2, throw_3)
LINK(throw_1, throw_2)

ALONE static void throw_0(int n)
{
	try {
		throw_1(n);
	} catch (const std::exception &e) {
		sink = sink + e.what()[0];
	}
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	struct timespec a, b;

	prctl(PR_SET_NAME, "t_throw");
	clock_gettime(CLOCK_MONOTONIC, &a);
	do {
		for (int i = 0; i < 100; i++)
			throw_0(i & 7);
		clock_gettime(CLOCK_MONOTONIC, &b);
	} while ((double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec) < seconds);
	_exit(0);
}
