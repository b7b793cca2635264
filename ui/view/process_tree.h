/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes as a tree, and rows in that order. Pure; any thread.
 *
 * Processes are numbered as in a profile, followed by its ancestors.
 */
#ifndef UI_VIEW_PROCESS_TREE_H
#define UI_VIEW_PROCESS_TREE_H

#include "sampler/profile/profile.h"

struct list;
struct ui_state;

struct process_tree {
	uint32_t *parents; /* of each; UINT32_MAX: unknown */
	uint32_t nr;
};

/* Return process or ancestor @i of the profile. */
const struct profile_process *process_tree_at(const struct profile *p, uint32_t i);
/* Make the tree. Return 0 or -ENOMEM. It has no cycles, even if pids were reused. */
int process_tree_make(struct process_tree *t, const struct profile *p);
void process_tree_fini(struct process_tree *t);
/*
 * Move rows, sorted as siblings, below their parents; drop rows below a folded row. A parent
 * without a row is replaced by its nearest ancestor with one. Without memory nothing changes.
 */
void process_tree_arrange(const struct ui_state *st, struct list *list);
/* Return the id of a process's row for folds_mark(). */
uint32_t process_tree_mark(uint64_t id);

#endif
