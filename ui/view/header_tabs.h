/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tabs: all views, the shown one, and everything that hides rows.
 *
 * Runs on: the main thread.
 */
#ifndef UI_VIEW_HEADER_TABS_H
#define UI_VIEW_HEADER_TABS_H

#include "ui/draw/canvas.h"
#include "ui/state/state.h"

void header_tabs(struct ui_state *st, struct canvas *c, unsigned int row);

#endif
