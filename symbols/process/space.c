// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Address spaces: immutable snapshots, trees of mappings that share nodes, the next snapshot.
 *
 * Reference counts belong to the writer; readers need none, since memory is freed after a grace
 * period.
 *
 * Runs on: the writer, under the lock of the maps; space_find() anywhere.
 */
#include "symbols/process/internal.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/base/thread.h"
#include "symbols/image/image.h"

/*
 * The mappings of an address space as a tree with shared nodes.
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
 *
 * The mappings of an address space as a tree with shared nodes.
 *
 * Changes go from the root down, and make each node on the way writable: a frozen one is replaced
 * by a copy. A full node is split before an item is inserted below it, so nothing goes back up.
 *
 * Runs on: the writer, under the lock of the maps; space_tree_find() anywhere.
 */

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
	node = urgent_alloc(node_bytes(&head));
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
	urgent_free(node);
}

/* Take and drop a reference; @node may be NULL. */
static struct space_node *space_tree_get(struct space_node *node)
{
	if (node)
		node->refs++;
	return node;
}

static void space_tree_put(struct space_node *node, atomic_ulong *bytes)
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
		urgent_free(node);
}

/* Return the index of the first item of @node that ends after @addr; nr: none. */
static uint32_t search(const struct space_node *node, uint64_t addr)
{
	const struct space_child *c = space_node_children(node);
	const struct mapping *m = space_node_mappings(node);

	return node->level ? search_split(node->nr, i, c[i].end <= addr)
			   : search_split(node->nr, i, m[i].end <= addr);
}

/* Find the first mapping that ends after @addr; NULL: none. */
static const struct mapping *space_tree_find(const struct space_node *root, uint64_t addr)
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

	assert(i < parent->nr);
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

/* Insert @m, which overlaps no mapping. False, and unchanged, when out of memory. */
static bool space_tree_insert(struct space_tree *t, const struct mapping *m)
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

	assert(i < parent->nr);
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

/* Remove the mapping of @addr. False, and unchanged, when out of memory. */
static bool space_tree_remove(struct space_tree *t, uint64_t addr)
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

/* Freeze the nodes that are not yet. */
static void space_tree_freeze(struct space_node *root)
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

/*
 * The parts of a space. See internal.h.
 */

struct ended {
	struct mapping m;
	uint64_t death_ns;
};

struct space {
	struct reclaim rcu;
	struct space_stats *stats;
	uint64_t serial; /* unique among all spaces; not 0 */
	uint32_t refs;
	uint32_t nr_mappings, nr_old;
	struct space_node *root; /* frozen; NULL: no mapping */
	struct ended old[];	 /* in the order in which they ended; a reference of each object */
};

static inline size_t space_size(uint32_t nr_old)
{
	return sizeof(struct space) + nr_old * sizeof(struct ended);
}

#define WANT_MAX 512u

static void free_space(struct reclaim *head)
{
	struct space *s = (struct space *)((char *)head - offsetof(struct space, rcu));

	reclaim_grace_over();
	for (uint32_t i = 0; i < s->nr_old; i++)
		object_put(s->old[i].m.object);
	urgent_free(s);
}

struct space *space_get(struct space *s)
{
	if (s)
		s->refs++;
	return s;
}

void space_put(struct space *s)
{
	assert(!s || s->refs);
	if (!s || --s->refs)
		return;
	space_tree_put(s->root, &s->stats->bytes);
	atomic_fetch_sub_explicit(&s->stats->bytes, space_size(s->nr_old), memory_order_relaxed);
	atomic_fetch_sub_explicit(&s->stats->nr_spaces, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&s->stats->nr_mappings, s->nr_mappings, memory_order_relaxed);
	reclaim_later(&s->rcu, free_space);
}

/* Find the mapping replaced after @time_ns. */
static const struct mapping *find_ended(const struct space *s, uint64_t addr, uint64_t time_ns)
{
	for (uint32_t i = s->nr_old; i--;) {
		const struct ended *old = &s->old[i];

		if (addr >= old->m.start && addr < old->m.end && old->m.birth_ns <= time_ns &&
		    time_ns < old->death_ns)
			return &old->m;
	}
	return NULL;
}

const struct mapping *space_find(const struct space *s, uint64_t addr, uint64_t time_ns)
{
	const struct mapping *m = s ? space_tree_find(s->root, addr) : NULL;

	if (m && addr < m->start)
		m = NULL;
	if (m && m->birth_ns > time_ns)
		m = find_ended(s, addr, time_ns);
	reclaim_reader_done();
	return m;
}

