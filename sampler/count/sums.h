/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Long sums: a hash map from tables_count_key() to count and weight. One thread at a time. Bounded
 * by sums_prune(): pruned counts are kept without a stack (STACK_NONE), by task, or, where there
 * are too many, as task 0. So the total never changes.
 */
#ifndef SAMPLER_COUNT_SUMS_H
#define SAMPLER_COUNT_SUMS_H

#include <stdint.h>

#include "sampler/count/count.h"

struct sum {
	uint64_t key; /* 0: empty */
	double count, weight;
};

struct sums {
	struct sum *slots; /* NULL: none yet */
	uint32_t mask;	   /* number of slots - 1 */
	uint32_t nr;
};

void sums_init(struct sums *s);
void sums_fini(struct sums *s);
/* Reserve @more new keys: that number of sums_add() cannot fail. 0 or -ENOMEM (unchanged). */
int sums_reserve(struct sums *s, uint32_t more);
void sums_add(struct sums *s, uint64_t key, double count, double weight);
void sums_scale(struct sums *s, double factor);
/*
 * Keep the @keep heaviest cells of at least @min_count, fold the rest away; below @min_count into
 * task 0, so that a decaying sum forgets tasks (at most COUNTS_EVENTS_MAX cells more may remain). 0
 * or -ENOMEM (unchanged).
 */
int sums_prune(struct sums *s, uint32_t keep, double min_count);
/* Get the sum over the counts without a stack. */
void sums_folded(const struct sums *s, double *count, double *weight);
size_t sums_memory(const struct sums *s);

#endif
