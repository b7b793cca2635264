// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The flame graph: layout of its boxes, drawing, keys and mouse in it.
 *
 * Runs on: the main thread.
 *
 * View 4: the flame graph. A box is a function on a path, as wide as its share, beside its siblings
 * of the same caller. Runs on: the main thread.
 *
 * Boxes are in the order of function ids, not of weights, so that they do not move from tick to
 * tick. A row of the list is a box.
 */
#include "ui/view/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/name/name.h"
#include "ui/draw/draw.h"
#include "ui/fold/fold.h"
#include "ui/key/key.h"
#include "ui/state/state.h"
#include "ui/text/text.h"

#define COLS_DEFAULT 80
#define TALL_LEAST   40 /* lines of the screen, for boxes of two lines */
#define LOW_MOST     30 /* lines of a screen on which chains of frames are cut */
#define LABEL_LEAST  6	/* cells of a box with a part of its name */

/* Return the tree of the rows in sight. */
static const struct folds_tree *view_flame_tree(const struct ui_state *st)
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

/*
 * Return the visible part of the width, 0..1; set it, clamped.
 * Return the visible part of the width, 0..1.
 */
static double view_flame_width(const struct folds *s)
{
	return s->width > 0 ? s->width : 1;
}

/* Set the visible part, clamped. */
static void view_flame_show_part(struct folds *s, double left, double width)
{
	s->width = MIN(width, 1);
	s->left = MIN(MAX(left, 0), 1 - s->width);
}

static struct flame_part part_of(const struct folds *s, const struct folds_tree *t,
				 const bool *keep)
{
	return (struct flame_part){ zoomed(s, t, keep), s->left, view_flame_width(s),
				    s->uncut,		s->low,	 keep };
}

static bool flame_extent(const struct fold_tree *t, const struct flame_part *part,
			 unsigned int cols, uint32_t n, double *from, double *to);

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

static bool finds_in_cut(const struct ui_state *st, const struct fold_tree *t,
			 const struct flame_part *part, const struct match *m);

static uint32_t flame_lay_out(const struct fold_tree *t, const struct flame_part *part,
			      unsigned int cols, struct flame_box **boxes);