bool space_has_ended(const struct space *s, const struct mapping *m)
{
	return (uintptr_t)m - (uintptr_t)s->old < s->nr_old * sizeof(s->old[0]);
}

uint64_t space_serial(const struct space *s)
{
	return s->serial;
}

void space_read(const struct space *s)
{
	reclaim_reader_done();
}

/* Request the images of at most *@left objects below @node. */
static bool want_below(const struct space_node *node, uint32_t *left)
{
	bool asked = false;

	for (uint32_t i = 0; i < node->nr && *left; i++) {
		if (node->level) {
			asked |= want_below(space_node_children(node)[i].node, left);
			continue;
		}
		asked |= object_want(space_node_mappings(node)[i].object);
		--*left;
	}
	return asked;
}

bool space_want(const struct space *s)
{
	/*
	 * Called with a sample in hand: objects after the first mappings are requested
	 * by samples in them.
	 */
	uint32_t left = WANT_MAX;
	bool asked = s && s->root && want_below(s->root, &left);

	reclaim_reader_done();
	return asked;
}

static const struct mapping *find_below(const struct space_node *node, const struct object *object)
{
	const struct mapping *found = NULL;

	for (uint32_t i = 0; i < node->nr && !found; i++) {
		const struct mapping *m = &space_node_mappings(node)[i];

		if (node->level)
			found = find_below(space_node_children(node)[i].node, object);
		else if (m->object == object && m->exec)
			found = m;
	}
	return found;
}

const struct mapping *space_find_object(const struct space *s, const struct object *object)
{
	return s && s->root ? find_below(s->root, object) : NULL;
}

uint32_t space_nr_mappings(const struct space *s)
{
	return s ? s->nr_mappings : 0;
}

bool space_has_old(const struct space *s)
{
	return s->nr_old;
}

/*
 * A draft: the next version of an address space.
 *
 * Begins as the published space. Of two mappings that overlap, the later birth wins, not the order
 * of arrival: the rings of several CPUs are not ordered among each other.
 *
 * Runs on: the writer, under the lock of the maps.
 */

#define OLD_MAX 512u
#define OLD_MIN 8u

struct space_edit {
	struct space_stats *stats;
	struct space_tree tree;
	uint32_t nr_mappings;
	struct space *forked; /* the last one of space_edit_fork() if it is unchanged; else NULL */
	struct ended *old;
	uint32_t nr_old, max_old;
};

/* Make room for @nr mappings that have ended; false: out of memory. */
static bool reserve_old(struct space_edit *d, uint32_t nr)
{
	uint32_t max = MAX(MAX(nr, 2 * d->max_old), OLD_MIN);
	struct ended *old;

	if (nr <= d->max_old)
		return true;
	old = urgent_alloc(max * sizeof(*old));
	if (!old)
		return false;
	if (d->nr_old)
		memcpy(old, d->old, d->nr_old * sizeof(*old));
	urgent_free(d->old);
	d->old = old;
	d->max_old = max;
	return true;
}

struct space_edit *space_edit_new(struct space *from, struct space_stats *stats)
{
	struct space_edit *d = urgent_alloc(sizeof(*d));

	if (!d)
		return NULL;
	d->stats = stats;
	d->tree.bytes = &stats->bytes;
	if (!from)
		return d;
	if (!reserve_old(d, from->nr_old)) {
		urgent_free(d);
		return NULL;
	}
	if (from->nr_old)
		memcpy(d->old, from->old, from->nr_old * sizeof(*d->old));
	d->nr_old = from->nr_old;
	d->tree.root = space_tree_get(from->root);
	d->nr_mappings = from->nr_mappings;
	return d;
}

void space_edit_free(struct space_edit *d)
{
	if (!d)
		return;
	space_tree_put(d->tree.root, d->tree.bytes);
	space_put(d->forked);
	urgent_free(d->old);
	urgent_free(d);
}

/* Find the first live mapping that overlaps [start, end); NULL: none. */
static const struct mapping *first_overlap(const struct space_edit *d, uint64_t start, uint64_t end)
{
	const struct mapping *m = space_tree_find(d->tree.root, start);

	return m && m->start < end ? m : NULL;
}

/* Note a change: the next child needs a new space. */
static void change(struct space_edit *d)
{
	space_put(d->forked);
	d->forked = NULL;
}

