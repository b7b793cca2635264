// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Code shared by the call tree and the flame graph. Runs on: the main thread.
 */
#include "ui/view/stacks.h"

#include <stdio.h>
#include <stdlib.h>

#include "ui/fold/fold.h"
#include "ui/view/table.h"

void stacks_turn(struct ui_state *st, enum action action)
{
	struct folds *s = st->folds;

	if (!s)
		return;
	if (action == ACT_INVERT) {
		s->bottom_up = !s->bottom_up;
		ui_state_say(st, false,
			     s->bottom_up ? "bottom-up: callers below each function"
					  : "top-down: callees below each function");
	} else {
		s->fold_recursion = !s->fold_recursion;
		ui_state_say(st, false,
			     s->fold_recursion ? "recursive calls folded"
					       : "recursive calls shown");
	}
	st->lists[st->view].pinned = false;
	table_rebuild(st, st->view);
}

bool *stacks_keep_found(const struct ui_state *st, const struct list *list,
			const struct folds_tree *t)
{
	const struct match *m = &list->filter;
	bool *keep, *found;

	if (!match_active(m))
		return NULL;
	keep = calloc(t->fold.nr_nodes, sizeof(*keep));
	found = calloc(st->shown->nr_functions + 1ULL, sizeof(*found));
	if (!keep || !found) {
		free(keep);
		free(found);
		return NULL;
	}
	/* Match once per function: there may be thousands of nodes. */
	for (uint32_t i = 0; i < st->shown->nr_functions; i++)
		found[i] = match_finds_function(m, &st->shown->functions[i]) != m->negate;
	for (uint32_t n = t->fold.nr_nodes; n-- > 0;) {
		const struct fold_tree_node *node = &t->fold.nodes[n];
		char buf[TEXT_MAX];

		if (node->function != FOLD_NONE)
			keep[n] |= found[node->function];
		else if (node->depth)
			keep[n] |= match_finds(m, folds_text(st, node, buf, sizeof(buf))) !=
				   m->negate;
		if (keep[n] && node->parent != FOLD_NONE)
			keep[node->parent] = true;
	}
	free(found);
	return keep;
}

/* Return whether the node matches. @found: by function, so that each name is searched once. */
static bool is_found(const struct ui_state *st, const struct fold_tree_node *node,
		     const struct match *m, const bool *found)
{
	/* Without a match there is always a process: of functions alone. */
	return node->function != FOLD_NONE ? found[node->function]
					   : !m->negate && folds_finds(st, node, m);
}

double stacks_found_share(const struct ui_state *st, const struct folds_tree *of,
			  const struct match *m)
{
	const struct fold_tree *t = &of->fold;
	bool *found = calloc(st->shown->nr_functions + 1ULL, sizeof(*found));
	double sum = 0;
	uint32_t n = 0;

	if (!found)
		return 0;
	for (uint32_t i = 0; i < st->shown->nr_functions; i++)
		found[i] = match_finds_name(m, &st->shown->functions[i]) != m->negate;
	while (n != FOLD_NONE) {
		bool here = is_found(st, &t->nodes[n], m, found);

		if (here)
			sum += t->nodes[n].total;
		if (!here && t->nodes[n].child != FOLD_NONE) {
			n = t->nodes[n].child;
			continue;
		}
		while (n != FOLD_NONE && t->nodes[n].next == FOLD_NONE)
			n = t->nodes[n].parent;
		if (n != FOLD_NONE)
			n = t->nodes[n].next;
	}
	free(found);
	return t->weight > 0 ? sum / t->weight : 0;
}

size_t stacks_options(const struct ui_state *st, char *buf, size_t size)
{
	bool folded = st->folds && st->folds->fold_recursion;

	const char *by = st->by_thread			      ? "  by thread (H)"
			 : st->scope.drilled		      ? ""
			 : st->grouping == GROUPING_PID	      ? "  by PID (=)"
			 : st->grouping == GROUPING_CONTAINER ? "  by container (=)"
			 : st->grouping == GROUPING_UNIT      ? "  by unit (=)"
							      : "";

	return (size_t)snprintf(buf, size, "%s%s", by, folded ? "  recursion folded (X)" : "");
}
