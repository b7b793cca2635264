/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code shared by the call tree and the flame graph. Runs on: the main thread.
 */
#ifndef UI_VIEW_STACKS_H
#define UI_VIEW_STACKS_H

#include "ui/key/key.h"
#include "ui/state/state.h"

struct folds_tree;

/* Turn the tree upside down (ACT_INVERT), or fold its recursion (ACT_FOLD_RECURSION). */
void stacks_turn(struct ui_state *st, enum action action);
/*
 * Mark the nodes that pass the filter of @list: matches and their ancestors. Return an array to
 * free, by node; NULL: all pass, or there is no memory.
 */
bool *stacks_keep_found(const struct ui_state *st, const struct list *list,
			const struct folds_tree *t);
/*
 * Return the share of samples with a match on their stack, in sight or not: the topmost match of
 * each path counts.
 */
double stacks_found_share(const struct ui_state *st, const struct folds_tree *t,
			  const struct match *m);
/* Write the options that are on: a view's options(). */
size_t stacks_options(const struct ui_state *st, char *buf, size_t size);

#endif
