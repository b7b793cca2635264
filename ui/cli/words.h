/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Words that have to be looked for before they can be completed: files and
 * events. Only when Tab is pressed. The main thread.
 */
#ifndef UI_CLI_WORDS_H
#define UI_CLI_WORDS_H

#include <stdint.h>

struct ui_state;

struct words_list {
	char **list; /* clean texts, in order */
	uint32_t nr, capacity;
	const void *of; /* the command that they were looked for; NULL: none */
};

void words_fini(struct words_list *w);
/* Into st->words: files whose path begins with @word, folders with a slash; usable events. */
void words_files(struct ui_state *st, const char *word);
void words_events(struct ui_state *st, const char *word);
/* The @i-th of them; NULL: no more. As a command wants it. */
const char *words_word(const struct ui_state *st, const char *before, unsigned int i, char *buf);

#endif
