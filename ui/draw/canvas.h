/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The screen in memory: cells that views draw into, and that term.c puts on
 * a terminal or a test compares with a file.
 *
 * Drawing takes struct safe_text and nothing else, is clipped to the canvas,
 * and never fails: what lies outside is not drawn. A cell holds one grapheme
 * (a base and at most two combining marks); a wide one owns the cell to its
 * right, which is then empty with width 0.
 */
#ifndef UI_DRAW_CANVAS_H
#define UI_DRAW_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/base/text.h"

#define CANVAS_MAX 1000 /* rows and columns */

enum canvas_flag {
	CELL_BOLD = 1,
	CELL_REVERSE = 2,
	CELL_UNDERLINE = 4,
};

/* How a cell looks: a role of the theme, and flags. */
struct style {
	uint8_t role;  /* enum theme_role */
	uint8_t flags; /* CELL_* */
};

struct cell {
	char text[13]; /* UTF-8, NUL-terminated; "" right of a wide one */
	uint8_t width; /* 1, 2, or 0 right of a wide one */
	struct style style;
};

struct canvas {
	unsigned int rows, cols;
	struct cell *cells;	    /* rows * cols */
	bool ascii;		    /* anything else becomes '?' */
	int cursor_row, cursor_col; /* where the terminal's cursor stands; row < 0: hidden */
};

void canvas_init(struct canvas *c, bool ascii);
void canvas_fini(struct canvas *c);
/* 0 or -ENOMEM (the old size stays). The content is blank afterwards. */
int canvas_resize(struct canvas *c, unsigned int rows, unsigned int cols);
void canvas_clear(struct canvas *c);

/* Draw at most @cols cells of @t; returns the cells used. */
unsigned int canvas_text(struct canvas *c, unsigned int row, unsigned int col, unsigned int cols,
			 struct safe_text t, struct style style);
/* The same, but a text that does not fit ends in "…" (or "~"). */
unsigned int canvas_elide(struct canvas *c, unsigned int row, unsigned int col, unsigned int cols,
			  struct safe_text t, struct style style);
/* Right-aligned in @cols cells; too long: its beginning. */
void canvas_right(struct canvas *c, unsigned int row, unsigned int col, unsigned int cols,
		  struct safe_text t, struct style style);
/* Repeat a text of width 1. */
void canvas_fill(struct canvas *c, unsigned int row, unsigned int col, unsigned int cols,
		 struct safe_text t, struct style style);
/* Change the looks of cells that are drawn already; their roles stay when @keep_role. */
void canvas_restyle(struct canvas *c, unsigned int row, unsigned int col, unsigned int cols,
		    struct style style, bool keep_role);

const struct cell *canvas_at(const struct canvas *c, unsigned int row, unsigned int col);

/* A run of cells of one row that differ. */
struct canvas_run {
	unsigned int row, col, cols;
};
/*
 * The next run at or after *@run (start with zeroes; cols counts on from
 * there) in which @c differs from @old of the same size; false at the end.
 */
bool canvas_diff(const struct canvas *old, const struct canvas *c, struct canvas_run *run);
/* Copy all cells; both have the same size. */
void canvas_copy(struct canvas *to, const struct canvas *from);

/* Lines of text without trailing blanks; malloc'ed, NULL when memory is out. */
char *canvas_dump(const struct canvas *c);

#endif
