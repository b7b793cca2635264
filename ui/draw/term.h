/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The terminal: puts a canvas on it and reads keys from it. The only file
 * that knows curses. The main thread; one at a time.
 */
#ifndef UI_DRAW_TERM_H
#define UI_DRAW_TERM_H

#include <stdbool.h>

#include "symbols/base/base.h"
#include "ui/draw/canvas.h"
#include "ui/key/keys.h"
#include "ui/draw/theme.h"

struct terminal;

struct term_config {
	bool color; /* if the terminal has any */
	enum theme theme;
	bool mouse;
};

/*
 * Take the locale's codeset, and look whether the terminal can show a screen,
 * without touching it. 0 or -ENOTSUP with a sentence. Call before any thread
 * exists.
 */
int term_check(struct err *e);
/* Does the locale's codeset have more than ASCII that we can use (UTF-8)? */
bool term_utf8(void);

int term_open(struct terminal **out, const struct term_config *config, struct err *e);
/* The terminal is as it was. NULL is fine. */
void term_close(struct terminal *t);

int term_input_fd(const struct terminal *t);
int term_output_fd(const struct terminal *t);
/* Cells that there are now (asked of the kernel); at least 1 x 1. */
void term_size(const struct terminal *t, unsigned int *rows, unsigned int *cols);
/* Follow a change of size. */
void term_resized(struct terminal *t);

/* Other colours, the mouse on or off; nothing where all is so already. */
void term_set(struct terminal *t, enum theme theme, bool mouse);
/* Bring the screen to what @c holds; writes only what changed. */
void term_draw(struct terminal *t, const struct canvas *c);
/* The next draw writes everything; @clear: after clearing the screen. */
void term_redraw(struct terminal *t, bool clear);

/* The next key that is there, without waiting; false if there is none. */
bool term_key(struct terminal *t, struct key *key);

/* Put @text on the clipboard of the person at the terminal (OSC 52), if it can do that. */
void term_copy(struct terminal *t, const char *text);

/* Are we the terminal's foreground job? Another job's screen is not ours to draw on. */
bool term_foreground(const struct terminal *t);
/* Give the terminal back (before stopping), and take it again (after). */
void term_leave(struct terminal *t);
void term_enter(struct terminal *t);

#endif
