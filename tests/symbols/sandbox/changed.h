/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Workers of the sandbox that behave as if they had been taken over: their answers are changed at
 * random, they die, or a test's own function spoils them. For one test program each.
 */
#ifndef TESTS_SYMBOLS_SANDBOX_CHANGED_H
#define TESTS_SYMBOLS_SANDBOX_CHANGED_H

#include <string.h>
#include <sys/mman.h>

#include "symbols/sandbox/sandbox.h"

#define NR_ROUNDS 300U

/* How the workers behave: shared with them. */
enum mode { HONEST, CHANGED, DIES, SLOW, GREEDY, STEPS, NAPS, DENIES, WRITES, REPEATS, LONG };
static struct shared {
	enum mode mode;
	uint32_t seed;
	uint32_t nr_calls;
} * shared;

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525U + 1013904223U;
	return *seed >> 8;
}

/* Change the honest reply as a worker that was taken over may: bytes, its end, its size. */
static void change(struct sandbox_reply *r)
{
	uint32_t seed = shared->seed, nr = 1 + next_random(&seed) % 4;
	uint8_t more[64];

	for (uint32_t i = 0; i < nr && r->size; i++)
		r->bytes[next_random(&seed) % r->size] = (uint8_t)next_random(&seed);
	if (next_random(&seed) % 4 == 0)
		r->size = r->size ? next_random(&seed) % r->size : 0;
	if (next_random(&seed) % 4 == 0) {
		memset(more, (int)next_random(&seed), sizeof(more));
		sandbox_put(r, more, next_random(&seed) % sizeof(more));
	}
}

/* The answer of @reader, spoilt by the mode of the test. */
static int serve_changed(const struct sandbox_reader *reader, struct sandbox_call *c)
{
	int rc;

	shared->nr_calls++;
	if (shared->mode == DIES)
		__builtin_trap();
	rc = reader->serve(c);
	if (!rc && shared->mode == CHANGED)
		change(&c->reply);
	return rc;
}

/* Return the reader @of with another function. */
static struct sandbox_reader wrap(const struct sandbox_reader *of,
				  int (*fn)(struct sandbox_call *c))
{
	struct sandbox_reader r = *of;

	r.serve = fn;
	return r;
}

/* Start the sandbox with @readers of the test. */
static int start_changed(const struct sandbox_reader *const readers[SANDBOX_NR_KINDS])
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	return shared == MAP_FAILED ? -1 : sandbox_start(readers);
}

static int stop_changed(void **state)
{
	(void)state;
	sandbox_stop();
	return 0;
}

#endif