/* Insert @m, which overlaps nothing. */
static bool insert(struct space_edit *d, const struct mapping *m)
{
	if (d->nr_mappings >= SPACE_MAPPINGS_MAX || !space_tree_insert(&d->tree, m))
		return false;
	change(d);
	d->nr_mappings++;
	return true;
}

static bool remove_at(struct space_edit *d, uint64_t addr)
{
	if (!space_tree_remove(&d->tree, addr))
		return false;
	assert(d->nr_mappings);
	change(d);
	d->nr_mappings--;
	return true;
}

/* Return the part of @m within [start, end). */
static struct mapping part(const struct mapping *m, uint64_t start, uint64_t end)
{
	struct mapping p = *m;

	p.start = MAX(m->start, start);
	p.end = MIN(m->end, end);
	p.offset += p.start - m->start;
	return p;
}

/* Keep @m with its end at @death_ns; of too many, drop the older half. */
static void remember(struct space_edit *d, struct mapping m, uint64_t death_ns)
{
	if (m.birth_ns >= death_ns)
		return;
	if (d->nr_old == OLD_MAX) {
		d->nr_old /= 2;
		memmove(d->old, d->old + OLD_MAX - d->nr_old, d->nr_old * sizeof(*d->old));
	}
	if (reserve_old(d, d->nr_old + 1))
		d->old[d->nr_old++] = (struct ended){ m, death_ns };
}

/* Test for the same bytes of the same object at the same addresses. */
static bool congruent(const struct mapping *a, const struct mapping *b)
{
	return a->object == b->object && a->start - a->offset == b->start - b->offset;
}

/* Test for replaced code in memory that is mapped again or changes its protection. */
static bool is_layer_of(const struct mapping *layer, const struct mapping *m)
{
	const struct object_identity *a = &layer->object->identity, *b = &m->object->identity;

	return a->kind == OBJECT_ANON && b->kind == OBJECT_ANON && a->owner == b->owner &&
	       a->layer > b->layer;
}

/* Cut the mapping @m down to its part outside @by, which replaces the rest. */
static bool yield(struct space_edit *d, const struct mapping *m, const struct mapping *by)
{
	struct mapping loser = *m;
	struct mapping left = part(&loser, 0, by->start), right = part(&loser, by->end, UINT64_MAX);

	if (!remove_at(d, loser.start))
		return false;
	remember(d, part(&loser, by->start, by->end), by->birth_ns);
	if (left.start < left.end)
		insert(d, &left);
	if (right.start < right.end)
		insert(d, &right);
	return true;
}

static bool covers_file(const struct mapping *m, const struct mapping *other)
{
	return m->exec && other->exec && m->object != other->object &&
	       other->object->identity.kind == OBJECT_FILE;
}

enum space_change space_edit_add(struct space_edit *d, const struct mapping *m)
{
	enum space_change changed = SPACE_SAME;
	const struct mapping *other;
	struct mapping rest = *m;
	bool covered;

	assert(m->start < m->end);
	other = first_overlap(d, m->start, m->end);
	/* Repeated (mprotect, a part made executable again): no change. */
	if (other && other->start <= m->start && other->end >= m->end && congruent(other, m) &&
	    other->birth_ns <= m->birth_ns)
		return SPACE_SAME;
	while (rest.start < rest.end) {
		other = first_overlap(d, rest.start, rest.end);
		if (!other)
			return insert(d, &rest) && !changed ? SPACE_CHANGED : changed;
		/* Code is layered above its memory, which may have grown since. */
		if ((other->birth_ns <= rest.birth_ns || is_layer_of(&rest, other)) &&
		    !is_layer_of(other, &rest)) {
			covered = covers_file(&rest, other);
			if (!yield(d, other, &rest))
				return changed;
			changed = MAX(changed, covered ? SPACE_COVERED : SPACE_CHANGED);
			continue;
		}
		/*
		 * Records arrive out of order: the mapping here is younger (or code of this
		 * memory), and is kept.
		 */
		struct mapping winner = *other;
		struct mapping free_part = part(&rest, 0, winner.start);

		remember(d, part(&rest, winner.start, winner.end), winner.birth_ns);
		if (free_part.start < free_part.end)
			insert(d, &free_part);
		changed = MAX(changed, SPACE_CHANGED);
		if (winner.end >= rest.end)
			break;
		rest = part(&rest, winner.end, UINT64_MAX);
	}
	return changed;
}

#define BELOW_PROGRAM 16 /* executable mappings before the first of a file */

