/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One line of input at the bottom of the screen.
 */
#ifndef UI_PROMPT_H
#define UI_PROMPT_H

#include "ui/keys.h"
#include "ui/text/match.h"

enum prompt_kind {
	PROMPT_NONE,
	PROMPT_SEARCH,
	PROMPT_FILTER,
	PROMPT_DELAY,
	PROMPT_LIMIT,
	PROMPT_COMMAND,
};

/* A line being typed. Always valid UTF-8 of printable code points. */
struct line {
	char text[MATCH_MAX];
	size_t size, at; /* bytes; the cursor */
};

void line_set(struct line *l, const char *text);
/* True if the key belongs to the line (text, arrows, Bksp, ^U ^W); *changed: the text did. */
bool line_key(struct line *l, uint32_t code, bool *changed);

struct prompt {
	enum prompt_kind kind;
	struct line line;
	bool fresh;		/* a number that the first digit replaces */
	bool missed;		/* what is searched for is nowhere */
	char before[MATCH_MAX]; /* what Esc goes back to */
	uint32_t cursor_before;
	uint64_t selected_before;
	bool pinned_before;
};

struct ui_state;
struct canvas;
void prompt_open(struct ui_state *st, enum prompt_kind kind);
void prompt_key(struct ui_state *st, const struct key *key);
void prompt_draw(struct ui_state *st, struct canvas *c, unsigned int row);

#endif
