// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * View 2: processes with samples, by name, by thread, by group of threads, or below their parents
 * (t); columns of time by kind.
 *
 * Runs on: the main thread.
 */
#include "ui/view/internal.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/table.h"
#include "symbols/base/text.h"
#include "ui/cli/cli.h"
#include "ui/draw/draw.h"
#include "ui/fold/fold.h"
#include "ui/key/key.h"
#include "ui/state/state.h"
#include "ui/text/text.h"

/*
 * Columns of time by kind in the view of processes, in task-seconds per second. A column is a part
 * of the bar of times, and its title begins with the letter of that part. Runs on: the main thread.
 *
 * Columns of time by kind in the view of processes. The main thread; reads the state.
 */

#define PROCESS_TIMES_COLS 6
#define LEAST		   0.005 /* in task-s/s: less is 0.00 in all rows */

/* Kinds with a column, in groups as the bar has them. */
static const enum wait_kind time_kinds[] = { WAIT_RUNNING, WAIT_QUEUE, WAIT_LOCK,
					     WAIT_DISK,	   WAIT_PIPE,  WAIT_POLL,
					     WAIT_SLEEP,   WAIT_OTHER, WAIT_NO };

/* Return the time of one column where all kinds have one. */
static double group_of(const float *waits, enum wait_kind kind)
{
	assert((unsigned int)kind < WAIT_NR);
	if (kind == WAIT_OTHER)
		return (double)waits[WAIT_OTHER] + (double)waits[WAIT_FAULT] +
		       (double)waits[WAIT_CHILD];
	if (kind == WAIT_POLL)
		return (double)waits[WAIT_POLL] + (double)waits[WAIT_CONDITION] +
		       (double)waits[WAIT_KTHREAD];
	return (double)waits[kind];
}

/* Return how many columns of times fit beside the others. */
static unsigned int times_that_fit(unsigned int cols)
{
	/* The cells of all others: more of them, and wider ones, on wide screens. */
	unsigned int others = cols < 100   ? 51
			      : cols < 150 ? 55
			      : cols < 160 ? 90
			      : cols < 220 ? 115
					   : 144;

	return cols > others ? (cols - others) / (PROCESS_TIMES_COLS + 1) : 0;
}

/* Return whether the kind is a part of the time of a row: CPU time beside waits alone is not. */
static bool is_part(const struct ui_state *st, enum wait_kind kind)
{
	return kind != WAIT_NO && (kind != WAIT_RUNNING || ui_state_also(st, st->shown));
}

/* Return the kind with the most time, of those that are a part or that are not; WAIT_NR: none. */
static enum wait_kind largest(const struct ui_state *st, const double *sums, bool part)
{
	enum wait_kind best = WAIT_NR;

	for (size_t k = 0; k < ARRAY_SIZE(time_kinds); k++)
		if (is_part(st, time_kinds[k]) == part && sums[time_kinds[k]] > 0 &&
		    (best == WAIT_NR || sums[time_kinds[k]] > sums[best]))
			best = time_kinds[k];
	return best;
}

/* Return the kinds with a column, as bits. The parts with the most time have one, OTHER the rest of
 * the time: the columns add up to it. */
static unsigned int kinds_shown(const struct ui_state *st)
{
	const struct list *list = &st->lists[VIEW_PROCESSES];
	unsigned int fit = list->columns ? WAIT_NR : times_that_fit(st->cols), nr = 0, bits = 0;
	double sums[WAIT_NR] = { 0 };

	for (size_t k = 0; k < ARRAY_SIZE(time_kinds); k++) {
		double ns = group_of(list->waits, time_kinds[k]);

		sums[time_kinds[k]] = ns >= LEAST * (double)st->shown->window_ns ? ns : 0;
		nr += sums[time_kinds[k]] > 0 && is_part(st, time_kinds[k]);
	}
	if (!fit)
		return 0;
	if (nr > fit)
		sums[WAIT_OTHER] = INFINITY;
	/* Other kinds are in the columns that are left. */
	for (int part = 1; part >= 0; part--)
		for (enum wait_kind k; fit && (k = largest(st, sums, part)) != WAIT_NR; fit--) {
			bits |= 1u << k;
			sums[k] = 0;
		}
	return bits;
}

