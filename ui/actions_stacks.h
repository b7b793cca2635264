/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What keys do that concern stacks: into the tree, the flame graph and the
 * callers of a row's function, and out again. The main thread.
 */
#ifndef UI_ACTIONS_STACKS_H
#define UI_ACTIONS_STACKS_H

#include "ui/state/state.h"

/* NULL: not one of these. */
void (*actions_stack(enum action action))(struct ui_state *st, uint32_t code);

#endif
