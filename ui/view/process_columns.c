// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The columns of view 2: order, text and drawing of each. Runs on: the main thread.
 */
#include "ui/view/process_columns.h"

#include <stdio.h>
#include <string.h>

#include "ui/draw/pen.h"
#include "ui/text/format.h"
#include "ui/text/users.h"
#include "ui/view/baseline.h"
#include "ui/view/common_columns.h"
#include "ui/fold/fold.h"
#include "ui/view/process_rows.h"
#include "ui/view/process_times.h"
#include "ui/view/process_tree.h"
#include "ui/view/times.h"

/* The container, or the last part of the cgroup's path. */
static struct safe_text group_of(const struct ui_state *st, const struct row *row,
				 char buf[static TEXT_MAX])
{
	const struct profile_process *p = process_rows_process(st, row);
	const char *slash;

	if (process_rows_text(p->container).size)
		return p->container;
	slash = p->cgroup.str ? strrchr(p->cgroup.str, '/') : NULL;
	return slash && slash[1] ? ui_state_clean(buf, TEXT_MAX, slash + 1)
				 : process_rows_text(p->cgroup);
}

static bool in_list(const struct ui_state *st)
{
	return !process_rows_in_tree(st);
}

/* Recordings have no cgroups and command lines. */
static bool has_details(const struct ui_state *st)
{
	for (uint32_t i = 0; st->shown && i < st->shown->nr_processes; i++)
		if (process_rows_text(st->shown->processes[i].cgroup).size)
			return true;
	return false;
}

static bool has_command(const struct ui_state *st)
{
	return in_list(st) && has_details(st) && !times_on(st);
}

/* In the tree, function names need a wide screen. */
static bool has_room(const struct ui_state *st)
{
	return in_list(st) || st->cols >= 110;
}

static struct safe_text hottest_of(const struct ui_state *st, const struct row *row)
{
	return row->top_function < st->shown->nr_functions
		       ? st->shown->functions[row->top_function].name
		       : TEXT("");
}

static int by_pid_alone(const struct ui_state *st, const struct row *a, const struct row *b)
{
	pid_t pa = process_rows_pid(st, a), pb = process_rows_pid(st, b);

	return COMPARE(pa, pb);
}

/* Groups have no PID: the largest first. */
static int by_pid(const struct ui_state *st, const struct row *a, const struct row *b)
{
	bool x = process_rows_is_group(st, a), y = process_rows_is_group(st, b);

	if (x && y)
		return (a->nr_processes < b->nr_processes) - (a->nr_processes > b->nr_processes);
	return x || y ? y - x : by_pid_alone(st, a, b);
}

static int by_uid(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return COMPARE(process_rows_process(st, a)->uid, process_rows_process(st, b)->uid);
}

static int by_tasks(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return COMPARE(a->nr, b->nr);
}

static int by_comm(const struct ui_state *st, const struct row *a, const struct row *b)
{
	char x[TEXT_MAX], y[TEXT_MAX];

	return strcasecmp(process_rows_name(st, a, x).str, process_rows_name(st, b, y).str);
}

static int by_group(const struct ui_state *st, const struct row *a, const struct row *b)
{
	char x[TEXT_MAX], y[TEXT_MAX];

	return strcasecmp(group_of(st, a, x).str, group_of(st, b, y).str);
}

static int by_command(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return strcasecmp(process_rows_command(st, a).str, process_rows_command(st, b).str);
}

/* The self share: the total of a tree row includes its children. */
static double own_of(const struct ui_state *st, const struct row *row)
{
	const struct list *list = &st->lists[VIEW_PROCESSES];

	return list->weight > 0 ? row->self / list->weight : 0;
}

static int by_hottest(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return strcasecmp(hottest_of(st, a).str, hottest_of(st, b).str);
}

static void draw_share(const struct ui_state *st, const struct row *row, struct canvas *c,
		       struct view_field at)
{
	view_draw_percent(c, at, row->total);
}