/* Return the time of a row by kind, in ns; WAIT_OTHER has that of the kinds without a column. */
static double process_times_of(const struct ui_state *st, const struct row *row,
			       enum wait_kind kind)
{
	unsigned int shown = kind == WAIT_OTHER ? kinds_shown(st) : 0;
	double ns = group_of(row->waits, kind);

	for (size_t k = 0; k < ARRAY_SIZE(time_kinds) && shown; k++)
		if (!(shown & 1u << time_kinds[k]) && is_part(st, time_kinds[k]))
			ns += group_of(row->waits, time_kinds[k]);
	return ns;
}

static bool process_times_have(const struct ui_state *st, enum wait_kind kind)
{
	return times_on(st) && kinds_shown(st) & 1u << kind;
}

static void process_times_draw(const struct ui_state *st, const struct row *row, struct canvas *c,
			       struct view_field at, enum wait_kind kind)
{
	double ns = process_times_of(st, row, kind);
	char buf[FORMAT_MAX];

	if (ns > 0 && st->shown->window_ns)
		canvas_right(c, at.row, at.col, at.cols,
			     format_tasks(buf, ns / (double)st->shown->window_ns),
			     (struct style){ kind == WAIT_RUNNING ? ROLE_NORMAL : ROLE_WAIT, 0 });
}

/*
 * Processes as a tree. Runs on: the main thread.
 */

#define NONE	   UINT32_MAX
#define LEVELS_MAX 64 /* deeper processes are roots */
#define RAILS_MAX  31

/* Return process or ancestor @i of the profile. */
static const struct profile_process *process_tree_at(const struct profile *p, uint32_t i)
{
	assert(i < p->nr_processes + p->nr_ancestors);
	return i < p->nr_processes ? &p->processes[i] : &p->ancestors[i - p->nr_processes];
}

/* pid -> the latest process that has it; open addressing. */
struct by_pid {
	uint32_t *slots;
	uint32_t capacity;
};

static uint32_t *slot_of(const struct by_pid *t, const struct profile *p, pid_t pid)
{
	uint32_t i = (uint32_t)keyhash_number((uint64_t)pid) & (t->capacity - 1);

	while (t->slots[i] != NONE && process_tree_at(p, t->slots[i])->pid != pid)
		i = (i + 1) & (t->capacity - 1);
	return &t->slots[i];
}

static int by_pid_make(struct by_pid *t, const struct profile *p, uint32_t nr)
{
	for (t->capacity = 16; t->capacity < 2 * nr; t->capacity *= 2)
		;
	t->slots = malloc(t->capacity * sizeof(*t->slots));
	if (!t->slots)
		return -ENOMEM;
	memset(t->slots, 0xff, t->capacity * sizeof(*t->slots));
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t *slot = slot_of(t, p, process_tree_at(p, i)->pid);

		/* After an exec, later children belong to the new process. */
		if (*slot == NONE || process_tree_at(p, *slot)->id < process_tree_at(p, i)->id)
			*slot = i;
	}
	return 0;
}

/*
 * Hang @i below @at, unless that makes a cycle, or a chain of more than LEVELS_MAX: rows are drawn
 * by recursion. @below: levels below each; children may come before their parents.
 */
static void hang_below(struct process_tree *t, uint8_t *below, uint32_t i, uint32_t at)
{
	unsigned int levels = below[i] + 1U;

	for (uint32_t up = at; up != NONE; up = t->parents[up])
		if (up == i || ++levels > LEVELS_MAX)
			return;
	t->parents[i] = at;
	levels = below[i] + 1U;
	for (uint32_t up = at; up != NONE && below[up] < levels; up = t->parents[up])
		below[up] = (uint8_t)levels++;
}

