// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * View 3: the call tree, from the root down or from the hottest functions up
 * to their callers. Runs on: the main thread.
 *
 * A row is a node that is in sight: all its ancestors are open. The hottest path is opened
 * automatically, all other nodes by hand.
 */
#include "ui/view/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "ui/draw/draw.h"
#include "ui/fold/fold.h"
#include "ui/key/key.h"
#include "ui/state/state.h"
#include "ui/text/text.h"

/* A child is on the hottest path when it has at least this much of its parent. */
#define HOT_PART 0.5

#define LEVELS_MAX 256

/* Return the tree of the rows in sight. */
static const struct folds_tree *rows_tree(const struct ui_state *st)
{
	return folds_tree_shown(st, FOLDS_TREE);
}

static const struct fold_tree_node *node_of(const struct ui_state *st, const struct row *row)
{
	return &rows_tree(st)->fold.nodes[row->index];
}

static bool is_hot(const struct fold_tree *t, uint32_t n)
{
	assert(n < t->nr_nodes);
	for (; t->nodes[n].parent != FOLD_NONE; n = t->nodes[n].parent) {
		const struct fold_tree_node *parent = &t->nodes[t->nodes[n].parent];

		if (parent->child != n || t->nodes[n].total < HOT_PART * parent->total)
			return false;
	}
	return true;
}

/* Return whether the node is open. @deep: an ancestor was opened with all below it. */
static bool is_open(const struct folds *s, const struct folds_tree *t, uint32_t n, bool deep)
{
	assert(n < t->fold.nr_nodes);
	switch (folds_mark_of(s, t->ids[n])) {
	case MARK_OPEN:
	case MARK_DEEP:
		return true;
	case MARK_CLOSED:
		return false;
	case MARK_NONE:
		break;
	}
	return deep || is_hot(&t->fold, n);
}

static int add_row(struct list *list, const struct folds_tree *t, uint32_t n)
{
	struct row *row = list_add(list);

	if (!row)
		return -ENOMEM;
	folds_row(t, n, row);
	row->index = n;
	return 0;
}

/* Order the children of an open node as they were, where their shares are no reason to move. */
static void order_children(const struct ui_state *st, const struct list *list,
			   const struct folds_tree *t, uint32_t n)
{
	struct order_sibling siblings[ORDER_SIBLINGS];
	uint32_t order[ORDER_SIBLINGS], nr = 0;

	assert(n < t->fold.nr_nodes);
	for (uint32_t c = t->fold.nodes[n].child; c != FOLD_NONE && nr < ORDER_SIBLINGS;
	     c = t->fold.nodes[c].next)
		siblings[nr++] = (struct order_sibling){ t->ids[c],
							 t->fold.nodes[c].total / t->fold.weight,
							 t->fold.nodes[c].count };
	if (nr < 2)
		return;
	order_siblings(st, list, siblings, nr, false, order);
	folds_order_children(st, FOLDS_TREE, n, order, nr);
}

/* Add the open nodes, depth first. */
static int build(const struct ui_state *st, struct list *list)
{
	const struct folds_tree *t;
	uint32_t n = 0, deep = UINT32_MAX;
	bool *keep;
	int rc = 0;

	t = folds_tree(st, FOLDS_TREE);
	if (!t || !(t->fold.weight > 0))
		return 0;
	list->count = t->fold.count;
	order_begin(st, list, st->folds->bottom_up);
	keep = callers_stacks_keep_found(st, list, t);
	while (n != FOLD_NONE && !rc) {
		const struct fold_tree_node *node = &t->fold.nodes[n];
		bool shown = !keep || keep[n], open;

		if (node->depth <= deep)
			deep = UINT32_MAX;
		if (folds_mark_of(st->folds, t->ids[n]) == MARK_DEEP)
			deep = MIN(deep, node->depth);
		if (shown)
			rc = add_row(list, t, n);
		else
			list->nr_hidden++;
		open = shown && (is_open(st->folds, t, n, deep != UINT32_MAX || keep));
		if (open && node->child != FOLD_NONE) {
			order_children(st, list, t, n);
			n = node->child;
			continue;
		}
		while (n != FOLD_NONE && t->fold.nodes[n].next == FOLD_NONE)
			n = t->fold.nodes[n].parent;
		if (n != FOLD_NONE)
			n = t->fold.nodes[n].next;
	}
	free(keep);
	order_end(list);
	return rc;
}