static void draw_bar(const struct ui_state *st, const struct row *row, struct canvas *c,
		     struct view_field at)
{
	if (times_on(st)) {
		times_draw_bar(row->waits, c, at.row, at.col, at.cols);
		return;
	}
	view_draw_bar(st, c, at, row->total,
		      row->total > 0.5	  ? ROLE_BAR_HOT
		      : row->total > 0.15 ? ROLE_BAR_WARM
					  : ROLE_BAR);
}

static void draw_number(struct canvas *c, struct view_field at, long long n)
{
	char buf[24];
	int size = snprintf(buf, sizeof(buf), "%lld", n);

	canvas_right(c, at.row, at.col, at.cols,
		     (struct safe_text){ buf, (uint16_t)size, (uint16_t)size },
		     (struct style){ ROLE_NORMAL, 0 });
}

static void draw_pid(const struct ui_state *st, const struct row *row, struct canvas *c,
		     struct view_field at)
{
	pid_t pid = process_rows_pid(st, row);

	/* perf gives samples of a task that has exited the id -1. */
	if (!process_rows_is_group(st, row) && pid >= 0)
		draw_number(c, at, pid);
}

static void draw_user(const struct ui_state *st, const struct row *row, struct canvas *c,
		      struct view_field at)
{
	char buf[64];

	canvas_elide(c, at.row, at.col, at.cols,
		     users_name(st->config->users, process_rows_process(st, row)->uid, buf,
				sizeof(buf)),
		     (struct style){ ROLE_NORMAL, 0 });
}

static void draw_cpu(const struct ui_state *st, const struct row *row, struct canvas *c,
		     struct view_field at)
{
	char buf[FORMAT_MAX];

	if (row->nr)
		canvas_right(c, at.row, at.col, at.cols,
			     common_cpu(st, row->cpu_ns, row->self, buf),
			     (struct style){ ROLE_NORMAL, 0 });
}

static void draw_tasks(const struct ui_state *st, const struct row *row, struct canvas *c,
		       struct view_field at)
{
	if ((!st->by_thread || st->fold_threads) && row->nr)
		draw_number(c, at, row->nr);
}

static void draw_own(const struct ui_state *st, const struct row *row, struct canvas *c,
		     struct view_field at)
{
	if (row->nr)
		view_draw_percent(c, at, own_of(st, row));
}

static void draw_samples(const struct ui_state *st, const struct row *row, struct canvas *c,
			 struct view_field at)
{
	char buf[FORMAT_MAX];

	if (row->nr)
		canvas_right(c, at.row, at.col, at.cols, format_count(buf, row->count),
			     (struct style){ ROLE_NORMAL, 0 });
}

/* Draw a name, underlined if the search matches it. */
static unsigned int draw_name(const struct ui_state *st, struct safe_text name, struct canvas *c,
			      struct view_field at)
{
	const struct match *search = &st->lists[VIEW_PROCESSES].search;
	bool found = match_active(search) && !search->negate && match_finds(search, name);

	return canvas_elide(c, at.row, at.col, at.cols, name,
			    (struct style){ ROLE_VALUE, found ? CELL_UNDERLINE : 0 });
}

/* Return what follows a name: of a group the number of its processes, of a thread its process,
 * unless that has the same name or is open. */
static struct safe_text after_name(const struct ui_state *st, const struct row *row,
				   struct safe_text name, char buf[static TEXT_MAX])
{
	const struct profile_process *p = process_rows_process(st, row);

	if (process_rows_is_group(st, row))
		return text_format(buf, TEXT_MAX, " x%u", row->nr_processes);
	if (!st->by_thread && p->nr_more)
		return text_format(buf, TEXT_MAX, " x%u", p->nr_more + 1);
	if (!st->by_thread || st->scope.drilled || !strcmp(p->comm.str, name.str))
		return TEXT("");
	return text_format(buf, TEXT_MAX, " %s", p->comm.str);
}

/* Draw the name, and behind it: "cc1 x9", "worker-2 shop". */
static void draw_comm(const struct ui_state *st, const struct row *row, struct canvas *c,
		      struct view_field at)
{
	char buf[TEXT_MAX], after[TEXT_MAX];
	struct safe_text name = process_rows_name(st, row, buf);
	struct safe_text more = after_name(st, row, name, after);
	unsigned int end = at.col + at.cols, col = at.col;

