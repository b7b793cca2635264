/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts: the tables of the hot loop, slices of 50 ms, their sums.
 *
 * The caller owes: sampler threads are urcu-qsbr readers; the builder alone takes and sums.
 *
 * The room does: interns stacks and counts (stack, task, event, slice) without a lock or malloc;
 * keeps slices until all samples of their time are in them; sums them into window, decay, total and
 * any range, exactly.
 *
 * Not for: names: everything is an id.
 */
#ifndef SAMPLER_COUNT_COUNT_H
#define SAMPLER_COUNT_COUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/base/base.h"

struct counts;
struct history;
struct pairs;
struct slices;
struct stacks;

/*
 * Error bars of a share: the 95 % interval of Wilson (1927), also right for small counts and near 0
 * and 1. Pure; any thread.
 */

/* Get the interval low..high, both 0..1, of the share of @count samples in @total; 0..1 without a
 * total. */
struct interval {
	double low, high;
};

struct interval interval_of(double count, double total);

/* The samples of a row, and the sum of their weights. */
struct interval_sum {
	double weight, count;
};

#define INTERVAL_Z 1.959964 /* standard errors: two-sided, 95 % */

/*
 * Report whether @more is larger than @less by more than @z standard errors of the difference, so
 * that chance does not explain it. For small counts too: the correction for continuity makes it
 * agree with the exact test (binomial). Rows of one table share a total, of which that test is
 * free.
 */
bool interval_exceeds(struct interval_sum more, struct interval_sum less, double z);

/*
 * Counts by a place and a second number: branches from place to place, accesses to memory by place
 * and kind. Of recordings.
 *
 * Threads: one owner.
 */

struct pair {
	uint32_t place, other;
	uint64_t count;
	uint64_t sums[3]; /* of figures of the samples */
};

/* NULL: out of memory. */
struct pairs *pairs_new(void);
void pairs_free(struct pairs *p);
/* Count one sample of a pair, and add its figures. */
void pairs_add(struct pairs *p, uint32_t place, uint32_t other, const uint64_t figures[static 3]);
/* The pairs, in the order of their first samples; borrowed until the next pairs_add(). */
const struct pair *pairs_all(const struct pairs *p, uint32_t *nr);
/* Return the samples left out, as the table is full. */
uint64_t pairs_left_out(const struct pairs *p);

/*
 * The tables that sampler threads count into: stacks and counts, shared by all threads, insert-only
 * and lock-free. stack = sequence of places, innermost first -> dense u32 (table.h). count =
 * (stack, task, event, slice of its time) -> samples and weight. Each tick the builder swaps the
 * counts for an empty table; after a grace period of urcu-qsbr the old table has no writer, and has
 * the increments of that tick. Threads: *_add and stacks_intern from registered urcu-qsbr threads;
 * everything else from the builder.
 */

#define STACK_NONE	  UINT32_MAX
#define STACKS_PLACES_MAX 1024 /* of one stack; outer ones are cut off */

/* Make a table that takes @max_memory at most, or the minimum of an empty one (under 1 MiB). */
int stacks_new(struct stacks **out, uint32_t max_stacks, size_t max_memory);
void stacks_free(struct stacks *s);
/* Start with a small table, before the first stack, if stacks_crowded() is checked before each: as
 * places_begin_small(). */
int stacks_begin_small(struct stacks *s);
/* Return the id of the stack, inserted if new; STACK_NONE: table or memory is full. */
uint32_t stacks_intern(struct stacks *s, const uint32_t *places, uint32_t nr);
/* Room for the places of one stack. */
struct stacks_room {
	uint32_t places[STACKS_PLACES_MAX];
};

/*
 * Return the places of a stack, of the table or in @room: as long as both are there. NULL while it
 * is inserted.
 */
const uint32_t *stacks_at(const struct stacks *s, uint32_t id, struct stacks_room *room,
			  uint32_t *nr);
uint32_t stacks_nr(const struct stacks *s);
/* Return a number, from 1, that no other table of the process has; its address another may get. */
uint32_t stacks_serial(const struct stacks *s);
/* Return the bytes filled by stacks. */
size_t stacks_used(const struct stacks *s);
/*
 * Grow ahead of the writers: each tick, and when crowded. Builder. True while the reserve is at
 * least the use since the last call.
 */
bool stacks_grow(struct stacks *s);
/* Report whether stacks_grow() is needed before the next tick. Any thread that may add. */
bool stacks_crowded(const struct stacks *s);

struct count {
	uint32_t stack;
	uint32_t task;
	uint32_t event; /* slot, < 256 */
	uint64_t count;
	uint64_t weight;
	uint32_t slice; /* of counts_swap(): tables_slice() of its time; elsewhere unused */
};

#define COUNTS_TASKS_MAX (1u << 24) /* task ids in a count */
/* Slices of time, numbered from 0 again after three hours: longer than a sample is on its way. */
#define COUNTS_SLICE_NS	 50000000ULL
#define COUNTS_SLICES	 (1u << 18)
#define COUNTS_MOMENT_NS (2 * COUNTS_SLICE_NS)

