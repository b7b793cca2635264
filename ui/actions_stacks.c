// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What keys do that concern stacks. The main thread.
 */
#include "ui/actions_stacks.h"

#include <string.h>

#include "ui/actions.h"
#include "ui/view/folds.h"
#include "ui/view/view.h"

uint32_t actions_function(const struct ui_state *st)
{
	const struct list *list = &st->lists[st->view];
	const struct view *v = view_of(st->view);

	if (!st->shown || !v->function || list->cursor >= list->nr)
		return FOLD_NONE;
	return v->function(st, &list->rows[list->cursor]);
}

void folds_turn(struct ui_state *st, enum action action)
{
	struct folds *s = st->folds;

	if (!s)
		return;
	if (action == ACT_INVERT) {
		s->bottom_up = !s->bottom_up;
		ui_state_say(st, false,
			     s->bottom_up ? "bottom-up: below each function those that called it"
					  : "top-down: below each function those that it called");
	} else {
		s->fold_recursion = !s->fold_recursion;
		ui_state_say(st, false,
			     s->fold_recursion ? "recursion is folded: back to where it began"
					       : "every recursive call is shown");
	}
	st->lists[st->view].pinned = false;
	list_rebuild(st, st->view);
}

static void tree(struct ui_state *st, uint32_t code)
{
	actions_show(st, VIEW_TREE);
}

/* The tree and the list are two forms of one thing: the same key goes back. */
static void tree_or_list(struct ui_state *st, uint32_t code)
{
	actions_show(st, st->view == VIEW_TREE ? VIEW_FUNCTIONS : VIEW_TREE);
}

static void flame(struct ui_state *st, uint32_t code)
{
	actions_show(st, VIEW_FLAME);
}

void actions_callers(struct ui_state *st, uint32_t id)
{
	struct folds *s = st->folds;

	if (!s)
		return;
	if (st->view != VIEW_CALLERS) {
		s->callers_from = st->view;
		s->nr_centres = 0;
	}
	if (s->nr_centres && s->centres[s->nr_centres - 1] == id)
		return;
	/* The way back is as long as there is room; then the oldest step is forgotten. */
	if (s->nr_centres == FOLDS_LEVELS) {
		memmove(s->centres, s->centres + 1, (FOLDS_LEVELS - 1) * sizeof(*s->centres));
		s->nr_centres--;
	}
	s->centres[s->nr_centres++] = id;
	st->lists[VIEW_CALLERS].pinned = true;
	st->lists[VIEW_CALLERS].selected = 0;
	actions_show(st, VIEW_CALLERS);
}

static void callers(struct ui_state *st, uint32_t code)
{
	uint32_t fn = actions_function(st);

	if (fn == FOLD_NONE)
		ui_state_say(st, false, "this row is no function");
	else
		actions_callers(st, st->shown->functions[fn].id);
}

/* The heaviest node of the function, or the node itself where the row is one. */
static uint32_t node_for_flame(const struct ui_state *st, const struct folds_tree *t, uint32_t fn)
{
	const struct list *list = &st->lists[st->view];
	uint32_t best = FOLD_NONE;

	/* Top-down, both trees name a path alike. */
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
	uint32_t fn = actions_function(st), n;
	const struct folds_tree *t = folds_tree_now(st, FOLDS_FLAME);
	bool here = st->view == VIEW_TREE && st->lists[VIEW_TREE].nr;

	if (st->view == VIEW_FLAME)
		return;
	if (!t || (fn == FOLD_NONE && !here)) {
		actions_show(st, VIEW_FLAME);
		return;
	}
	n = node_for_flame(st, t, fn);
	if (n != FOLD_NONE) {
		st->folds->zoom[0] = t->ids[n];
		st->folds->nr_zoom = 1;
		st->lists[VIEW_FLAME].selected = t->ids[n];
		st->lists[VIEW_FLAME].pinned = true;
	}
	actions_show(st, VIEW_FLAME);
}

/* From now on everything is compared with what is shown now. */
static void baseline(struct ui_state *st, uint32_t code)
{
	struct profile *before = st->baseline;

	if (!st->shown || !st->folds)
		return;
	folds_forget_baseline(st->folds);
	st->baseline = before ? NULL : st->shown;
	st->folds->by_change = !before;
	ui_state_release(st, before);
	ui_state_say(st, false,
		     before ? "compared with the window before, as ever"
			    : "all views compare with this from now on (B: no longer)");
	list_rebuild(st, st->view);
}

/* What only some views know how to do: they take it before it comes here. */
static void elsewhere(struct ui_state *st, uint32_t code)
{
	ui_state_say(st, false, "only in the call tree (3); + - X in the flame graph (4), too");
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
