/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where waits are shown: the time of the shown tasks, in task-seconds per second (1.00 is one
 * thread all the time), and its kinds. The main thread.
 */
#ifndef UI_VIEW_TIMES_H
#define UI_VIEW_TIMES_H

#include "ui/draw/pen.h"
#include "ui/state/state.h"

/* Is waiting time shown, and measured? */
bool times_on(const struct ui_state *st);
/* Draw the time of the shown tasks: "Waiting 10.03 task-s/s". Return false, and draw nothing, where
 * no waits are shown. */
bool times_draw_total(const struct ui_state *st, struct pen *pen, unsigned int gap);
/* Draw the shares of its largest kinds, as many as fit: "lock 30%  sleep 24%". */
void times_draw_kinds(const struct ui_state *st, struct pen *pen, unsigned int gap);

#endif