	/* The number is never cut. */
	if (process_rows_is_group(st, row))
		at.cols -= MIN(at.cols, more.width);
	col += draw_name(st, name, c, at);
	if (col + 1 < end)
		canvas_elide(c, at.row, col, end - col, more, (struct style){ ROLE_DIM, 0 });
}

static void draw_group(const struct ui_state *st, const struct row *row, struct canvas *c,
		       struct view_field at)
{
	char buf[TEXT_MAX];

	canvas_elide(c, at.row, at.col, at.cols, group_of(st, row, buf),
		     (struct style){
			     process_rows_text(process_rows_process(st, row)->container).size
				     ? ROLE_VALUE
				     : ROLE_NORMAL,
			     0 });
}

static void draw_command(const struct ui_state *st, const struct row *row, struct canvas *c,
			 struct view_field at)
{
	canvas_elide(c, at.row, at.col, at.cols, process_rows_command(st, row),
		     (struct style){ ROLE_NORMAL, 0 });
}

/* Draw lines from the parent, the name and, on wide screens, the command line. */
static void draw_tree(const struct ui_state *st, const struct row *row, struct canvas *c,
		      struct view_field at)
{
	const struct glyphs *g = st->glyphs;
	struct pen pen = { c, at.row, at.col, at.col + at.cols };
	unsigned int first = row->depth > at.cols / 4 ? row->depth - at.cols / 4u : 1;

	if (first > 1)
		pen_text(&pen, 0, g->more, ROLE_DIM);
	for (unsigned int level = first; level <= row->depth; level++) {
		bool on = level < 32 && row->rails & 1u << level, own = level == row->depth;

		pen_text(&pen, 0,
			 own  ? on ? g->tee : g->corner
			 : on ? g->vline
			      : TEXT(" "),
			 ROLE_DIM);
		pen_text(&pen, 0, own ? g->hline : TEXT(" "), ROLE_DIM);
	}
	if (row->parent)
		pen_text(&pen, 0, row->folded ? g->closed : g->opened, ROLE_VALUE);
	pen.col++;
	if (pen.col + 1 < pen.end)
		pen.col += draw_name(st, process_rows_process(st, row)->comm, c,
				     (struct view_field){ at.row, pen.col, pen.end - pen.col });
	if (pen.col + 2 < pen.end)
		canvas_elide(c, at.row, pen.col + 2, pen.end - pen.col - 2,
			     process_rows_command(st, row), (struct style){ ROLE_DIM, 0 });
}

static void draw_hottest(const struct ui_state *st, const struct row *row, struct canvas *c,
			 struct view_field at)
{
	char kind = row->top_function < st->shown->nr_functions
			    ? st->shown->functions[row->top_function].kind
			    : '?';
	char buf[TEXT_MAX];

	canvas_elide(c, at.row, at.col, at.cols, ui_state_name(st, buf, hottest_of(st, row)),
		     (struct style){ theme_kind(kind), 0 });
}

/* ---- time by kind, in task-seconds per second: 1.00 is one thread all the time ---- */

/* Of waits, samples say little. */
static bool has_samples(const struct ui_state *st)
{
	return has_room(st) && (!times_on(st) || st->cols >= 160);
}

/* Name the unit of the time. */
static struct safe_text head_time(const struct ui_state *st, char buf[static TEXT_MAX])
{
	return ui_state_latency(st, st->shown)	? TEXT("WALL%")
	       : common_by_samples_alone(st)	? TEXT("~CPU%")
	       : !ui_state_waits(st, st->shown) ? TEXT("CPU%")
	       : ui_state_also(st, st->shown)	? TEXT("TIME/s")
						: TEXT("WAIT/s");
}

/* Return whether rows are containers or units, which have longer names and no PID. */
static bool of_groups(const struct ui_state *st)
{
	return st->grouping > GROUPING_PID && !st->by_thread && in_list(st);
}

static bool has_pid(const struct ui_state *st)
{
	return !of_groups(st);
}

