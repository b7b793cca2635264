/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts by a place and a second number: branches from place to place, accesses to memory by place
 * and kind. Of recordings.
 *
 * Threads: one owner.
 */
#ifndef SAMPLER_COUNT_PAIRS_H
#define SAMPLER_COUNT_PAIRS_H

#include <stdint.h>

/* Pairs of a table; samples of further ones are counted as left out. */
#define PAIRS_MAX (1u << 20)

struct pair {
	uint32_t place, other;
	uint64_t count;
	uint64_t sums[3]; /* of figures of the samples */
};

struct pairs;

/* NULL: out of memory. */
struct pairs *pairs_new(void);
void pairs_free(struct pairs *p);
/* Count one sample of a pair, and add its figures. */
void pairs_add(struct pairs *p, uint32_t place, uint32_t other, const uint64_t figures[static 3]);
/* The pairs, in the order of their first samples; borrowed until the next pairs_add(). */
const struct pair *pairs_all(const struct pairs *p, uint32_t *nr);
/* Return the samples left out, as the table is full. */
uint64_t pairs_left_out(const struct pairs *p);

#endif
