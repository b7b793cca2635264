/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The whole screen, drawn from the state. It knows no terminal, so it runs in
 * tests. Runs on: the main thread.
 */
#ifndef UI_SCREEN_H
#define UI_SCREEN_H

#include "ui/draw/canvas.h"
#include "ui/state/state.h"

#define SCREEN_MIN_COLS 40
#define SCREEN_MIN_ROWS 8

/* Draw everything on @c; the zones of the mouse are noted in the state. */
void screen_draw(struct ui_state *st, struct canvas *c);

#endif
