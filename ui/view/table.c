// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rows of the views: built, sorted, selected, drawn. Runs on: the main thread.
 *
 * Invariant: if the selected id is among the rows, the cursor is on it.
 */
#include "ui/view/table.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/text/format.h"
#include "ui/text/idle.h"
#include "ui/view/baseline.h"
#include "ui/view/columns.h"
#include "ui/view/common_columns.h"
#include "ui/fold/fold.h"
#include "ui/view/order.h"

#define COLUMNS_MAX 32
/* least width of names beside picked columns, which are cut at the right instead */
#define OPEN_LEAST 12u

/* Remove the rows that filter or limit hide. */
static void keep_matching(const struct ui_state *st, const struct view *v, struct list *list)
{
	uint32_t kept = 0;
	bool filtered = match_active(&list->filter);

	if (v->draw_row || v->own_rows)
		return;
	for (uint32_t i = 0; i < list->nr; i++) {
		const struct row *row = &list->rows[i];

		if (row->total * 100 < st->percent_limit ||
		    (filtered && v->finds(st, row, &list->filter) == list->filter.negate))
			list->nr_hidden++;
		else
			list->rows[kept++] = *row;
	}
	list->nr = kept;
}

struct order {
	const struct ui_state *st;
	const struct view_column *column;
	int sign;
};

static int compare_rows(const void *pa, const void *pb, void *arg)
{
	const struct order *order = arg;
	const struct row *a = pa, *b = pb;
	int d = order->column->compare(order->st, a, b) * order->sign;

	/* Keep the order of equal rows, or they would change places at each tick. */
	return d ? d : COMPARE(a->id, b->id);
}

/* Return whether the rows are in order of their shares, as functions are by the folding thread. */
static bool is_sorted(const struct list *list, bool by_self, int sign)
{
	for (uint32_t i = 1; i < list->nr; i++) {
		const struct row *a = &list->rows[i - 1], *b = &list->rows[i];
		double first = sign * (by_self ? a->self - b->self : a->total - b->total);
		double second = sign * (by_self ? a->total - b->total : a->self - b->self);

		if (first > 0 || (first == 0 && (second > 0 || (second == 0 && a->id > b->id))))
			return false;
	}
	return true;
}

/* The place of a row by its shares. */
struct sort_key {
	double first, second;
	uint64_t id;
	uint32_t row;
};

static int compare_keys(const void *pa, const void *pb)
{
	const struct sort_key *a = pa, *b = pb;

	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	if (a->second != b->second)
		return a->second < b->second ? -1 : 1;
	return COMPARE(a->id, b->id);
}

/* Sort by shares, as the columns compare them: keys are smaller than rows, and quick to compare.
 * Return false if there is no memory. */
static bool sort_by_share(struct list *list, bool by_self, int sign)
{
	struct sort_key *keys;
	struct row *rows;

	if (is_sorted(list, by_self, sign))
		return true;
	if (!list_reserve_sorted(list, sizeof(*keys)))
		return false;
	keys = list->keys;
	rows = list->sorted;
	for (uint32_t i = 0; i < list->nr; i++) {
		const struct row *row = &list->rows[i];

		keys[i] = (struct sort_key){ sign * (by_self ? row->self : row->total),
					     sign * (by_self ? row->total : row->self), row->id,
					     i };
	}
	qsort(keys, list->nr, sizeof(*keys), compare_keys);
	for (uint32_t i = 0; i < list->nr; i++)
		rows[i] = list->rows[keys[i].row];
	list->sorted = list->rows;
	list->rows = rows;
	return true;
}

static void sort_rows(const struct ui_state *st, const struct view *v, struct list *list)
{
	struct order order = { .st = st };

	if (list->nr < 2 || list->sort >= v->nr_columns || !columns_sortable(st, v, list->sort))
		return;
	order.column = &v->columns[list->sort];
	order.sign = order.column->ascending != list->inverted ? 1 : -1;
	/* The usual orders, at each refresh. */
	if ((order.column->compare == common_by_self || order.column->compare == common_by_total) &&
	    sort_by_share(list, order.column->compare == common_by_self, order.sign))
		return;
	qsort_r(list->rows, list->nr, sizeof(*list->rows), compare_rows, &order);
}

