/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stacks of a snapshot merged into a tree, for flame graphs: all, then processes by name, then
 * functions. Pure; any thread.
 */
#ifndef UI_EXPORT_TREE_H
#define UI_EXPORT_TREE_H

#include "ui/export/snapshot.h"

#define TREE_NONE UINT32_MAX

/* A node; children are after their parent, and in order of their weight. */
struct tree_node {
	uint32_t function; /* index in functions; TREE_NONE: the root, or a process */
	uint32_t process;  /* index in processes: the first of that name; TREE_NONE: a function */
	uint32_t parent, child, next;
	uint32_t depth; /* of the root: 0 */
	double self, total;
};

struct tree {
	struct tree_node *nodes;
	uint32_t nr_nodes;
	uint32_t depth; /* the largest */
};

/* Return 0 or -ENOMEM. */
int tree_make(struct tree *t, const struct snapshot *s);
void tree_fini(struct tree *t);
/* Return the text of a node. */
struct safe_text tree_text(const struct snapshot *s, const struct tree_node *node);
/* Return the class of a node: "k", "u", "j", "i" inlined, "s" script, "p" process, "q" unknown. */
char tree_class(const struct snapshot *s, const struct tree_node *node);

#endif
