// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The rows of the processes. The main thread; reads the state.
 */
#include "ui/view/process_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/count/interval.h"
#include "ui/fold/fold.h"
#include "ui/view/process_tree.h"
#include "ui/view/view.h"

/* Set in the id of a row that is a group of threads or processes. */
#define GROUP (1ull << 63)

struct safe_text process_rows_comm(const struct ui_state *st, struct safe_text comm,
				   char buf[static FORMAT_MAX * 2])
{
	return st->fold_threads ? format_folded(buf, comm) : comm;
}

/* ---- processes ---- */

static int add_process(const struct ui_state *st, struct list *list,
		       const struct fold_process_row *f, double all)
{
	struct row *row = list_add(list);

	if (!row)
		return -ENOMEM;
	row->id = st->shown->processes[f->process].id;
	row->index = f->process;
	row->self = f->weight;
	row->total = all > 0 ? f->weight / all : 0;
	row->count = f->count;
	row->cpu_ns = f->cpu_ns;
	row->nr = f->nr_tasks;
	row->top_function = f->top_function;
	return 0;
}

/* Add a process to the row of its group, which shows the busiest one. */
static void add_to_group(const struct profile *p, struct row *row, const struct fold_process_row *f)
{
	row->count += f->count;
	row->cpu_ns += f->cpu_ns;
	row->nr += f->nr_tasks;
	row->nr_processes += 1 + p->processes[f->process].nr_more;
	/* Until all are added, @other[0] is the weight of the busiest. */
	if (row->index == UINT32_MAX || f->weight > (double)row->other[0]) {
		row->index = f->process;
		row->other[0] = (float)f->weight;
	}
	row->self += f->weight;
}

/* Add a row per group of processes. */
static int add_groups(const struct ui_state *st, struct list *list,
		      const struct fold_processes *fold, const struct folds_groups *groups)
{
	uint32_t *rows = malloc((st->shown->nr_processes + 1ULL) * sizeof(*rows));
	int rc = rows ? 0 : -ENOMEM;

	if (rows)
		memset(rows, 0xff, (st->shown->nr_processes + 1ULL) * sizeof(*rows));
	for (uint32_t i = 0; i < fold->nr_rows && !rc; i++) {
		const struct fold_process_row *f = &fold->rows[i];
		uint32_t *at = &rows[groups->leaders[f->process]];

		if (*at == UINT32_MAX) {
			struct row *row = list_add(list);

			if (!row) {
				rc = -ENOMEM;
				break;
			}
			*at = list->nr - 1;
			row->id = GROUP | groups->ids[f->process];
			row->index = UINT32_MAX;
		}
		add_to_group(st->shown, &list->rows[*at], f);
		list->rows[*at].top_function =
			fold->group_tops ? fold->group_tops[groups->leaders[f->process]]
					 : UINT32_MAX;
	}
	for (uint32_t i = 0; i < list->nr; i++)
		list->rows[i].total = fold->weight > 0 ? list->rows[i].self / fold->weight : 0;
	free(rows);
	return rc;
}

static void add_to(struct interval_sum *sum, double weight, double count)
{
	sum->weight += weight;
	sum->count += count;
}

/* Add rows of the ancestors, and what is below each row to its total. */
static int add_tree(const struct ui_state *st, struct list *list)
{
	const struct profile *p = st->shown;
	struct process_tree t;
	uint32_t nr = list->nr;
	struct interval_sum *totals;
	int rc = 0;

	if (process_tree_make(&t, p))
		return -ENOMEM;
	totals = calloc(t.nr + 1ULL, sizeof(*totals));
	for (uint32_t i = 0; i < nr && totals; i++)
		for (uint32_t at = list->rows[i].index; at != UINT32_MAX; at = t.parents[at])
			add_to(&totals[at], list->rows[i].total, list->rows[i].count);
	for (uint32_t i = 0; i < p->nr_ancestors && !rc; i++) {
		struct row *row = list_add(list);

		if (!row) {
			rc = -ENOMEM;
			break;
		}
		row->id = p->ancestors[i].id;
		row->index = p->nr_processes + i;
	}
	for (uint32_t i = 0; i < list->nr && totals; i++) {
		list->rows[i].total = totals[list->rows[i].index].weight;
		list->rows[i].total_count = totals[list->rows[i].index].count;
	}
	free(totals);
	process_tree_fini(&t);
	return rc;
}

static int build_processes(const struct ui_state *st, struct list *list)
{
	const struct fold_processes *fold = folds_processes(st);
	const struct folds_groups *groups;
	int rc = 0;

	if (!fold)
		return -ENOMEM;
	list->count = fold->count;
	list->weight = fold->weight;
	groups = st->process_tree ? NULL : folds_groups(st, st->shown, folds_of_shown(st));
	if (groups)
		return add_groups(st, list, fold, groups);
	for (uint32_t i = 0; i < fold->nr_rows && !rc; i++)
		rc = add_process(st, list, &fold->rows[i], fold->weight);
	return rc || !st->process_tree ? rc : add_tree(st, list);
}