static const struct folds_tree *tree(const struct ui_state *st)
{
	return folds_tree(st, FOLDS_TREE);
}

static bool finds(const struct ui_state *st, const struct row *row, const struct match *m)
{
	return folds_finds(st, node_of(st, row), m);
}

static const char *missed(const struct ui_state *st, const struct match *m, double *share)
{
	const struct folds_tree *t = folds_tree(st, FOLDS_TREE);

	*share = t ? callers_stacks_found_share(st, t, m) : 0;
	return "in folded rows (+ unfolds one, * all below it; \\ filters)";
}

static uint32_t function(const struct ui_state *st, const struct row *row)
{
	return node_of(st, row)->function;
}

/* ---- drawing ---- */

static void draw_self(const struct ui_state *st, const struct row *row, struct canvas *c,
		      struct view_field at)
{
	if (row->self > 0)
		table_share(c, at, row->self);
}

static void draw_bar(const struct ui_state *st, const struct row *row, struct canvas *c,
		     struct view_field at)
{
	view_draw_bar(st, c, at, row->total,
		      row->total > 0.5	 ? ROLE_BAR_HOT
		      : row->total > 0.1 ? ROLE_BAR_WARM
					 : ROLE_BAR);
}

/* An only child is not indented: long chains would leave the screen. */
static bool indents(const struct fold_tree *t, uint32_t n)
{
	const struct fold_tree_node *parent;

	assert(n < t->nr_nodes);
	if (t->nodes[n].parent == FOLD_NONE)
		return false;
	parent = &t->nodes[t->nodes[n].parent];
	return parent->nr_children > 1 || parent->parent == FOLD_NONE;
}

/* Draw the lines that lead to the node. */
static void draw_branches(const struct ui_state *st, const struct fold_tree *t, uint32_t n,
			  struct pen *pen)
{
	const struct glyphs *g = st->glyphs;
	uint32_t levels[LEVELS_MAX], nr = 0, max = (pen->end - pen->col) / 4;
	bool own = indents(t, n);

	for (uint32_t a = n; a != FOLD_NONE; a = t->nodes[a].parent)
		if (indents(t, a) && nr < LEVELS_MAX)
			levels[nr++] = a;
	if (nr > max) {
		pen_text(pen, 0, g->more, ROLE_DIM);
		nr = max;
	}
	while (nr-- > 0) {
		bool last = t->nodes[levels[nr]].next == FOLD_NONE;

		if (nr || !own) {
			pen_text(pen, 0, last ? TEXT(" ") : g->vline, ROLE_DIM);
			pen_text(pen, 0, TEXT(" "), ROLE_DIM);
		} else {
			pen_text(pen, 0, last ? g->corner : g->tee, ROLE_DIM);
			pen_text(pen, 0, g->hline, ROLE_DIM);
		}
	}
}

/* Draw the weight hidden below the node, after its name. */
static void draw_rest(const struct ui_state *st, const struct fold_tree *t, uint32_t n, bool open,
		      struct pen *pen)
{
	const struct fold_tree_node *node = &t->nodes[n];
	const char *what = st->folds->bottom_up ? "caller" : "callee";
	char buf[64], share[FORMAT_MAX];

