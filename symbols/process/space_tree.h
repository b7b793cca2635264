/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The mappings of an address space as a tree with shared nodes, for space.c (readers) and
 * space_edit.c (the writer).
 *
 * A B-tree: a change copies the nodes from its mapping to the root, and a copy of the whole is one
 * more reference of the root, so both cost little in a space of any size. Two neighbours below one
 * node hold more than half a node together: a tree does not remain large when mappings are removed.
 *
 * Invariants: mappings are sorted and do not overlap, no node but the root of a draft is empty, and
 * a frozen node, with all nodes below it, never changes. Frozen nodes have a reference of the
 * object of each of their mappings; others have none: the space before, and the caller who adds a
 * mapping, have them until the draft is published.
 *
 * Threads: space_tree_find() on any urcu-qsbr reader of a frozen tree; all else under the lock of
 * the maps.
 */
#ifndef SYMBOLS_PROCESS_SPACE_TREE_H
#define SYMBOLS_PROCESS_SPACE_TREE_H

#include <stdatomic.h>

#include "symbols/base/reclaim.h"
#include "symbols/process/mapping.h"

#define SPACE_NODE_MAX 64u

struct space_node {
	struct reclaim rcu;
	uint32_t refs; /* by nodes, spaces and drafts */
	uint16_t nr, room;
	uint8_t level; /* 0: its items are mappings; else nodes of the level below */
	bool frozen;
};

/* An item of a node above the mappings. */
struct space_child {
	uint64_t end; /* of its last mapping */
	struct space_node *node;
};

struct space_tree {
	struct space_node *root; /* NULL: no mapping */
	atomic_ulong *bytes;	 /* of all nodes in use, of all trees; relaxed: a figure */
};

/* The items follow the node. */
static inline struct mapping *space_node_mappings(const struct space_node *node)
{
	return (struct mapping *)(uintptr_t)(node + 1);
}

static inline struct space_child *space_node_children(const struct space_node *node)
{
	return (struct space_child *)(uintptr_t)(node + 1);
}

/* Take and drop a reference; @node may be NULL. */
struct space_node *space_tree_get(struct space_node *node);
void space_tree_put(struct space_node *node, atomic_ulong *bytes);

/* Find the first mapping that ends after @addr; NULL: none. */
const struct mapping *space_tree_find(const struct space_node *root, uint64_t addr);

/* Insert @m, which overlaps no mapping. False, and unchanged, when out of memory. */
bool space_tree_insert(struct space_tree *t, const struct mapping *m);
/* Remove the mapping of @addr. False, and unchanged, when out of memory. */
bool space_tree_remove(struct space_tree *t, uint64_t addr);
/* Freeze the nodes that are not yet. */
void space_tree_freeze(struct space_node *root);

#endif
