/* A program with a known profile: main, 20 frames of recursion, three leaf functions. */
// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * recurse [SECONDS]: run for SECONDS (default: until killed), then print the CPU time per leaf, as
 * "leaf_a NS leaf_b NS leaf_c NS" of the thread, and the number of rounds, as "turns N".
 *
 * leaf_a and leaf_b burn CPU 5 : 3; leaf_c is the comparator of a qsort() in
 * libc, so that its stack goes through an object without frame pointers and
 * back. Nothing is inlined or tail-called: each level is a frame.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEPTH	 20
#define NR_KEYS	 64
#define ROUNDS	 2000
#define NOINLINE __attribute__((noinline, noclone))

struct run {
	uint64_t sink;
	uint64_t spent_ns[3], turns;
	int leaf;
	uint32_t keys[NR_KEYS];
};

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000U + (uint64_t)ts.tv_nsec;
}

static NOINLINE void leaf_a(struct run *r)
{
	uint64_t x = r->sink | 1;

	for (int i = 0; i < 5 * ROUNDS * 10; i++)
		x = x * 6364136223846793005U + 1442695040888963407U;
	r->sink = x;
}

static NOINLINE void leaf_b(struct run *r)
{
	uint64_t x = r->sink | 1;

	for (int i = 0; i < 3 * ROUNDS * 10; i++)
		x = x * 6364136223846793005U + 1442695040888963407U;
	r->sink = x;
}

/* Slow on purpose, so that the samples are in the comparator and not in the sorting. */
static NOINLINE int leaf_c(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint32_t h = x ^ y;

	for (int i = 0; i < 80; i++) {
		h = h * 1664525 + 1013904223;
		__asm__ volatile("" : "+r"(h));
	}
	return (x > y) - (x < y);
}

static NOINLINE void sort_keys(struct run *r)
{
	for (uint32_t i = 0; i < NR_KEYS; i++)
		r->keys[i] = (i * 2654435761U) ^ (uint32_t)r->sink;
	qsort(r->keys, NR_KEYS, sizeof(r->keys[0]), leaf_c);
	r->sink += r->keys[0];
}

static NOINLINE void leaf(struct run *r)
{
	switch (r->leaf) {
	case 0:
		leaf_a(r);
		break;
	case 1:
		leaf_b(r);
		break;
	default:
		for (int i = 0; i < 4; i++)
			sort_keys(r);
		break;
	}
	__asm__ volatile(""); /* no tail call */
}

static NOINLINE int recurse(struct run *r, int depth)
{
	int below = 0;

	if (depth > 1)
		below = recurse(r, depth - 1);
	else
		leaf(r);
	/* Something to do after the call keeps the frame. */
	__asm__ volatile("" : "+r"(below));
	return below + 1;
}

/* Each leaf once in three turns, in any order: a fixed one can keep step with a timer. */
static int leaf_of(unsigned turn, uint32_t *order)
{
	if (turn % 3 == 0)
		*order = *order * 1664525 + 1013904223;
	return (int)(((*order >> 16) % 3 + turn % 3 * (1 + (*order >> 30) % 2)) % 3);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1e9;
	uint64_t end, now;
	struct timespec ts;
	uint32_t order = 1;
	struct run r;

	memset(&r, 0, sizeof(r));
	clock_gettime(CLOCK_MONOTONIC, &ts);
	end = (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000 +
	      (uint64_t)(seconds * 1e3);
	do {
		/* Many turns between two looks at the clock: reading it is not to be seen. */
		for (unsigned turn = 0; turn < 96; turn++) {
			uint64_t before = cpu_ns();

			r.leaf = leaf_of(turn, &order);
			if (recurse(&r, DEPTH) != DEPTH)
				return 1;
			r.spent_ns[r.leaf] += cpu_ns() - before;
			r.turns++;
		}
		clock_gettime(CLOCK_MONOTONIC, &ts);
		now = (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
	} while (now < end);
	printf("leaf_a %llu leaf_b %llu leaf_c %llu turns %llu\n",
	       (unsigned long long)r.spent_ns[0], (unsigned long long)r.spent_ns[1],
	       (unsigned long long)r.spent_ns[2], (unsigned long long)r.turns);
	return r.sink == 42;
}
