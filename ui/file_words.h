/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files that complete a command. Runs on: the main thread.
 */
#ifndef UI_FILE_WORDS_H
#define UI_FILE_WORDS_H

#include "ui/state/state.h"

/*
 * Have the files that begin with @word read into st->words, by st->folders, with the rights of
 * the invoking user. Waits for a moment. False: st->words.of is @of when they are there.
 */
bool file_words_gather(struct ui_state *st, const void *of, const char *word);

#endif