/* Scroll so that rows are in sight, and (@cursor) the cursor. */
static void scroll_to(struct list *list, bool cursor)
{
	uint32_t page = list->page ? list->page : 1;

	if (cursor) {
		if (list->cursor < list->top)
			list->top = list->cursor;
		if (list->cursor >= list->top + page)
			list->top = list->cursor - page + 1;
	}
	if (list->top + page > list->nr)
		list->top = list->nr > page ? list->nr - page : 0;
}

/* Find the selected row again. */
static void place_cursor(const struct ui_state *st, struct list *list)
{
	bool visible = list->cursor >= list->top && list->cursor < list->top + list->page;
	uint32_t i = 0;

	/* The rows are being folded. */
	if (!list->nr && folds_is_late(st))
		return;
	if (!list->pinned) {
		list->cursor = list->top = 0;
		return;
	}
	while (i < list->nr && list->rows[i].id != list->selected)
		i++;
	if (i < list->nr)
		list->cursor = i;
	else if (list->cursor >= list->nr)
		list->cursor = list->nr ? list->nr - 1 : 0;
	scroll_to(list, (st->follow && visible) || list->sought.found);
	list->sought.found = false;
}

void table_rebuild(struct ui_state *st, enum view_id id)
{
	const struct view *v = view_of(id);
	struct list *list = &st->lists[id];

	list->nr = 0;
	list->nr_hidden = 0;
	list->count = list->weight = 0;
	/* Without memory, show the rows built so far. */
	if (!v->when_shown || st->view == id)
		v->build(st, list);
	baseline_compare(st, v, list);
	keep_matching(st, v, list);
	list->most = 0;
	for (uint32_t i = 0; i < list->nr; i++)
		list->most = MAX(list->most, list->rows[i].self);
	sort_rows(st, v, list);
	order_keep(st, v, list);
	if (v->arrange)
		v->arrange(st, list);
	place_cursor(st, list);
	assert(list->cursor < list->nr || !list->nr);
}

void table_reorder(struct ui_state *st)
{
	struct list *list = ui_state_list(st);

	order_forget(list);
	table_rebuild(st, st->view);
	if (list->pinned)
		scroll_to(list, true);
}

void table_select_shown(struct ui_state *st)
{
	struct list *list = ui_state_list(st);
	bool hides = match_active(&list->filter) || st->percent_limit > 0;

	if (hides && list->pinned && list->cursor < list->nr &&
	    list->rows[list->cursor].id != list->selected)
		table_move_to(st, list->cursor);
}

void table_move_to(struct ui_state *st, uint32_t row)
{
	struct list *list = ui_state_list(st);

	if (!list->nr)
		return;
	list->cursor = MIN(row, list->nr - 1);
	assert(list->cursor < list->nr);
	list->selected = list->rows[list->cursor].id;
	list->pinned = true;
	scroll_to(list, true);
}

void table_move(struct ui_state *st, int64_t by)
{
	int64_t to = (int64_t)ui_state_list(st)->cursor + by;

	table_move_to(st, (uint32_t)MIN(MAX(to, 0), (int64_t)UINT32_MAX));
}

bool table_search(struct ui_state *st, uint32_t from, bool backwards)
{
	struct list *list = ui_state_list(st);
	const struct view *v = view_of(st->view);
	const struct match *m = &list->search;

	if (!match_active(m))
		return false;
	for (uint32_t i = 0; i < list->nr; i++) {
		uint32_t n = (backwards ? from % list->nr + list->nr - i : from % list->nr + i) %
			     list->nr;

		if (v->finds(st, &list->rows[n], m) != m->negate) {
			table_move_to(st, n);
			return true;
		}
	}
	return false;
}

/* Return the share of the largest row that matches the search, hidden ones included. */
static double hidden_share(struct ui_state *st)
{
	struct list *list = ui_state_list(st);
	const struct view *v = view_of(st->view);
	struct list_position position = list_position(list);
	struct match filter = list->filter;
	double limit = st->percent_limit, share = 0;
	bool tree = st->process_tree;

	match_init(&list->filter);
	st->percent_limit = 0;
	st->process_tree = false;
	table_rebuild(st, st->view);
	for (uint32_t i = 0; i < list->nr; i++)
		if (v->finds(st, &list->rows[i], &list->search) != list->search.negate)
			share = MAX(share, MAX(list->rows[i].total, list->rows[i].self));
	match_fini(&list->filter);
	list->filter = filter;
	st->percent_limit = limit;
	st->process_tree = tree;
	table_rebuild(st, st->view);
	list_restore(list, &position);
	return share;
}