/* Return the number of the slice of @time_ns. */
static inline uint32_t tables_slice(uint64_t time_ns)
{
	return (uint32_t)(time_ns / COUNTS_SLICE_NS) & (COUNTS_SLICES - 1);
}

int counts_new(struct counts **out, uint32_t nr_slots, uint32_t max_slots);
void counts_free(struct counts *c);
/*
 * Return the table for the samples of a batch, and its tick, by which the batch chooses its
 * statistics. The table is valid until the thread goes offline for urcu-qsbr.
 */
struct counts_table *counts_begin(struct counts *c, uint32_t *tick);
/*
 * Add a sample of the slice of its time (tables_slice(), or 0 where all that is swapped is of one
 * slice) to the table of the batch, or a larger one of its tick when *@t is full. False: all are
 * full (the sample is dropped), or the stack is STACK_NONE, or stack, task or event exceed
 * the limits of the table.
 */
bool counts_add_to(struct counts *c, struct counts_table **t, uint32_t stack, uint32_t task,
		   uint32_t event, uint64_t weight, uint32_t slice);
/*
 * Swap in an empty table for @tick, wait until the old one has no writer, and return its content:
 * malloc'ed array of *nr counts (never NULL). The new table holds four times the counts of this
 * tick, and shrinks again later; behind it are larger ones, for the samples of the time in which
 * the builder has no CPU. 0 or -ENOMEM (nothing swapped). Caller is a registered urcu-qsbr thread.
 */
int counts_swap_for(struct counts *c, uint32_t tick, struct count **out, uint32_t *nr);
/* Continue with this tick: of a new table, before another thread sees it. */
void counts_set_tick(struct counts *c, uint32_t tick);

/* Add a sample that is no batch's. */
static inline bool counts_add(struct counts *c, uint32_t stack, uint32_t task, uint32_t event,
			      uint64_t weight, uint32_t slice)
{
	uint32_t tick;
	struct counts_table *t = counts_begin(c, &tick);

	return counts_add_to(c, &t, stack, task, event, weight, slice);
}

/* Return the number of the tick that is counted now. */
static inline uint32_t counts_tick(struct counts *c)
{
	uint32_t tick;

	counts_begin(c, &tick);
	return tick;
}

/* Take the counts in the middle of a tick. */
static inline int counts_swap(struct counts *c, struct count **out, uint32_t *nr)
{
	return counts_swap_for(c, counts_tick(c), out, nr);
}

/* The same at its end: batches that begin from now on are of the next one. */
static inline int counts_end_tick(struct counts *c, struct count **out, uint32_t *nr)
{
	return counts_swap_for(c, counts_tick(c) + 1, out, nr);
}

/* Report whether the table is over half full and may grow. Any thread that may add. */
bool counts_crowded(const struct counts *c);
/*
 * Swap in a larger table during a tick. Earlier counts are kept for the tick (a key may then be in
 * its list more than once). False: at the limit, or out of memory. As counts_swap().
 */
bool counts_grow(struct counts *c);

/* The span of time that a profile covers. */

enum profile_window {
	PROFILE_WINDOW, /* the last few seconds */
	PROFILE_DECAY,	/* all, older ones fading */
	PROFILE_TOTAL,	/* since reset */
	PROFILE_NR_WINDOWS,
};

/* The packed counts of a short time. Times are in ns of one clock. Pure; any thread. */

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
	/* Kept for the heat strip (strip_make()): the amount of one query; seq 0: not computed. */
	double amount;
	uint32_t amount_seq;
};

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

/*
 * Counts over time: the counts of each short slice of the session, packed. One thread at a time; no
 * locks. Memory is bounded: beyond the limit the oldest slices are merged to 1 s, then to 10 s,
 * then dropped; beyond the time they are dropped (not with SLICES_ALL). Nothing disappears without
 * a figure: the samples of all slices and of the dropped ones are the samples ever added, exactly.
 * Times are in ns of one clock, which never goes back.
 */

/*
 * A span: slices are merged as far as the memory requires, and never dropped. When that frees
 * little, they may take an eighth more before they are merged again. Slices with very many counts
 * are not merged: that could take minutes.
 */
#define SLICES_ALL UINT64_MAX

/* Add @marks to slice @i. */
void slices_mark(struct slices *s, uint32_t i, unsigned int marks);
/* Slices in order of time; borrowed until the next change. */
uint32_t slices_nr(const struct slices *s);
const struct slice *slices_at(const struct slices *s, uint32_t i);
/*
 * A moment: slices that follow each other, of 100 ms together, as one slice has too few samples for
 * a share. Return how many slices from @i on are one.
 */
static inline uint32_t slices_moment(const struct slices *s, uint32_t i)
{
	const struct slice *first = slices_at(s, i), *last = first;
	uint32_t nr = 1;

	for (; i + nr < slices_nr(s); nr++) {
		const struct slice *next = slices_at(s, i + nr);

		if (next->begin_ns != last->end_ns || next->epoch != first->epoch ||
		    next->events != first->events ||
		    next->end_ns - first->begin_ns > COUNTS_MOMENT_NS)
			break;
		last = next;
	}
	return nr;
}

