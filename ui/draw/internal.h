/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of ui/draw/, and by tests; no other room includes it. */
#ifndef UI_DRAW_INTERNAL_H
#define UI_DRAW_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/base/base.h"
#include "ui/draw/draw.h"

#define THEME_HUES 4u

/* The look of a role. */
struct theme_look {
	short fg, bg; /* 0..255; -1: the terminal's default */
	bool bold, dim, reverse;
	bool mono_bold, mono_dim, mono_reverse; /* without colours */
};

/*
 * Get the look of a role with @colors colours: 8, 16, or 256 and more. @light: the terminal has a
 * light background.
 */
struct theme_look theme_look(enum theme theme, bool light, enum theme_role role, int colors);
/* Return one of the 256 colours as 0xrrggbb; the first 16, which terminals change, as xterm's. */
uint32_t theme_rgb(short color);

#endif
