/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A line being typed, and the prompt at the bottom that has one. Any thread.
 */
#ifndef UI_STATE_LINE_H
#define UI_STATE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/base/text.h"
#include "ui/state/list.h"
#include "ui/text/text.h"

#define LINE_SIZE TEXT_MAX /* with the NUL */

/* Always valid UTF-8 of printable code points. */
struct line {
	char text[LINE_SIZE];
	size_t size, at; /* bytes; the cursor */
	size_t max;	 /* bytes that may be typed; 0: as many as fit */
	bool full;	 /* the last key did not fit */
};

/* Replace the text; it is cleaned. */
void line_set(struct line *l, const char *text);
/*
 * Edit by a key (text, arrows, Bksp, ^U ^W). Return false if the key is not for a line;
 * *changed: the text is another one.
 */
bool line_key(struct line *l, uint32_t code, bool *changed);

enum prompt_kind {
	PROMPT_NONE,
	PROMPT_SEARCH,
	PROMPT_FILTER,
	PROMPT_DELAY,
	PROMPT_LIMIT,
	PROMPT_COMMAND,
	PROMPT_REWIND,
};

#define PROMPT_CANDIDATES 512

struct prompt {
	enum prompt_kind kind;
	struct line line;
	bool fresh;			    /* a number that the first digit replaces */
	bool missed;			    /* the search found nothing */
	char candidates[PROMPT_CANDIDATES]; /* how a command can continue; "": unknown */
	char before[MATCH_MAX];		    /* restored by Esc */
	char tabbed[LINE_SIZE]; /* the line at a Tab, while its words are being read; "" */
	struct list_position position_before;
};

#endif
