// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The mappings of an address space as a tree with shared nodes.
 *
 * Changes go from the root down, and make each node on the way writable: a frozen one is replaced
 * by a copy. A full node is split before an item is inserted below it, so nothing goes back up.
 *
 * Runs on: the writer, under the lock of the maps; space_tree_find() anywhere.
 */
#include "symbols/process/space_tree.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/search.h"

#define ROOM_MIN 8u
/* Neighbours with fewer items together are joined: half a node, or they would soon be split. */
#define JOIN_MAX (SPACE_NODE_MAX / 2)

static size_t item_size(const struct space_node *node)
{
	return node->level ? sizeof(struct space_child) : sizeof(struct mapping);
}

static void *item_at(const struct space_node *node, uint32_t i)
{
	return (char *)(uintptr_t)(node + 1) + i * item_size(node);
}

static size_t node_bytes(const struct space_node *node)
{
	return sizeof(*node) + node->room * item_size(node);
}

/* Make an empty node for up to @nr items; NULL when out of memory. */
static struct space_node *node_new(struct space_tree *t, uint8_t level, uint32_t nr)
{
	struct space_node head = { .refs = 1, .room = ROOM_MIN, .level = level }, *node;

	while (head.room < nr)
		head.room *= 2;
	node = malloc(node_bytes(&head));
	if (!node)
		return NULL;
	*node = head;
	atomic_fetch_add_explicit(t->bytes, node_bytes(node), memory_order_relaxed);
	return node;
}

static void free_node(struct reclaim *head)
{
	struct space_node *node =
		(struct space_node *)((char *)head - offsetof(struct space_node, rcu));

	reclaim_grace_over();
	for (uint32_t i = 0; !node->level && i < node->nr; i++)
		object_put(space_node_mappings(node)[i].object);
	free(node);
}

struct space_node *space_tree_get(struct space_node *node)
{
	if (node)
		node->refs++;
	return node;
}

void space_tree_put(struct space_node *node, atomic_ulong *bytes)
{
	assert(!node || node->refs);
	if (!node || --node->refs)
		return;
	/* Nodes below it may be found through it until the same grace period has ended. */
	for (uint32_t i = 0; node->level && i < node->nr; i++)
		space_tree_put(space_node_children(node)[i].node, bytes);
	atomic_fetch_sub_explicit(bytes, node_bytes(node), memory_order_relaxed);
	if (node->frozen)
		reclaim_later(&node->rcu, free_node);
	else
		free(node);
}

/* Return the index of the first item of @node that ends after @addr; nr: none. */
static uint32_t search(const struct space_node *node, uint64_t addr)
{
	const struct space_child *c = space_node_children(node);
	const struct mapping *m = space_node_mappings(node);

	return node->level ? search_split(node->nr, i, c[i].end <= addr)
			   : search_split(node->nr, i, m[i].end <= addr);
}

const struct mapping *space_tree_find(const struct space_node *root, uint64_t addr)
{
	const struct space_node *node = root;

	for (uint32_t i; node; node = space_node_children(node)[i].node) {
		i = search(node, addr);
		if (i == node->nr)
			return NULL;
		if (!node->level)
			return &space_node_mappings(node)[i];
	}
	return NULL;
}

/* Return the end of the last mapping below @node. */
static uint64_t last_end(const struct space_node *node)
{
	assert(node->nr);
	return node->level ? space_node_children(node)[node->nr - 1].end
			   : space_node_mappings(node)[node->nr - 1].end;
}

/* Append the items of @from, from the one with index @first on, which stay in @from as well. */
static void append_items(struct space_node *to, const struct space_node *from, uint32_t first)
{
	assert(to->nr + from->nr - first <= to->room);
	memcpy(item_at(to, to->nr), item_at(from, first), (from->nr - first) * item_size(from));
	for (uint32_t i = first; to->level && i < from->nr; i++)
		space_tree_get(space_node_children(from)[i].node);
	to->nr = (uint16_t)(to->nr + from->nr - first);
}

/* Make the node at @link writable for up to @nr items; NULL when out of memory. */
static struct space_node *own(struct space_tree *t, struct space_node **link, uint32_t nr)
{
	struct space_node *node = *link, *mine;

	assert(node->frozen || node->refs == 1);
	if (!node->frozen && nr <= node->room)
		return node;
	mine = node_new(t, node->level, MAX(nr, node->nr));
	if (!mine)
		return NULL;
	append_items(mine, node, 0);
	space_tree_put(node, t->bytes);
	*link = mine;
	return mine;
}

static void insert_item(struct space_node *node, uint32_t i, const void *item)
{
	assert(i <= node->nr && node->nr < node->room);
	memmove(item_at(node, i + 1), item_at(node, i), (node->nr - i) * item_size(node));
	memcpy(item_at(node, i), item, item_size(node));
	node->nr++;
}

