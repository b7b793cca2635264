// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The rows of the processes. The main thread; reads the state.
 */
#include "ui/process_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ui/folds.h"
#include "ui/process_tree.h"
#include "ui/view.h"

/* Set in the id of a row that is a group of threads. */
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
	row->nr = f->nr_tasks;
	row->top_function = f->top_function;
	return 0;
}

/* Rows for the ancestors, and what is below each row into its total. */
static int add_tree(const struct ui_state *st, struct list *list)
{
	const struct profile *p = st->shown;
	struct process_tree t;
	uint32_t nr = list->nr;
	double *totals;
	int rc = 0;

	if (process_tree_make(&t, p))
		return -ENOMEM;
	totals = calloc(t.nr + 1ULL, sizeof(*totals));
	for (uint32_t i = 0; i < nr && totals; i++)
		for (uint32_t at = list->rows[i].index; at != UINT32_MAX; at = t.parents[at])
			totals[at] += list->rows[i].total;
	for (uint32_t i = 0; i < p->nr_ancestors && !rc; i++) {
		struct row *row = list_add(list);

		if (!row) {
			rc = -ENOMEM;
			break;
		}
		row->id = p->ancestors[i].id;
		row->index = p->nr_processes + i;
	}
	for (uint32_t i = 0; i < list->nr && totals; i++)
		list->rows[i].total = totals[list->rows[i].index];
	free(totals);
	process_tree_fini(&t);
	return rc;
}

static int build_processes(const struct ui_state *st, const struct fold_filter *filter,
			   struct list *list)
{
	struct fold_processes fold;
	int rc = fold_processes(st->shown, filter, &fold);

	if (rc)
		return rc;
	list->count = fold.count;
	for (uint32_t i = 0; i < fold.nr_rows && !rc; i++)
		rc = add_process(st, list, &fold.rows[i], fold.weight);
	fold_processes_fini(&fold);
	return rc || !st->process_tree ? rc : add_tree(st, list);
}

/* ---- threads ---- */

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

static uint64_t hash_name(uint32_t process, struct safe_text name)
{
	uint64_t h = process + 1ull;

	for (size_t i = 0; i < name.size; i++)
		h = hash_u64(h + (unsigned char)name.str[i]);
	return h;
}

/* A thread with samples, and the group that it is shown in: itself, or all with names alike. */
struct member {
	uint64_t group;
	uint32_t task;
};

static int by_group(const void *pa, const void *pb)
{
	const struct member *a = pa, *b = pb;

	if (a->group != b->group)
		return (a->group > b->group) - (a->group < b->group);
	return (a->task > b->task) - (a->task < b->task);
}

/* All threads with samples, groups side by side; NULL when memory is out. */
static struct member *members_of(const struct ui_state *st, const struct thread_sum *sums,
				 uint32_t *nr)
{
	const struct profile *p = st->shown;
	struct member *members = malloc((p->nr_tasks + 1ULL) * sizeof(*members));
	char buf[FORMAT_MAX * 2];

	*nr = 0;
	for (uint32_t i = 0; i < p->nr_tasks && members; i++) {
		const struct profile_task *task = &p->tasks[i];

		if (!(sums[i].count > 0) || task->process >= p->nr_processes)
			continue;
		members[(*nr)++] = (struct member){
			.task = i,
			.group = !st->fold_threads ? task->id :
				 GROUP | hash_name(p->processes[task->process].id,
						   format_folded(buf, task->comm)),
		};
	}
	if (members)
		qsort(members, *nr, sizeof(*members), by_group);
	return members;
}

/* One row for each group; it shows as the busiest of its threads. */
static int add_threads(const struct ui_state *st, const struct thread_sum *sums, double all,
		       struct list *list)
{
	uint32_t nr;
	struct member *members = members_of(st, sums, &nr);
	struct row *row = NULL;

	if (!members)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		const struct thread_sum *sum = &sums[members[i].task];

		if (!row || row->id != members[i].group)
			row = list_add(list);
		if (!row)
			break;
		row->id = members[i].group;
		row->index = st->shown->tasks[members[i].task].process;
		row->self += sum->weight;
		row->total = all > 0 ? row->self / all : 0;
		row->count += sum->count;
		row->nr++;
		list->count += sum->count;
		if (row->task != UINT32_MAX && sum->weight <= sums[row->task].weight)
			continue;
		row->task = members[i].task;
		row->top_function = sum->top_function;
	}
	free(members);
	return row || !nr ? 0 : -ENOMEM;
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

		if (cell->task >= p->nr_tasks || !fold_passes(p, filter, cell))
			continue;
		add_cell(&sums[cell->task], p, cell);
		all += cell->weight;
	}
	rc = add_threads(st, sums, all, list);
	free(sums);
	return rc;
}

int process_rows_build(const struct ui_state *st, struct list *list)
{
	struct fold_filter filter;

	if (!st->shown)
		return 0;
	/* Where one thread is looked at, the others stay in sight. */
	folds_filter_all(st, &filter);
	if (!st->by_thread)
		return build_processes(st, &filter, list);
	if (st->drilled)
		filter.process = ui_state_process(st);
	return st->drilled && filter.process == UINT32_MAX ? 0 : build_threads(st, &filter, list);
}
