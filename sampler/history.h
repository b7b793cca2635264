/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ticks summed into what the screen shows: the last few seconds, a decaying
 * sum, or everything since reset. All three are kept all the time, so that
 * switching shows the past at once.
 *
 * Runs on: the builder. Memory is bounded: by the number of ticks in the
 * window, and by dropping the smallest cells of the long sums (told by
 * history_folded_away) beyond @max_cells.
 */
#ifndef SAMPLER_HISTORY_H
#define SAMPLER_HISTORY_H

#include <stddef.h>
#include <stdint.h>

#include "sampler/profile.h"
#include "sampler/table.h"

struct history;

struct history_cell {
	uint32_t stack, task, event;
	double count, weight;
};

/* @half_life_ns: of the decaying sum. */
int history_new(struct history **out, uint64_t window_ns, uint64_t half_life_ns,
		uint32_t max_cells);
void history_free(struct history *h);
/* Add a tick; takes ownership of @cells (malloc'ed, as cells_swap gives them). */
int history_add(struct history *h, struct cell *cells, uint32_t nr, uint64_t interval_ns);
void history_reset(struct history *h);
/* The sum over the window asked for: malloc'ed array; *covers_ns: the time it covers. */
int history_get(const struct history *h, enum profile_window window, struct history_cell **out,
		uint32_t *nr, uint64_t *covers_ns);
size_t history_memory(const struct history *h);

#endif
