/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of sampler/count/, and by tests; no other room includes it. */
#ifndef SAMPLER_COUNT_INTERNAL_H
#define SAMPLER_COUNT_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "symbols/base/base.h"

struct count;
struct history;
struct history_ids;
struct moments;
struct slice;
struct slice_range;
struct slices;
struct stacks;

/* The rates at which slices were sampled: an entry for each change. Runs on: the builder. */

struct rate_entry {
	uint64_t begin_ns;
	double hz[EVENTS_MAX]; /* 0: a fixed period, or no such event */
	uint16_t events;       /* the set of events */
};

struct rate_log {
	struct rate_entry *list;
	uint32_t nr, capacity;
};

/* The table holds smaller numbers: counts of stacks above this are not kept. */
#define COUNTS_TABLE_STACKS (1u << 22)
#define COUNTS_TABLE_TASKS  (1u << 20)
#define COUNTS_TABLE_EVENTS (1u << 4)

/* Return the key of a count in one word; never 0, which is an empty slot. */
static inline uint64_t tables_count_key(uint32_t stack, uint32_t task, uint32_t event)
{
	return ((uint64_t)stack | (uint64_t)task << 32 | (uint64_t)event << 56) + 1;
}

static inline uint32_t tables_count_key_stack(uint64_t key)
{
	return (uint32_t)(key - 1);
}

static inline uint32_t tables_count_key_task(uint64_t key)
{
	return (uint32_t)((key - 1) >> 32) & (COUNTS_TASKS_MAX - 1);
}

static inline uint32_t tables_count_key_event(uint64_t key)
{
	return (uint32_t)((key - 1) >> 56);
}

/*
 * Long sums: a hash map from tables_count_key() to count and weight. One thread at a time. Bounded
 * by sums_prune(): pruned counts are kept without a stack (STACK_NONE), by task, or, where there
 * are too many, as task 0. So the total never changes.
 */

struct sum {
	uint64_t key; /* 0: empty */
	double count, weight;
};

struct sums {
	struct sum *slots; /* NULL: none yet */
	uint32_t nr_slots;
	uint32_t nr;
};

/*
 * Counts in the slices of their moments. Samples arrive late: of a CPU that had no time to read
 * its ring, or of a wait that was counted at the end of a tick. So slices, on a grid of
 * COUNTS_SLICE_NS, are open until all counts of their time have arrived, and then added to the
 * past; what comes later is added to the slice of its time there.
 *
 * Runs on: the builder. Times are in ns of the clock of the samples.
 */

/* Pack @counts (reordered); malloc'ed. Weights of equal keys end at UINT64_MAX. 0 or -ENOMEM. */
int slice_pack(struct slice *out, struct count *counts, uint32_t nr);

#endif
