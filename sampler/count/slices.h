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

#include "sampler/count/tables.h"

struct sums;

/* Bits: incidents in a slice. */
enum slice_mark {
	SLICE_LOST = 1,
	SLICE_THROTTLED = 2,
	SLICE_RATE = 4,	  /* the rate was changed */
	SLICE_EVENTS = 8, /* other events since then */
	SLICE_TRAP = 16,  /* a rule of --trap matched */
	SLICE_RESET = 32, /* the counts were reset before it */
};

struct slice {
	uint64_t begin_ns, end_ns;
	uint64_t count; /* samples */
	uint64_t lost, throttled;
	uint32_t epoch;	 /* counts up with each reset */
	uint16_t events; /* the set of events that the slots are of */
	uint16_t marks;	 /* enum slice_mark */
	uint32_t nr;	 /* counts in it */
	uint32_t size;	 /* of @bytes */
	uint8_t *bytes;	 /* packed counts, in order of tables_count_key() */
	/* Kept for the heat strip (strip_make.h): the amount of one query; seq 0: not computed. */
	double amount;
	uint32_t amount_seq;
};

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

/* Reads the packed counts of one slice. */
struct slice_reader {
	const uint8_t *at, *end;
	uint64_t key, unit;
};

void slice_read_begin(struct slice_reader *r, const struct slice *slice);
/* Get the next count, with UINT64_MAX for a larger weight. False: the end, or damaged bytes. */
bool slice_read(struct slice_reader *r, struct count *out);
/* More samples than a machine takes in a slice; the sum of millions of slices fits into 64 bits. */
#define SLICE_COUNT_MAX (1ULL << 40)
/* 36 years of a machine with 1,000 CPUs at 4 GHz; four times as much fits. */
#define SLICE_WEIGHT_MAX (1ULL << 62)
/*
 * Read packed bytes of another origin, of at most @max_nr counts in ascending order, of
 * SLICE_COUNT_MAX samples and SLICE_WEIGHT_MAX. Return the number of counts; -EINVAL: damaged.
 * *count: samples.
 */
int64_t slice_check(const uint8_t *bytes, size_t size, uint32_t max_nr, uint64_t *count);
/* Pack @counts (reordered); malloc'ed. Weights of equal keys end at UINT64_MAX. 0 or -ENOMEM. */
int slice_pack(struct slice *out, struct count *counts, uint32_t nr);

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
