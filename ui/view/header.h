/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The top of the screen: target, event, rate, losses. The figures are of the
 * newest profile, even when the rows are frozen.
 *
 * Runs on: the main thread.
 */
#ifndef UI_VIEW_HEADER_H
#define UI_VIEW_HEADER_H

#include "ui/draw/canvas.h"
#include "ui/state/state.h"

/* Draw it. Return the rows used, at least 1. */
unsigned int header_draw(struct ui_state *st, struct canvas *c);

#endif