	assert(n < t->nr_nodes);
	if (node->child != FOLD_NONE && !open)
		pen_text(pen, 2,
			 text_format(buf, sizeof(buf), "(%u %s%s)", node->nr_children, what,
				     node->nr_children == 1 ? "" : "s"),
			 ROLE_DIM);
	if (node->nr_hidden && (open || node->child == FOLD_NONE))
		pen_text(pen, 2,
			 text_format(buf, sizeof(buf), "+%u light, %s%%", node->nr_hidden,
				     format_percent(share, node->hidden / t->weight).str),
			 ROLE_DIM);
	if (node->depth && is_hot(t, n) && (open || node->child == FOLD_NONE))
		pen_text(pen, 2, st->glyphs->hot, ROLE_BAR_HOT);
}

static void draw_name(const struct ui_state *st, const struct row *row, struct canvas *c,
		      struct view_field at)
{
	const struct list *list = &st->lists[VIEW_TREE];
	const struct folds_tree *t = rows_tree(st);
	const struct fold_tree_node *node = node_of(st, row);
	const struct row *below = row + 1;
	bool found = match_active(&list->search) && !list->search.negate &&
		     finds(st, row, &list->search);
	/* Open if the row below is its first child. */
	bool open = below < list->rows + list->nr &&
		    t->fold.nodes[below->index].parent == row->index;
	struct pen pen = { c, at.row, at.col, at.col + at.cols };
	char kind = folds_kind(st, node), buf[TEXT_MAX], brief[TEXT_MAX];
	struct safe_text name = folds_text(st, node, buf, sizeof(buf));
	struct style style = { kind == 'p' ? ROLE_VALUE : theme_kind(kind),
			       found ? CELL_UNDERLINE | CELL_BOLD : 0 };

	draw_branches(st, &t->fold, row->index, &pen);
	pen_text(&pen, 0,
		 node->child == FOLD_NONE ? TEXT(" ")
		 : open			  ? st->glyphs->opened
					  : st->glyphs->closed,
		 ROLE_VALUE);
	pen.col++;
	if (pen.col < pen.end)
		pen.col += canvas_elide(c, at.row, pen.col, pen.end - pen.col,
					kind == 'p' ? name : ui_state_name(st, brief, name), style);
	draw_rest(st, &t->fold, row->index, open, &pen);
}

/* ---- keys ---- */

static void move_to(struct ui_state *st, uint32_t n)
{
	struct list *list = &st->lists[VIEW_TREE];

	for (uint32_t i = 0; i < list->nr; i++)
		if (list->rows[i].index == n)
			table_move_to(st, i);
}

/* Fold or unfold the node; @deep: with all below it. */
static void set_mark(struct ui_state *st, uint32_t n, enum folds_mark mark)
{
	const struct folds_tree *t = rows_tree(st);

	folds_mark(st, t->ids[n], mark);
	if (mark == MARK_DEEP)
		for (uint32_t i = n + 1; i < t->fold.nr_nodes; i++) {
			uint32_t a = i;

			if (folds_mark_of(st->folds, t->ids[i]) == MARK_NONE)
				continue;
			while (a != FOLD_NONE && a != n)
				a = t->fold.nodes[a].parent;
			if (a == n)
				folds_mark(st, t->ids[i], MARK_OPEN);
		}
	table_rebuild(st, VIEW_TREE);
}

/* Open the hottest path below the row, and select its end. */
static void go_hot(struct ui_state *st, uint32_t n)
{
	const struct folds_tree *t = rows_tree(st);

	assert(n < t->fold.nr_nodes);
	while (t->fold.nodes[n].child != FOLD_NONE &&
	       t->fold.nodes[n].self < t->fold.nodes[t->fold.nodes[n].child].total) {
		folds_mark(st, t->ids[n], MARK_OPEN);
		n = t->fold.nodes[n].child;
	}
	table_rebuild(st, VIEW_TREE);
	move_to(st, n);
}

static void toggle(struct ui_state *st, uint32_t n, bool open)
{
	if (rows_tree(st)->fold.nodes[n].child != FOLD_NONE)
		set_mark(st, n, open ? MARK_CLOSED : MARK_OPEN);
}

