// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * View 1: the hottest functions, of everything or of one process. The main thread; reads the state
 * only.
 */
#include "ui/view/view.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "ui/view/baseline.h"
#include "ui/view/baseline_match.h"
#include "ui/fold/fold.h"
#include "ui/view/function_columns.h"

static const struct profile_function *function_of(const struct ui_state *st, const struct row *row)
{
	return &st->shown->functions[row->index];
}

/* Return whether the function is of another module than the selected one. */
static bool left_out(const struct ui_state *st, uint32_t function)
{
	uint32_t module = st->shown->functions[function].module_index;

	return st->only.on &&
	       (module >= st->shown->nr_modules || st->shown->modules[module].id != st->only.id);
}

/* Return whether the row is an address of an object that is loading: another row a moment later. */
static bool is_loading(const struct profile *p, const struct profile_function *f)
{
	return f->unnamed && f->module_index < p->nr_modules &&
	       p->modules[f->module_index].state == PROFILE_MODULE_LOADING;
}

/* One row per function that has samples. */
static int build(const struct ui_state *st, struct list *list)
{
	const struct fold_functions *fold = folds_functions(st);
	const double *others[ROW_EVENTS], *ratios;

	if (!fold)
		return 0;
	for (uint32_t n = 0; n < ROW_EVENTS; n++)
		others[n] = folds_other_shares(st, n);
	ratios = folds_ratios(st);
	list->count = fold->count;
	list->loading = 0;
	for (uint32_t i = 0; i < fold->nr_rows; i++) {
		const struct fold_row *f = &fold->rows[i];
		struct row *row;

		if (left_out(st, f->function))
			continue;
		if (is_loading(st->shown, &st->shown->functions[f->function])) {
			list->loading += fold->weight > 0 ? f->self_weight / fold->weight : 0;
			continue;
		}
		row = list_add(list);
		if (!row)
			return -ENOMEM;
		row->id = st->shown->functions[f->function].id;
		row->index = f->function;
		row->self = fold->weight > 0 ? f->self_weight / fold->weight : 0;
		row->total = fold->weight > 0 ? f->total_weight / fold->weight : 0;
		row->count = f->self;
		row->total_count = f->total;
		row->task = f->task;
		row->nr = f->nr_processes;
		row->nr_tasks = f->nr_tasks;
		row->mixed = f->mixed;
		for (uint32_t n = 0; n < ROW_EVENTS; n++)
			row->other[n] = others[n] ? (float)others[n][f->function] : -1;
		for (uint32_t n = 0; n < RATIOS_MAX; n++)
			row->ratios[n] = ratios ? (float)ratios[f->function * RATIOS_MAX + n] : NAN;
		if (function_columns_is_change(list->sort))
			folds_compare(st, row);
	}
	return 0;
}

static void finish(const struct ui_state *st, struct row *row)
{
	if (!baseline_is_on(st))
		folds_compare(st, row);
}

static bool finds(const struct ui_state *st, const struct row *row, const struct match *m)
{
	const struct profile_function *f = function_of(st, row);
	char comm[FORMAT_MAX * 2];

	return match_finds_function(m, f) || match_finds(m, function_columns_comm(st, row, comm));
}

static struct safe_text name(const struct ui_state *st, const struct row *row, char *buf,
			     size_t size)
{
	return function_of(st, row)->name;
}

static uint32_t function(const struct ui_state *st, const struct row *row)
{
	return row->index;
}

static uint32_t module(const struct ui_state *st, const struct row *row)
{
	return st->shown->functions[row->index].module_index;
}

static size_t options(const struct ui_state *st, char *buf, size_t size)
{
	double loading = st->lists[VIEW_FUNCTIONS].loading;
	char share[FORMAT_MAX];
	size_t n = 0;

	if (st->only.on)
		n = (size_t)snprintf(buf, size, "  only %s (d)", st->only.name);
	if (loading >= 0.005 && n < size)
		n += (size_t)snprintf(buf + n, size - n, "  loading symbols: %s of samples",
				      format_share(share, loading).str);
	return n;
}

static uint64_t identity(const struct ui_state *st, const struct row *row)
{
	return baseline_match_name(st->shown, row->index);
}

static const struct view_label labels[] = { { ACT_OPEN, "Callers" }, { ACT_NONE, NULL } };

const struct view view_functions = {
	.title = TEXT("Functions"),
	.context = CTX_LIST,
	.scoped = true,
	.by_module = true,
	.labels = labels,
	.columns = function_columns,
	.nr_columns = FUNCTION_COLUMNS_NR,
	.sorts = &function_columns_sorts,
	.build = build,
	.finish = finish,
	.finds = finds,
	.compared = COMPARED_SELF,
	.name = name,
	.identity = identity,
	.function = function,
	.module = module,
	.options = options,
};
