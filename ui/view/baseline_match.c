// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rows and nodes of two profiles, matched by id, then by name. Any thread.
 */
#include "ui/view/baseline_match.h"

#include <assert.h>
#include <stdlib.h>

#include "symbols/base/base.h"

static uint64_t add_name(uint64_t h, struct safe_text text)
{
	for (uint32_t i = 0; text.str && i < text.size; i++)
		h = hash_u64(h + (unsigned char)text.str[i]);
	return h;
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

/* Find the first child of @parent of that name without a match; FOLD_NONE: none. */
static uint32_t child_of(const struct profile *p, const struct folds_tree *t, uint32_t parent,
			 uint64_t name, const uint32_t *matches)
{
	uint32_t n = t->fold.nodes[parent].child;

	while (n != FOLD_NONE &&
	       (matches[n] != BASELINE_NONE || node_name(p, &t->fold.nodes[n]) != name))
		n = t->fold.nodes[n].next;
	return n;
}

void baseline_match_nodes(const struct profile *old_profile, const struct folds_tree *old,
			  const struct profile *now_profile, const struct folds_tree *now, bool ids,
			  uint32_t *to_now, uint32_t *to_old)
{
	for (uint32_t n = 0; n < old->fold.nr_nodes; n++) {
		to_now[n] = ids ? folds_node(now, old->ids[n]) : n ? BASELINE_NONE : 0;
		assert(to_now[n] == BASELINE_NONE || to_now[n] < now->fold.nr_nodes);
	}
	for (uint32_t n = 0; n < now->fold.nr_nodes; n++)
		to_old[n] = ids ? folds_node(old, now->ids[n]) : n ? BASELINE_NONE : 0;
	/* Parents are before their children. */
	for (uint32_t n = 1; n < now->fold.nr_nodes; n++) {
		const struct fold_tree_node *node = &now->fold.nodes[n];
		uint32_t parent = to_old[node->parent], match;

		if (to_old[n] != BASELINE_NONE || parent == BASELINE_NONE)
			continue;
		match = child_of(old_profile, old, parent, node_name(now_profile, node), to_now);
		if (match == FOLD_NONE)
			continue;
		to_old[n] = match;
		to_now[match] = n;
	}
}