/* ---- threads ---- */

/* List all threads with samples, sorted by group (of one name, or each alone); NULL: no memory. */
static struct folds_member *members_of(const struct ui_state *st, const struct fold_filter *filter,
				       const struct fold_task *sums, uint32_t *nr)
{
	const struct profile *p = st->shown;
	struct folds_member *members = malloc((p->nr_tasks + 1ULL) * sizeof(*members));

	*nr = 0;
	for (uint32_t i = 0; i < p->nr_tasks && members; i++) {
		const struct profile_task *task = &p->tasks[i];

		if (!(sums[i].count > 0) || task->process >= p->nr_processes ||
		    !fold_passes_task(p, filter, i))
			continue;
		members[(*nr)++] = (struct folds_member){
			.task = i,
			.group = st->fold_threads ? GROUP | folds_group(p, task) : task->id,
		};
	}
	if (members)
		qsort(members, *nr, sizeof(*members), folds_by_group);
	return members;
}

/* Add a thread to the row of its group, which shows its busiest thread. */
static void add_thread(const struct profile *p, struct list *list, struct row *row, uint32_t task,
		       const struct fold_task *sums)
{
	row->self += sums[task].weight;
	row->cpu_ns += p->tasks[task].cpu_ns;
	row->count += sums[task].count;
	row->nr++;
	list->count += sums[task].count;
	if (row->task != UINT32_MAX && sums[task].weight <= sums[row->task].weight)
		return;
	row->task = task;
	row->top_function = sums[task].top_function;
}

/* Add one row per group. */
static int build_threads(const struct ui_state *st, const struct fold_filter *filter,
			 struct list *list)
{
	const struct fold_task *sums = folds_tasks(st);
	uint32_t nr = 0;
	struct folds_member *members = sums ? members_of(st, filter, sums, &nr) : NULL;
	struct row *row = NULL;

	if (!members)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		if (!row || row->id != members[i].group)
			row = list_add(list);
		if (!row)
			break;
		row->id = members[i].group;
		row->index = st->shown->tasks[members[i].task].process;
		add_thread(st->shown, list, row, members[i].task, sums);
		list->weight += sums[members[i].task].weight;
	}
	for (uint32_t i = 0; i < list->nr && list->weight > 0; i++)
		list->rows[i].total = list->rows[i].self / list->weight;
	free(members);
	return row || !nr ? 0 : -ENOMEM;
}

/* ---- waits ---- */

/* The leader of a task: the same for all tasks of a row. */
struct leaders {
	const struct profile *p;
	const uint32_t *tasks; /* rows are threads: by task, its leader; NULL: each leads itself */
	const uint32_t *processes; /* else the same by process */
	bool by_thread;
};

static uint32_t leader_of(const struct leaders *l, uint32_t task)
{
	uint32_t process = l->p->tasks[task].process;

	if (l->by_thread)
		return l->tasks ? l->tasks[task] : task;
	return l->processes ? l->processes[process] : process;
}

/* Add the time by kind of the tasks that count to their rows. */
static void add_times(struct list *list, const struct leaders *l, const struct fold_filter *filter,
		      const double (*times)[WAIT_NR], uint32_t *rows)
{
	for (uint32_t i = 0; i < list->nr; i++) {
		const struct row *row = &list->rows[i];

		if (l->by_thread && row->task < l->p->nr_tasks)
			rows[leader_of(l, row->task)] = i + 1;
		else if (!l->by_thread && row->index < l->p->nr_processes)
			rows[l->processes ? l->processes[row->index] : row->index] = i + 1;
	}
	for (uint32_t i = 0; i < l->p->nr_tasks; i++) {
		uint32_t row = fold_passes_task(l->p, filter, i) ? rows[leader_of(l, i)] : 0;

		for (int k = 0; row && k < WAIT_NR; k++) {
			list->rows[row - 1].waits[k] += (float)times[i][k];
			list->waits[k] += (float)times[i][k];
		}
	}
}

/* Set the leaders for the rows that are shown. */
static void set_leaders(const struct ui_state *st, struct leaders *l)
{
	const struct folds_groups *groups = NULL;

	*l = (struct leaders){ .p = st->shown, .by_thread = st->by_thread };
	if (st->by_thread)
		l->tasks = folds_leaders(st, st->shown, folds_of_shown(st));
	else if (!st->process_tree)
		groups = folds_groups(st, st->shown, folds_of_shown(st));
	l->processes = groups ? groups->leaders : NULL;
}