void table_missed(struct ui_state *st, char *buf, size_t size)
{
	const struct list *list = ui_state_list(st);
	const struct view *v = view_of(st->view);
	const char *where = "in folded rows (* unfolds)";
	char pct[FORMAT_MAX];
	double share = 0;

	if (v->missed)
		where = v->missed(st, &list->search, &share);
	else if (list->nr_hidden || (st->view == VIEW_PROCESSES && st->process_tree))
		share = hidden_share(st);
	if (match_active(&list->filter))
		where = "but hidden by the filter (Esc clears it)";
	else if (!v->missed && list->nr_hidden)
		where = "but hidden by the limit (L)";
	if (share > 0)
		snprintf(buf, size, "%s%% in all, %s", format_percent(pct, share).str, where);
	else
		snprintf(buf, size, "not found");
}

void table_sort_by(struct ui_state *st, uint8_t column)
{
	struct list *list = ui_state_list(st);

	assert(column < view_of(st->view)->nr_columns);
	list->inverted = list->sort == column && !list->inverted &&
			 !view_of(st->view)->columns[column].one_way;
	list->sort = column;
	table_reorder(st);
}

static unsigned int column_width(const struct ui_state *st, const struct view_column *column,
				 unsigned int cols)
{
	/* Wide screens give more width to names. */
	if ((cols >= 160 && column->wide && column->ascending) ||
	    (cols >= 80 && column->broad && column->broad(st)))
		return column->wide + column->wide / 2u;
	return cols >= 100 && column->wide ? column->wide : column->width;
}

/* Lay out the columns; cols 0: not shown. */
static void lay_out(const struct ui_state *st, const struct view *v, uint32_t picked,
		    unsigned int cols, struct view_field *places)
{
	unsigned int used = 0, col = 1, nr_open = 0, rest;
	bool shown[COLUMNS_MAX] = { false };

	assert(v->nr_columns <= COLUMNS_MAX);
	for (int i = 0; i < v->nr_columns; i++) {
		shown[i] = columns_shown(st, v, picked, i, cols);
		if (!shown[i])
			continue;
		used += column_width(st, &v->columns[i], cols) + 1;
		nr_open += !column_width(st, &v->columns[i], cols);
	}
	rest = cols > used + 1 ? cols - used - 1 : 0;
	for (int i = 0; i < v->nr_columns; i++) {
		unsigned int width = column_width(st, &v->columns[i], cols);

		places[i] = (struct view_field){ 0 };
		if (!shown[i] || col >= cols)
			continue;
		if (!width) {
			width = MAX(rest / nr_open, picked ? OPEN_LEAST : 1u);
			rest -= MIN(rest, width);
			nr_open--;
		}
		places[i].col = col;
		places[i].cols = MIN(width, cols - col);
		col += width + 1;
	}
}

static void draw_head(struct ui_state *st, struct canvas *c, const struct view *v,
		      const struct list *list, const struct view_field *places, unsigned int row)
{
	canvas_fill(c, row, 0, c->cols, TEXT(" "), (struct style){ ROLE_HEAD, 0 });
	for (int i = 0; i < v->nr_columns; i++) {
		const struct view_column *column = &v->columns[i];
		struct view_field at = places[i];
		bool sorted = i == list->sort && columns_sortable(st, v, i);
		char buf[TEXT_MAX];
		struct safe_text title = columns_heading(st, column, c->ascii, buf);
		struct style style = { sorted ? ROLE_SORTED : ROLE_HEAD, 0 };
		unsigned int width = MIN(title.width + (unsigned int)sorted, at.cols), col = at.col;

		if (!at.cols)
			continue;
		if (column->right)
			col += at.cols - width;
		if (column->heading)
			canvas_elide(c, row, col, width - sorted, title, style);
		else
			canvas_text(c, row, col, width, title, style);
		if (sorted)
			canvas_text(c, row, col + width - 1, 1,
				    column->ascending != list->inverted ? st->glyphs->ascending
									: st->glyphs->descending,
				    style);
		if (columns_sortable(st, v, i))
			ui_state_zone(st, &(struct zone){ (uint16_t)row, (uint16_t)at.col, 1,
							  (uint16_t)at.cols, ZONE_COLUMN,
							  (uint32_t)i });
	}
}