static struct safe_text head_comm(const struct ui_state *st, char buf[static TEXT_MAX])
{
	return !of_groups(st)			    ? TEXT("COMMAND")
	       : st->grouping == GROUPING_CONTAINER ? TEXT("CONTAINER")
						    : TEXT("UNIT");
}

static struct safe_text head_pid(const struct ui_state *st, char buf[static TEXT_MAX])
{
	return st->by_thread ? TEXT("TID") : TEXT("PID");
}

/* Return whether columns without times fit. */
static bool is_roomy(const struct ui_state *st)
{
	return !times_on(st) || st->cols >= 150;
}

/* A thread is one task. */
static bool has_tasks(const struct ui_state *st)
{
	return is_roomy(st) && (!st->by_thread || st->fold_threads);
}

/* Return whether rows have two names: of thread and process. */
static bool is_broad(const struct ui_state *st)
{
	return of_groups(st) || (st->by_thread && st->cols >= 100 && !has_tasks(st) &&
				 !st->scope.drilled && !times_on(st));
}

static bool has_hottest(const struct ui_state *st)
{
	return has_room(st) && is_roomy(st);
}

static bool has_groups(const struct ui_state *st)
{
	return has_details(st) && (!times_on(st) || st->cols >= 220);
}

#define TIME_COLUMN(name, kind)                                                                    \
	static bool has_##name(const struct ui_state *st)                                          \
	{                                                                                          \
		return process_times_have(st, kind);                                               \
	}                                                                                          \
	static int by_##name(const struct ui_state *st, const struct row *a, const struct row *b)  \
	{                                                                                          \
		double x = process_times_of(st, a, kind), y = process_times_of(st, b, kind);       \
                                                                                                   \
		return COMPARE(x, y);                                                              \
	}                                                                                          \
	static void draw_##name(const struct ui_state *st, const struct row *row,                  \
				struct canvas *c, struct view_field at)                            \
	{                                                                                          \
		process_times_draw(st, row, c, at, kind);                                          \
	}

TIME_COLUMN(run, WAIT_RUNNING)
TIME_COLUMN(queue, WAIT_QUEUE)
TIME_COLUMN(lock, WAIT_LOCK)
TIME_COLUMN(event, WAIT_POLL)
TIME_COLUMN(sleep, WAIT_SLEEP)
TIME_COLUMN(pipe, WAIT_PIPE)
TIME_COLUMN(disk, WAIT_DISK)
TIME_COLUMN(other, WAIT_OTHER)
TIME_COLUMN(idle, WAIT_NO) /* hidden */

enum {
	SHARE,
	CHANGE,
	OWN,
	BAR,
	CPU,
	SAMPLES,
	PID,
	USER,
	TASKS,
	COMM,
	RUN,
	RUNQ,
	LOCK,
	DISK,
	PIPE,
	EVENT,
	SLEEP,
	OTHER,
	IDLE,
	GROUP,
	HOTTEST,
	COMMAND,
	TREE
};
_Static_assert(TREE + 1 == PROCESS_COLUMNS_NR, "the number of columns in the header");

#define TIME(text, about, cols, column)                                                            \
	{                                                                                          \
		.title = TEXT(text), .help = about, .width = PROCESS_TIMES_COLS, .from = cols,     \
		.right = true, .when = has_##column, .compare = by_##column, .draw = draw_##column \
	}