/* Fill the time by kind of each row, where waits are measured. */
static int add_waits(const struct ui_state *st, struct list *list)
{
	const struct profile *p = st->shown;
	struct leaders l;
	const double(*times)[WAIT_NR] = p->stack_waits ? folds_times(st) : NULL;
	struct fold_filter filter;
	uint32_t *rows;

	memset(list->waits, 0, sizeof(list->waits));
	/* Late: the folding thread makes them. */
	if (!times)
		return 0;
	folds_filter_all(st, &filter);
	set_leaders(st, &l);
	rows = calloc(MAX(p->nr_tasks, p->nr_processes) + 1ULL, sizeof(*rows));
	if (rows)
		add_times(list, &l, &filter, times, rows);
	free(rows);
	return rows ? 0 : -ENOMEM;
}

static int build_rows(const struct ui_state *st, struct list *list)
{
	struct fold_filter filter;

	if (!st->shown)
		return 0;
	if (!st->by_thread)
		return build_processes(st, list);
	/* Show the other threads also when one is drilled into. */
	return folds_filter_threads(st, &filter) ? build_threads(st, &filter, list) : 0;
}

/* ---- the selected row, when rows become others ---- */

void process_rows_keep_selected(struct ui_state *st)
{
	struct list *list = &st->lists[VIEW_PROCESSES];
	const struct row *row = list_current(list);

	list->sought.on = st->view == VIEW_PROCESSES && list->pinned && row && st->shown;
	list->pinned = false;
	/* Of a group, still the process that it was selected for. */
	if (!list->sought.on || (list->sought.process && list->sought.row == row->id))
		return;
	list->sought.process = process_rows_process(st, row)->id;
	list->sought.task = st->by_thread && row->task < st->shown->nr_tasks
				    ? st->shown->tasks[row->task].id
				    : UINT64_MAX;
}

/* Find the indexes of the sought process and thread; UINT32_MAX: they have no samples. */
static void find_sought(const struct profile *p, const struct list *list, uint32_t *process,
			uint32_t *task)
{
	*process = *task = UINT32_MAX;
	for (uint32_t i = 0; i < p->nr_processes; i++)
		if (p->processes[i].id == list->sought.process)
			*process = i;
	for (uint32_t i = 0; i < p->nr_tasks; i++)
		if (p->tasks[i].id == list->sought.task)
			*task = i;
}

/* Select the row of the sought thread; else, of the rows of its process, the one with most. */
static void select_sought(const struct ui_state *st, struct list *list)
{
	struct leaders l;
	uint32_t process, task;
	const struct row *best = NULL;
	bool is_task = false;

	set_leaders(st, &l);
	find_sought(st->shown, list, &process, &task);
	for (uint32_t i = 0; i < list->nr; i++) {
		const struct row *row = &list->rows[i];
		bool same = st->by_thread && task != UINT32_MAX &&
			    row->task < st->shown->nr_tasks &&
			    leader_of(&l, row->task) == leader_of(&l, task);
		bool below = process_rows_process(st, row)->id == list->sought.process ||
			     (!st->by_thread && l.processes && process != UINT32_MAX &&
			      row->index < st->shown->nr_processes &&
			      l.processes[row->index] == l.processes[process]);

		if (!same && (!below || is_task || (best && best->self >= row->self)))
			continue;
		best = row;
		is_task |= same;
	}
	list->sought.on = false;
	list->sought.found = list->pinned = best != NULL;
	if (best)
		list->selected = list->sought.row = best->id;
}

int process_rows_build(const struct ui_state *st, struct list *list)
{
	int rc = build_rows(st, list);

	if (list->sought.on && list->nr && !rc)
		select_sought(st, list);
	return rc || !st->shown ? rc : add_waits(st, list);
}

const struct profile_process *process_rows_process(const struct ui_state *st, const struct row *row)
{
	return process_tree_at(st->shown, row->index);
}

bool process_rows_is_group(const struct ui_state *st, const struct row *row)
{
	return row->nr_processes > 1 || (row->nr_processes && st->grouping != GROUPING_NAME);
}

struct safe_text process_rows_name(const struct ui_state *st, const struct row *row,
				   char buf[static TEXT_MAX])
{
	if (process_rows_is_group(st, row))
		return folds_group_name(st->grouping, process_rows_process(st, row), buf);
	if (!st->by_thread || row->task >= st->shown->nr_tasks)
		return process_rows_process(st, row)->comm;
	return process_rows_comm(st, st->shown->tasks[row->task].comm, buf);
}

pid_t process_rows_pid(const struct ui_state *st, const struct row *row)
{
	return st->by_thread && row->task < st->shown->nr_tasks
		       ? st->shown->tasks[row->task].tid
		       : process_rows_process(st, row)->pid;
}

struct safe_text process_rows_text(struct safe_text t)
{
	return t.str ? t : TEXT("");
}

struct safe_text process_rows_command(const struct ui_state *st, const struct row *row)
{
	return process_rows_text(process_rows_process(st, row)->command);
}

bool process_rows_in_tree(const struct ui_state *st)
{
	return st->process_tree && !st->by_thread;
}
