/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A canvas as a picture in SVG, in the colours of a theme. Pure; any thread.
 */
#ifndef UI_DRAW_SVG_H
#define UI_DRAW_SVG_H

#include "ui/draw/canvas.h"
#include "ui/draw/draw.h"

/* Return the picture as text (malloc); NULL: no memory. */
char *svg_draw(const struct canvas *c, enum theme theme);

#endif
