/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The actions of keys, clicks, commands and scripts. Runs on: the main thread.
 */
#ifndef UI_ACTIONS_H
#define UI_ACTIONS_H

#include "ui/key/key.h"
#include "ui/state/state.h"

/* Do an action, as if @code were pressed. */
void actions_do(struct ui_state *st, enum action action, uint32_t code);
/* Return whether @action has a handler outside of the views. For the test of the key table. */
bool actions_handles(enum action action);

#endif