/* Make the tree. Return 0 or -ENOMEM. It has no cycles, even if pids were reused. */
static int process_tree_make(struct process_tree *t, const struct profile *p)
{
	struct by_pid pids;
	uint8_t *below;

	t->nr = p->nr_processes + p->nr_ancestors;
	t->parents = malloc((t->nr + 1ULL) * sizeof(*t->parents));
	below = calloc(t->nr + 1ULL, sizeof(*below));
	if (!t->parents || !below || by_pid_make(&pids, p, t->nr)) {
		free(t->parents);
		free(below);
		return -ENOMEM;
	}
	memset(t->parents, 0xff, (t->nr + 1ULL) * sizeof(*t->parents));
	for (uint32_t i = 0; i < t->nr; i++) {
		pid_t parent = process_tree_at(p, i)->parent;
		uint32_t at = parent > 0 ? *slot_of(&pids, p, parent) : NONE;

		if (at != NONE)
			hang_below(t, below, i, at);
	}
	free(pids.slots);
	free(below);
	return 0;
}

static void process_tree_fini(struct process_tree *t)
{
	free(t->parents);
}

/* Return the id of a process's row for folds_mark(). */
static uint32_t process_tree_mark(uint64_t id)
{
	return (uint32_t)hash_u64(1ull << 40 | id);
}

/* Rows as a tree. */
struct arrangement {
	const struct ui_state *st;
	const struct list *list;
	uint32_t *child, *next; /* of each row; child[nr]: the first root */
	struct row *rows;	/* rows in their new order */
	uint32_t nr;
};

static void put(struct arrangement *a, uint32_t first, unsigned int depth, uint32_t rails)
{
	for (uint32_t i = first; i != NONE; i = a->next[i]) {
		struct row *row = &a->rows[a->nr++];

		*row = a->list->rows[i];
		row->depth = (uint8_t)depth;
		row->rails = rails;
		if (a->next[i] != NONE && depth <= RAILS_MAX)
			row->rails |= 1u << depth;
		row->parent = a->child[i] != NONE;
		row->folded = row->parent && a->st->folds &&
			      folds_mark_of(a->st->folds, process_tree_mark(row->id)) ==
				      MARK_CLOSED;
		if (row->parent && !row->folded)
			put(a, a->child[i], depth + 1, row->rails);
	}
}

/* Link each row to its nearest ancestor with a row; the last first, to keep the order of siblings.
 */
static void hang(struct arrangement *a, const struct process_tree *t, uint32_t *row_of)
{
	uint32_t nr = a->list->nr;

	memset(row_of, 0xff, t->nr * sizeof(*row_of));
	memset(a->child, 0xff, (nr + 1ULL) * sizeof(*a->child));
	for (uint32_t i = 0; i < nr; i++)
		row_of[a->list->rows[i].index] = i;
	for (uint32_t i = nr; i-- > 0;) {
		uint32_t up = t->parents[a->list->rows[i].index], at = nr;

		while (up != NONE && row_of[up] == NONE)
			up = t->parents[up];
		if (up != NONE)
			at = row_of[up];
		a->next[i] = a->child[at];
		a->child[at] = i;
	}
}

/*
 * Move rows, sorted as siblings, below their parents; drop rows below a folded row. A parent
 * without a row is replaced by its nearest ancestor with one. Without memory nothing changes.
 */
