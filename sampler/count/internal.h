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

void rate_log_fini(struct rate_log *log);
/*
 * Set the rates from @begin_ns on, of the set @events. Return true if that is a change of the rates
 * of this set. Without memory the entry is left out.
 */
bool rate_log_set(struct rate_log *log, uint64_t begin_ns, uint16_t events, const double *hz,
		  uint32_t nr);
/*
 * Return the rates of the set @events at @begin_ns; NULL: unknown. *changed: they changed before
 * @end_ns.
 */
const double *rate_log_find(const struct rate_log *log, uint64_t begin_ns, uint64_t end_ns,
			    uint16_t events, bool *changed);

size_t stacks_memory(const struct stacks *s);

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

/* Pack @counts (reordered); malloc'ed. Weights of equal keys end at UINT64_MAX. 0 or -ENOMEM. */
int slice_pack(struct slice *out, struct count *counts, uint32_t nr);

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
	uint32_t mask;	   /* number of slots - 1 */
	uint32_t nr;
};

void sums_init(struct sums *s);
void sums_fini(struct sums *s);
/* Reserve @more new keys: that number of sums_add() cannot fail. 0 or -ENOMEM (unchanged). */
int sums_reserve(struct sums *s, uint32_t more);
void sums_add(struct sums *s, uint64_t key, double count, double weight);
/*
 * Keep the @keep heaviest cells of at least @min_count, fold the rest away; below @min_count into
 * task 0, so that a decaying sum forgets tasks (at most COUNTS_EVENTS_MAX cells more may remain). 0
 * or -ENOMEM (unchanged).
 */
int sums_prune(struct sums *s, uint32_t keep, double min_count);
/* Get the sum over the counts without a stack. */
void sums_folded(const struct sums *s, double *count, double *weight);
void sums_scale(struct sums *s, double factor);
size_t sums_memory(const struct sums *s);

/* @span_ns: how long a slice is kept; @memory: bytes that all slices may take. 0 or -ENOMEM. */
int slices_new(struct slices **out, uint64_t span_ns, size_t memory);
void slices_free(struct slices *s);
void slices_set_limits(struct slices *s, uint64_t span_ns, size_t memory);
/*
 * Give up merging soon after another thread has set @stopped: slices may take more memory than
 * their limit then, and slices_remap() drops some. NULL: never.
 */
void slices_stop_by(struct slices *s, const atomic_bool *stopped);
/* Drop all slices, and forget the dropped ones. */
void slices_clear(struct slices *s);
/*
 * Append the slice of @begin_ns to @end_ns: a copy of @counts (reordered). @about:
 * epoch, events, marks, lost and throttled. 0, or -ENOMEM: nothing was added.
 */
int slices_add(struct slices *s, struct count *counts, uint32_t nr, const struct slice *about);
/* Add @marks, @lost and @throttled to the newest slice, if there is one. */
void slices_note(struct slices *s, unsigned int marks, uint64_t lost, uint64_t throttled);
/* Bytes of all slices, as they count for the limit. */
size_t slices_memory(const struct slices *s);
/* Add the counts of the slices of @range, as slices_range() found it, to @sums. 0 or -ENOMEM. */
int slices_sum(const struct slices *s, const struct slice_range *range, struct sums *sums);
/* Map the tasks of all slices, which remain as they are. */
void slices_map_tasks(const struct slices *s, const struct history_ids *ids);
/*
 * Replace all ids of stacks and tasks, from the newest slice to the oldest. 0, or -ENOMEM: the
 * slices are dropped that were not replaced.
 */
int slices_remap(struct slices *s, const struct history_ids *ids);

/*
 * Counts in the slices of their moments. Samples arrive late: of a CPU that had no time to read
 * its ring, or of a wait that was counted at the end of a tick. So slices, on a grid of
 * COUNTS_SLICE_NS, are open until all counts of their time have arrived, and then added to the
 * past; what comes later is added to the slice of its time there.
 *
 * Runs on: the builder. Times are in ns of the clock of the samples.
 */

/* @past: gets the closed slices; borrowed. 0 or -ENOMEM. */
int moments_new(struct moments **out, struct slices *past);
void moments_free(struct moments *m);
/* Drop the open slices. The next one begins at @now_ns or, as the first of all, on the grid. */
void moments_reset(struct moments *m, uint64_t now_ns);
/* Let the slices from @now_ns on be of the events @events. */
void moments_set_events(struct moments *m, uint16_t events, uint64_t now_ns);
/*
 * Add counts that arrived until @now_ns (reordered), each to the slice of its time. @about: epoch,
 * and marks for the slice of @now_ns. 0, or -ENOMEM: some counts are in no slice.
 */
int moments_add(struct moments *m, struct count *counts, uint32_t nr, uint64_t now_ns,
		const struct slice *about);
/* Add to the newest open slice, as slices_note(). False: none is open. */
bool moments_note(struct moments *m, unsigned int marks, uint64_t lost, uint64_t throttled);
/* Close the slices that end until @complete_ns; all counts before have arrived. 0 or -ENOMEM. */
int moments_close(struct moments *m, uint64_t complete_ns);
/* Close all. 0 or -ENOMEM. */
int moments_finish(struct moments *m);
/* Replace the ids of tasks, and then of stacks, in the open slices. */
void moments_map_tasks(struct moments *m, const struct history_ids *ids);
void moments_map_stacks(struct moments *m, const struct history_ids *ids);
size_t moments_memory(const struct moments *m);

/* Get the folded part of a long sum; 0 for PROFILE_WINDOW. */
void history_folded_away(const struct history *h, enum profile_window window, double *count,
			 double *weight);

#endif
