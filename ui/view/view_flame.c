// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * View 4: the flame graph. A box is a function on a path, as wide as its share, beside its siblings
 * of the same caller. Runs on: the main thread.
 *
 * Boxes are in the order of function ids, not of weights, so that they do not move from tick to
 * tick. A row of the list is a box.
 */
#include "ui/view/view_flame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ui/draw/pen.h"
#include "ui/text/format.h"
#include "ui/view/baseline.h"
#include "ui/view/common_columns.h"
#include "ui/view/flame_layout.h"
#include "ui/fold/fold.h"
#include "ui/view/stacks.h"
#include "ui/view/table.h"
#include "ui/view/times.h"

#define COLS_DEFAULT 80
#define TALL_LEAST   40 /* lines of the screen, for boxes of two lines */

const struct folds_tree *view_flame_tree(const struct ui_state *st)
{
	return folds_tree_shown(st, FOLDS_FLAME);
}

static const struct flame_box *box_of(const struct ui_state *st, const struct row *row)
{
	return &st->folds->boxes[row->index];
}

static const struct fold_tree_node *node_of(const struct ui_state *st, const struct row *row)
{
	return &view_flame_tree(st)->fold.nodes[box_of(st, row)->node];
}

/* Return the node zoomed into, or its nearest ancestor that exists and passes the filter. */
static uint32_t zoomed(const struct folds *s, const struct folds_tree *t, const bool *keep)
{
	for (uint32_t i = s->nr_zoom; i-- > 0;) {
		uint32_t n = folds_node(t, s->zoom[i]);

		if (n != FOLD_NONE && (!keep || keep[n]))
			return n;
	}
	return 0;
}

/* Return the id of a box: of its node, or of the rest of its children. */
static uint32_t id_of(const struct folds_tree *t, const struct flame_box *box)
{
	return box->rest ? (uint32_t)hash_u64(t->ids[box->node] ^ 1ull << 40) : t->ids[box->node];
}

/* Record the path of the selected box, to find an ancestor when it disappears. */
static void note_path(struct folds *s, const struct folds_tree *t, const struct list *list)
{
	const struct flame_box *box = list->cursor < list->nr ? &s->boxes[list->cursor] : NULL;
	uint32_t n = box ? box->node : FOLD_NONE;

	s->nr_path = 0;
	if (box && box->rest)
		s->path[s->nr_path++] = id_of(t, box);
	for (; n != FOLD_NONE && s->nr_path < FOLDS_LEVELS; n = t->fold.nodes[n].parent)
		s->path[s->nr_path++] = t->ids[n];
}

/* If the selected box disappeared, select its nearest ancestor. */
static void keep_selection(struct folds *s, const struct folds_tree *t, struct list *list)
{
	if (!s->nr_path || s->path[0] != list->selected)
		return;
	for (uint32_t i = 0; i < s->nr_path; i++)
		for (uint32_t b = 0; b < s->nr_boxes; b++)
			if (id_of(t, &s->boxes[b]) == s->path[i]) {
				list->selected = s->path[i];
				return;
			}
}

/* Return the visible part of the width, 0..1. */
double view_flame_width(const struct folds *s)
{
	return s->width > 0 ? s->width : 1;
}

/* Set the visible part, clamped. */
void view_flame_show_part(struct folds *s, double left, double width)
{
	s->width = MIN(width, 1);
	s->left = MIN(MAX(left, 0), 1 - s->width);
}

static struct flame_part part_of(const struct folds *s, const struct folds_tree *t,
				 const bool *keep)
{
	return (struct flame_part){ zoomed(s, t, keep), s->left, view_flame_width(s), s->uncut,
				    keep };
}

