/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One line of input at the bottom of the screen. Runs on: the main thread.
 */
#ifndef UI_PROMPT_H
#define UI_PROMPT_H

#include "ui/draw/canvas.h"
#include "ui/state/state.h"

void prompt_open(struct ui_state *st, enum prompt_kind kind);
void prompt_draw(struct ui_state *st, struct canvas *c, unsigned int row);
/* Draw the part of a line with the cursor in @cols cells. Return the cells used. */
unsigned int prompt_draw_line(const struct line *l, struct canvas *c, unsigned int row,
			      unsigned int col, unsigned int cols, struct style style);

#endif
