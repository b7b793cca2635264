/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The commands of the command line that take a word. Constant.
 */
#ifndef UI_COMMAND_TABLE_H
#define UI_COMMAND_TABLE_H

#include "ui/command_target.h"
#include "ui/state/state.h"

struct command {
	const char *name, *argument;
	void (*run)(struct ui_state *st, const char *arg);
	/*
	 * The @i-th word that can follow, where @before (up to the word, "": nothing) is typed;
	 * NULL: no more. NULL: anything.
	 */
	const char *(*word)(const struct ui_state *st, const char *before, unsigned int i,
			    char buf[static COMMAND_WORD_MAX]);
	bool alone;	    /* it may stand without a word: run with "" */
	const char *breaks; /* after these the next word begins; NULL: there is one */
	/* Tab: find the words that begin with @word, into st->words. NULL: they are known. */
	void (*gather)(struct ui_state *st, const char *word);
};

/* Ends with a name of NULL. */
extern const struct command command_table[];
const struct command *command_find(const char *name);

#endif