/* Keep the selected box in sight, as shares change. */
static void follow_selection(struct folds *s, const struct folds_tree *t, const bool *keep,
			     const struct list *list)
{
	uint32_t n = list->pinned ? folds_node(t, (uint32_t)list->selected) : FOLD_NONE;
	double from, to, width = view_flame_width(s);

	const struct flame_part part = part_of(s, t, keep);

	if (n == FOLD_NONE || width >= 1 ||
	    !flame_extent(&t->fold, &part, s->cols ? s->cols : COLS_DEFAULT, n, &from, &to))
		return;
	if (to <= s->left || from >= s->left + width)
		view_flame_show_part(s, (from + to - width) / 2, width);
}

/* Lay out the part in sight of the nodes that pass the filter, and count the others. */
static void lay_out(const struct ui_state *st, const struct folds_tree *t, struct list *list)
{
	struct folds *s = st->folds;
	bool *keep = stacks_keep_found(st, list, t);
	struct flame_part part;

	for (uint32_t n = 0; keep && n < t->fold.nr_nodes; n++)
		list->nr_hidden += !keep[n];
	follow_selection(s, t, keep, list);
	part = part_of(s, t, keep);
	s->nr_boxes = flame_lay_out(&t->fold, &part, s->cols ? s->cols : COLS_DEFAULT, &s->boxes);
	free(keep);
}

static int build(const struct ui_state *st, struct list *list)
{
	struct folds *s = st->folds;
	const struct folds_tree *t;

	if (!s)
		return 0;
	free(s->boxes);
	s->boxes = NULL;
	s->nr_boxes = 0;
	t = folds_tree(st, FOLDS_FLAME);
	if (!t)
		return 0;
	list->count = t->fold.count;
	lay_out(st, t, list);
	for (uint32_t i = 0; i < s->nr_boxes; i++) {
		struct row *row = list_add(list);

		if (!row)
			return -ENOMEM;
		folds_row(t, s->boxes[i].node, row);
		row->index = i;
		row->id = id_of(t, &s->boxes[i]);
		row->total = t->fold.weight > 0 ? s->boxes[i].total / t->fold.weight : 0;
		if (!s->boxes[i].rest)
			continue;
		row->count = row->count * s->boxes[i].total / t->fold.nodes[s->boxes[i].node].total;
		row->self = 0;
	}
	if (list->pinned)
		keep_selection(s, t, list);
	return 0;
}

static const struct folds_tree *tree(const struct ui_state *st)
{
	return folds_tree(st, FOLDS_FLAME);
}

static bool finds(const struct ui_state *st, const struct row *row, const struct match *m)
{
	return folds_finds(st, node_of(st, row), m);
}

static uint32_t function(const struct ui_state *st, const struct row *row)
{
	return node_of(st, row)->function;
}

/* ---- drawing ---- */

bool view_flame_shows_change(const struct ui_state *st)
{
	return st->folds->by_change && baseline_is_on(st);
}

/* Return the place of the matches that no box shows. */
static const char *missed(const struct ui_state *st, const struct match *m, double *share)
{
	const struct folds *s = st->folds;

	*share = s && s->nr_boxes ? stacks_found_share(st, view_flame_tree(st), m) : 0;
	return s && (s->nr_zoom || view_flame_width(s) < 1) ? "outside of this part (Esc zooms "
							      "out; \\ filters)"
							    : "in boxes too narrow to show (\\ "
							      "filters)";
}

/* Draw the legend in the colours of the boxes: a theme may have others than red and blue. */
static void draw_legend(struct pen *pen)
{
	pen_text(pen, 2, TEXT("change:"), ROLE_DIM);
	pen_text(pen, 1, TEXT(" + more "), ROLE_BOX_MORE);
	pen_text(pen, 0, TEXT(" - less "), ROLE_BOX_LESS);
}

