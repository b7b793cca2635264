// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Columns of time by kind in the view of processes. The main thread; reads the state.
 */
#include "ui/view/process_times.h"

#include <math.h>

#include "ui/text/format.h"
#include "ui/view/times.h"

#define LEAST 0.005 /* in task-s/s: less is 0.00 in all rows */

/* Kinds with a column, in groups as the bar has them. */
static const enum wait_kind time_kinds[] = { WAIT_RUNNING, WAIT_QUEUE, WAIT_LOCK,
					     WAIT_DISK,	   WAIT_PIPE,  WAIT_POLL,
					     WAIT_SLEEP,   WAIT_OTHER, WAIT_NO };

/* Return the time of one column where all kinds have one. */
static double group_of(const float *waits, enum wait_kind kind)
{
	if (kind == WAIT_OTHER)
		return (double)waits[WAIT_OTHER] + (double)waits[WAIT_FAULT] +
		       (double)waits[WAIT_CHILD];
	if (kind == WAIT_POLL)
		return (double)waits[WAIT_POLL] + (double)waits[WAIT_CONDITION] +
		       (double)waits[WAIT_KTHREAD];
	return (double)waits[kind];
}

/* Return how many columns of times fit beside the others. */
static unsigned int times_that_fit(unsigned int cols)
{
	/* The cells of all others: more of them, and wider ones, on wide screens. */
	unsigned int others = cols < 100   ? 51
			      : cols < 150 ? 55
			      : cols < 160 ? 90
			      : cols < 220 ? 115
					   : 144;

	return cols > others ? (cols - others) / (PROCESS_TIMES_COLS + 1) : 0;
}

/* Return whether the kind is a part of the time of a row: CPU time beside waits alone is not. */
static bool is_part(const struct ui_state *st, enum wait_kind kind)
{
	return kind != WAIT_NO && (kind != WAIT_RUNNING || ui_state_also(st, st->shown));
}

/* Return the kind with the most time, of those that are a part or that are not; WAIT_NR: none. */
static enum wait_kind largest(const struct ui_state *st, const double *sums, bool part)
{
	enum wait_kind best = WAIT_NR;

	for (size_t k = 0; k < ARRAY_SIZE(time_kinds); k++)
		if (is_part(st, time_kinds[k]) == part && sums[time_kinds[k]] > 0 &&
		    (best == WAIT_NR || sums[time_kinds[k]] > sums[best]))
			best = time_kinds[k];
	return best;
}

/* Return the kinds with a column, as bits. The parts with the most time have one, OTHER the rest of
 * the time: the columns add up to it. */
static unsigned int kinds_shown(const struct ui_state *st)
{
	const struct list *list = &st->lists[VIEW_PROCESSES];
	unsigned int fit = list->columns ? WAIT_NR : times_that_fit(st->cols), nr = 0, bits = 0;
	double sums[WAIT_NR] = { 0 };

	for (size_t k = 0; k < ARRAY_SIZE(time_kinds); k++) {
		double ns = group_of(list->waits, time_kinds[k]);

		sums[time_kinds[k]] = ns >= LEAST * (double)st->shown->window_ns ? ns : 0;
		nr += sums[time_kinds[k]] > 0 && is_part(st, time_kinds[k]);
	}
	if (!fit)
		return 0;
	if (nr > fit)
		sums[WAIT_OTHER] = INFINITY;
	/* Other kinds are in the columns that are left. */
	for (int part = 1; part >= 0; part--)
		for (enum wait_kind k; fit && (k = largest(st, sums, part)) != WAIT_NR; fit--) {
			bits |= 1u << k;
			sums[k] = 0;
		}
	return bits;
}

double process_times_of(const struct ui_state *st, const struct row *row, enum wait_kind kind)
{
	unsigned int shown = kind == WAIT_OTHER ? kinds_shown(st) : 0;
	double ns = group_of(row->waits, kind);

	for (size_t k = 0; k < ARRAY_SIZE(time_kinds) && shown; k++)
		if (!(shown & 1u << time_kinds[k]) && is_part(st, time_kinds[k]))
			ns += group_of(row->waits, time_kinds[k]);
	return ns;
}

void process_times_draw(const struct ui_state *st, const struct row *row, struct canvas *c,
			struct view_field at, enum wait_kind kind)
{
	double ns = process_times_of(st, row, kind);
	char buf[FORMAT_MAX];

	if (ns > 0 && st->shown->window_ns)
		canvas_right(c, at.row, at.col, at.cols,
			     format_tasks(buf, ns / (double)st->shown->window_ns),
			     (struct style){ kind == WAIT_RUNNING ? ROLE_NORMAL : ROLE_WAIT, 0 });
}

bool process_times_have(const struct ui_state *st, enum wait_kind kind)
{
	return times_on(st) && kinds_shown(st) & 1u << kind;
}
