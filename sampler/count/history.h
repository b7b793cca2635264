/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sums over time: the last few seconds, a decaying sum, everything since reset, or any range of the
 * kept slices (slices.h). All are always kept, so that a switch shows the past. The sums are of the
 * counts that have arrived; live, the slices of the past are of the moments of the samples, and
 * follow when all of their time have arrived (moments.h). Runs on: the builder. Memory is bounded:
 * by the limit of the slices, and by folding the smallest counts of the long sums beyond
 * @max_cells. Folded counts have stack STACK_NONE and the same task, or task 0 where there are too
 * many; so totals are always right.
 */
#ifndef SAMPLER_COUNT_HISTORY_H
#define SAMPLER_COUNT_HISTORY_H

#include <stddef.h>
#include <stdint.h>

#include "sampler/count/slices.h"
#include "sampler/count/count.h"
#include "sampler/count/window.h"

struct history;

struct history_cell {
	uint32_t stack, task, event;
	double count, weight;
};

/* @half_life_ns: of the decaying sum. Slices are kept for the window alone. */
int history_new(struct history **out, uint64_t window_ns, uint64_t half_life_ns,
		uint32_t max_cells);
void history_free(struct history *h);
/* Keep slices for @span_ns, or the window if that is longer, in @memory bytes at most. */
void history_keep(struct history *h, uint64_t span_ns, size_t memory);
/* Keep slices for @span_ns from now on, if that is longer; 0: no longer than usual. */
void history_extend(struct history *h, uint64_t span_ns);
/* Before the first counts: their slices are set, as by counts_swap() live. 0 or -ENOMEM. */
int history_use_moments(struct history *h);
/* All counts before @complete_ns have been added: their slices are of the past. 0 or -ENOMEM. */
int history_complete(struct history *h, uint64_t complete_ns);
/* No counts follow: all slices are of the past. 0 or -ENOMEM. */
int history_finish(struct history *h);
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
/* Get the folded part of a long sum; 0 for PROFILE_WINDOW. */
void history_folded_away(const struct history *h, enum profile_window window, double *count,
			 double *weight);
/*
 * Replace all ids. The long sums are first pruned to @keep counts each, or half of @max_cells. 0 or
 * -ENOMEM (the history is empty then).
 */
int history_remap(struct history *h, uint32_t keep, const struct history_ids *ids);
size_t history_memory(const struct history *h);

#endif