static void draw_head(const struct ui_state *st, struct canvas *c, unsigned int row)
{
	const struct folds *s = st->folds;
	const struct folds_tree *t = view_flame_tree(st);
	const struct list *list = &st->lists[VIEW_FLAME];
	const struct match *search = &list->search;
	uint32_t zoom = s->boxes[0].node;
	struct pen pen = { c, row, 1, c->cols };
	char buf[TEXT_MAX + 64], share[FORMAT_MAX], name[TEXT_MAX];

	pen_text(&pen, 0,
		 ui_state_latency(st, st->shown)  ? TEXT("width = share of latency")
		 : !ui_state_waits(st, st->shown) ? TEXT("width = share of samples")
		 : ui_state_also(st, st->shown)	  ? TEXT("width = share of CPU and waiting time")
						  : TEXT("width = share of waiting time"),
		 ROLE_DIM);
	if (zoom) {
		struct safe_text text = folds_text(st, &t->fold.nodes[zoom], name, sizeof(name));

		pen_value(&pen, 2, TEXT("of"),
			  format_share(share, t->fold.nodes[zoom].total / t->fold.weight),
			  ROLE_VALUE);
		pen_text(&pen, 2, TEXT("zoom"), ROLE_DIM);
		if (pen.col + 1 < pen.end)
			pen.col += 1 + canvas_elide(c, row, pen.col + 1,
						    MIN(pen.end - pen.col - 1, c->cols / 3), text,
						    (struct style){ ROLE_VALUE, 0 });
		pen_text(&pen, 1, TEXT("(Esc out)"), ROLE_DIM);
	} else {
		pen_text(&pen, 2, TEXT("Enter: zoom in"), ROLE_DIM);
	}
	if (view_flame_shows_change(st))
		draw_legend(&pen);
	if (list->gone[0] && pen.col + 12 < pen.end) {
		pen_text(&pen, 2, TEXT("gone"), ROLE_DIM);
		pen.col += 1 + canvas_elide(c, row, pen.col + 1,
					    MIN(pen.end - pen.col - 1, c->cols / 3),
					    ui_state_clean(name, sizeof(name), list->gone),
					    (struct style){ ROLE_WARN, 0 });
	}
	if (view_flame_width(s) < 1)
		pen_text(&pen, 2,
			 text_format(buf, sizeof(buf), "x%.0f from %.0f%%", 1 / view_flame_width(s),
				     s->left * 100),
			 ROLE_VALUE);
	if (match_active(search))
		pen_text(&pen, 2,
			 text_format(buf, sizeof(buf), "%s matches /%s/, %s%% in all",
				     search->negate ? "no name" : "[name]", search->text,
				     format_percent(share,
						    stacks_found_share(st, view_flame_tree(st),
								       search))
					     .str),
			 ROLE_WARN);
}

static uint32_t hue_of(const char *p)
{
	uint64_t h = 0;

	for (; *p; p++)
		h = hash_u64(h + (unsigned char)*p);
	return (uint32_t)h;
}

/* Return the role of a box: by change, by kind or by module; the hue by name, stable between runs.
 */
static uint8_t role_of(const struct ui_state *st, const struct row *row)
{
	const struct fold_tree_node *node = node_of(st, row);
	const struct profile_function *f;

	if (box_of(st, row)->rest)
		return ROLE_BOX_REST;
	if (view_flame_shows_change(st))
		return row->change != CHANGE_SURE && row->change != CHANGE_NEW ? ROLE_BOX_SAME
		       : row->delta > 0					       ? ROLE_BOX_MORE
									       : ROLE_BOX_LESS;
	if (node->function == FOLD_NONE || box_of(st, row)->cut)
		return ROLE_BOX_PROCESS;
	f = &st->shown->functions[node->function];
	if (!st->folds->by_module)
		return (uint8_t)(f->kind == 'w' ? times_role(f->name)
						: theme_box(f->kind, hue_of(f->name.str)));
	return (uint8_t)(ROLE_BOX_USER +
			 hue_of(f->module.str) % (unsigned int)(ROLE_NR - ROLE_BOX_USER));
}

/* Name a function: an unnamed one by its end, "+0x5a30", which differs from others. */
static struct safe_text frame_text(const struct ui_state *st, const struct fold_tree_node *node,
				   char *buf, size_t size)
{
	struct safe_text text = folds_text(st, node, buf, size);
	const char *offset;

	if (node->function == FOLD_NONE || !st->shown->functions[node->function].unnamed)
		return text;
	offset = strstr(text.str, "+0x");
	return offset ? text_format(buf, size, "%s", offset) : text;
}

