/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Columns of time by kind in the view of processes, in task-seconds per second. A column is a part
 * of the bar of times, and its title begins with the letter of that part. Runs on: the main thread.
 */
#ifndef UI_VIEW_PROCESS_TIMES_H
#define UI_VIEW_PROCESS_TIMES_H

#include "ui/view/view.h"

#define PROCESS_TIMES_COLS 6

/* Return the time of a row by kind, in ns; WAIT_OTHER has that of the kinds without a column. */
double process_times_of(const struct ui_state *st, const struct row *row, enum wait_kind kind);
/* Return whether the kind has a column: kinds without time have none, nor kinds with the least time
 * where not all fit. */
bool process_times_have(const struct ui_state *st, enum wait_kind kind);
void process_times_draw(const struct ui_state *st, const struct row *row, struct canvas *c,
			struct view_field at, enum wait_kind kind);

#endif
