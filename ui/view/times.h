/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where waits are shown: the time of the shown tasks, in task-seconds per second (1.00 is one
 * thread all the time), and its kinds. Runs on: the main thread.
 */
#ifndef UI_VIEW_TIMES_H
#define UI_VIEW_TIMES_H

#include "ui/draw/pen.h"
#include "ui/draw/draw.h"
#include "ui/state/state.h"

/* Return whether waiting time is shown, and measured. */
bool times_on(const struct ui_state *st);
/* Draw the time of the shown tasks: "Waiting 10.03 task-s/s". Return false, and draw nothing, where
 * no waits are shown. */
bool times_draw_total(const struct ui_state *st, struct pen *pen, unsigned int gap);
/* Return the time of idle waits that are hidden, in task-seconds per second. */
double times_hidden(const struct ui_state *st);
/*
 * Draw the time by kind (@ns: by enum wait_kind) as one bar over all cells of @at: CPU, run queue,
 * lock, disk, pipe and socket, sleep, event (poll, condition), other. Each part that has a cell
 * begins with its letter.
 */
void times_draw_bar(const float *ns, struct canvas *c, unsigned int row, unsigned int col,
		    unsigned int cols);
/* Write these parts with their letters: "C CPU 0.36  L lock 2.84". "": there is no time. */
struct safe_text times_legend(const struct ui_state *st, const float *ns, char *buf, size_t size);
/* Return the colour of the frame of a wait: "[lock]". */
enum theme_role times_role(struct safe_text name);
/* Draw the shares of its largest kinds, the ones that fit: "lock 30%  sleep 24%". */
void times_draw_kinds(const struct ui_state *st, struct pen *pen, unsigned int gap);

#endif
