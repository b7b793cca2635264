/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sampling frequency of the shown event: steps and wishes. The main thread.
 */
#ifndef UI_RATE_H
#define UI_RATE_H

#include "ui/state/state.h"

/* The frequencies that [ and ] step through; returns how many. */
size_t rate_ladder(const double **ladder);
/* Ask for another one. */
void rate_set(struct ui_state *st, double hz);
/* One step up or down, within what the kernel allows. */
void rate_step(struct ui_state *st, bool up);

#endif
