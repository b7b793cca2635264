/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The commands with an argument. Constant.
 */
#ifndef UI_COMMAND_TABLE_H
#define UI_COMMAND_TABLE_H

#include "ui/command_target.h"
#include "ui/state/state.h"

struct command {
	const char *name, *argument;
	void (*run)(struct ui_state *st, const char *arg);
	/*
	 * Return the @i-th candidate for the next word; @before: the argument up to
	 * that word; NULL: no more. A NULL pointer: no candidates.
	 */
	const char *(*word)(const struct ui_state *st, const char *before, unsigned int i,
			    char buf[static COMMAND_WORD_MAX]);
	bool alone;	    /* the argument is optional: run with "" */
	const char *breaks; /* characters that separate words; NULL: one word */
	/*
	 * Gather the words that begin with @word into st->words (Tab), for the command @of; false:
	 * they come later. NULL: not needed.
	 */
	bool (*gather)(struct ui_state *st, const void *of, const char *word);
};

/* Ends with a name of NULL. */
extern const struct command command_table[];
const struct command *command_find(const char *name);

#endif
