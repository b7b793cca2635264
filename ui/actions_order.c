// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Actions on the order of the rows. Runs on: the main thread.
 */
#include "ui/actions_order.h"

#include "ui/dialog.h"
#include "ui/view/columns.h"
#include "ui/view/table.h"
#include "ui/view/view.h"

/* Return whether the rows can be sorted. Report it if not. */
static bool is_sortable(struct ui_state *st)
{
	const struct view *v = view_of(st->view);

	for (int i = 0; i < v->nr_columns; i++)
		if (columns_sortable(st, v, i))
			return true;
	ui_state_say(st, false, "this view cannot be sorted");
	return false;
}

static void sort_menu(struct ui_state *st, uint32_t code)
{
	if (!is_sortable(st))
		return;
	dialog_open(st, &dialog_sort);
}

static void sort_step(struct ui_state *st, int step)
{
	const struct view *v = view_of(st->view);
	struct list *list = ui_state_list(st);
	int column = list->sort;

	if (!is_sortable(st))
		return;
	/* Columns in sight only: rows sorted by another one look unsorted. */
	for (int i = 0; i < v->nr_columns; i++) {
		column = (column + step + v->nr_columns) % v->nr_columns;
		if (columns_sortable(st, v, column) &&
		    columns_shown(st, v, list->columns, column, st->cols))
			break;
	}
	list->sort = (uint8_t)column;
	list->inverted = false;
	table_reorder(st);
}

static void sort_left(struct ui_state *st, uint32_t code)
{
	sort_step(st, -1);
}

static void sort_right(struct ui_state *st, uint32_t code)
{
	sort_step(st, 1);
}

/* Return @column or, if it is hidden, a visible column of the same order. */
static uint8_t in_sight(const struct ui_state *st, uint8_t column)
{
	const struct view *v = view_of(st->view);
	uint32_t picked = st->lists[st->view].columns;

	for (int i = 0; i < v->nr_columns && !columns_shown(st, v, picked, column, st->cols); i++)
		if (v->columns[i].compare == v->columns[column].compare &&
		    columns_shown(st, v, picked, i, st->cols))
			return (uint8_t)i;
	return column;
}

static void sort_fixed(struct ui_state *st, uint8_t column)
{
	struct list *list = ui_state_list(st);

	if (column == VIEW_NO_COLUMN) {
		ui_state_say(st, false, "no such column in this view (F6 lists them)");
		return;
	}
	list->sort = in_sight(st, column);
	list->inverted = false;
	table_reorder(st);
}

static struct view_sorts sorts(const struct ui_state *st)
{
	const struct view *v = view_of(st->view);

	return v->sorts ? *v->sorts
			: (struct view_sorts){ VIEW_NO_COLUMN, VIEW_NO_COLUMN, VIEW_NO_COLUMN };
}

static void sort_self(struct ui_state *st, uint32_t code)
{
	sort_fixed(st, sorts(st).self);
}

static void sort_total(struct ui_state *st, uint32_t code)
{
	sort_fixed(st, sorts(st).total);
}

static void sort_module(struct ui_state *st, uint32_t code)
{
	sort_fixed(st, sorts(st).module);
}

static void invert(struct ui_state *st, uint32_t code)
{
	const struct view *v = view_of(st->view);
	struct list *list = ui_state_list(st);

	if (list->sort < v->nr_columns && v->columns[list->sort].one_way) {
		ui_state_say(st, false, "this column cannot be reversed (F6 lists others)");
		return;
	}
	list->inverted = !list->inverted;
	table_reorder(st);
}

void (*actions_order(enum action action))(struct ui_state *st, uint32_t code)
{
	switch (action) {
	case ACT_SORT_MENU:
		return sort_menu;
	case ACT_SORT_LEFT:
		return sort_left;
	case ACT_SORT_RIGHT:
		return sort_right;
	case ACT_SORT_SELF:
		return sort_self;
	case ACT_SORT_TOTAL:
		return sort_total;
	case ACT_SORT_MODULE:
		return sort_module;
	case ACT_INVERT:
		return invert;
	default:
		return NULL;
	}
}
