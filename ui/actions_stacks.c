// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Actions on stacks. Runs on: the main thread.
 */
#include "ui/actions_stacks.h"

#include "ui/model.h"
#include "ui/fold/fold.h"
#include "ui/view/navigate.h"
#include "ui/view/table.h"
#include "ui/view/view.h"

static void tree(struct ui_state *st, uint32_t code)
{
	navigate_to(st, VIEW_TREE);
}

/* Toggle between call tree and functions. */
static void tree_or_list(struct ui_state *st, uint32_t code)
{
	navigate_to(st, st->view == VIEW_TREE ? VIEW_FUNCTIONS : VIEW_TREE);
}

static void flame(struct ui_state *st, uint32_t code)
{
	navigate_to(st, VIEW_FLAME);
}

static void callers(struct ui_state *st, uint32_t code)
{
	uint32_t fn = view_function(st);

	if (fn == FOLD_NONE)
		ui_state_say(st, false, "this row is not a function");
	else
		navigate_to_callers(st, st->shown->functions[fn].id);
}

/* Find the selected node, or the heaviest node of the function. */
static uint32_t node_for_flame(const struct ui_state *st, const struct folds_tree *t, uint32_t fn)
{
	const struct list *list = &st->lists[st->view];
	uint32_t best = FOLD_NONE;

	/* Top-down, a path has the same id in both trees. */
	if (st->view == VIEW_TREE && !st->folds->bottom_up)
		best = folds_node(t, (uint32_t)list->rows[list->cursor].id);
	for (uint32_t n = 0; best == FOLD_NONE && n < t->fold.nr_nodes; n++)
		if (t->fold.nodes[n].function == fn) {
			best = n;
			for (uint32_t i = n; i < t->fold.nr_nodes; i++)
				if (t->fold.nodes[i].function == fn &&
				    t->fold.nodes[i].total > t->fold.nodes[best].total)
					best = i;
		}
	return best;
}

static void flame_here(struct ui_state *st, uint32_t code)
{
	uint32_t fn = view_function(st), n;
	const struct folds_tree *t = folds_tree_now(st, FOLDS_FLAME);
	bool here = st->view == VIEW_TREE && st->lists[VIEW_TREE].nr;

	if (st->view == VIEW_FLAME)
		return;
	if (!t || (fn == FOLD_NONE && !here)) {
		navigate_to(st, VIEW_FLAME);
		return;
	}
	n = node_for_flame(st, t, fn);
	if (n != FOLD_NONE) {
		st->folds->zoom[0] = t->ids[n];
		st->folds->nr_zoom = 1;
		st->lists[VIEW_FLAME].selected = t->ids[n];
		st->lists[VIEW_FLAME].pinned = true;
	}
	navigate_to(st, VIEW_FLAME);
}

/* Keep the shown profile as the baseline, or drop the baseline. */
static void baseline(struct ui_state *st, uint32_t code)
{
	struct profile *before = st->baseline;

	if (!st->shown || !st->folds)
		return;
	folds_forget_baseline(st->folds);
	st->baseline = before ? NULL : st->shown;
	st->baseline_path = NULL;
	st->folds->by_change = !before;
	model_release(st, before);
	ui_state_say(st, false,
		     before ? "comparing with the previous window"
			    : "all views compare with this profile (B: stop)");
	table_rebuild(st, st->view);
}

/* Report that the shown view has no such action: views that have it handle it first. */
static void elsewhere(struct ui_state *st, uint32_t code)
{
	ui_state_say(st, false, "only in the call tree (3); + - X also in the flame graph (4)");
}

void (*actions_stack(enum action action))(struct ui_state *st, uint32_t code)
{
	switch (action) {
	case ACT_VIEW_TREE:
		return tree;
	case ACT_TREE:
		return tree_or_list;
	case ACT_VIEW_FLAME:
		return flame;
	case ACT_FLAME_HERE:
		return flame_here;
	case ACT_CALLERS:
		return callers;
	case ACT_BASELINE:
		return baseline;
	case ACT_UNFOLD:
	case ACT_FOLD:
	case ACT_UNFOLD_ALL:
	case ACT_HOT_PATH:
	case ACT_FOLD_RECURSION:
		return elsewhere;
	default:
		return NULL;
	}
}
