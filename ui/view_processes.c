// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * View 2: the processes that have samples, or (H) their threads. The main
 * thread; reads the state, changes none of it.
 */
#include "ui/view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/format.h"
#include "ui/users.h"

static const struct profile_process *process_of(const struct ui_state *st, const struct row *row)
{
	return &st->shown->processes[row->index];
}

/* What the row is called by: the thread's own name and number, where rows are threads. */
static struct safe_text comm_of(const struct ui_state *st, const struct row *row)
{
	return st->by_thread && row->task < st->shown->nr_tasks ? st->shown->tasks[row->task].comm
								: process_of(st, row)->comm;
}

static pid_t pid_of(const struct ui_state *st, const struct row *row)
{
	return st->by_thread && row->task < st->shown->nr_tasks ? st->shown->tasks[row->task].tid
								: process_of(st, row)->pid;
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
	pid_t pa = pid_of(st, a), pb = pid_of(st, b);

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
	return strcasecmp(comm_of(st, a).str, comm_of(st, b).str);
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
	draw_number(c, at, pid_of(st, row));
}

static void draw_user(const struct ui_state *st, const struct row *row, struct canvas *c,
		      struct place at)
{
	char buf[64];

	canvas_elide(c, at.row, at.col, at.cols,
		     users_name(st->config->users, process_of(st, row)->uid, buf, sizeof(buf)),
		     (struct style){ ROLE_NORMAL, 0 });
}

/*
 * Of one CPU. Only events that count time can tell: their weight is
 * nanoseconds of running.
 */
static void draw_cpu(const struct ui_state *st, const struct row *row, struct canvas *c,
		     struct place at)
{
	const struct profile *p = st->shown;
	const struct profile_event *ev = &p->events[ui_state_event(st, p)];
	char buf[FORMAT_MAX];

	if (!ev->event.clock || !p->window_ns)
		canvas_right(c, at.row, at.col, at.cols, TEXT("-"), (struct style){ ROLE_DIM, 0 });
	else
		canvas_right(c, at.row, at.col, at.cols,
			     text_format(buf, sizeof(buf), "%.1f",
					 row->self * 100 / (double)p->window_ns),
			     (struct style){ ROLE_NORMAL, 0 });
}

static void draw_tasks(const struct ui_state *st, const struct row *row, struct canvas *c,
		       struct place at)
{
	if (!st->by_thread)
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
	struct safe_text comm = comm_of(st, row);
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

enum { SHARE, BAR, CPU, SAMPLES, PID, USER, TASKS, COMM, HOTTEST };

/* The last column that is shown takes what is left: COMM does where HOTTEST is not. */
static const struct view_column columns[] = {
	[SHARE] = { .title = TEXT("SHARE%"),
		    .help = "share of all samples",
		    .width = 7,
		    .right = true,
		    .compare = by_share,
		    .draw = draw_share },
	[BAR] = { .title = TEXT(""), .width = 8, .wide = 12, .from = 46, .draw = draw_bar },
	[CPU] = { .title = TEXT("CPU%"),
		  .help = "of one CPU, where the event counts time",
		  .width = 6,
		  .from = 86,
		  .right = true,
		  .compare = by_share,
		  .draw = draw_cpu },
	[SAMPLES] = { .title = TEXT("SAMPLES"),
		      .width = 10,
		      .from = 90,
		      .right = true,
		      .draw = draw_samples },
	[PID] = { .title = TEXT("PID"),
		  .help = "process id; with H, thread id",
		  .width = 8,
		  .right = true,
		  .ascending = true,
		  .compare = by_pid,
		  .draw = draw_pid },
	[USER] = { .title = TEXT("USER"),
		   .help = "user",
		   .width = 8,
		   .wide = 10,
		   .from = 66,
		   .ascending = true,
		   .compare = by_uid,
		   .draw = draw_user },
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

static int build_processes(const struct ui_state *st, const struct fold_filter *filter,
			   struct list *list)
{
	struct fold_processes fold;
	int rc = fold_processes(st->shown, filter, &fold);

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
		row->self = f->weight;
		row->total = fold.weight > 0 ? f->weight / fold.weight : 0;
		row->count = f->count;
		row->nr = f->nr_tasks;
		row->top_function = f->top_function;
	}
	fold_processes_fini(&fold);
	return rc;
}

/* What a thread's cells add up to. */
struct thread_sum {
	double count, weight, most;	/* @most: of one stack */
	uint32_t top_function;
};

/* The hottest function of a thread is that of its hottest stack: near enough for a label. */
static void add_cell(struct thread_sum *sum, const struct profile *p, const struct profile_cell *c)
{
	const struct profile_stack *stack = &p->stacks[c->stack];

	sum->count += c->count;
	sum->weight += c->weight;
	if (!stack->nr || c->weight <= sum->most)
		return;
	sum->most = c->weight;
	sum->top_function = p->frames[stack->first];
}

static int add_threads(const struct ui_state *st,
		       const struct thread_sum *sums, double all, struct list *list)
{
	const struct profile *p = st->shown;

	for (uint32_t i = 0; i < p->nr_tasks; i++) {
		struct row *row;

		if (sums[i].count <= 0 || p->tasks[i].process >= p->nr_processes)
			continue;
		row = list_add(list);
		if (!row)
			return -ENOMEM;
		row->id = p->tasks[i].id;
		row->index = p->tasks[i].process;
		row->task = i;
		row->self = sums[i].weight;
		row->total = all > 0 ? sums[i].weight / all : 0;
		row->count = sums[i].count;
		row->nr = 1;
		row->top_function = sums[i].top_function;
		list->count += sums[i].count;
	}
	return 0;
}

static int build_threads(const struct ui_state *st, const struct fold_filter *filter,
			 struct list *list)
{
	const struct profile *p = st->shown;
	struct thread_sum *sums = calloc(p->nr_tasks ? p->nr_tasks : 1, sizeof(*sums));
	double all = 0;
	int rc;

	if (!sums)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->nr_tasks; i++)
		sums[i].top_function = UINT32_MAX;
	for (uint32_t i = 0; i < p->nr_cells; i++) {
		const struct profile_cell *cell = &p->cells[i];

		if (cell->event != filter->event || cell->task >= p->nr_tasks ||
		    (filter->process != UINT32_MAX &&
		     p->tasks[cell->task].process != filter->process))
			continue;
		add_cell(&sums[cell->task], p, cell);
		all += cell->weight;
	}
	rc = add_threads(st, sums, all, list);
	free(sums);
	return rc;
}

/* One row per process that has samples, or per thread (of the process drilled into). */
static int build(const struct ui_state *st, struct list *list)
{
	struct fold_filter filter = { .process = UINT32_MAX,
				      .task = UINT32_MAX,
				      .hide_kernel = st->hide_kernel,
				      .hide_user = st->hide_user };

	if (!st->shown)
		return 0;
	filter.event = ui_state_event(st, st->shown);
	if (!st->by_thread)
		return build_processes(st, &filter, list);
	if (st->drilled)
		filter.process = ui_state_process(st);
	return build_threads(st, &filter, list);
}

static bool finds(const struct ui_state *st, const struct row *row, const struct match *m)
{
	char pid[24];
	int n = snprintf(pid, sizeof(pid), "%d", (int)pid_of(st, row));

	return match_finds(m, comm_of(st, row)) || match_finds(m, hottest_of(st, row)) ||
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