/* The text of a box: a name, "34 more", "12 frames: _start main ...". @brief: for narrow boxes. */
static struct safe_text box_text(const struct ui_state *st, const struct row *row, bool brief,
				 char *buf, size_t size)
{
	const struct flame_box *box = box_of(st, row);
	char name[TEXT_MAX], pct[FORMAT_MAX];

	if (box->rest)
		return text_format(buf, size, "%u more %s%%%s", box->rest,
				   format_percent(pct, row->total).str,
				   row->total > 0.5 ? ", each narrower than a cell: see the tree"
						    : "");
	if (box->cut)
		return text_format(buf, size, "%u frames to %s (Enter: show)", box->cut,
				   folds_text(st, node_of(st, row), name, sizeof(name)).str);
	return brief ? frame_text(st, node_of(st, row), buf, size)
		     : folds_text(st, node_of(st, row), buf, size);
}

/* Describe the selected box. */
static void draw_details(const struct ui_state *st, struct canvas *c, unsigned int row)
{
	const struct list *list = &st->lists[VIEW_FLAME];
	const struct row *at = &list->rows[list->cursor];
	const struct fold_tree_node *node = node_of(st, at);
	char figures[160], total[FORMAT_MAX], self[FORMAT_MAX], count[FORMAT_MAX];
	char buf[TEXT_MAX], change[FORMAT_MAX];
	struct safe_text rise = common_change_text(at, change);
	struct safe_text text =
		text_format(figures, sizeof(figures),
			    c->cols < 60 ? "%s%% self %s%%" : "total %s%%  self %s%%  %s samples",
			    format_percent(total, at->total).str,
			    format_percent(self, at->self).str, format_count(count, at->count).str);
	struct pen pen = { c, row, 1, c->cols };
	unsigned int room;

	pen_text(&pen, 0, st->glyphs->marker, ROLE_VALUE);
	room = text.width + pen.col + 4 + (rise.width ? rise.width + 2u : 0);
	room = c->cols > room ? c->cols - room : 0;
	if (room > 8)
		pen.col += 1 + canvas_elide(c, row, pen.col + 1, room,
					    box_text(st, at, false, buf, sizeof(buf)),
					    (struct style){ ROLE_VALUE, 0 });
	if (function(st, at) != FOLD_NONE && c->cols >= 100)
		room = room > pen.col ? room - pen.col : 0;
	else
		room = 0;
	if (room > 8)
		pen.col += 2 + canvas_elide(c, row, pen.col + 2, room - 2,
					    st->shown->functions[node->function].module,
					    (struct style){ ROLE_DIM, 0 });
	pen_text(&pen, 2, text, ROLE_NORMAL);
	pen_text(&pen, 2, rise, (enum theme_role)common_change_style(at).role);
}

/* Draw the name of a box, its change in front: narrow boxes cut the end. */
static void draw_label(const struct ui_state *st, const struct row *row, struct canvas *c,
		       unsigned int at, struct style style, bool found)
{
	const struct flame_box *box = box_of(st, row);
	char buf[TEXT_MAX], brief[TEXT_MAX], marked[TEXT_MAX], changed[TEXT_MAX];
	char change[FORMAT_MAX];
	struct safe_text text =
		ui_state_name(st, brief, box_text(st, row, box->cols < 40, buf, sizeof(buf)));

	if (found && node_of(st, row)->function != FOLD_NONE)
		text = text_format(marked, sizeof(marked), "[%s]", text.str);
	if (view_flame_shows_change(st) &&
	    (row->change == CHANGE_SURE || row->change == CHANGE_NEW))
		text = text_format(changed, sizeof(changed), "%s %s",
				   common_change_text(row, change).str, text.str);
	/* Three letters are clearer than two and an ellipsis. */
	if (box->cols < 7)
		canvas_text(c, at, box->col + 1u, box->cols - 1u, text, style);
	else
		canvas_elide(c, at, box->col + 1u, box->cols - 1u, text, style);
}

