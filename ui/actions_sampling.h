/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What keys do to the sampling itself: how stacks are taken, how much memory
 * dumps and rings have. The main thread; the sampler's messages answer.
 */
#ifndef UI_ACTIONS_SAMPLING_H
#define UI_ACTIONS_SAMPLING_H

#include "ui/state/state.h"

/* Do what the cure of @notice says first; a sentence if there is nothing to do here. */
void actions_take_fix(struct ui_state *st, const struct profile_notice *notice);
/* What does @action; NULL: nothing here. */
void (*actions_sampling(enum action action))(struct ui_state *st, uint32_t code);

#endif
