/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts over time: the counts of each short slice of the session, packed. One thread at a time; no
 * locks. Memory is bounded: beyond the limit the oldest slices are merged to 1 s, then to 10 s,
 * then dropped; beyond the time they are dropped (not with SLICES_ALL). Nothing disappears without
 * a figure: the samples of all slices and of the dropped ones are the samples ever added, exactly.
 * Times are in ns of one clock, which never goes back.
 */
#ifndef SAMPLER_COUNT_SLICES_H
#define SAMPLER_COUNT_SLICES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sampler/count/slice.h"

struct sums;

struct slices;

/*
 * A span: slices are merged as far as the memory requires, and never dropped. When that frees
 * little, they may take an eighth more before they are merged again. Slices with very many counts
 * are not merged: that could take minutes.
 */
#define SLICES_ALL UINT64_MAX

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
/*
 * Add counts (reordered), of the events @events, that arrived late to the slice of @time_ns, or to
 * the ones that were dropped if it is among them. 0, -ENOMEM, or -ENOENT: there is none of them.
 */
int slices_add_late(struct slices *s, uint64_t time_ns, uint16_t events, struct count *counts,
		    uint32_t nr);
/* Add @marks, @lost and @throttled to the newest slice, if there is one. */
void slices_note(struct slices *s, unsigned int marks, uint64_t lost, uint64_t throttled);

/* Add @marks to slice @i. */
void slices_mark(struct slices *s, uint32_t i, unsigned int marks);

/* Slices in order of time; borrowed until the next change. */
uint32_t slices_nr(const struct slices *s);
const struct slice *slices_at(const struct slices *s, uint32_t i);
/* Report whether slices were merged to save memory. */
bool slices_merged(const struct slices *s);
void slices_set_amount(struct slices *s, uint32_t i, double amount, uint32_t seq);
/* Find the first slice that ends after @time_ns; slices_nr(): none. */
uint32_t slices_find(const struct slices *s, uint64_t time_ns);
/* Bytes of all slices, as they count for the limit. */
size_t slices_memory(const struct slices *s);
/* Samples and weight of the slices that were dropped; true if there are any dropped slices. */
bool slices_dropped(const struct slices *s, uint64_t *count, uint64_t *weight);

/*
 * The slices up to @until_ns are written: none of them becomes one with a later one. Return the
 * samples of slices that were dropped since the last call, and are later than its @until_ns.
 */
uint64_t slices_keep(struct slices *s, uint64_t until_ns);

/* A span of time, and the slices in it. */
struct slice_range {
	uint64_t begin_ns, end_ns; /* of the slices themselves */
	uint64_t covers_ns;	   /* without gaps between them */
	uint64_t count, lost, throttled;
	uint32_t nr;	 /* slices */
	uint16_t events; /* their set: that of the last slice; slices of others are left out */
	uint16_t marks;
};

/*
 * Find the slices of @begin_ns to @end_ns: slices with their middle in it, else the one at
 * @begin_ns. False: there is none.
 */
bool slices_range(const struct slices *s, uint64_t begin_ns, uint64_t end_ns,
		  struct slice_range *out);
/* Add the counts of the slices of @range, as slices_range() found it, to @sums. 0 or -ENOMEM. */
int slices_sum(const struct slices *s, const struct slice_range *range, struct sums *sums);

/*
 * Maps old ids of stacks and tasks to new ones. STACK_NONE: the count is of its task only.
 * @only_total: of a task that nothing but the total has.
 */
struct history_ids {
	uint32_t (*stack)(void *ctx, uint32_t stack);
	uint32_t (*task)(void *ctx, uint32_t task);
	uint32_t (*only_total)(void *ctx, uint32_t task);
	void *ctx;
};
/* Map the tasks of all slices, which remain as they are. */
void slices_map_tasks(const struct slices *s, const struct history_ids *ids);
/*
 * Replace all ids of stacks and tasks, from the newest slice to the oldest. 0, or -ENOMEM: the
 * slices are dropped that were not replaced.
 */
int slices_remap(struct slices *s, const struct history_ids *ids);

#endif