static void process_tree_arrange(const struct ui_state *st, struct list *list)
{
	struct arrangement a = { .st = st, .list = list };
	struct process_tree t;
	uint32_t *row_of;

	if (!st->shown || !list->nr || process_tree_make(&t, st->shown))
		return;
	row_of = malloc((t.nr + 1ULL) * sizeof(*row_of));
	a.child = malloc((list->nr + 1ULL) * sizeof(*a.child));
	a.next = malloc(list->nr * sizeof(*a.next));
	a.rows = malloc(list->capacity * sizeof(*a.rows));
	if (row_of && a.child && a.next && a.rows) {
		hang(&a, &t, row_of);
		put(&a, a.child[list->nr], 0, 0);
		free(list->rows);
		list->rows = a.rows;
		assert(a.nr <= list->nr);
		list->nr = a.nr;
		a.rows = NULL;
	}
	free(row_of);
	free(a.child);
	free(a.next);
	free(a.rows);
	process_tree_fini(&t);
}

/*
 * The rows of the processes: one per group of processes, process, thread, or group of
 * threads of one name; or as a tree. The main thread; pure.
 *
 * The rows of the processes. The main thread; reads the state.
 */

/* Set in the id of a row that is a group of threads or processes. */
#define GROUP (1ull << 63)

struct safe_text process_rows_comm(const struct ui_state *st, struct safe_text comm,
				   char buf[static FORMAT_MAX * 2])
{
	return st->set.fold_threads ? format_folded(buf, comm) : comm;
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
	groups = st->process_tree ? NULL : folds_groups(st);
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
			.group = st->set.fold_threads ? GROUP | folds_group(p, task) : task->id,
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
	assert(task < p->nr_tasks);
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

	assert(task < l->p->nr_tasks);
	if (l->by_thread)
		return l->tasks ? l->tasks[task] : task;
	return l->processes ? l->processes[process] : process;
}

/* Add the time by kind of the tasks that count to their rows. */
static void add_times(struct list *list, const struct leaders *l, const struct fold_filter *filter,
		      const double *times, uint32_t *rows)
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
			float time = (float)times[i * WAIT_NR + (uint32_t)k];

			list->rows[row - 1].waits[k] += time;
			list->waits[k] += time;
		}
	}
}

/* Set the leaders for the rows that are shown. */
static void set_leaders(const struct ui_state *st, struct leaders *l)
{
	const struct folds_groups *groups = NULL;

	*l = (struct leaders){ .p = st->shown, .by_thread = st->by_thread };
	if (st->by_thread)
		l->tasks = folds_leaders(st);
	else if (!st->process_tree)
		groups = folds_groups(st);
	l->processes = groups ? groups->leaders : NULL;
}