/* Lay out the part in sight of the nodes that pass the filter, and count the others. */
static void lay_out(const struct ui_state *st, const struct folds_tree *t, struct list *list)
{
	struct folds *s = st->folds;
	bool *keep = callers_stacks_keep_found(st, list, t);
	struct flame_part part;

	for (uint32_t n = 0; keep && n < t->fold.nr_nodes; n++)
		list->nr_hidden += !keep[n];
	follow_selection(s, t, keep, list);
	part = part_of(s, t, keep);
	/* A search opens the cut, as it opens folds of an editor. */
	part.uncut |= finds_in_cut(st, &t->fold, &part, &list->search);
	part.low &= !match_active(&list->search);
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

/* Return whether boxes are coloured by change. */
static bool view_flame_shows_change(const struct ui_state *st)
{
	return st->folds->by_change && baseline_is_on(st);
}

/* Return the place of the matches that no box shows. */
static const char *missed(const struct ui_state *st, const struct match *m, double *share)
{
	const struct folds *s = st->folds;

	*share = s && s->nr_boxes ? callers_stacks_found_share(st, view_flame_tree(st), m) : 0;
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
				     format_percent(share, callers_stacks_found_share(
								   st, view_flame_tree(st), search))
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

/* Return the colour of the frame of a wait: "[lock]". */
static enum theme_role wait_role(struct safe_text name)
{
	for (int k = WAIT_RUNNING; k < WAIT_NR; k++)
		if (!strcmp(name.str, wait_kind_name((enum wait_kind)k)))
			return times_role((enum wait_kind)k);
	return ROLE_TIME_OTHER;
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
	if (!st->set.flame_modules)
		return (uint8_t)(f->kind == 'w' ? wait_role(f->name)
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
	if (box->cut && !brief)
		return text_format(buf, size, "%u frames to %s (Enter: show)", box->cut,
				   folds_text(st, node_of(st, row), name, sizeof(name)).str);
	/* The function before: it may be cut. */
	if (box->cut)
		return text_format(buf, size, "%s +%u",
				   frame_text(st, node_of(st, row), name, sizeof(name)).str,
				   box->cut - 1);
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
	struct safe_text rise = table_change_text(at, change);
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
	pen_text(&pen, 2, rise, (enum theme_role)table_change_style(at).role);
}

/* Draw the name of a box, its change in front: narrow boxes cut the end. */
static void draw_label(const struct ui_state *st, const struct row *row, struct canvas *c,
		       unsigned int at, struct style style, bool found)
{
	const struct flame_box *box = box_of(st, row);
	char buf[TEXT_MAX], brief[TEXT_MAX], marked[TEXT_MAX], changed[TEXT_MAX];
	char change[FORMAT_MAX];
	bool differs = view_flame_shows_change(st) &&
		       (row->change == CHANGE_SURE || row->change == CHANGE_NEW);
	struct safe_text text =
		ui_state_name(st, brief, box_text(st, row, box->cols < 40, buf, sizeof(buf)));

	if (found && node_of(st, row)->function != FOLD_NONE)
		text = text_format(marked, sizeof(marked), "[%s]", text.str);
	if (differs)
		text = text_format(changed, sizeof(changed), "%s %s",
				   table_change_text(row, change).str, text.str);
	/* Fewer letters of a longer name say nothing; without colours a sign is the change. */
	if (box->cols < LABEL_LEAST && text.width >= box->cols) {
		if (differs)
			canvas_text(c, at, box->col + 1u, 1, row->delta > 0 ? TEXT("+") : TEXT("-"),
				    style);
		return;
	}
	/* Five letters are clearer than four and an ellipsis. */
	if (box->cols < LABEL_LEAST + 1)
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

	if (s && (s->cols != c->cols || s->low != (c->rows < LOW_MOST))) {
		s->cols = c->cols;
		s->low = c->rows < LOW_MOST;
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

static bool view_flame_act(struct ui_state *st, enum action action, uint32_t code);
static bool view_flame_click(struct ui_state *st, unsigned int row, unsigned int col);
static void view_flame_wheel(struct ui_state *st, bool up, unsigned int row, unsigned int col);
/* Move the graph with the mouse. */
static void view_flame_drag(struct ui_state *st, int rows, int cols)
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

const struct view view_flame = {
	.title = TEXT("Flame"),
	.context = CTX_LIST,
	.stacks = true,
	.options = callers_stacks_options,
	.scoped = true,
	.when_shown = true,
	.own_rows = true,
	.build = build,
	.compared = COMPARED_TOTAL,
	.tree = tree,
	.finds = finds,
	.missed = missed,
	.search_opens = true,
	.function = function,
	.draw = draw,
	.act = view_flame_act,
	.click = view_flame_click,
	.wheel = view_flame_wheel,
	.drag = view_flame_drag,
};

/*
 * Layout of a flame graph. Pure; any thread.
 *
 * Children start at the left end of their parent, narrow ones last; its self weight, and that of
 * nodes left out, is the gap at the right.
 */

/* Fewer common frames are not cut. */
#define CUT_LEAST 3

/* A frame with this share of the zoomed node is common. */
#define COMMON 0.995

struct layout {
	const struct fold_tree *t;
	const bool *keep;
	bool chains;  /* cut chains below other boxes */
	double scale; /* cells for each weight */
	double left;  /* weight left of the part in sight */
	double least; /* weight of a cell: lighter nodes are in a rest */
	unsigned int cols;
	struct flame_box *boxes;
	uint32_t nr, capacity;
};

static struct layout layout_of(const struct fold_tree *t, const struct flame_part *part,
			       unsigned int cols)
{
	double total = t->nodes[part->zoom].total;
	struct layout l = {
		.t = t, .keep = part->keep, .chains = part->low && !part->uncut, .cols = cols
	};

	l.scale = cols / (total * part->width);
	l.left = total * part->left;
	l.least = 1 / l.scale;
	return l;
}

static bool is_kept(const bool *keep, uint32_t n)
{
	return !keep || keep[n];
}

/* Return node @n or its first sibling after it that is kept; FOLD_NONE: none. */
static uint32_t first_kept(const struct layout *l, uint32_t n)
{
	assert(n == FOLD_NONE || n < l->t->nr_nodes);
	while (n != FOLD_NONE && !is_kept(l->keep, n))
		n = l->t->nodes[n].next;
	return n;
}

static unsigned int col_of(const struct layout *l, double at)
{
	double col = (at - l->left) * l->scale + 0.5;

	return col <= 0 ? 0 : (unsigned int)MIN(col, (double)l->cols);
}

/* Place a box by its weights and add it, unless it is out of sight. Return false without memory. */
static bool add_box(struct layout *l, struct flame_box *box)
{
	unsigned int col = col_of(l, box->start), end = col_of(l, box->start + box->total);

	if (end == col)
		return true;
	box->col = (uint16_t)col;
	box->cols = (uint16_t)(end - col);
	if (l->nr == l->capacity) {
		uint32_t capacity = l->capacity ? l->capacity * 2 : 256;
		struct flame_box *boxes = reallocarray(l->boxes, capacity, sizeof(*boxes));

		if (!boxes)
			return false;
		l->boxes = boxes;
		l->capacity = capacity;
	}
	l->boxes[l->nr++] = *box;
	return true;
}

/* Find the child with almost the weight @total: a cell at most is missing. FOLD_NONE: none. */
static uint32_t same_width(const struct layout *l, uint32_t n, double total)
{
	assert(n < l->t->nr_nodes);
	for (n = first_kept(l, l->t->nodes[n].child); n != FOLD_NONE;
	     n = first_kept(l, l->t->nodes[n].next))
		if (total - l->t->nodes[n].total < l->least)
			break;
	return n;
}

/*
 * Make the box of a child: of that frame, or (cut) of the frames that almost all of its samples
 * share, but for the last of these.
 */
static struct flame_box child_box(const struct layout *l, uint32_t n, uint32_t level, double start)
{
	struct flame_box box = {
		.node = n, .level = level, .start = start, .total = l->t->nodes[n].total
	};
	uint32_t nr = 0, end = n;

	assert(n < l->t->nr_nodes);
	/* A process has a box. */
	if (!l->chains || l->t->nodes[n].function == FOLD_NONE)
		return box;
	for (uint32_t i = n; (i = same_width(l, i, box.total)) != FOLD_NONE; nr++) {
		box.node = end;
		end = i;
	}
	box.cut = nr >= CUT_LEAST ? nr : 0;
	if (!box.cut)
		box.node = n;
	return box;
}

/* Add the children of a box: each that is a cell wide, then the rest. */
static bool add_children(struct layout *l, uint32_t i)
{
	const struct flame_box above = l->boxes[i];
	const struct fold_tree_node *node = &l->t->nodes[above.node];
	struct flame_box rest = { .node = above.node,
				  .level = above.level + 1,
				  .rest = l->keep ? 0 : node->nr_hidden,
				  .total = l->keep ? 0 : node->hidden };
	struct flame_box box;
	double at = above.start;
	bool ok = true;

	assert(i < l->nr);
	if (above.rest)
		return true;
	for (uint32_t n = first_kept(l, node->child); n != FOLD_NONE && ok;
	     n = first_kept(l, l->t->nodes[n].next)) {
		double total = l->t->nodes[n].total;

		if (total < l->least) {
			rest.rest++;
			rest.total += total;
			continue;
		}
		box = child_box(l, n, above.level + 1, at);
		ok = add_box(l, &box);
		at += total;
	}
	rest.start = at;
	return ok && (!rest.rest || add_box(l, &rest));
}

/* Find the last of the frames that all samples of @zoom share, but for one; count them. */
static uint32_t common_end(const struct layout *l, uint32_t zoom, uint32_t *nr)
{
	const struct fold_tree *t = l->t;
	uint32_t n = zoom, before = zoom;

	assert(zoom < t->nr_nodes);
	for (*nr = 0;; (*nr)++) {
		uint32_t child = first_kept(l, t->nodes[n].child);

		if (child == FOLD_NONE || first_kept(l, t->nodes[child].next) != FOLD_NONE ||
		    t->nodes[child].total < COMMON * t->nodes[zoom].total)
			break;
		before = n;
		n = child;
	}
	/* The last one has a box: it may be all that there is to see. */
	*nr -= *nr > 0;
	return before;
}

/* Return whether a frame of the cut is searched for. */
static bool finds_in_cut(const struct ui_state *st, const struct fold_tree *t,
			 const struct flame_part *part, const struct match *m)
{
	struct layout l = { .t = t, .keep = part->keep };
	uint32_t nr, n;

	if (!match_active(m) || part->zoom >= t->nr_nodes)
		return false;
	for (n = common_end(&l, part->zoom, &nr); n != part->zoom; n = t->nodes[n].parent)
		if (folds_finds(st, &t->nodes[n], m))
			return true;
	return false;
}

/* Add the zoomed node, and the cut below it. */
static bool add_roots(struct layout *l, const struct flame_part *part)
{
	struct flame_box root = { .node = part->zoom, .total = l->t->nodes[part->zoom].total };
	uint32_t nr, end = common_end(l, part->zoom, &nr);

	if (!add_box(l, &root))
		return false;
	if (part->uncut || nr < CUT_LEAST)
		return true;
	return add_box(l, &(struct flame_box){ .node = end,
					       .level = 1,
					       .cut = nr,
					       .total = l->t->nodes[end].total });
}

/*
 * Lay out a part in @cols cells: level by level, parents before children, left to right; boxes at
 * the edges cut. None if the node @zoom is left out. Return their number and an array to free;
 * *@boxes is NULL if there is no memory.
 */
static uint32_t flame_lay_out(const struct fold_tree *t, const struct flame_part *part,
			      unsigned int cols, struct flame_box **boxes)
{
	struct layout l;

	*boxes = NULL;
	if (part->zoom >= t->nr_nodes || !(t->nodes[part->zoom].total > 0) ||
	    !is_kept(part->keep, part->zoom))
		return 0;
	l = layout_of(t, part, cols);
	if (add_roots(&l, part)) {
		/* Below a cut only the cut is unfolded. */
		uint32_t i = l.nr ? l.nr - 1 : 0;

		while (i < l.nr && add_children(&l, i))
			i++;
	}
	assert(!l.nr || l.boxes[0].node == part->zoom);
	*boxes = l.boxes;
	return l.nr;
}

/* Return the weight at the left of @n within its parent. */
static double offset_of(const struct layout *l, uint32_t n)
{
	const struct fold_tree_node *nodes = l->t->nodes;
	bool narrow = nodes[n].total < l->least;
	bool before = true;
	double sum = 0;

	assert(n < l->t->nr_nodes);
	for (uint32_t i = first_kept(l, nodes[nodes[n].parent].child); i != FOLD_NONE;
	     i = first_kept(l, nodes[i].next)) {
		before &= i != n;
		if (nodes[i].total < l->least ? narrow && before : i != n && (narrow || before))
			sum += nodes[i].total;
	}
	return sum;
}

/*
 * Find the extent of node @n within @part's zoomed node, 0..1, as it is laid out in @cols cells.
 * Return false if it is not below that, or left out.
 */
static bool flame_extent(const struct fold_tree *t, const struct flame_part *part,
			 unsigned int cols, uint32_t n, double *from, double *to)
{
	double start = 0, total = t->nodes[n].total, all = t->nodes[part->zoom].total;
	struct layout l;

	assert(n < t->nr_nodes);
	if (!(all > 0) || !is_kept(part->keep, n))
		return false;
	l = layout_of(t, part, cols);
	for (uint32_t at = n; at != part->zoom; at = t->nodes[at].parent) {
		if (at == FOLD_NONE || t->nodes[at].parent == FOLD_NONE)
			return false;
		start += offset_of(&l, at);
	}
	*from = start / all;
	*to = (start + total) / all;
	return true;
}

/* Find the box at @col of @level; FOLD_NONE: none. */
static uint32_t flame_at(const struct flame_box *boxes, uint32_t nr, uint32_t level,
			 unsigned int col)
{
	for (uint32_t i = 0; i < nr; i++)
		if (boxes[i].level == level && col >= boxes[i].col &&
		    col < boxes[i].col + (unsigned int)boxes[i].cols)
			return i;
	return FOLD_NONE;
}

/*
 * Keys and mouse in the flame graph. Runs on: the main thread.
 */

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

	assert(from < s->nr_boxes);
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

	assert(from < s->nr_boxes);
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
	const struct flame_box *at = &s->boxes[from];
	uint32_t best = FOLD_NONE;

	assert(from < s->nr_boxes);
	for (uint32_t i = 0; i < s->nr_boxes; i++) {
		const struct flame_box *b = &s->boxes[i];

		if (b->level == at->level + 1 && !at->rest && above(st, i) == from &&
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
	assert(i < s->nr_boxes);
	return (s->boxes[i].col + s->boxes[i].cols / 2.0) / MAX(s->cols, 1u);
}

static void zoom_in(struct ui_state *st, uint32_t i)
{
	struct folds *s = st->folds;
	uint32_t id = view_flame_tree(st)->ids[s->boxes[i].node];

	assert(i < s->nr_boxes);
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

	assert(at < s->nr_boxes);
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
	bool change = !view_flame_shows_change(st) && st->set.flame_modules && baseline_is_on(st);

	st->set.flame_modules = !view_flame_shows_change(st) && !st->set.flame_modules;
	s->by_change = change;
	ui_state_say(st, false,
		     change		     ? "coloured by change"
		     : st->set.flame_modules ? "coloured by module"
					     : "coloured by kind of code");
}

/* Members of struct view. */
static bool view_flame_act(struct ui_state *st, enum action action, uint32_t code)
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
		callers_stacks_turn(st, action);
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
static bool view_flame_click(struct ui_state *st, unsigned int row, unsigned int col)
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
static void view_flame_wheel(struct ui_state *st, bool up, unsigned int row, unsigned int col)
{
	if (st->folds && view_flame_click(st, row, col))
		magnify(st, up, (double)col / MAX(st->folds->cols, 1u));
}
