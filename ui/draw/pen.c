// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Draw a line piece by piece. Runs on: the main thread.
 */
#include "ui/draw/pen.h"

bool pen_text(struct pen *pen, unsigned int gap, struct safe_text t, enum theme_role role)
{
	if (pen->col + gap + t.width > pen->end)
		return false;
	pen->col += gap;
	pen->col += canvas_text(pen->c, pen->row, pen->col, t.width, t,
				(struct style){ (uint8_t)role, 0 });
	return true;
}

bool pen_value(struct pen *pen, unsigned int gap, struct safe_text label, struct safe_text value,
	       enum theme_role role)
{
	if (pen->col + gap + label.width + 1 + value.width > pen->end)
		return false;
	pen_text(pen, gap, label, ROLE_DIM);
	return pen_text(pen, 1, value, role);
}
