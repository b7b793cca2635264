// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * View 2: the processes that have samples, one row for each name (=), or (t) below their
 * parents, or (H) their threads. Runs on: the main thread.
 */
#include "ui/view/view.h"

#include <stdio.h>

#include "ui/text/users.h"
#include "ui/view/baseline_match.h"
#include "ui/fold/fold.h"
#include "ui/view/navigate.h"
#include "ui/view/process_columns.h"
#include "ui/view/process_rows.h"
#include "ui/view/process_tree.h"
#include "ui/view/table.h"
#include "ui/view/times.h"

static struct safe_text name(const struct ui_state *st, const struct row *row, char *buf,
			     size_t size)
{
	char comm[TEXT_MAX];

	if (process_rows_is_group(st, row))
		return text_format(buf, size, "%s", process_rows_name(st, row, comm).str);
	return text_format(buf, size, "%s[%d]", process_rows_name(st, row, comm).str,
			   (int)process_rows_pid(st, row));
}

static bool hottest_finds(const struct ui_state *st, const struct row *row, const struct match *m)
{
	return row->top_function < st->shown->nr_functions &&
	       match_finds_name(m, &st->shown->functions[row->top_function]);
}

static bool finds(const struct ui_state *st, const struct row *row, const struct match *m)
{
	const struct profile_process *p = process_rows_process(st, row);
	char buf[TEXT_MAX], comm[TEXT_MAX];

	return match_finds(m, process_rows_name(st, row, comm)) || match_finds(m, p->comm) ||
	       hottest_finds(st, row, m) ||
	       match_finds(m,
			   text_format(buf, sizeof(buf), "%d", (int)process_rows_pid(st, row))) ||
	       match_finds(m, process_rows_command(st, row)) ||
	       match_finds(m, process_rows_text(p->cgroup)) ||
	       match_finds(m, process_rows_text(p->container)) ||
	       match_finds(m, users_name(st->config->users, p->uid, buf, sizeof(buf)));
}

/* Show command and cgroup in full. */
static unsigned int foot(const struct ui_state *st, const struct row *row, struct foot *f)
{
	const struct profile_process *p = row ? process_rows_process(st, row) : NULL;
	char buf[256];

	if (row && times_on(st))
		foot_text(f, TEXT("Time"), times_legend(st, row->waits, buf, sizeof(buf)).str);
	if (!p || !process_rows_text(p->cgroup).size)
		return f->used;
	foot_line(f, process_rows_is_group(st, row) ? TEXT("Busiest") : TEXT("Command"),
		  p->command.size ? p->command : p->comm);
	foot_line(f, TEXT("Cgroup"), p->cgroup);
	return f->used;
}

static void arrange(const struct ui_state *st, struct list *list)
{
	if (!process_rows_in_tree(st))
		return;
	process_tree_arrange(st, list);
	/* The row above is no sibling. */
	list->by_share = false;
}

/* ---- keys ---- */

static void fold(struct ui_state *st, const struct row *row, bool closed)
{
	if (row->parent && st->folds)
		folds_mark(st, process_tree_mark(row->id), closed ? MARK_CLOSED : MARK_OPEN);
	table_rebuild(st, VIEW_PROCESSES);
}

/* Select the parent row. */
static void go_up(struct ui_state *st)
{
	const struct list *list = &st->lists[VIEW_PROCESSES];
	uint32_t at = list->cursor, depth = list->rows[at].depth;

	while (at && list->rows[at].depth >= depth)
		at--;
	if (list->rows[at].depth < depth)
		table_move_to(st, at);
}

/* Open or close all rows in sight. Return false if there was none to change. */
static bool fold_these(struct ui_state *st, bool closed)
{
	const struct list *list = &st->lists[VIEW_PROCESSES];
	bool any = false;

	for (uint32_t i = 0; i < list->nr; i++) {
		const struct row *row = &list->rows[i];

		if (!row->parent || row->folded == closed)
			continue;
		folds_mark(st, process_tree_mark(row->id), closed ? MARK_CLOSED : MARK_OPEN);
		any = true;
	}
	table_rebuild(st, VIEW_PROCESSES);
	return any;
}

/* Unfold all, level by level; where nothing is folded, fold all. */
static void fold_all(struct ui_state *st)
{
	int levels = 0;

	while (st->folds && fold_these(st, false) && levels < UINT8_MAX)
		levels++;
	if (st->folds && !levels)
		fold_these(st, true);
}

static bool act(struct ui_state *st, enum action action, uint32_t code)
{
	const struct list *list = &st->lists[VIEW_PROCESSES];
	const struct row *row = list->cursor < list->nr ? &list->rows[list->cursor] : NULL;
	bool ancestor = row && st->shown && row->index >= st->shown->nr_processes;

	if (action == ACT_TREE) {
		process_rows_keep_selected(st);
		st->process_tree = !process_rows_in_tree(st);
		st->by_thread = false;
		table_rebuild(st, VIEW_PROCESSES);
		return true;
	}
	if (action == ACT_OPEN && row && st->shown && !(process_rows_in_tree(st) && ancestor)) {
		if (st->by_thread)
			navigate_into_thread(st, row);
		else if (process_rows_is_group(st, row))
			navigate_into_group(st, row->index);
		else
			navigate_into_process(st, process_rows_process(st, row)->id);
		return true;
	}
	if (!process_rows_in_tree(st) || !row)
		return false;
	switch (action) {
	case ACT_UNFOLD:
	case ACT_SCROLL_RIGHT:
		fold(st, row, false);
		return true;
	case ACT_FOLD:
	case ACT_SCROLL_LEFT:
		if (row->parent && !row->folded)
			fold(st, row, true);
		else
			go_up(st);
		return true;
	case ACT_UNFOLD_ALL:
		fold_all(st);
		return true;
	case ACT_OPEN:
		fold(st, row, !row->folded);
		return true;
	default:
		return false;
	}
}

static const char *copied(const struct ui_state *st, const struct row *row,
			  char buf[static TEXT_MAX])
{
	return st->shown ? name(st, row, buf, TEXT_MAX).str : "";
}

static size_t options(const struct ui_state *st, char *buf, size_t size)
{
	if (st->by_thread)
		return st->fold_threads ? (size_t)snprintf(buf, size, "  names folded (,)") : 0;
	return process_rows_in_tree(st) || st->grouping == GROUPING_NAME
		       ? 0
		       : (size_t)snprintf(buf, size, "  by %s (=)",
					  ui_config_grouping_name(st->grouping));
}

static uint32_t function(const struct ui_state *st, const struct row *row)
{
	return row->top_function < st->shown->nr_functions ? row->top_function : UINT32_MAX;
}

static uint64_t identity(const struct ui_state *st, const struct row *row)
{
	char comm[TEXT_MAX];

	return baseline_match_text(process_rows_name(st, row, comm));
}

const struct view view_processes = {
	.title = TEXT("Processes"),
	.context = CTX_LIST,
	.columns = process_columns,
	.nr_columns = PROCESS_COLUMNS_NR,
	.sorts = &process_columns_sorts,
	.build = process_rows_build,
	.arrange = arrange,
	.compared = COMPARED_WEIGHT,
	.name = name,
	.identity = identity,
	.finds = finds,
	.foot = foot,
	.act = act,
	.function = function,
	.copied = copied,
	.options = options,
};
