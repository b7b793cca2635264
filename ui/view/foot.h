/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lines below the rows of a view, about the selected row or all rows. Long
 * text is broken at blanks.
 *
 * Runs on: the main thread.
 */
#ifndef UI_VIEW_FOOT_H
#define UI_VIEW_FOOT_H

#include "ui/draw/canvas.h"
#include "ui/state/state.h"

struct foot {
	struct canvas *c;	      /* NULL: only count the lines */
	unsigned int row, rows, cols; /* where, and how many at most */
	unsigned int used;
};

/* Draw one line "Label  value", cut at the right. */
void foot_line(struct foot *f, struct safe_text label, struct safe_text value);
/* Return the bytes of @text that fit on a line of @cols: up to two blanks, which separate values,
 * else up to one, but not that in "4 999". */
size_t foot_line_bytes(const char *text, unsigned int cols);
/* The same, broken into lines. @text: clean. */
void foot_text(struct foot *f, struct safe_text label, const char *text);

#endif
