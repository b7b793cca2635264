/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes as a tree: which is the parent of which, and rows in that order.
 * Pure; any thread.
 *
 * Processes are numbered as in a profile, its ancestors behind them.
 */
#ifndef UI_VIEW_PROCESS_TREE_H
#define UI_VIEW_PROCESS_TREE_H

#include "sampler/profile/profile.h"

struct list;
struct ui_state;

struct process_tree {
	uint32_t *parents; /* of each; UINT32_MAX: none that is known */
	uint32_t nr;
};

/* Process or ancestor @i of the profile. */
const struct profile_process *process_tree_at(const struct profile *p, uint32_t i);
/* 0 or -ENOMEM. No way up goes in a circle, whatever pids tell. */
int process_tree_make(struct process_tree *t, const struct profile *p);
void process_tree_fini(struct process_tree *t);
/*
 * Put the rows, which are in the order of siblings, below their parents;
 * those below a folded one go. Where a parent has no row, the next one up
 * counts. Without memory the rows stay as they are.
 */
void process_tree_arrange(const struct ui_state *st, struct list *list);
/* What folds_mark() knows the row of a process by. */
uint32_t process_tree_mark(uint64_t id);

#endif
