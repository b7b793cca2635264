/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What keys do that concern stacks: into the tree, the flame graph and the
 * callers of a row's function, and out again. The main thread.
 */
#ifndef UI_ACTIONS_STACKS_H
#define UI_ACTIONS_STACKS_H

#include "ui/state.h"

/* NULL: not one of these. */
void (*actions_stack(enum action action))(struct ui_state *st, uint32_t code);
/* The function of the selected row: an index in functions of the shown profile; FOLD_NONE. */
uint32_t actions_function(const struct ui_state *st);
/* Turn the tree (I) or fold its recursion (X). */
void folds_turn(struct ui_state *st, enum action action);
/* Show callers and callees of a function (an id). */
void actions_callers(struct ui_state *st, uint32_t id);

#endif
