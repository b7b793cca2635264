/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Drawing: a screen in memory, the terminal, colours.
 *
 * The caller owes: the main thread; cells within the canvas.
 *
 * The room does: keeps cells, sends changed cells to the terminal with ncursesw (term.c alone knows
 * curses), restores it; pictures in SVG.
 *
 * Not for: the content of the screen (ui/view).
 */
#ifndef UI_DRAW_DRAW_H
#define UI_DRAW_DRAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/base/base.h"
#include "symbols/base/text.h"

struct key;
struct terminal;

/*
 * The screen in memory: views draw cells, term.c puts them on a terminal,
 * tests compare them with a file.
 *
 * Drawing accepts struct safe_text only, clips to the canvas, and never fails.
 * A cell holds one grapheme (a base and at most two combining marks); a wide
 * grapheme occupies two cells, the right one empty with width 0.
 */

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
	bool halves;		    /* theme_heats() has colours */
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
/* Return the text, without trailing blanks (malloc); NULL: no memory. */
char *canvas_dump(const struct canvas *c);

/*
 * Colours by role, and the glyphs of the screen. Constant tables.
 *
 * No information is in the colour alone: there is always a letter, a '!' or a
 * word, so that the mono theme loses nothing.
 */

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
	ROLE_FRAME, /* of dialogs; the strip where nothing stands out */
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

/* Each is a pair of colours, and terminals of 8 colours have 64 pairs. */
_Static_assert(ROLE_NR < 64, "too many roles");

/*
 * Two colours in a cell: of its upper and its lower half, each one of THEME_HEATS levels, or of the
 * same levels of selected parts. With 256 colours only, and without a meaning elsewhere.
 */
#define THEME_HEATS 5
#define THEME_ROLES (ROLE_NR + 4 * THEME_HEATS * THEME_HEATS) /* of struct style */

static inline unsigned int theme_heats(unsigned int upper, unsigned int lower)
{
	return ROLE_NR + upper * 2 * THEME_HEATS + lower;
}

_Static_assert(THEME_ROLES <= UINT8_MAX, "struct style");

enum theme {
	THEME_AUTO, /* dark or light, as the terminal is */
	THEME_DARK,
	THEME_LIGHT,
	THEME_COLOR_BLIND, /* blue and orange, no pair of red and green; dark or light */
	THEME_MONO,
	THEME_NR,
};

struct glyphs {
	struct safe_text bar[9];   /* 0/8 .. 8/8 of a cell, from the left */
	struct safe_text level[9]; /* 0/8 .. 8/8 of a cell, from below */
	struct safe_text heat[THEME_HEATS], half;
	/* Parts of a meter without colours: user, kernel, host; and marks: on a part, beside it. */
	struct safe_text meter[3], notch[3], tick;
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

/*
 * Draw a line piece by piece, from left to right. A piece that does not fit is
 * omitted, so that figures are never truncated.
 *
 * Runs on: the main thread.
 */

struct pen {
	struct canvas *c;
	unsigned int row, col, end;
};

/* Draw a piece @gap cells after the last; false if it does not fit. */
bool pen_text(struct pen *pen, unsigned int gap, struct safe_text t, enum theme_role role);
/* Draw a label and its value, both or neither. */
bool pen_value(struct pen *pen, unsigned int gap, struct safe_text label, struct safe_text value,
	       enum theme_role role);

/* A canvas as a picture in SVG, in the colours of a theme. Pure; any thread. */

/* Return the picture as text (malloc); NULL: no memory. */
char *canvas_svg(const struct canvas *c, enum theme theme);

/*
 * Put a canvas on the terminal and read keys. The only file that includes
 * curses. After a crash ui/term_guard.c restores the terminal. The main thread; one at a time.
 */

struct term_config {
	bool color; /* if the terminal has any */
	enum theme theme;
	bool mouse;
};

/*
 * Set the locale's codeset, and test whether the terminal can show a screen, without
 * changing it. Return 0 or -ENOTSUP with a message. Call before any thread exists.
 */
int term_check(struct err *e);
/* Return whether the locale's codeset is UTF-8. */
bool term_utf8(void);
int term_open(struct terminal **out, const struct term_config *config, struct err *e);
/* Restore the terminal. @t may be NULL. */
void term_close(struct terminal *t);
int term_input_fd(const struct terminal *t);
int term_output_fd(const struct terminal *t);
/* Apply a change of size, and get the size from the kernel; at least 1 x 1. */
void term_resized(struct terminal *t, unsigned int *rows, unsigned int *cols);
/* Set theme and mouse; no output if nothing changes. */
void term_set(struct terminal *t, enum theme theme, bool mouse);
/* Return whether it has the colours of theme_heats(). */
bool term_has_heats(const struct terminal *t);
/* Show @c; write changed cells only. */
void term_draw(struct terminal *t, const struct canvas *c);
/*
 * Return whether screens are on their way to a terminal that has not received them: a slow line.
 * Draw later; its answer makes term_input_fd() readable.
 */
bool term_is_behind(struct terminal *t);
/*
 * Redraw everything next time; @clear: clear the screen first, else it is a repair, which a slow
 * line has no time for.
 */
void term_redraw(struct terminal *t, bool clear);
/* Get the next key without waiting; false if there is none. */
bool term_key(struct terminal *t, struct key *key);
/* Copy @text to the terminal's clipboard (OSC 52), if supported. */
void term_copy(struct terminal *t, const char *text);
/* Return whether we are the terminal's foreground job: only it may draw. */
bool term_foreground(const struct terminal *t);
/* Release the terminal (before stopping), and set it up again (after). */
void term_leave(struct terminal *t);
void term_enter(struct terminal *t);

#endif
