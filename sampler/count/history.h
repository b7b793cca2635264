/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ticks summed into what the screen shows: the last few seconds, a decaying
 * sum, or everything since reset. All three are kept all the time, so that
 * switching shows the past at once.
 *
 * Runs on: the builder. Memory is bounded: by the number of ticks in the
 * window (HISTORY_TICKS_MAX) and of their cells, and by folding away the smallest cells of the
 * long sums beyond @max_cells. These stay counted in cells whose stack is
 * STACK_NONE, of the same task as far as there is room, else of task 0; so
 * totals are always right.
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
 * Add a tick; takes ownership of @counts (malloc'ed, as counts_swap gives them).
 * 0, or -ENOMEM: nothing was added, @counts are freed all the same.
 */
int history_add(struct history *h, struct count *counts, uint32_t nr, uint64_t interval_ns);
void history_reset(struct history *h);
/* The window keeps the newest ticks only, of at most @max_cells together (but always one). */
void history_shrink(struct history *h, uint32_t max_cells);
/*
 * The sum over the window asked for: malloc'ed array (never NULL); *covers_ns:
 * the time it covers, for the decaying sum the time that decays as the counts
 * do (so count / covers_ns is a rate in each window). 0 or -ENOMEM.
 */
int history_get(const struct history *h, enum profile_window window, struct history_cell **out,
		uint32_t *nr, uint64_t *covers_ns);
/* How much of a long sum has been folded away; nothing for PROFILE_WINDOW. */
void history_folded_away(const struct history *h, enum profile_window window, double *count,
			 double *weight);
/* Stacks and tasks got other ids. A stack may be gone (STACK_NONE): the cell stands for its task
 * alone. */
struct history_ids {
	uint32_t (*stack)(void *ctx, uint32_t stack);
	uint32_t (*task)(void *ctx, uint32_t task);
	void *ctx;
};
/*
 * The long sums are pruned to @keep cells each first, or half of @max_cells. 0
 * or -ENOMEM (the history is empty then).
 */
int history_remap(struct history *h, uint32_t keep, const struct history_ids *ids);
size_t history_memory(const struct history *h);

#endif
