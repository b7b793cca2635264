/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Find words for completion: files and events. Only when Tab is pressed.
 */
#ifndef UI_CLI_WORDS_H
#define UI_CLI_WORDS_H

#include <stdint.h>

struct sampler;

struct words_list {
	char **list; /* clean texts, in order */
	uint32_t nr, capacity;
	const void *of; /* the command of the last search; NULL: none */
};

void words_fini(struct words_list *w);
/*
 * Find the files with paths that begin with @word; directories end with a slash. Any thread: a
 * directory may hang.
 */
void words_files(struct words_list *w, const char *word);
/* Find the names of all available events. The main thread. */
void words_events(struct words_list *w, struct sampler *s);

#endif
