/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Keys and the mouse: which part of the screen gets them. Runs on: the main thread.
 */
#ifndef UI_INPUT_H
#define UI_INPUT_H

#include "ui/key/key.h"
#include "ui/state/state.h"

/* Obey a key. */
void input_key(struct ui_state *st, const struct key *key);
/* Return whether the key is about rows that are still being folded. Then keep it until they are
 * there. */
bool input_waits(const struct ui_state *st, const struct key *key);

#endif
