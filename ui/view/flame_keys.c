// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Keys and mouse in the flame graph. Runs on: the main thread.
 */
#include "ui/view/view_flame.h"

#include <assert.h>

#include "ui/view/baseline.h"
#include "ui/view/flame_layout.h"
#include "ui/fold/fold.h"
#include "ui/view/stacks.h"
#include "ui/view/table.h"

#define CLOSEST (1 / 1024.0)

static void select_box(struct ui_state *st, uint32_t i)
{
	if (i < st->lists[VIEW_FLAME].nr)
		table_move_to(st, i);
}

/* Find the box above: of the parent, or of the cut that the parent is in. */
static uint32_t above(const struct ui_state *st, uint32_t from)
{
	const struct folds *s = st->folds;
	const struct fold_tree *t = &view_flame_tree(st)->fold;
	const struct flame_box *box = &s->boxes[from];
	uint32_t node = box->rest ? box->node : t->nodes[box->node].parent;

	for (; node != FOLD_NONE; node = t->nodes[node].parent)
		for (uint32_t i = 0; i < s->nr_boxes; i++)
			if (s->boxes[i].node == node && !s->boxes[i].rest)
				return i;
	return FOLD_NONE;
}

/* Find the nearest box of the same level at the left or right. */
static uint32_t beside(const struct folds *s, uint32_t from, bool left)
{
	const struct flame_box *at = &s->boxes[from];
	uint32_t best = FOLD_NONE;

	for (uint32_t i = 0; i < s->nr_boxes; i++) {
		const struct flame_box *b = &s->boxes[i];

		if (b->level != at->level || i == from || (b->col < at->col) != left)
			continue;
		if (best == FOLD_NONE || (b->col > s->boxes[best].col) == left)
			best = i;
	}
	return best;
}

/* Find the widest child of a box. */
static uint32_t child_of(const struct ui_state *st, uint32_t from)
{
	const struct folds *s = st->folds;
	const struct fold_tree *t = &view_flame_tree(st)->fold;
	uint32_t best = FOLD_NONE;

	const struct flame_box *at = &s->boxes[from];

	for (uint32_t i = 0; i < s->nr_boxes; i++) {
		const struct flame_box *b = &s->boxes[i];
		/* Below the root may be a cut. */
		bool below = b->rest ? b->node == at->node
				     : t->nodes[b->node].parent == at->node || (b->cut && !from);

		if (below && !at->rest && i != from &&
		    (best == FOLD_NONE || b->total > s->boxes[best].total))
			best = i;
	}
	return best;
}

/* Zoom by two around @at (0..1 of the screen). */
static void magnify(struct ui_state *st, bool closer, double at)
{
	struct folds *s = st->folds;
	double width = view_flame_width(s),
	       next = closer ? MAX(width / 2, CLOSEST) : MIN(width * 2, 1);

	view_flame_show_part(s, s->left + at * (width - next), next);
	table_rebuild(st, VIEW_FLAME);
}

static double middle_of(const struct folds *s, uint32_t i)
{
	return (s->boxes[i].col + s->boxes[i].cols / 2.0) / MAX(s->cols, 1u);
}

static void zoom_in(struct ui_state *st, uint32_t i)
{
	struct folds *s = st->folds;
	uint32_t id = view_flame_tree(st)->ids[s->boxes[i].node];

	if (!s->boxes[i].level)
		return;
	if (s->boxes[i].rest) {
		magnify(st, true, middle_of(s, i));
		return;
	}
	if (s->boxes[i].cut) {
		s->uncut = true;
		table_rebuild(st, VIEW_FLAME);
		return;
	}
	if (s->nr_zoom == FOLDS_LEVELS)
		s->nr_zoom--;
	assert(s->nr_zoom < FOLDS_LEVELS);
	s->zoom[s->nr_zoom++] = id;
	s->top = 0;
	s->width = 0;
	select_box(st, i);
	table_rebuild(st, VIEW_FLAME);
}

/* Move the graph with the mouse. */
void view_flame_drag(struct ui_state *st, int rows, int cols)
{
	struct folds *s = st->folds;
	int64_t top, deepest = 0;

	if (!s)
		return;
	for (uint32_t i = 0; i < s->nr_boxes; i++)
		deepest = MAX(deepest, (int64_t)s->boxes[i].level);
	top = (int64_t)s->top + (s->root_below ? rows : -rows);
	s->top = (uint32_t)MIN(MAX(top, 0), deepest);
	view_flame_show_part(s, s->left - cols * view_flame_width(s) / MAX(s->cols, 1u),
			     view_flame_width(s));
	table_rebuild(st, VIEW_FLAME);
}

