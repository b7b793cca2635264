/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code shared by the call tree and the flame graph. Runs on: the main thread.
 */
#ifndef UI_VIEW_STACKS_H
#define UI_VIEW_STACKS_H

#include "ui/key/key_table.h"
#include "ui/state/state.h"

/* Turn the tree upside down (ACT_INVERT), or fold its recursion (ACT_FOLD_RECURSION). */
void stacks_turn(struct ui_state *st, enum action action);
/* Write the options that are on: a view's options(). */
size_t stacks_options(const struct ui_state *st, char *buf, size_t size);

#endif
