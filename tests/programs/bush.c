/* Calls are never made loops or jumps. BUILD: -fno-optimize-sibling-calls */
// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * bush [SECONDS]: a thread per CPU that is nearly never twice on the same
 * stack: at each of 20 levels one of two functions goes deeper, by chance.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define DEPTH 20

static uint64_t right(uint64_t *x, int depth);

static uint64_t twig(uint64_t *x)
{
	for (int i = 0; i < 20000; i++)
		*x = *x * 6364136223846793005U + 1442695040888963407U;
	return *x;
}

static __attribute__((noinline, noclone)) uint64_t left(uint64_t *x, int depth)
{
	if (!depth)
		return twig(x);
	return 1 + (*x >> (depth + 20) & 1 ? left(x, depth - 1) : right(x, depth - 1));
}

static __attribute__((noinline, noclone)) uint64_t right(uint64_t *x, int depth)
{
	if (!depth)
		return twig(x);
	return 2 + (*x >> (depth + 20) & 1 ? left(x, depth - 1) : right(x, depth - 1));
}

static void *grow(void *arg)
{
	time_t end = *(const time_t *)arg;
	uint64_t x = (uint64_t)(uintptr_t)&end, sum = 0;

	while (time(NULL) < end)
		for (int i = 0; i < 100; i++)
			sum += left(&x, DEPTH);
	return (void *)(uintptr_t)sum;
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 10);
	long nr = sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t thread;

	for (long i = 1; i < nr; i++)
		if (pthread_create(&thread, NULL, grow, &end))
			return 1;
	return grow(&end) == (void *)1;
}
