/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The process drilled into, or the target if that is not the whole system: identity and
 * cost. The main thread; reads the state.
 */
#ifndef UI_VIEW_HEADER_PROCESS_H
#define UI_VIEW_HEADER_PROCESS_H

#include "ui/draw/canvas.h"
#include "ui/state/state.h"

/* Draw it from @row on. Return the lines used, 0 if the whole system is shown. */
unsigned int header_process(const struct ui_state *st, struct canvas *c, unsigned int row);
/* Draw CPU time, threads and samples in one line: a share of the rows is a share of these. */
void header_process_sums(const struct ui_state *st, struct canvas *c, unsigned int row);

#endif