/* Return whether @m is memory of no file on the disk. */
static bool is_memory(const struct mapping *m)
{
	static const char memfd[] = "memfd:";

	return m->object->identity.kind == OBJECT_ANON ||
	       (m->object->identity.kind == OBJECT_FILE &&
		!strncmp(m->object->name.str, memfd, sizeof(memfd) - 1));
}

/* Return whether memory @m covers code of the program's file only, which is never unmapped. */
static bool is_in_program(const struct space_edit *d, const struct mapping *m)
{
	const struct mapping *at = first_overlap(d, m->start, m->end);
	const struct mapping *first = first_overlap(d, 0, m->end);

	for (int i = 0; i < BELOW_PROGRAM && first && is_memory(first); i++)
		first = first_overlap(d, first->end, m->end);
	return at && first && at->object == first->object && at->exec && !is_memory(at) &&
	       at->start <= m->start && at->end >= m->end && at->birth_ns <= m->birth_ns;
}

/* Give memory right below @m its file, if the file is also below that: its text was moved there. */
static void fill_text(struct space_edit *d, const struct mapping *m)
{
	const struct mapping *memory = m->start ? first_overlap(d, m->start - 1, m->start) : NULL;
	const struct mapping *below = memory && memory->start && is_memory(memory)
					      ? first_overlap(d, memory->start - 1, memory->start)
					      : NULL;
	struct mapping text;

	if (!below || is_memory(below) || !congruent(below, m))
		return;
	text = *memory;
	text.object = m->object;
	text.offset = below->offset + (memory->start - below->start);
	text.birth_ns = MAX(memory->birth_ns, m->birth_ns);
	space_edit_add(d, &text);
}

enum space_change space_edit_map(struct space_edit *d, const struct mapping *m)
{
	enum space_change changed;

	if (m->exec && is_memory(m) && is_in_program(d, m))
		return SPACE_COVERED;
	changed = space_edit_add(d, m);
	if (changed != SPACE_SAME && m->exec && m->object->identity.kind == OBJECT_FILE)
		fill_text(d, m);
	return changed;
}

bool space_edit_merge(struct space_edit *d, const struct mapping *m, uint64_t read_ns)
{
	struct mapping rest = *m, piece;
	const struct mapping *other;
	bool changed = false;

	assert(m->start < m->end);
	while (rest.start < rest.end) {
		other = first_overlap(d, rest.start, rest.end);
		piece = rest;
		if (other && other->start <= rest.start) {
			piece = part(&rest, 0, other->end);
			piece.birth_ns = congruent(other, &piece) ? UINT64_MAX : read_ns;
		} else {
			if (other)
				piece = part(&rest, 0, other->start);
			piece.birth_ns = 0;
		}
		rest = part(&rest, piece.end, UINT64_MAX);
		if (piece.birth_ns != UINT64_MAX)
			changed |= space_edit_add(d, &piece) != SPACE_SAME;
	}
	return changed;
}

/* Make a space of the draft, with the mappings that ended at @first_ns or later. */
static struct space *make_space(struct space_edit *d, uint64_t first_ns)
{
	uint32_t nr_old = 0;
	struct space *s;

	for (uint32_t i = 0; i < d->nr_old; i++)
		nr_old += d->old[i].death_ns >= first_ns;
	s = urgent_alloc(space_size(nr_old));
	if (!s)
		return NULL;
	space_tree_freeze(d->tree.root);
	*s = (struct space){
		.refs = 1,
		.root = space_tree_get(d->tree.root),
		.nr_mappings = d->nr_mappings,
		.stats = d->stats,
		.serial = ++d->stats->last_serial,
	};
	for (uint32_t i = 0; i < d->nr_old; i++) {
		if (d->old[i].death_ns < first_ns)
			continue;
		object_get(d->old[i].m.object);
		s->old[s->nr_old++] = d->old[i];
	}
	atomic_fetch_add_explicit(&s->stats->bytes, space_size(nr_old), memory_order_relaxed);
	atomic_fetch_add_explicit(&s->stats->nr_spaces, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&s->stats->nr_mappings, s->nr_mappings, memory_order_relaxed);
	return s;
}

struct space *space_edit_fork(struct space_edit *d, uint64_t time_ns)
{
	if (!d->forked)
		d->forked = make_space(d, time_ns + 1);
	return space_get(d->forked);
}

struct space *space_edit_freeze(struct space_edit *d, uint64_t keep_from_ns)
{
	struct space *s = make_space(d, keep_from_ns);

	space_edit_free(d);
	return s;
}