/* Fill the time by kind of each row, where waits are measured. */
static int add_waits(const struct ui_state *st, struct list *list)
{
	const struct profile *p = st->shown;
	struct leaders l;
	const double *times = p->stack_waits ? folds_times(st) : NULL;
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

/* Return the process of a row: of a group the busiest one. */
static const struct profile_process *process_rows_process(const struct ui_state *st,
							  const struct row *row)
{
	return process_tree_at(st->shown, row->index);
}

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

/* Build all rows of the shown profile, unsorted. Return 0 or -ENOMEM. A row's @index: see
 * struct process_tree. */
static int process_rows_build(const struct ui_state *st, struct list *list)
{
	int rc = build_rows(st, list);

	if (list->sought.on && list->nr && !rc)
		select_sought(st, list);
	return rc || !st->shown ? rc : add_waits(st, list);
}

/* Return whether the row is a group, of several processes or not of a name. */
static bool process_rows_is_group(const struct ui_state *st, const struct row *row)
{
	return row->nr_processes > 1 || (row->nr_processes && st->set.grouping != GROUPING_NAME);
}

static struct safe_text process_rows_name(const struct ui_state *st, const struct row *row,
					  char buf[static TEXT_MAX])
{
	if (process_rows_is_group(st, row))
		return folds_group_name(st->set.grouping, process_rows_process(st, row), buf);
	if (!st->by_thread || row->task >= st->shown->nr_tasks)
		return profile_process_name(process_rows_process(st, row));
	return process_rows_comm(st, st->shown->tasks[row->task].comm, buf);
}

/* Return the pid of a row: the tid if rows are threads. */
static pid_t process_rows_pid(const struct ui_state *st, const struct row *row)
{
	return st->by_thread && row->task < st->shown->nr_tasks
		       ? st->shown->tasks[row->task].tid
		       : process_rows_process(st, row)->pid;
}

/* Return a text that may be unknown; "": it is. */
static struct safe_text process_rows_text(struct safe_text t)
{
	return t.str ? t : TEXT("");
}

/* Return the command line of a row; "": unknown. */
static struct safe_text process_rows_command(const struct ui_state *st, const struct row *row)
{
	return process_rows_text(process_rows_process(st, row)->command);
}

/* Return whether rows are a tree. */
static bool process_rows_in_tree(const struct ui_state *st)
{
	return st->process_tree && !st->by_thread;
}

/*
 * The columns of the processes view. The main thread; pure.
 *
 * The columns of view 2: order, text and drawing of each. Runs on: the main thread.
 */

#define PROCESS_COLUMNS_NR 23

/* The container, or the last part of the cgroup's path. */
static struct safe_text process_columns_group_of(const struct ui_state *st, const struct row *row,
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

static struct safe_text hot_function_of(const struct ui_state *st, const struct row *row)
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

/* By the names that are shown; users without a name by their numbers. */
static int by_user(const struct ui_state *st, const struct row *a, const struct row *b)
{
	uid_t x = process_rows_process(st, a)->uid, y = process_rows_process(st, b)->uid;
	char first[64], second[64];
	struct safe_text n = users_name(st->config->users, x, first, sizeof(first));
	struct safe_text m = users_name(st->config->users, y, second, sizeof(second));
	int d = n.str[0] <= '9' && m.str[0] <= '9' ? 0 : strcasecmp(n.str, m.str);

	return d ? d : COMPARE(x, y);
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

	return strcasecmp(process_columns_group_of(st, a, x).str,
			  process_columns_group_of(st, b, y).str);
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
	return strcasecmp(hot_function_of(st, a).str, hot_function_of(st, b).str);
}

static void draw_share(const struct ui_state *st, const struct row *row, struct canvas *c,
		       struct view_field at)
{
	view_draw_percent(c, at, row->total);
}

/* The parts of a bar, in the order of their roles. */
enum { NR_PARTS = ROLE_TIME_OTHER - ROLE_TIME_CPU + 1 };

static const struct {
	char letter[2];
	const char *name;
} parts[NR_PARTS] = {
	{ "C", "CPU" },		 { "R", "run queue" }, { "L", "lock" },	 { "D", "disk" },
	{ "P", "pipe, socket" }, { "S", "sleep" },     { "E", "event" }, { "O", "other" },
};

/* Sum the time of each part. Return the sum of all. */
static double sum_parts(const float *ns, double sums[static NR_PARTS])
{
	double all = 0;

	for (int i = 0; i < NR_PARTS; i++)
		sums[i] = 0;
	for (int k = WAIT_RUNNING; k < WAIT_NR; k++) {
		sums[times_role((enum wait_kind)k) - ROLE_TIME_CPU] += (double)ns[k];
		all += (double)ns[k];
	}
	return all;
}

/*
 * Draw the time by kind (@ns: by enum wait_kind) as one bar over all cells of @at: CPU, run queue,
 * lock, disk, pipe and socket, sleep, event (poll, condition), other. Each part that has a cell
 * begins with its letter.
 */
static void times_draw_bar(const float *ns, struct canvas *c, unsigned int row, unsigned int col,
			   unsigned int cols)
{
	double sums[NR_PARTS], all = sum_parts(ns, sums), sum = 0;
	unsigned int at = 0;

	for (int i = 0; i < NR_PARTS && all > 0; i++) {
		/* Rounded together, so that the last part ends at the last cell. */
		unsigned int end = (unsigned int)((sum += sums[i]) / all * cols + 0.5);
		struct style style = { (uint8_t)(ROLE_TIME_CPU + i), 0 };

		for (unsigned int n = at; n < MIN(end, cols); n++)
			canvas_text(c, row, col + n, 1,
				    n == at ? (struct safe_text){ parts[i].letter, 1, 1 }
					    : TEXT(" "),
				    style);
		at = MAX(at, MIN(end, cols));
	}
}

/* Write these parts with their letters: "C CPU 0.36  L lock 2.84". "": there is no time. */
static struct safe_text times_legend(const struct ui_state *st, const float *ns, char *buf,
				     size_t size)
{
	double sums[NR_PARTS];
	char number[FORMAT_MAX];
	size_t n = 0;

	*buf = '\0';
	sum_parts(ns, sums);
	for (int i = 0; i < NR_PARTS && st->shown->window_ns && n < size; i++)
		if (sums[i] / (double)st->shown->window_ns >= 0.005)
			n += (size_t)snprintf(
				buf + n, size - n, "%s%s %s %s", n ? "  " : "", parts[i].letter,
				parts[i].name,
				format_tasks(number, sums[i] / (double)st->shown->window_ns).str);
	if (ns[WAIT_NO] > 0 && n < size)
		n += (size_t)snprintf(buf + n, size - n, "  idle %s hidden",
				      format_tasks(number, (double)ns[WAIT_NO] /
								   (double)st->shown->window_ns)
					      .str);
	n = MIN(n, size - 1);
	return (struct safe_text){ buf, (uint16_t)n, (uint16_t)n };
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
		canvas_right(c, at.row, at.col, at.cols, table_cpu(st, row->cpu_ns, row->self, buf),
			     (struct style){ ROLE_NORMAL, 0 });
}

static void draw_tasks(const struct ui_state *st, const struct row *row, struct canvas *c,
		       struct view_field at)
{
	if ((!st->by_thread || st->set.fold_threads) && row->nr)
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
 * of a service its comm, unless that has the same name or is open. */
static struct safe_text after_name(const struct ui_state *st, const struct row *row,
				   struct safe_text name, char buf[static TEXT_MAX])
{
	const struct profile_process *p = process_rows_process(st, row);

	if (process_rows_is_group(st, row))
		return text_format(buf, TEXT_MAX, " x%u", row->nr_processes);
	if (!st->by_thread && p->nr_more)
		return text_format(buf, TEXT_MAX, " x%u", p->nr_more + 1);
	if ((st->by_thread && st->scope.drilled) || !strcmp(p->comm.str, name.str))
		return TEXT("");
	return text_format(buf, TEXT_MAX, " %s",
			   st->by_thread ? profile_process_name(p).str : p->comm.str);
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

	canvas_elide(c, at.row, at.col, at.cols, process_columns_group_of(st, row, buf),
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
		pen.col += draw_name(st, profile_process_name(process_rows_process(st, row)), c,
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

	canvas_elide(c, at.row, at.col, at.cols, ui_state_name(st, buf, hot_function_of(st, row)),
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
	       : table_by_samples_alone(st)	? TEXT("~CPU%")
	       : !ui_state_waits(st, st->shown) ? TEXT("CPU%")
	       : ui_state_also(st, st->shown)	? TEXT("TIME/s")
						: TEXT("WAIT/s");
}

/* Return whether rows are containers or units, which have longer names and no PID. */
static bool of_groups(const struct ui_state *st)
{
	return st->set.grouping > GROUPING_PID && !st->by_thread && in_list(st);
}

static bool has_pid(const struct ui_state *st)
{
	return !of_groups(st);
}

static struct safe_text head_comm(const struct ui_state *st, char buf[static TEXT_MAX])
{
	return !of_groups(st)				? TEXT("COMMAND")
	       : st->set.grouping == GROUPING_CONTAINER ? TEXT("CONTAINER")
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
	return is_roomy(st) && (!st->by_thread || st->set.fold_threads);
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
	PROCESS_COLUMNS_GROUP,
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
static const struct view_column process_columns[PROCESS_COLUMNS_NR] = {
	[SHARE] = { .title = TEXT("SHARE%"),
		    .help = "share of all samples; in the tree with its children",
		    .width = 7,
		    .right = true,
		    .share = COLUMN_TOTAL,
		    .compare = table_by_total,
		    .draw = draw_share },
	[CHANGE] = TABLE_CHANGE("OWN%, the share of the process alone,"),
	[OWN] = { .title = TEXT("OWN%"),
		  .help = "share of the process alone",
		  .width = 6,
		  .right = true,
		  .share = COLUMN_SAMPLES,
		  .when = process_rows_in_tree,
		  .compare = table_by_samples,
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
		  .share = COLUMN_CPU,
		  .compare = table_by_cpu,
		  .draw = draw_cpu },
	[SAMPLES] = { .title = TEXT("SAMPLES"),
		      .help = "samples",
		      .width = 9,
		      .from = 90,
		      .right = true,
		      .share = COLUMN_SAMPLES,
		      .when = has_samples,
		      .compare = table_by_samples,
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
		   .compare = by_user,
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
	[PROCESS_COLUMNS_GROUP] = { .title = TEXT("CGROUP"),
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

static const struct view_sorts process_columns_sorts = { CPU, SAMPLES, COMM };

static struct safe_text name(const struct ui_state *st, const struct row *row, char *buf,
			     size_t size)
{
	char comm[TEXT_MAX];

	if (process_rows_is_group(st, row))
		return text_format(buf, size, "%s", process_rows_name(st, row, comm).str);
	return text_format(buf, size, "%s[%d]", process_rows_name(st, row, comm).str,
			   (int)process_rows_pid(st, row));
}

static bool hot_function_finds(const struct ui_state *st, const struct row *row,
			       const struct match *m)
{
	return row->top_function < st->shown->nr_functions &&
	       match_finds_name(m, &st->shown->functions[row->top_function]);
}

static bool finds(const struct ui_state *st, const struct row *row, const struct match *m)
{
	const struct profile_process *p = process_rows_process(st, row);
	char buf[TEXT_MAX], comm[TEXT_MAX];

	return match_finds(m, process_rows_name(st, row, comm)) || match_finds(m, p->comm) ||
	       hot_function_finds(st, row, m) ||
	       match_finds(m,
			   text_format(buf, sizeof(buf), "%d", (int)process_rows_pid(st, row))) ||
	       match_finds(m, process_rows_command(st, row)) ||
	       match_finds(m, process_rows_text(p->cgroup)) ||
	       match_finds(m, process_rows_text(p->container)) ||
	       match_finds(m, process_rows_text(p->service[SERVICE_NAME])) ||
	       match_finds(m, users_name(st->config->users, p->uid, buf, sizeof(buf)));
}

/* Name a service in full: "eu/shop 1.2 instance shop-7". */
static struct safe_text service_text(const struct profile_process *p, char buf[static TEXT_MAX])
{
	struct safe_text ns = process_rows_text(p->service[SERVICE_NAMESPACE]);
	struct safe_text version = process_rows_text(p->service[SERVICE_VERSION]);
	struct safe_text instance = process_rows_text(p->service[SERVICE_INSTANCE]);

	return text_format(buf, TEXT_MAX, "%s%s%s%s%s%s%s", ns.str, ns.size ? "/" : "",
			   p->service[SERVICE_NAME].str, version.size ? " " : "", version.str,
			   instance.size ? " instance " : "", instance.str);
}

/* Show command, cgroup and service in full. */
static unsigned int foot(const struct ui_state *st, const struct row *row, struct foot *f)
{
	const struct profile_process *p = row ? process_rows_process(st, row) : NULL;
	char buf[TEXT_MAX];

	if (row && times_on(st))
		foot_text(f, TEXT("Time"), times_legend(st, row->waits, buf, sizeof(buf)).str);
	if (!p || !process_rows_text(p->cgroup).size)
		return f->used;
	foot_line(f, process_rows_is_group(st, row) ? TEXT("Busiest") : TEXT("Command"),
		  p->command.size ? p->command : p->comm);
	foot_line(f, TEXT("Cgroup"), p->cgroup);
	if (process_rows_text(p->service[SERVICE_NAME]).size && !process_rows_is_group(st, row))
		foot_line(f, TEXT("Service"), service_text(p, buf));
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

/* ---- from a row into its process, group or thread ---- */

/* Show the processes of the group that processes[@process] is in. */
static void open_group(struct ui_state *st, uint32_t process)
{
	char buf[TEXT_MAX];

	assert(process < st->shown->nr_processes);
	if (!st->shown || process >= st->shown->nr_processes)
		return;
	navigate_into_process(st, st->shown->processes[process].id);
	st->scope.group_by = st->set.grouping;
	snprintf(st->scope.group, sizeof(st->scope.group), "%s",
		 folds_group_name(st->set.grouping, &st->shown->processes[process], buf).str);
	ui_state_clean(st->scope.process_name, sizeof(st->scope.process_name), st->scope.group);
	folds_forget(st->folds);
	folds_forget_baseline(st->folds);
	table_rebuild(st, st->view);
}

void navigate_by_group(struct ui_state *st, enum grouping by)
{
	process_rows_keep_selected(st);
	st->set.grouping = by;
	st->by_thread = false;
	st->process_tree = false;
	folds_forget(st->folds);
	folds_forget_baseline(st->folds);
	/* Keep showing a view of stacks. */
	navigate_to(st, view_shown(st)->stacks ? st->view : VIEW_PROCESSES);
}

/* Return the open process or group, to which Esc leads back from a thread in it. */
static struct scope_outer outer_of(const struct scope *s)
{
	struct scope_outer outer = { .process = s->process, .group_by = s->group_by };

	if (!s->drilled)
		return (struct scope_outer){ .process = 0 };
	/* From one thread to another one: the process around them stays the same. */
	if (s->in_thread || s->thread_group[0])
		return s->outer;
	memcpy(outer.group, s->group, sizeof(outer.group));
	memcpy(outer.name, s->process_name, sizeof(outer.name));
	return outer;
}

void navigate_into_thread(struct ui_state *st, const struct row *row)
{
	struct scope_outer outer = outer_of(&st->scope);
	const struct profile *p = st->shown;
	char name[sizeof(st->scope.process_name)];
	char group[FORMAT_MAX * 2] = "";
	struct profile_task task;
	bool is_group;

	if (!p || row->task >= p->nr_tasks)
		return;
	task = p->tasks[row->task];
	if (task.process >= p->nr_processes)
		return;
	process_rows_comm(st, task.comm, group);
	is_group = st->set.fold_threads && row->nr > 1;
	navigate_into_process(st, p->processes[task.process].id);
	st->scope.outer = outer;
	st->scope.in_thread = !is_group;
	st->scope.thread = task.id;
	if (is_group)
		snprintf(st->scope.thread_group, sizeof(st->scope.thread_group), "%s", group);
	if (is_group)
		snprintf(name, sizeof(name), "%.60s threads %.50s", st->scope.process_name, group);
	else
		snprintf(name, sizeof(name), "%.80s thread %d", st->scope.process_name,
			 (int)task.tid);
	ui_state_clean(st->scope.process_name, sizeof(st->scope.process_name), name);
	table_rebuild(st, VIEW_FUNCTIONS);
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
			open_group(st, row->index);
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
		return st->set.fold_threads ? (size_t)snprintf(buf, size, "  names folded (,)") : 0;
	return process_rows_in_tree(st) || st->set.grouping == GROUPING_NAME
		       ? 0
		       : (size_t)snprintf(buf, size, "  by %s (=)",
					  ui_config_grouping_name(st->set.grouping));
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
