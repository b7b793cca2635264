// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The picker of columns. Runs on: the main thread.
 */
#include <stdio.h>

#include "ui/dialog.h"
#include "ui/view/columns.h"
#include "ui/view/view.h"

#define AUTOMATIC UINT64_MAX

static uint32_t shown_now(const struct ui_state *st)
{
	const struct view *v = view_of(st->view);
	uint32_t columns = 0;

	for (int i = 0; i < v->nr_columns; i++)
		if (columns_shown(st, v, st->lists[st->view].columns, i, st->cols))
			columns |= 1u << i;
	return columns;
}

static void fill(struct ui_state *st)
{
	const struct view *v = view_of(st->view);
	uint32_t now = shown_now(st);
	struct dialog_entry *entry = dialog_add(&st->dialog);

	if (!entry)
		return;
	entry->value = AUTOMATIC;
	entry->used = !st->lists[st->view].columns;
	snprintf(entry->name, sizeof(entry->name), "automatic");
	snprintf(entry->detail, sizeof(entry->detail), "all that fit the screen");
	for (int i = 0; i < v->nr_columns; i++) {
		char name[COLUMNS_NAME_MAX];

		if (v->columns[i].when && !v->columns[i].when(st))
			continue;
		entry = dialog_add(&st->dialog);
		if (!entry)
			return;
		entry->value = (uint64_t)i;
		entry->used = now & 1u << i;
		snprintf(entry->name, sizeof(entry->name), "%s",
			 columns_name(&v->columns[i], name));
		snprintf(entry->detail, sizeof(entry->detail), "%s",
			 v->columns[i].help ? v->columns[i].help : "");
	}
}

/* Toggle a column; keep the picker open. */
static bool use(struct ui_state *st, const struct dialog_entry *entry, bool add)
{
	uint32_t now = shown_now(st);

	if (!entry)
		return false;
	if (entry->value == AUTOMATIC)
		now = 0;
	else
		now ^= 1u << entry->value;
	if (entry->value == AUTOMATIC || now)
		st->lists[st->view].columns = now;
	dialog_refresh(st);
	return false;
}

const struct dialog_ops dialog_columns = {
	.title = "Columns",
	.hint = "type to filter",
	.foot = "Enter show or hide   W save   Esc close",
	.fill = fill,
	.use = use,
};
