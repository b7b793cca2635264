/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The object in which most broken stacks end, at a fixed cost: in each slot the most frequent
 * object outlasts the others (Boyer and Moore's majority vote). One owner, no locks.
 */
#ifndef SAMPLER_PIPELINE_ENDS_H
#define SAMPLER_PIPELINE_ENDS_H

#include <stdint.h>

#define ENDS_SLOTS 8 /* a power of two */

struct ends {
	struct ends_slot {
		uint32_t object;
		uint32_t lead; /* how many more than of all others; 0: none */
	} slots[ENDS_SLOTS];
};

/* Count a stack that ends in @object. */
void ends_note(struct ends *e, uint32_t object);
/* Add the counts of another CPU. */
void ends_add(struct ends *sum, const struct ends *add);
/* Return the object in which at least half of @all stacks end; UINT32_MAX: none. */
uint32_t ends_most(const struct ends *e, uint64_t all);

#endif
