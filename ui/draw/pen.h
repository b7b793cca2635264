/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Draw a line piece by piece, from left to right. A piece that does not fit is
 * omitted, so that figures are never truncated.
 *
 * Runs on: the main thread.
 */
#ifndef UI_DRAW_PEN_H
#define UI_DRAW_PEN_H

#include "ui/draw/canvas.h"
#include "ui/draw/draw.h"

struct pen {
	struct canvas *c;
	unsigned int row, col, end;
};

/* Draw a piece @gap cells after the last; false if it does not fit. */
bool pen_text(struct pen *pen, unsigned int gap, struct safe_text t, enum theme_role role);
/* Draw a label and its value, both or neither. */
bool pen_value(struct pen *pen, unsigned int gap, struct safe_text label, struct safe_text value,
	       enum theme_role role);

#endif