/* Columns without a width share the rest. */
const struct view_column process_columns[PROCESS_COLUMNS_NR] = {
	[SHARE] = { .title = TEXT("SHARE%"),
		    .help = "share of all samples; in the tree with its children",
		    .width = 7,
		    .right = true,
		    .share = COLUMN_TOTAL,
		    .compare = common_by_total,
		    .draw = draw_share },
	[CHANGE] = COMMON_CHANGE("OWN%, the share of the process alone,"),
	[OWN] = { .title = TEXT("OWN%"),
		  .help = "share of the process alone",
		  .width = 6,
		  .right = true,
		  .share = COLUMN_SAMPLES,
		  .when = process_rows_in_tree,
		  .compare = common_by_samples,
		  .draw = draw_own },
	[BAR] = { .title = TEXT(""),
		  .name = "bar",
		  .help = "the share as a bar",
		  .width = 8,
		  .wide = 10,
		  .from = 46,
		  .when = has_room,
		  .draw = draw_bar },
	[CPU] = { .title = TEXT("CPU%"),
		  .heading = head_time,
		  .help = "percent of one CPU; ~CPU%: by samples; waits: task-s/s; latency: wall",
		  .width = 6,
		  .from = 72,
		  .right = true,
		  .share = COLUMN_TOTAL,
		  .compare = common_by_total,
		  .draw = draw_cpu },
	[SAMPLES] = { .title = TEXT("SAMPLES"),
		      .help = "samples",
		      .width = 9,
		      .from = 90,
		      .right = true,
		      .share = COLUMN_SAMPLES,
		      .when = has_samples,
		      .compare = common_by_samples,
		      .draw = draw_samples },
	[PID] = { .title = TEXT("PID"),
		  .heading = head_pid,
		  .help = "process id; with H, thread id",
		  .width = 8,
		  .right = true,
		  .ascending = true,
		  .when = has_pid,
		  .compare = by_pid,
		  .draw = draw_pid },
	[USER] = { .title = TEXT("USER"),
		   .help = "user",
		   .width = 8,
		   .wide = 10,
		   .from = 66,
		   .ascending = true,
		   .when = is_roomy,
		   .compare = by_uid,
		   .draw = draw_user },
	[TASKS] = { .title = TEXT("ACTIVE"),
		    .help = "threads with samples; others slept",
		    .width = 6,
		    .from = 86,
		    .right = true,
		    .when = has_tasks,
		    .compare = by_tasks,
		    .draw = draw_tasks },
	[COMM] = { .title = TEXT("COMMAND"),
		   .heading = head_comm,
		   .help = "name; x9: nine processes (=); thread, process",
		   .width = 17,
		   .wide = 17,
		   .ascending = true,
		   .when = in_list,
		   .broad = is_broad,
		   .compare = by_comm,
		   .draw = draw_comm },
	[RUN] = TIME("CPU", "time on a CPU; 1.00: one thread all the time", 66, run),
	[RUNQ] = TIME("RUNQ", "time in a run queue", 66, queue),
	[LOCK] = TIME("LOCK", "time waiting for a lock", 66, lock),
	[DISK] = TIME("DISK", "time waiting for a disk", 66, disk),
	[PIPE] = TIME("PIPE", "time waiting for a pipe, socket or terminal", 66, pipe),
	[EVENT] = TIME("EVENT", "time waiting for a condition variable, or in poll, epoll, select",
		       66, event),
	[SLEEP] = TIME("SLEEP", "time asleep for a time", 66, sleep),
	[OTHER] = TIME("OTHER", "all other time: for a child, a page, kinds without a column", 66,
		       other),
	[IDLE] = TIME("IDLE", "hidden: in poll or for a condition variable, 100 ms and more", 66,
		      idle),
	[GROUP] = { .title = TEXT("CGROUP"),
		    .help = "container, or cgroup",
		    .width = 19,
		    .wide = 19,
		    .from = 124,
		    .ascending = true,
		    .when = has_groups,
		    .compare = by_group,
		    .draw = draw_group },
	[HOTTEST] = { .title = TEXT("HOTTEST FUNCTION"),
		      .help = "function with most self time",
		      .ascending = true,
		      .from = 60,
		      .when = has_hottest,
		      .compare = by_hottest,
		      .draw = draw_hottest },
	[COMMAND] = { .title = TEXT("COMMAND LINE"),
		      .help = "name with arguments",
		      .ascending = true,
		      .from = 150,
		      .when = has_command,
		      .compare = by_command,
		      .draw = draw_command },
	[TREE] = { .title = TEXT("PROCESS TREE"),
		   .help = "name",
		   .ascending = true,
		   .when = process_rows_in_tree,
		   .compare = by_comm,
		   .draw = draw_tree },
};

const struct view_sorts process_columns_sorts = { CPU, SAMPLES, COMM };
