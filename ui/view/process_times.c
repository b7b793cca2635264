// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Columns of time by kind in the view of processes. The main thread; reads the state.
 */
#include "ui/view/process_times.h"

#include "ui/text/format.h"
#include "ui/view/times.h"

double process_times_of(const struct row *row, enum wait_kind kind)
{
	if (kind == WAIT_OTHER)
		return (double)row->waits[WAIT_OTHER] + (double)row->waits[WAIT_FAULT] +
		       (double)row->waits[WAIT_CHILD];
	if (kind == WAIT_POLL)
		return (double)row->waits[WAIT_POLL] + (double)row->waits[WAIT_CONDITION] +
		       (double)row->waits[WAIT_KTHREAD];
	return (double)row->waits[kind];
}

void process_times_draw(const struct ui_state *st, const struct row *row, struct canvas *c,
			struct view_field at, enum wait_kind kind)
{
	double ns = process_times_of(row, kind);
	char buf[FORMAT_MAX];

	if (ns > 0 && st->shown->window_ns)
		canvas_right(c, at.row, at.col, at.cols,
			     format_tasks(buf, ns / (double)st->shown->window_ns),
			     (struct style){ kind == WAIT_RUNNING ? ROLE_NORMAL : ROLE_WAIT, 0 });
}

static const enum wait_kind time_kinds[] = { WAIT_RUNNING, WAIT_QUEUE, WAIT_LOCK,
					     WAIT_DISK,	   WAIT_PIPE,  WAIT_POLL,
					     WAIT_SLEEP,   WAIT_OTHER, WAIT_NO };

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

bool process_times_have(const struct ui_state *st, enum wait_kind kind)
{
	const struct list *list = &st->lists[VIEW_PROCESSES];
	double sums[WAIT_NR] = { 0 };
	unsigned int more = 0;

	for (uint32_t i = 0; i < list->nr && times_on(st); i++)
		for (size_t k = 0; k < ARRAY_SIZE(time_kinds); k++)
			sums[time_kinds[k]] += process_times_of(&list->rows[i], time_kinds[k]);
	for (size_t k = 0; k < ARRAY_SIZE(time_kinds); k++)
		more += time_kinds[k] != WAIT_NO &&
			(kind == WAIT_NO ? sums[time_kinds[k]] > 0
					 : sums[time_kinds[k]] > sums[kind]);
	return sums[kind] > 0 && more < times_that_fit(st->cols);
}
