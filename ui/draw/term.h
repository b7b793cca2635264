/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Put a canvas on the terminal and read keys. The only file that includes
 * curses. After a crash ui/term_guard.c restores the terminal. The main thread; one at a time.
 */
#ifndef UI_DRAW_TERM_H
#define UI_DRAW_TERM_H

#include <stdbool.h>

#include "symbols/base/base.h"
#include "ui/draw/canvas.h"
#include "ui/key/key.h"
#include "ui/draw/draw.h"

struct terminal;

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
/* Get the current size from the kernel; at least 1 x 1. */
void term_size(const struct terminal *t, unsigned int *rows, unsigned int *cols);
/* Apply a change of size. */
void term_resized(struct terminal *t);

/* Set theme and mouse; no output if nothing changes. */
void term_set(struct terminal *t, enum theme theme, bool mouse);
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