/* Report whether slices were merged to save memory. */
bool slices_merged(const struct slices *s);
void slices_set_amount(struct slices *s, uint32_t i, double amount, uint32_t seq);
/* Find the first slice that ends after @time_ns; slices_nr(): none. */
uint32_t slices_find(const struct slices *s, uint64_t time_ns);
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

/*
 * When proftop did not run for so long, the time but for the last half is one slice: else each wait
 * would be in thousands of them.
 */
#define MOMENTS_STOP_NS (400 * COUNTS_SLICE_NS)

/*
 * Sums over time: the last few seconds, a decaying sum, everything since reset, or any range of the
 * kept slices. All are always kept, so that a switch shows the past. The sums are of the
 * counts that have arrived; live, the slices of the past are of the moments of the samples, and
 * follow when all of their time have arrived (history.c). Runs on: the builder. Memory is bounded:
 * by the limit of the slices, and by folding the smallest counts of the long sums beyond
 * @max_cells. Folded counts have stack STACK_NONE and the same task, or task 0 where there are too
 * many; so totals are always right.
 */

struct history_cell {
	uint32_t stack, task, event;
	double count, weight;
};

/*
 * @half_life_ns: of the decaying sum. @max_cells 0: without decaying sum and total. Slices are kept
 * for the window alone.
 */
int history_new(struct history **out, uint64_t window_ns, uint64_t half_life_ns,
		uint32_t max_cells);
void history_free(struct history *h);
/*
 * Sum @window_ns from now on, as far as slices were kept, and keep slices for @span_ns, or the
 * window if that is longer, in @memory bytes at most; 0: no other limit.
 */
void history_keep(struct history *h, uint64_t window_ns, uint64_t span_ns, size_t memory);
/* Keep slices for @span_ns from now on, if that is longer; 0: no longer than usual. */
void history_extend(struct history *h, uint64_t span_ns);
/* Before the first counts: their slices are set, as by counts_swap() live. 0 or -ENOMEM. */
int history_use_moments(struct history *h);
/*
 * All counts before @complete_ns (UINT64_MAX: no counts follow) have been added: their slices are
 * of the past. 0 or -ENOMEM.
 */
int history_complete(struct history *h, uint64_t complete_ns);
/* As slices_stop_by(). */
void history_stop_by(struct history *h, const atomic_bool *stopped);
/* Continue at this time: the slice that is added next begins then. It never goes back. */
void history_begin(struct history *h, uint64_t now_ns);
/*
 * Add the counts of @interval_ns as a slice, and, if moments are used, to the slices of their time;
 * takes ownership of @counts (malloc'ed, from
 * counts_swap()). 0, or -ENOMEM: nothing was added, @counts are freed.
 */
int history_add(struct history *h, struct count *counts, uint32_t nr, uint64_t interval_ns);
/*
 * Add counts of the slice that is not over: the next history_add() ends it. As history_add(); @nr
 * may be 0.
 */
int history_hold(struct history *h, struct count *counts, uint32_t nr);
/* Add to the newest slice: bits of enum slice_mark, lost samples, times throttled. */
void history_note(struct history *h, unsigned int marks, uint64_t lost, uint64_t throttled);
/* Set the events of the next slices: any number for a set. */
void history_set_events(struct history *h, uint16_t events);
/* Set the rates of the next slices, in Hz by event; a change is marked in the first of them. */
void history_set_rates(struct history *h, const double *hz, uint32_t nr);
/* Get the rates of @range at its begin, as rate_log_find(). */
const double *history_rates(const struct history *h, const struct slice_range *range,
			    bool *changed);
/* Begin again, as after history_new(). */
void history_reset(struct history *h);
/* Begin the sums again; the slices that are over are kept. */
void history_restart(struct history *h);
/* The past, by the moments of the samples. */
struct slices *history_slices(const struct history *h);
/* The last seconds, by the times at which the counts were added. */
struct slices *history_arrivals(const struct history *h);
/*
 * Get the sum over @window: malloc'ed array (never NULL); *covers_ns: the time it covers, for the
 * decaying sum the time that decays as the counts do (so count / covers_ns is a rate in each
 * window). 0 or -ENOMEM.
 */
int history_get(const struct history *h, enum profile_window window, struct history_cell **out,
		uint32_t *nr, uint64_t *covers_ns);
/* Get the sum over @range of @slices. As history_get(). */
int history_get_range(const struct slices *slices, const struct slice_range *range,
		      struct history_cell **out, uint32_t *nr);
/*
 * Replace all ids. The long sums are first pruned to @keep counts each, or half of @max_cells. 0 or
 * -ENOMEM (the history is empty then).
 */
int history_remap(struct history *h, uint32_t keep, const struct history_ids *ids);

#endif
