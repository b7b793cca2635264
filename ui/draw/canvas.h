/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The screen in memory: views draw cells, term.c puts them on a terminal,
 * tests compare them with a file.
 *
 * Drawing accepts struct safe_text only, clips to the canvas, and never fails.
 * A cell holds one grapheme (a base and at most two combining marks); a wide
 * grapheme occupies two cells, the right one empty with width 0.
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

/* The look of a cell: a role of the theme, and flags. */
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
	int cursor_row, cursor_col; /* position of the cursor; row < 0: hidden */
};

void canvas_init(struct canvas *c, bool ascii);
void canvas_fini(struct canvas *c);
/* Set the size and clear. Return 0 or -ENOMEM (size unchanged). */
int canvas_resize(struct canvas *c, unsigned int rows, unsigned int cols);
void canvas_clear(struct canvas *c);

/* Draw at most @cols cells of @t; return the cells used. */
unsigned int canvas_text(struct canvas *c, unsigned int row, unsigned int col, unsigned int cols,
			 struct safe_text t, struct style style);
/* Draw @t, ending in "…" (or "~") if it does not fit. */
unsigned int canvas_elide(struct canvas *c, unsigned int row, unsigned int col, unsigned int cols,
			  struct safe_text t, struct style style);
/* Draw @t right-aligned in @cols cells; only its beginning if it is too long. */
void canvas_right(struct canvas *c, unsigned int row, unsigned int col, unsigned int cols,
		  struct safe_text t, struct style style);
/* Repeat a text of width 1. */
void canvas_fill(struct canvas *c, unsigned int row, unsigned int col, unsigned int cols,
		 struct safe_text t, struct style style);
/* Change the look of drawn cells; @keep_role: keep their roles. */
void canvas_restyle(struct canvas *c, unsigned int row, unsigned int col, unsigned int cols,
		    struct style style, bool keep_role);

const struct cell *canvas_at(const struct canvas *c, unsigned int row, unsigned int col);

/* A run of cells in one row that differ. */
struct canvas_run {
	unsigned int row, col, cols;
};
/*
 * Find the next run at or after *@run (start with zeroes; cols adds up) where @c differs
 * from @old of the same size; false at the end.
 */
bool canvas_diff(const struct canvas *old, const struct canvas *c, struct canvas_run *run);
/* Copy all cells of a canvas of the same size. */
void canvas_copy(struct canvas *to, const struct canvas *from);

/* Return the text, without trailing blanks (malloc); NULL: no memory. */
char *canvas_dump(const struct canvas *c);

#endif