/* One box of @tall lines: a separator, the name, the share if there is a line for it. */
static void draw_box(const struct ui_state *st, const struct row *row, struct canvas *c,
		     unsigned int at, unsigned int tall, bool selected)
{
	const struct match *search = &st->lists[VIEW_FLAME].search;
	const struct flame_box *box = box_of(st, row);
	bool found = match_active(search) && finds(st, row, search) != search->negate;
	struct style style = { selected ? ROLE_SELECTED : role_of(st, row),
			       selected || found ? CELL_BOLD | CELL_UNDERLINE : 0 };
	char pct[FORMAT_MAX], share[FORMAT_MAX * 2];

	for (unsigned int line = 0; line < tall; line++) {
		canvas_fill(c, at + line, box->col, box->cols, TEXT(" "), style);
		canvas_text(c, at + line, box->col, 1,
			    selected && !line ? st->glyphs->marker : st->glyphs->edge, style);
	}
	if (box->cols < 3)
		return;
	draw_label(st, row, c, at, style, found);
	style.flags = 0;
	if (tall > 1 && box->cols > 7 && !box->rest)
		canvas_text(c, at + 1, box->col + 1u, box->cols - 1u,
			    text_format(share, sizeof(share), "%s%%",
					format_percent(pct, row->total).str),
			    style);
}

/* Scroll so that the selected level is in sight. */
static void scroll_levels(struct folds *s, uint32_t level, unsigned int rows)
{
	if (level < s->top)
		s->top = level;
	if (level >= s->top + rows)
		s->top = level - rows + 1;
}

static void draw(struct ui_state *st, struct canvas *c, unsigned int row, unsigned int rows)
{
	struct folds *s = st->folds;
	struct list *list = &st->lists[VIEW_FLAME];
	unsigned int first = row + 1, graph = rows > 2 ? rows - 2 : 0, levels;

	if (s && s->cols != c->cols) {
		s->cols = c->cols;
		table_rebuild(st, VIEW_FLAME);
	}
	if (!s || !list->nr || !graph) {
		table_draw_empty(st, c, row, rows);
		return;
	}
	/* The whole graph is in sight. */
	list->page = list->nr;
	list->top = 0;
	s->rows = graph;
	/* The boxes of the last level are the last. */
	s->tall = (s->boxes[s->nr_boxes - 1].level + 1) * 2 <= graph && c->rows >= TALL_LEAST ? 2
											      : 1;
	levels = graph / s->tall;
	scroll_levels(s, box_of(st, &list->rows[list->cursor])->level, levels);
	note_path(s, view_flame_tree(st), list);
	draw_head(st, c, row);
	for (uint32_t i = 0; i < list->nr; i++) {
		const struct flame_box *box = box_of(st, &list->rows[i]);

		if (box->level < s->top || box->level - s->top >= levels)
			continue;
		draw_box(st, &list->rows[i], c,
			 s->root_below ? first + graph - (box->level - s->top + 1) * s->tall
				       : first + (box->level - s->top) * s->tall,
			 s->tall, i == list->cursor);
	}
	draw_details(st, c, row + rows - 1);
	ui_state_zone(st, &(struct zone){ (uint16_t)first, 0, (uint16_t)graph, (uint16_t)c->cols,
					  ZONE_ROWS, 0 });
}

const struct view view_flame = {
	.title = TEXT("Flame"),
	.context = CTX_LIST,
	.stacks = true,
	.options = stacks_options,
	.scoped = true,
	.when_shown = true,
	.own_rows = true,
	.build = build,
	.compared = COMPARED_TOTAL,
	.tree = tree,
	.finds = finds,
	.missed = missed,
	.function = function,
	.draw = draw,
	.act = view_flame_act,
	.click = view_flame_click,
	.wheel = view_flame_wheel,
	.drag = view_flame_drag,
};