/* Mark a figure with "~", if there is a free cell: noise may explain that the row is here. */
static void mark_tie(const struct ui_state *st, struct canvas *c, const struct view *v,
		     const struct row *row, struct view_field at)
{
	const struct cell *cell = canvas_at(c, at.row, at.col);

	if (cell->text[0] == ' ' && order_is_tie(st, v, &st->lists[st->view], row))
		canvas_text(c, at.row, at.col, 1, TEXT("~"), (struct style){ ROLE_DIM, 0 });
}

static void draw_row(const struct ui_state *st, struct canvas *c, const struct view *v,
		     const struct row *row, const struct view_field *places, unsigned int at)
{
	if (v->draw_row) {
		v->draw_row(st, row, c,
			    (struct view_field){ at, 1, c->cols > 1 ? c->cols - 1 : 0 });
		return;
	}
	for (int i = 0; i < v->nr_columns; i++) {
		struct view_field place = places[i];

		place.row = at;
		if (!place.cols)
			continue;
		v->columns[i].draw(st, row, c, place);
		if (i == st->lists[st->view].sort)
			mark_tie(st, c, v, row, place);
	}
}

/* Report whether no sample of the window has a stack: there is no function to show. */
static bool is_without_stacks(const struct ui_state *st)
{
	const struct profile *p = st->shown;

	return p->window_no_stack > 0 && p->window_no_stack >= p->window_samples;
}

/* Describe the state before the first profile: the progress of reading a recording, or the wait for
 * samples. */
static struct safe_text start_text(const struct ui_state *st, char buf[static IDLE_MAX])
{
	int permille = sampler_reading_permille(st->sampler);
	const char *path = st->config->recording ? st->config->recording : "", *name;
	char text[IDLE_MAX];

	if (permille < 0)
		return TEXT("waiting for the first samples");
	name = strrchr(path, '/');
	snprintf(text, sizeof(text), "reading %.80s: %d %%", name && name[1] ? name + 1 : path,
		 permille / 10);
	return ui_state_clean(buf, IDLE_MAX, text);
}

/* Return why there are no rows, in @buf if need be. */
static struct safe_text empty_text(const struct ui_state *st, char buf[static IDLE_MAX])
{
	const struct profile *p = st->shown;
	uint32_t event = p && p->nr_events ? ui_state_event(st, p) : 0;
	char n[FORMAT_MAX];

	if (!p)
		return start_text(st, buf);
	if (folds_is_late(st))
		return text_format(buf, IDLE_MAX, "folding %s stacks",
				   format_count(n, p->nr_stacks).str);
	if (st->lists[st->view].nr_hidden)
		return TEXT("no row matches (Esc clears the filter, L sets the limit)");
	if (view_of(st->view)->empty.size)
		return view_of(st->view)->empty;
	if (st->lists[st->view].loading > 0)
		return TEXT("loading symbols");
	if (!p->sampling)
		return TEXT("sampling is stopped (S starts it)");
	if (!p->nr_counts)
		return idle_text(p, event, buf);
	if (is_without_stacks(st))
		return text_format(buf, IDLE_MAX, "%s samples, none with a stack (2: processes)",
				   format_count(n, p->window_no_stack).str);
	if (st->scope.drilled)
		return text_format(buf, IDLE_MAX, "no %s of %s in this window (Esc: back)",
				   idle_samples(p, event), st->scope.process_name);
	if (match_active(&st->scope.cgroup))
		return text_format(buf, IDLE_MAX, "no %s of cgroup '%s' (:cgroup shows all)",
				   idle_samples(p, event), st->scope.cgroup.text);
	if (st->scope.by_user)
		return text_format(buf, IDLE_MAX, "no %s of this user in this window (u: others)",
				   idle_samples(p, event));
	if (st->scope.hide_kernel || st->scope.hide_user)
		return TEXT("all functions are hidden (K: of the kernel, U: of programs)");
	return text_format(buf, IDLE_MAX, "no %s in this window", idle_samples(p, event));
}

