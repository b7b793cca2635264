/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Colours by role, and the glyphs of the screen. Constant tables.
 *
 * No information is in the colour alone: there is always a letter, a '!' or a
 * word, so that the mono theme loses nothing.
 */
#ifndef UI_DRAW_THEME_H
#define UI_DRAW_THEME_H

#include <stdbool.h>

#include "symbols/base/text.h"

enum theme_role {
	ROLE_NORMAL,
	ROLE_DIM,   /* labels, rulers */
	ROLE_VALUE, /* figures in the header */
	ROLE_TITLE,
	ROLE_HEAD,     /* column headers */
	ROLE_SORTED,   /* the sort column */
	ROLE_SELECTED, /* the selected row or box, in one colour */
	ROLE_KEY,
	ROLE_KEY_LABEL, /* the key bar */
	ROLE_BAR,
	ROLE_BAR_WARM,
	ROLE_BAR_HOT,
	ROLE_USER,
	ROLE_KERNEL,
	ROLE_JIT,
	ROLE_JAVA,
	ROLE_PYTHON,
	ROLE_PHP,
	ROLE_RUBY,
	ROLE_PERL,
	ROLE_NODE, /* JavaScript */
	ROLE_WAIT, /* kinds of waits */
	ROLE_VDSO,
	ROLE_UNKNOWN,
	ROLE_OK,
	ROLE_WARN,  /* badges, notes */
	ROLE_ALARM, /* lost, throttled: loud */
	ROLE_DIALOG,
	ROLE_FRAME,
	ROLE_DISABLED,
	/* Parts of a bar of time, and boxes of waits. */
	ROLE_TIME_CPU,
	ROLE_TIME_QUEUE,
	ROLE_TIME_LOCK,
	ROLE_TIME_DISK,
	ROLE_TIME_PIPE,
	ROLE_TIME_SLEEP,
	ROLE_TIME_EVENT,
	ROLE_TIME_OTHER,
	/* Boxes of the flame graph: by kind of code, in THEME_HUES hues each. */
	ROLE_BOX_PROCESS,
	ROLE_BOX_REST, /* several in one */
	/* Against a baseline: red, a larger share now; blue, a smaller one; grey. */
	ROLE_BOX_MORE,
	ROLE_BOX_LESS,
	ROLE_BOX_SAME,
	ROLE_BOX_USER,
	ROLE_BOX_KERNEL = ROLE_BOX_USER + 4,
	ROLE_BOX_JIT = ROLE_BOX_KERNEL + 4,
	ROLE_BOX_SCRIPT = ROLE_BOX_JIT + 4, /* of an interpreted language */
	ROLE_BOX_OTHER = ROLE_BOX_SCRIPT + 4,
	ROLE_NR = ROLE_BOX_OTHER + 4,
};
#define THEME_HUES 4u
/* Each is a pair of colours, and terminals of 8 colours have 64 pairs. */
_Static_assert(ROLE_NR < 64, "too many roles");

enum theme {
	THEME_AUTO, /* dark or light, as the terminal is */
	THEME_DARK,
	THEME_LIGHT,
	THEME_COLOR_BLIND, /* blue and orange, no pair of red and green; dark or light */
	THEME_MONO,
	THEME_NR,
};
/* "auto", "dark" ...; for --theme and the configuration. */
const char *theme_name(enum theme theme);
/* Return the theme with this name, or -1. */
int theme_parse(const char *name);

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

struct glyphs {
	struct safe_text bar[9];   /* 0/8 .. 8/8 of a cell, from the left */
	struct safe_text level[9]; /* 0/8 .. 8/8 of a cell, from below */
	struct safe_text bar_begin, bar_end;
	struct safe_text crumb, marker, live, descending, ascending, more;
	struct safe_text used, refused; /* in pickers */
	struct safe_text hline, vline, top_left, top_right, bottom_left, bottom_right;
	struct safe_text tee, corner, opened, closed, hot; /* of trees */
	struct safe_text edge;				   /* left of a box */
	struct safe_text up, down, left, right;
};
/* Get the glyphs: UTF-8 blocks and boxes, or ASCII. */
const struct glyphs *theme_glyphs(bool ascii);

/* Get the role of a function's kind (u k j v ?, or of a language). */
enum theme_role theme_kind(char kind);
/* Get the role of a box: @kind as above, or 'p' for a process; @hue distinguishes functions. */
enum theme_role theme_box(char kind, uint32_t hue);

#endif
