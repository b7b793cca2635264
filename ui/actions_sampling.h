/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Actions that change the sampling: call graphs, sizes of stack copies and
 * rings. The main thread; the sampler answers with a message in a later
 * profile.
 */
#ifndef UI_ACTIONS_SAMPLING_H
#define UI_ACTIONS_SAMPLING_H

#include "ui/state/state.h"

/* Apply the fix of @message, or show it if it is not possible from here. */
void actions_take_fix(struct ui_state *st, const struct profile_message *message);
/* Return the handler of @action; NULL: none here. */
void (*actions_sampling(enum action action))(struct ui_state *st, uint32_t code);

#endif