void table_draw_empty(const struct ui_state *st, struct canvas *c, unsigned int row,
		      unsigned int rows)
{
	/* The banner (missing permissions), else the worst message. */
	const struct profile_message *banner = ui_state_message(st, "banner");
	/* That there is no PMU explains nothing here. */
	bool known = banner &&
		     !strncmp(banner->detail, PROFILE_NO_CYCLES, sizeof(PROFILE_NO_CYCLES) - 1);
	const struct profile_message *n = banner && !known ? banner : ui_state_worst(st);
	struct foot f = { c, row + 2, rows > 2 ? rows - 2 : 0, c->cols, 0 };
	char text[IDLE_MAX], buf[sizeof(n->detail)];

	if (c->cols > 2)
		canvas_elide(c, row, 2, c->cols - 2, empty_text(st, text),
			     (struct style){ ROLE_DIM, 0 });
	if (!n || !st->shown || !st->shown->sampling || folds_is_late(st) ||
	    st->lists[st->view].nr_hidden || view_of(st->view)->empty.size)
		return;
	/* Not "why": it may have nothing to do with the absence of samples. */
	foot_text(&f, TEXT("Note"), ui_state_clean(buf, sizeof(buf), n->detail).str);
	foot_text(&f, TEXT("Fix"),
		  n->fix[0] ? ui_state_clean(buf, sizeof(buf), n->fix).str : "none needed");
}

/* Draw the rows that disappeared since the baseline, and the view's lines about the row. Return the
 * lines used. */
static unsigned int fill_foot(const struct ui_state *st, const struct view *v,
			      const struct list *list, struct foot *f)
{
	const struct row *at = list->cursor < list->nr ? &list->rows[list->cursor] : NULL;

	if (list->gone[0])
		foot_text(f, TEXT("gone"), list->gone);
	if (v->foot)
		v->foot(st, at, f);
	return f->used;
}

/* Draw these lines at the bottom if they fit. Return the rows left. */
static unsigned int draw_foot(struct ui_state *st, struct canvas *c, const struct view *v,
			      unsigned int row, unsigned int rows)
{
	const struct list *list = ui_state_list(st);
	struct foot f = { .rows = rows, .cols = c->cols };
	unsigned int wanted, least = MIN(list->nr + 2, 5u);

	if (!st->shown || rows < least + 3)
		return rows;
	wanted = fill_foot(st, v, list, &f);
	/* Rows before text: at most half of the screen. */
	least = MAX(least, MIN(list->nr + 2, rows / 2));
	wanted = MIN(wanted, rows - least - 1);
	if (!wanted)
		return rows;
	f = (struct foot){ c, row + rows - wanted, wanted, c->cols, 0 };
	canvas_fill(c, f.row - 1, 1, c->cols - 2, st->glyphs->hline, (struct style){ ROLE_DIM, 0 });
	fill_foot(st, v, list, &f);
	return rows - wanted - 1;
}

void table_draw(struct ui_state *st, struct canvas *c, unsigned int row, unsigned int rows)
{
	const struct view *v = view_of(st->view);
	struct list *list = ui_state_list(st);
	struct view_field places[COLUMNS_MAX] = { 0 };

	if (v->draw) {
		v->draw(st, c, row, rows);
		return;
	}
	rows = draw_foot(st, c, v, row, rows);
	if (!rows)
		return;
	lay_out(st, v, list->columns, c->cols, places);
	if (!v->draw_row) {
		draw_head(st, c, v, list, places, row++);
		rows--;
	}
	/* Keep the cursor in sight if the screen shrinks. */
	if (list->page != rows) {
		bool visible = list->cursor >= list->top && list->cursor < list->top + list->page;

		list->page = rows;
		scroll_to(list, visible);
	}
	if (!list->nr && rows)
		table_draw_empty(st, c, row, rows);
	ui_state_zone(st, &(struct zone){ (uint16_t)row, 0, (uint16_t)rows, (uint16_t)c->cols,
					  ZONE_ROWS, list->top });
	for (uint32_t i = 0; i < rows && list->top + i < list->nr; i++) {
		if (v->finish)
			v->finish(st, &list->rows[list->top + i]);
		draw_row(st, c, v, &list->rows[list->top + i], places, row + i);
		if (list->top + i != list->cursor)
			continue;
		canvas_text(c, row + i, 0, 1, st->glyphs->marker, (struct style){ 0 });
		canvas_restyle(c, row + i, 0, c->cols, (struct style){ ROLE_SELECTED, 0 }, false);
	}
}