/* Find the first or last box of the level, or of the deepest level above it. */
static uint32_t at_edge(const struct folds *s, uint32_t level, bool last)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < s->nr_boxes; i++) {
		const struct flame_box *b = &s->boxes[i], *than = &s->boxes[best];

		if (b->level > level || b->level < than->level)
			continue;
		if (b->level > than->level || (b->col > than->col) == last)
			best = i;
	}
	return best;
}

/* Select the box beside; if none is in sight, scroll by half a screen first. */
static void go_beside(struct ui_state *st, uint32_t at, bool left)
{
	struct folds *s = st->folds;
	uint32_t to = beside(s, at, left), level = s->boxes[at].level;
	double was = s->left, width = view_flame_width(s);

	if (to == FOLD_NONE && width < 1) {
		view_flame_show_part(s, s->left + (left ? -width : width) / 2, width);
		if (s->left == was)
			return;
		st->lists[VIEW_FLAME].pinned = false;
		table_rebuild(st, VIEW_FLAME);
		to = at_edge(s, level, !left);
	}
	select_box(st, to);
}

static bool zoom_out(struct ui_state *st)
{
	struct folds *s = st->folds;

	if (!s->nr_zoom && view_flame_width(s) >= 1 && !s->uncut)
		return false;
	if (view_flame_width(s) >= 1 && s->uncut)
		s->uncut = false;
	else if (view_flame_width(s) >= 1)
		s->nr_zoom--;
	s->left = s->width = 0;
	table_rebuild(st, VIEW_FLAME);
	return true;
}

/* Colour by kind of code, by module or, with a baseline, by change. */
static void next_colours(struct ui_state *st)
{
	struct folds *s = st->folds;
	bool change = !view_flame_shows_change(st) && s->by_module && baseline_is_on(st);

	s->by_module = !view_flame_shows_change(st) && !s->by_module;
	s->by_change = change;
	ui_state_say(st, false,
		     change	    ? "coloured by change"
		     : s->by_module ? "coloured by module"
				    : "coloured by kind of code");
}

bool view_flame_act(struct ui_state *st, enum action action, uint32_t code)
{
	struct folds *s = st->folds;
	const struct list *list = &st->lists[VIEW_FLAME];
	uint32_t at = list->cursor;

	if (!s)
		return false;
	if (action == ACT_BACK)
		return zoom_out(st);
	if (action == ACT_INVERT) {
		s->root_below = !s->root_below;
		return true;
	}
	if (action == ACT_COLUMNS) {
		next_colours(st);
		return true;
	}
	if (action == ACT_FOLD_RECURSION) {
		s->nr_zoom = 0;
		stacks_turn(st, action);
		return true;
	}
	if (at >= list->nr)
		return false;
	switch (action) {
	case ACT_SCROLL_LEFT:
	case ACT_SCROLL_RIGHT:
		go_beside(st, at, action == ACT_SCROLL_LEFT);
		return true;
	case ACT_UNFOLD:
	case ACT_FOLD:
		magnify(st, action == ACT_UNFOLD, middle_of(s, at));
		return true;
	case ACT_LINE_UP:
	case ACT_LINE_DOWN:
		/* Up is up on the screen: towards the root, or away from it. */
		select_box(st, (action == ACT_LINE_UP) == s->root_below ? child_of(st, at)
									: above(st, at));
		return true;
	case ACT_OPEN:
		zoom_in(st, at);
		return true;
	default:
		return false;
	}
}

/* Select the box at a cell. Return false if there is none. */
bool view_flame_click(struct ui_state *st, unsigned int row, unsigned int col)
{
	struct folds *s = st->folds;
	const struct list *list = &st->lists[VIEW_FLAME];
	uint32_t level, i;

	level = s->top + (s->root_below ? s->rows - 1 - row : row) / MAX(s->tall, 1u);
	i = flame_at(s->boxes, s->nr_boxes, level, col);
	if (i == FOLD_NONE || i >= list->nr)
		return false;
	select_box(st, i);
	return true;
}

/* Zoom around the pointer. */
void view_flame_wheel(struct ui_state *st, bool up, unsigned int row, unsigned int col)
{
	if (st->folds && view_flame_click(st, row, col))
		magnify(st, up, (double)col / MAX(st->folds->cols, 1u));
}
