// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * View 2: the processes that have samples. The main thread; reads the state,
 * changes none of it.
 */
#include "ui/view.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ui/format.h"

static const struct profile_process *process_of(const struct ui_state *st, const struct row *row)
{
	return &st->shown->processes[row->index];
}

static struct safe_text hottest_of(const struct ui_state *st, const struct row *row)
{
	return row->top_function < st->shown->nr_functions
		       ? st->shown->functions[row->top_function].name
		       : TEXT("");
}

static int by_share(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return (a->total > b->total) - (a->total < b->total);
}

static int by_pid(const struct ui_state *st, const struct row *a, const struct row *b)
{
	pid_t pa = process_of(st, a)->pid, pb = process_of(st, b)->pid;

	return (pa > pb) - (pa < pb);
}

static int by_uid(const struct ui_state *st, const struct row *a, const struct row *b)
{
	uid_t ua = process_of(st, a)->uid, ub = process_of(st, b)->uid;

	return (ua > ub) - (ua < ub);
}

static int by_tasks(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return (a->nr > b->nr) - (a->nr < b->nr);
}

static int by_comm(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return strcasecmp(process_of(st, a)->comm.str, process_of(st, b)->comm.str);
}

static int by_hottest(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return strcasecmp(hottest_of(st, a).str, hottest_of(st, b).str);
}

static void draw_share(const struct ui_state *st, const struct row *row, struct canvas *c,
		       struct place at)
{
	view_draw_percent(c, at, row->total);
}

static void draw_bar(const struct ui_state *st, const struct row *row, struct canvas *c,
		     struct place at)
{
	view_draw_bar(st, c, at, row->total,
		      row->total > 0.5	  ? ROLE_BAR_HOT
		      : row->total > 0.15 ? ROLE_BAR_WARM
					  : ROLE_BAR);
}

static void draw_number(struct canvas *c, struct place at, long long n)
{
	char buf[24];
	int size = snprintf(buf, sizeof(buf), "%lld", n);

	canvas_right(c, at.row, at.col, at.cols,
		     (struct safe_text){ buf, (uint16_t)size, (uint16_t)size },
		     (struct style){ ROLE_NORMAL, 0 });
}

static void draw_pid(const struct ui_state *st, const struct row *row, struct canvas *c,
		     struct place at)
{
	draw_number(c, at, process_of(st, row)->pid);
}

static void draw_uid(const struct ui_state *st, const struct row *row, struct canvas *c,
		     struct place at)
{
	draw_number(c, at, process_of(st, row)->uid);
}

static void draw_tasks(const struct ui_state *st, const struct row *row, struct canvas *c,
		       struct place at)
{
	draw_number(c, at, row->nr);
}

static void draw_samples(const struct ui_state *st, const struct row *row, struct canvas *c,
			 struct place at)
{
	char buf[FORMAT_MAX];

	canvas_right(c, at.row, at.col, at.cols, format_count(buf, row->count),
		     (struct style){ ROLE_NORMAL, 0 });
}

static void draw_comm(const struct ui_state *st, const struct row *row, struct canvas *c,
		      struct place at)
{
	const struct list *list = &st->lists[VIEW_PROCESSES];
	struct safe_text comm = process_of(st, row)->comm;
	bool found = match_active(&list->search) && !list->search.negate &&
		     match_finds(&list->search, comm);

	canvas_elide(c, at.row, at.col, at.cols, comm,
		     (struct style){ ROLE_VALUE, found ? CELL_UNDERLINE : 0 });
}

static void draw_hottest(const struct ui_state *st, const struct row *row, struct canvas *c,
			 struct place at)
{
	char kind = row->top_function < st->shown->nr_functions
			    ? st->shown->functions[row->top_function].kind
			    : '?';

	canvas_elide(c, at.row, at.col, at.cols, hottest_of(st, row),
		     (struct style){ theme_kind(kind), 0 });
}

enum { SHARE, BAR, SAMPLES, PID, UID, TASKS, COMM, HOTTEST };

/* The last column that is shown takes what is left: COMM does where HOTTEST is not. */
static const struct view_column columns[] = {
	[SHARE] = { .title = TEXT("SHARE%"),
		    .help = "share of all samples",
		    .width = 7,
		    .right = true,
		    .compare = by_share,
		    .draw = draw_share },
	[BAR] = { .title = TEXT(""), .width = 8, .wide = 12, .from = 46, .draw = draw_bar },
	[SAMPLES] = { .title = TEXT("SAMPLES"),
		      .width = 10,
		      .from = 90,
		      .right = true,
		      .draw = draw_samples },
	[PID] = { .title = TEXT("PID"),
		  .help = "process id",
		  .width = 8,
		  .right = true,
		  .ascending = true,
		  .compare = by_pid,
		  .draw = draw_pid },
	[UID] = { .title = TEXT("UID"),
		  .help = "user id",
		  .width = 6,
		  .from = 66,
		  .right = true,
		  .ascending = true,
		  .compare = by_uid,
		  .draw = draw_uid },
	[TASKS] = { .title = TEXT("TASKS"),
		    .help = "threads with samples",
		    .width = 6,
		    .from = 56,
		    .right = true,
		    .compare = by_tasks,
		    .draw = draw_tasks },
	[COMM] = { .title = TEXT("COMMAND"),
		   .help = "name",
		   .width = 17,
		   .wide = 17,
		   .ascending = true,
		   .compare = by_comm,
		   .draw = draw_comm },
	[HOTTEST] = { .title = TEXT("HOTTEST FUNCTION"),
		      .help = "function with most self time",
		      .ascending = true,
		      .from = 60,
		      .compare = by_hottest,
		      .draw = draw_hottest },
};

/* One row per process that has samples. */
static int build(const struct ui_state *st, struct list *list)
{
	struct fold_filter filter = { .process = UINT32_MAX,
				      .task = UINT32_MAX,
				      .hide_kernel = st->hide_kernel,
				      .hide_user = st->hide_user };
	struct fold_processes fold;
	int rc;

	if (!st->shown)
		return 0;
	filter.event = ui_state_event(st, st->shown);
	rc = fold_processes(st->shown, &filter, &fold);
	if (rc)
		return rc;
	list->count = fold.count;
	for (uint32_t i = 0; i < fold.nr_rows; i++) {
		const struct fold_process_row *f = &fold.rows[i];
		struct row *row = list_add(list);

		if (!row) {
			rc = -ENOMEM;
			break;
		}
		row->id = st->shown->processes[f->process].id;
		row->index = f->process;
		row->self = row->total = fold.weight > 0 ? f->weight / fold.weight : 0;
		row->count = f->count;
		row->nr = f->nr_tasks;
		row->top_function = f->top_function;
	}
	fold_processes_fini(&fold);
	return rc;
}

static bool finds(const struct ui_state *st, const struct row *row, const struct match *m)
{
	char pid[24];
	int n = snprintf(pid, sizeof(pid), "%d", (int)process_of(st, row)->pid);

	return match_finds(m, process_of(st, row)->comm) || match_finds(m, hottest_of(st, row)) ||
	       match_finds(m, (struct safe_text){ pid, (uint16_t)n, (uint16_t)n });
}

const struct view view_processes = {
	.title = TEXT("Processes"),
	.columns = columns,
	.nr_columns = ARRAY_SIZE(columns),
	.sort_self = SHARE,
	.sort_total = SHARE,
	.sort_module = UINT8_MAX,
	.build = build,
	.finds = finds,
};
