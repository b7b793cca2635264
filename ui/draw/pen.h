/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A line that is written piece by piece from left to right. A piece that does
 * not fit whole is left out, so that figures are never cut.
 */
#ifndef UI_DRAW_PEN_H
#define UI_DRAW_PEN_H

#include "ui/draw/canvas.h"
#include "ui/draw/theme.h"

struct pen {
	struct canvas *c;
	unsigned int row, col, end;
};

/* The next piece, @gap cells after the last; false if it does not fit. */
bool pen_text(struct pen *pen, unsigned int gap, struct safe_text t, enum theme_role role);
/* A label and its value: both or neither. */
bool pen_value(struct pen *pen, unsigned int gap, struct safe_text label, struct safe_text value,
	       enum theme_role role);

#endif
