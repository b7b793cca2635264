/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The commands of the command line that take a word. Constant.
 */
#ifndef UI_COMMAND_TABLE_H
#define UI_COMMAND_TABLE_H

#include "ui/state.h"

#define COMMAND_WORD_MAX 32

struct command {
	const char *name, *argument;
	void (*run)(struct ui_state *st, const char *arg);
	/* The @i-th word that can follow; NULL: no more. NULL: anything. */
	const char *(*word)(const struct ui_state *st, unsigned int i,
			    char buf[static COMMAND_WORD_MAX]);
	bool alone;			/* it may stand without a word: run with "" */
};

/* Ends with a name of NULL. */
extern const struct command command_table[];
const struct command *command_find(const char *name);

#endif
