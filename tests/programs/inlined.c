// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * inlined [SECONDS]: one hot loop that the compiler puts into two functions,
 * three parts of four of its time into the first.
 */
#include <stdlib.h>
#include <time.h>

static inline __attribute__((always_inline)) unsigned int mix(unsigned int x, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		x = x * 1664525 + 1013904223;
	return x;
}

__attribute__((noinline)) static unsigned int first(unsigned int x)
{
	return mix(x, 300000) + 1;
}

__attribute__((noinline)) static unsigned int second(unsigned int x)
{
	return mix(x, 100000) ^ 7;
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 10);
	volatile unsigned int sum = 1;

	while (time(NULL) < end) {
		sum += first(sum);
		sum += second(sum);
	}
	return 0;
}
