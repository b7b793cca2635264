/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sums of ticks: the last few seconds, a decaying sum, or everything since reset. All three are
 * always kept, so that a switch shows the past. Runs on: the builder. Memory is bounded: by the
 * number of ticks in the window (HISTORY_TICKS_MAX) and of their counts, and by folding the
 * smallest counts of the long sums beyond @max_cells. Folded counts have stack STACK_NONE and the
 * same task, or task 0 where there are too many; so totals are always right.
 */
#ifndef SAMPLER_COUNT_HISTORY_H
#define SAMPLER_COUNT_HISTORY_H

#include <stddef.h>
#include <stdint.h>

#include "sampler/count/tables.h"
#include "sampler/count/window.h"

#define HISTORY_TICKS_MAX 1024

struct history;

struct history_cell {
	uint32_t stack, task, event;
	double count, weight;
};

/* @half_life_ns: of the decaying sum. */
int history_new(struct history **out, uint64_t window_ns, uint64_t half_life_ns,
		uint32_t max_cells);
void history_free(struct history *h);
/*
 * Add a tick; takes ownership of @counts (malloc'ed, from counts_swap()). 0, or -ENOMEM: nothing
 * was added, @counts are freed.
 */
int history_add(struct history *h, struct count *counts, uint32_t nr, uint64_t interval_ns);
void history_reset(struct history *h);
/* Drop old ticks of the window beyond @max_cells counts (but keep one). */
void history_shrink(struct history *h, uint32_t max_cells);
/*
 * Get the sum over @window: malloc'ed array (never NULL); *covers_ns: the time it covers, for the
 * decaying sum the time that decays as the counts do (so count / covers_ns is a rate in each
 * window). 0 or -ENOMEM.
 */
int history_get(const struct history *h, enum profile_window window, struct history_cell **out,
		uint32_t *nr, uint64_t *covers_ns);
/* Get the folded part of a long sum; 0 for PROFILE_WINDOW. */
void history_folded_away(const struct history *h, enum profile_window window, double *count,
			 double *weight);
/*
 * Maps old ids of stacks and tasks to new ones. STACK_NONE: the count is of its task only.
 */
struct history_ids {
	uint32_t (*stack)(void *ctx, uint32_t stack);
	uint32_t (*task)(void *ctx, uint32_t task);
	void *ctx;
};
/*
 * Replace all ids. The long sums are first pruned to @keep counts each, or half of @max_cells. 0 or
 * -ENOMEM (the history is empty then).
 */
int history_remap(struct history *h, uint32_t keep, const struct history_ids *ids);
size_t history_memory(const struct history *h);

#endif
