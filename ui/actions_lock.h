/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The mutex that most threads of the selected row wait for, and its owner. If none of them
 * waits for one, of all shown threads. Runs on: the main thread.
 */
#ifndef UI_ACTIONS_LOCK_H
#define UI_ACTIONS_LOCK_H

#include "ui/state/state.h"

/* Start to look; the answer is a message. */
void actions_lock(struct ui_state *st);

#endif
