/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Actions on stacks: call tree, flame graph, callers, baseline. The main
 * thread.
 */
#ifndef UI_ACTIONS_STACKS_H
#define UI_ACTIONS_STACKS_H

#include "ui/state/state.h"

/* Return the handler of @action; NULL: none here. */
void (*actions_stack(enum action action))(struct ui_state *st, uint32_t code);

#endif