static void remove_item(struct space_node *node, uint32_t i)
{
	assert(i < node->nr);
	node->nr--;
	memmove(item_at(node, i), item_at(node, i + 1), (node->nr - i) * item_size(node));
}

/* Move the items of child @i of @parent, from the one with index @at on, into a new child. */
static bool split(struct space_tree *t, struct space_node *parent, uint32_t i, uint32_t at)
{
	struct space_child *c = &space_node_children(parent)[i], right;
	struct space_node *left = own(t, &c->node, 0);

	right.node = left ? node_new(t, left->level, SPACE_NODE_MAX) : NULL;
	if (!right.node)
		return false;
	append_items(right.node, left, at);
	/* append_items() made them referenced twice. */
	for (uint32_t k = at; left->level && k < left->nr; k++)
		space_tree_put(space_node_children(left)[k].node, t->bytes);
	left->nr = (uint16_t)at;
	right.end = c->end;
	c->end = last_end(left);
	insert_item(parent, i + 1, &right);
	return true;
}

/* Insert below the node at @link, which is not full. */
static bool insert_below(struct space_tree *t, struct space_node **link, const struct mapping *m)
{
	struct space_node *node = own(t, link, (*link)->nr + 1u);
	struct space_child *c;
	uint32_t i;

	if (!node)
		return false;
	i = search(node, m->start);
	if (!node->level) {
		insert_item(node, i, m);
		assert(!i || m->start >= space_node_mappings(node)[i - 1].end);
		assert(i + 1u == node->nr || m->end <= space_node_mappings(node)[i + 1].start);
		return true;
	}
	c = space_node_children(node);
	/* Ascending inserts leave full nodes. */
	if (i < node->nr && c[i].node->nr == SPACE_NODE_MAX &&
	    !split(t, node, i, SPACE_NODE_MAX / 2))
		return false;
	if (i == node->nr && c[i - 1].node->nr == SPACE_NODE_MAX &&
	    !split(t, node, i - 1, SPACE_NODE_MAX - 1))
		return false;
	i = MIN(search(node, m->start), node->nr - 1u);
	if (!insert_below(t, &c[i].node, m))
		return false;
	c[i].end = last_end(c[i].node);
	return true;
}

/* Put a node above a full root. */
static bool grow(struct space_tree *t)
{
	struct space_child root = { .end = last_end(t->root), .node = t->root };
	struct space_node *top = node_new(t, t->root->level + 1, 2);

	if (!top)
		return false;
	insert_item(top, 0, &root);
	t->root = top;
	return true;
}

bool space_tree_insert(struct space_tree *t, const struct mapping *m)
{
	assert(m->start < m->end);
	if (!t->root)
		t->root = node_new(t, 0, 1);
	if (!t->root || (t->root->nr == SPACE_NODE_MAX && !grow(t)))
		return false;
	return insert_below(t, &t->root, m);
}

/* Join the children @i and @i + 1 of @parent if they have few items. */
static void join(struct space_tree *t, struct space_node *parent, uint32_t i)
{
	struct space_child *c = &space_node_children(parent)[i];
	uint32_t nr = c[0].node->nr + c[1].node->nr;
	struct space_node *left = nr <= JOIN_MAX ? own(t, &c[0].node, nr) : NULL;

	if (!left)
		return;
	append_items(left, c[1].node, 0);
	space_tree_put(c[1].node, t->bytes);
	c[0].end = c[1].end;
	remove_item(parent, i + 1);
}

/* Remove the mapping of @addr below the node at @link, which may then be empty. */
static bool remove_below(struct space_tree *t, struct space_node **link, uint64_t addr)
{
	struct space_node *node = own(t, link, 0);
	uint32_t i = node ? search(node, addr) : 0;
	struct space_child *c;

	if (!node)
		return false;
	if (!node->level) {
		remove_item(node, i);
		return true;
	}
	c = &space_node_children(node)[i];
	if (!remove_below(t, &c->node, addr))
		return false;
	if (!c->node->nr) {
		space_tree_put(c->node, t->bytes);
		remove_item(node, i);
		return true;
	}
	c->end = last_end(c->node);
	if (i + 1u < node->nr)
		join(t, node, i);
	if (i)
		join(t, node, i - 1);
	return true;
}

bool space_tree_remove(struct space_tree *t, uint64_t addr)
{
	struct space_node *root;

	if (!remove_below(t, &t->root, addr))
		return false;
	for (root = t->root; root->nr <= 1 && (root->level || !root->nr); root = t->root) {
		t->root = root->nr ? space_tree_get(space_node_children(root)[0].node) : NULL;
		space_tree_put(root, t->bytes);
		if (!t->root)
			break;
	}
	return true;
}

void space_tree_freeze(struct space_node *root)
{
	if (!root || root->frozen)
		return;
	for (uint32_t i = 0; i < root->nr; i++) {
		if (root->level)
			space_tree_freeze(space_node_children(root)[i].node);
		else
			object_get(space_node_mappings(root)[i].object);
	}
	root->frozen = true;
}