static void go_left(struct ui_state *st, const struct fold_tree_node *node, uint32_t n, bool open)
{
	if (open)
		set_mark(st, n, MARK_CLOSED);
	else if (node->parent != FOLD_NONE)
		move_to(st, node->parent);
}

static void go_right(struct ui_state *st, const struct fold_tree_node *node, uint32_t n, bool open)
{
	if (open)
		move_to(st, node->child);
	else
		toggle(st, n, false);
}

static size_t options(const struct ui_state *st, char *buf, size_t size)
{
	bool turned = st->folds && st->folds->bottom_up;
	size_t n = (size_t)snprintf(buf, size, "%s", turned ? "  bottom-up (I)" : "");

	return n < size ? n + callers_stacks_options(st, buf + n, size - n) : n;
}

static bool act(struct ui_state *st, enum action action, uint32_t code)
{
	const struct list *list = &st->lists[VIEW_TREE];
	const struct folds_tree *t;
	const struct fold_tree_node *node;
	uint32_t n;
	bool open;

	if (action == ACT_INVERT || action == ACT_FOLD_RECURSION) {
		callers_stacks_turn(st, action);
		return true;
	}
	if (list->cursor >= list->nr)
		return false;
	t = rows_tree(st);
	n = list->rows[list->cursor].index;
	node = &t->fold.nodes[n];
	open = list->cursor + 1 < list->nr &&
	       t->fold.nodes[list->rows[list->cursor + 1].index].parent == n;
	switch (action) {
	case ACT_OPEN:
		toggle(st, n, open);
		return true;
	case ACT_UNFOLD:
		toggle(st, n, false);
		return true;
	case ACT_FOLD:
	case ACT_SCROLL_LEFT:
		go_left(st, node, n, open);
		return true;
	case ACT_SCROLL_RIGHT:
		go_right(st, node, n, open);
		return true;
	case ACT_UNFOLD_ALL:
		set_mark(st, n,
			 folds_mark_of(st->folds, t->ids[n]) == MARK_DEEP ? MARK_CLOSED
									  : MARK_DEEP);
		return true;
	case ACT_HOT_PATH:
		go_hot(st, n);
		return true;
	default:
		return false;
	}
}

enum { TOTAL, CHANGE, SELF, BAR, KIND, NAME, MODULE };

static const struct view_column columns[] = {
	[TOTAL] = { .title = TEXT("TOTAL%"), .width = 6, .right = true, .draw = table_plain },
	[CHANGE] = TABLE_CHANGE("TOTAL%"),
	[SELF] = { .title = TEXT("SELF%"), .width = 5, .right = true, .draw = draw_self },
	[BAR] = { .title = TEXT(""),
		  .name = "bar",
		  .help = "the share as a bar",
		  .width = 8,
		  .wide = 10,
		  .from = 100,
		  .draw = draw_bar },
	[KIND] = { .title = TEXT(" "), .name = "kind", .width = 1, .draw = table_kind },
	[NAME] = { .title = TEXT("CALL TREE"), .draw = draw_name },
	[MODULE] = { .title = TEXT("MODULE"),
		     .width = 14,
		     .wide = 18,
		     .from = 76,
		     .ascending = true,
		     .extra = true,
		     .draw = table_module },
};

static const struct view_label labels[] = { { ACT_OPEN, "Unfold" }, { ACT_NONE, NULL } };

const struct view view_tree = {
	.title = TEXT("Tree"),
	.context = CTX_LIST,
	.stacks = true,
	.options = options,
	.scoped = true,
	.when_shown = true,
	.labels = labels,
	.columns = columns,
	.nr_columns = ARRAY_SIZE(columns),
	.own_rows = true,
	.own_order = true,
	.build = build,
	.compared = COMPARED_TOTAL,
	.tree = tree,
	.finds = finds,
	.missed = missed,
	.function = function,
	.act = act,
};
