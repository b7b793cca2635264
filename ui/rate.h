/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sampling rate of the shown event. Runs on: the main thread.
 */
#ifndef UI_RATE_H
#define UI_RATE_H

#include "ui/state/state.h"

/* Return the rates that [ and ] step through, and their number. */
size_t rate_ladder(const double **ladder);
/* Request another rate. */
void rate_set(struct ui_state *st, double hz);
/* Request the next rate up or down, within the limit of the kernel. */
void rate_step(struct ui_state *st, bool up);

#endif
