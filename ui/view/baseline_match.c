// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rows and nodes of two profiles, matched by id, then by name. Any thread.
 */
#include "ui/view/baseline_match.h"

#include <assert.h>
#include <stdlib.h>

#include "symbols/base/base.h"
#include "symbols/base/keyhash.h"
#include "symbols/base/search.h"

/* Append a name to a hash; names that are compared are many, and as long as others chose. */
static uint64_t add_name(uint64_t h, struct safe_text text)
{
	return hash_u64(h + keyhash_name(text.str, text.str ? text.size : 0));
}

uint64_t baseline_match_text(struct safe_text text)
{
	return add_name(0, text);
}

uint64_t baseline_match_name(const struct profile *p, uint32_t function)
{
	const struct profile_function *f = &p->functions[function];

	assert(function < p->nr_functions);
	return add_name(add_name(1, f->module) + f->inlined, f->name);
}

/* ---- rows ---- */

static int by_id(const void *pa, const void *pb)
{
	const struct baseline_key *a = pa, *b = pb;

	return COMPARE(a->id, b->id);
}

/* Matched ones last; equal names in order of their ids. */
static int by_name(const void *pa, const void *pb)
{
	const struct baseline_key *a = pa, *b = pb;
	bool a_done = a->other != BASELINE_NONE, b_done = b->other != BASELINE_NONE;

	if (a_done != b_done)
		return a_done - b_done;
	return a->name != b->name ? COMPARE(a->name, b->name) : by_id(a, b);
}

static void pair(struct baseline_key *old, struct baseline_key *now)
{
	old->other = now->index;
	now->other = old->index;
}

void baseline_match_rows(struct baseline_key *old, uint32_t nr_old, struct baseline_key *now,
			 uint32_t nr_now, bool ids)
{
	for (uint32_t i = 0; i < nr_old; i++)
		old[i].other = BASELINE_NONE;
	for (uint32_t i = 0; i < nr_now; i++)
		now[i].other = BASELINE_NONE;
	if (!nr_old || !nr_now)
		return;
	qsort(old, nr_old, sizeof(*old), by_id);
	qsort(now, nr_now, sizeof(*now), by_id);
	for (uint32_t i = 0, k = 0; ids && i < nr_now && k < nr_old;) {
		if (old[k].id == now[i].id)
			pair(&old[k++], &now[i++]);
		else if (old[k].id < now[i].id)
			k++;
		else
			i++;
	}
	qsort(old, nr_old, sizeof(*old), by_name);
	qsort(now, nr_now, sizeof(*now), by_name);
	for (uint32_t i = 0, k = 0; i < nr_now && k < nr_old && now[i].other == BASELINE_NONE &&
				    old[k].other == BASELINE_NONE;) {
		if (old[k].name == now[i].name)
			pair(&old[k++], &now[i++]);
		else if (old[k].name < now[i].name)
			k++;
		else
			i++;
	}
}

/* ---- nodes ---- */

/* Hash the name of one node, without its path. */
static uint64_t node_name(const struct profile *p, const struct fold_tree_node *node)
{
	if (node->function != FOLD_NONE)
		return baseline_match_name(p, node->function);
	if (node->task != FOLD_NONE)
		return add_name(2, p->tasks[node->task].comm);
	return node->process != FOLD_NONE ? add_name(3, p->processes[node->process].comm) : 4;
}

/* A node without a match. */
struct child {
	uint64_t name;
	uint32_t parent, order; /* order: among its siblings */
	uint32_t node;
	uint32_t nr_taken; /* of the first of its parent and name: matched since */
};

static int by_parent(const void *pa, const void *pb)
{
	const struct child *a = pa, *b = pb;

	if (a->parent != b->parent)
		return COMPARE(a->parent, b->parent);
	return a->name != b->name ? COMPARE(a->name, b->name) : COMPARE(a->order, b->order);
}

/* List the nodes without a match, sorted; NULL: no memory. */
static struct child *list_children(const struct profile *p, const struct fold_tree *t,
				   const uint32_t *matches, uint32_t *nr)
{
	struct child *list = malloc((t->nr_nodes + 1ULL) * sizeof(*list));

	*nr = 0;
	for (uint32_t parent = 0; list && parent < t->nr_nodes; parent++)
		for (uint32_t n = t->nodes[parent].child; n != FOLD_NONE; n = t->nodes[n].next) {
			if (matches[n] != BASELINE_NONE)
				continue;
			list[*nr] = (struct child){ node_name(p, &t->nodes[n]), parent, *nr, n, 0 };
			++*nr;
		}
	if (list)
		qsort(list, *nr, sizeof(*list), by_parent);
	return list;
}

/* Take the next child of @parent of that name out of @list; FOLD_NONE: none is left. */
static uint32_t take_child(struct child *list, uint32_t nr, uint32_t parent, uint64_t name)
{
	const struct child key = { .name = name, .parent = parent };
	size_t first = search_split(nr, i, by_parent(&list[i], &key) < 0), at;

	if (first == nr)
		return FOLD_NONE;
	at = first + list[first].nr_taken;
	if (at >= nr || list[at].parent != parent || list[at].name != name)
		return FOLD_NONE;
	list[first].nr_taken++;
	return list[at].node;
}

void baseline_match_nodes(const struct profile *old_profile, const struct folds_tree *old,
			  const struct profile *now_profile, const struct folds_tree *now, bool ids,
			  uint32_t *to_now, uint32_t *to_old)
{
	struct child *list;
	uint32_t nr;

	for (uint32_t n = 0; n < old->fold.nr_nodes; n++) {
		to_now[n] = ids ? folds_node(now, old->ids[n]) : n ? BASELINE_NONE : 0;
		assert(to_now[n] == BASELINE_NONE || to_now[n] < now->fold.nr_nodes);
	}
	for (uint32_t n = 0; n < now->fold.nr_nodes; n++)
		to_old[n] = ids ? folds_node(old, now->ids[n]) : n ? BASELINE_NONE : 0;
	list = list_children(old_profile, &old->fold, to_now, &nr);
	/* Parents are before their children. */
	for (uint32_t n = 1; list && n < now->fold.nr_nodes; n++) {
		const struct fold_tree_node *node = &now->fold.nodes[n];
		uint32_t parent = to_old[node->parent], match;

		if (to_old[n] != BASELINE_NONE || parent == BASELINE_NONE)
			continue;
		match = take_child(list, nr, parent, node_name(now_profile, node));
		if (match == FOLD_NONE)
			continue;
		to_old[n] = match;
		to_now[match] = n;
	}
	free(list);
}
