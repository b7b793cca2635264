/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Keys in the prompt. Runs on: the main thread.
 */
#ifndef UI_PROMPT_KEYS_H
#define UI_PROMPT_KEYS_H

#include "ui/key/key.h"
#include "ui/state/state.h"

void prompt_keys_press(struct ui_state *st, const struct key *key);
/* Words that were gathered may be there: complete the command if it is as it was at the Tab. */
void prompt_keys_words(struct ui_state *st);
/* Find how the command being typed can continue. */
void prompt_keys_refresh(struct ui_state *st);

#endif
