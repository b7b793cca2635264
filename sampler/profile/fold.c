// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A profile folded into rows; callers and callees of a function; hottest lines. Pure; any thread.
 *
 * Pure; any thread. The cells that pass the filter are put in order of process and task first: then
 * "the task with most" and "in how many processes" are counts that restart when the order steps on,
 * and need no table of (function, task).
 */
#include "sampler/profile/profile.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/base/table.h"

#define NONE UINT32_MAX

/* The sums of one function; hot, so apart from the sums made once a cell. */
struct tally {
	uint32_t cell; /* stamps, 0 never: the cell, task, process met last */
	uint32_t task;
	uint32_t process;
	uint32_t nr_processes, nr_tasks;
	uint32_t group; /* of the first process, + 1 */
	bool mixed;
	double total, total_weight;
	double task_weight; /* of the task met last */
	double best_weight;
	uint32_t best_task;
};

struct self {
	double count, weight;
};

struct order {
	uint32_t *counts; /* indices of passing cells, by process, then task */
	uint32_t nr;
};

static bool is_hidden(const struct profile_function *fn, const struct fold_filter *f)
{
	return fn->kernel || fn->kind == 'k' ? f->hide_kernel : f->hide_user;
}

/* Turn counts per bucket into start positions. */
static void starts_of(uint32_t *count, uint32_t nr)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < nr; i++) {
		uint32_t n = count[i];

		count[i] = at;
		at += n;
	}
}

/* rank[task] = its position among all tasks when ordered by process. */
static int rank_tasks(const struct profile *p, uint32_t *rank)
{
	uint32_t *start = calloc(p->nr_processes + 1ULL, sizeof(*start));

	if (!start)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->nr_tasks; i++)
		start[p->tasks[i].process]++;
	starts_of(start, p->nr_processes);
	for (uint32_t i = 0; i < p->nr_tasks; i++)
		rank[i] = start[p->tasks[i].process]++;
	free(start);
	return 0;
}

/* Order the cells that pass: two counting sorts, tasks by process, cells by task. */
static int order_cells(const struct profile *p, const struct fold_filter *f, struct order *o)
{
	uint32_t *rank = malloc((p->nr_tasks + 1ULL) * sizeof(*rank));
	uint32_t *start = calloc(p->nr_tasks + 1ULL, sizeof(*start));

	o->nr = 0;
	o->counts = malloc((p->nr_counts + 1ULL) * sizeof(*o->counts));
	if (!rank || !start || !o->counts || rank_tasks(p, rank)) {
		free(rank);
		free(start);
		free(o->counts);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < p->nr_counts; i++)
		if (fold_passes(p, f, &p->counts[i])) {
			start[rank[p->counts[i].task]]++;
			o->nr++;
		}
	starts_of(start, p->nr_tasks);
	for (uint32_t i = 0; i < p->nr_counts; i++)
		if (fold_passes(p, f, &p->counts[i]))
			o->counts[start[rank[p->counts[i].task]]++] = i;
	free(rank);
	free(start);
	return 0;
}

/* End the current task; keep it if it has most. */
static void close_task(struct tally *t)
{
	if (t->task && t->task_weight > t->best_weight) {
		t->best_weight = t->task_weight;
		t->best_task = t->task - 1;
	}
	t->task_weight = 0;
}

/* Count a cell for one of its functions, once however often that is on the stack. */
static void tally_frame(struct tally *t, uint32_t stamp, const struct profile_count *c,
			uint32_t process, uint32_t group)
{
	if (t->cell == stamp)
		return;
	t->cell = stamp;
	if (t->task != c->task + 1) {
		close_task(t);
		t->task = c->task + 1;
		t->nr_tasks++;
		if (t->process != process + 1) {
			t->process = process + 1;
			t->nr_processes++;
			t->mixed |= t->group && t->group != group + 1;
			t->group = group + 1;
		}
	}
	t->total += c->count;
	t->total_weight += c->weight;
	t->task_weight += c->weight;
}

static void tally_cell(const struct profile *p, const struct fold_filter *f,
		       const struct profile_count *c, uint32_t stamp, struct tally *tallies,
		       struct self *selfs)
{
	const struct profile_stack *stack = &p->stacks[c->stack];
	const uint32_t *frames = &p->frames[stack->first];
	uint32_t process = p->tasks[c->task].process;
	uint32_t group = f->groups ? f->groups[process] : process;

	for (uint32_t i = 0; i < stack->nr; i++)
		tally_frame(&tallies[frames[i]], stamp, c, process, group);
	if (stack->nr) {
		selfs[frames[0]].count += c->count;
		selfs[frames[0]].weight += c->weight;
	}
}

/* Make a row for each function with samples that is not hidden. */
static int make_rows(const struct profile *p, const struct fold_filter *f, struct tally *tallies,
		     const struct self *selfs, struct fold_functions *out)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < p->nr_functions; i++)
		nr += tallies[i].cell && !is_hidden(&p->functions[i], f);
	out->rows = malloc(MAX(nr, 1u) * sizeof(*out->rows));
	if (!out->rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->nr_functions; i++) {
		struct tally *t = &tallies[i];

		if (!t->cell || is_hidden(&p->functions[i], f))
			continue;
		close_task(t);
		out->rows[out->nr_rows++] = (struct fold_row){
			.function = i,
			.self = selfs[i].count,
			.self_weight = selfs[i].weight,
			.total = t->total,
			.total_weight = t->total_weight,
			.task = t->best_task,
			.nr_processes = t->nr_processes,
			.nr_tasks = t->nr_tasks,
			.mixed = t->mixed,
		};
	}
	return 0;
}

int fold_functions(const struct profile *p, const struct fold_filter *f, struct fold_functions *out)
{
	struct tally *tallies = calloc(p->nr_functions + 1ULL, sizeof(*tallies));
	struct self *selfs = calloc(p->nr_functions + 1ULL, sizeof(*selfs));
	struct order o = { NULL, 0 };
	int ret = -ENOMEM;

	*out = (struct fold_functions){ 0 };
	if (!tallies || !selfs || order_cells(p, f, &o))
		goto out;
	for (uint32_t i = 0; i < p->nr_functions; i++)
		tallies[i].best_weight = -1; /* so that a weight of 0 counts */
	for (uint32_t i = 0; i < o.nr; i++) {
		const struct profile_count *c = &p->counts[o.counts[i]];

		out->count += c->count;
		out->weight += c->weight;
		tally_cell(p, f, c, i + 1, tallies, selfs);
	}
	ret = make_rows(p, f, tallies, selfs, out);
	free(o.counts);
out:
	free(tallies);
	free(selfs);
	return ret;
}

void fold_functions_fini(struct fold_functions *out)
{
	free(out->rows);
	*out = (struct fold_functions){ 0 };
}

/* Self weight of each function in the process at hand; older stamps count as nothing. */
struct top {
	uint32_t stamp;
	double weight;
};

/* Add a cell to its function, and note that function in *@best if it has most. @stamp: not 0. */
static void add_to_top(const struct profile *p, const struct fold_filter *f,
		       const struct profile_count *c, uint32_t stamp, struct top *tops,
		       uint32_t *best)
{
	const struct profile_stack *stack = &p->stacks[c->stack];
	uint32_t function = stack->nr ? p->frames[stack->first] : NONE;
	struct top *top;

	if (function == NONE || is_hidden(&p->functions[function], f))
		return;
	top = &tops[function];
	if (top->stamp != stamp)
		*top = (struct top){ .stamp = stamp };
	top->weight += c->weight;
	if (*best == NONE || top->weight > tops[*best].weight)
		*best = function;
}

static void add_to_process(const struct profile *p, const struct fold_filter *f,
			   const struct profile_count *c, struct top *tops,
			   struct fold_process_row *row)
{
	row->count += c->count;
	row->weight += c->weight;
	add_to_top(p, f, c, row->process + 1, tops, &row->top_function);
}

/*
 * Find the function with most self weight of each bucket of tasks, into @best (@nr buckets);
 * @buckets[task]. @all: also of tasks that do not pass. NONE for each without memory.
 */
static void find_tops(const struct profile *p, const struct fold_filter *f, bool all,
		      const uint32_t *buckets, uint32_t nr, uint32_t *best)
{
	struct top *tops = calloc(p->nr_functions + 1ULL, sizeof(*tops));
	uint32_t *start = calloc(nr + 1ULL, sizeof(*start));
	uint32_t *cells = malloc((p->nr_counts + 1ULL) * sizeof(*cells)), nr_cells = 0;

	memset(best, 0xff, nr * sizeof(*best));
	if (!tops || !start || !cells)
		goto out;
	/* Sorted by counting: at each pass the same cells. */
	for (uint32_t pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < p->nr_counts; i++) {
			const struct profile_count *c = &p->counts[i];

			if (all ? !fold_passes_kind(p, f, c) : !fold_passes(p, f, c))
				continue;
			if (pass)
				cells[start[buckets[c->task]]++] = i;
			else
				start[buckets[c->task]]++;
			nr_cells += pass;
		}
		if (!pass)
			starts_of(start, nr);
	}
	for (uint32_t i = 0; i < nr_cells; i++) {
		const struct profile_count *c = &p->counts[cells[i]];
		uint32_t at = buckets[c->task];

		add_to_top(p, f, c, at + 1, tops, &best[at]);
	}
out:
	free(tops);
	free(start);
	free(cells);
}

/* Find the function with most self weight of each group; NULL: no groups, or no memory. */
static uint32_t *group_tops(const struct profile *p, const struct fold_filter *f)
{
	uint32_t *buckets = f->groups ? malloc((p->nr_tasks + 1ULL) * sizeof(*buckets)) : NULL;
	uint32_t *best = buckets ? malloc((p->nr_processes + 1ULL) * sizeof(*best)) : NULL;

	for (uint32_t i = 0; best && i < p->nr_tasks; i++)
		buckets[i] = f->groups[p->tasks[i].process];
	if (best)
		find_tops(p, f, false, buckets, p->nr_processes, best);
	free(buckets);
	return best;
}

double fold_cpu(const struct profile *p, const struct fold_filter *f, double *processes)
{
	bool all = f->process == UINT32_MAX && f->task == UINT32_MAX && !f->tasks;
	double sum = all ? p->cpu_other_ns : 0;

	assert(f->process == UINT32_MAX || f->process < p->nr_processes);
	for (uint32_t i = 0; i < p->nr_processes; i++)
		processes[i] = p->processes[i].cpu_rest_ns;
	/* Not of a process with a task that does not pass: the rest may be of others like it. */
	for (uint32_t i = 0; i < p->nr_tasks; i++)
		if (!fold_passes_task(p, f, i))
			processes[p->tasks[i].process] = 0;
	for (uint32_t i = 0; i < p->nr_tasks; i++)
		if (fold_passes_task(p, f, i))
			processes[p->tasks[i].process] += p->tasks[i].cpu_ns;
	for (uint32_t i = 0; i < p->nr_processes; i++)
		sum += processes[i];
	return sum;
}

/* Fill in the CPU time of the rows. */
static void add_cpu(const struct profile *p, const struct fold_filter *f,
		    struct fold_processes *out)
{
	double *cpu = p->cpu_known ? malloc((p->nr_processes + 1ULL) * sizeof(*cpu)) : NULL;

	if (cpu)
		fold_cpu(p, f, cpu);
	for (uint32_t i = 0; i < out->nr_rows; i++)
		out->rows[i].cpu_ns = cpu ? cpu[out->rows[i].process] : 0;
	free(cpu);
}

int fold_processes(const struct profile *p, const struct fold_filter *f, struct fold_processes *out)
{
	struct top *tops = calloc(p->nr_functions + 1ULL, sizeof(*tops));
	struct fold_process_row *row = NULL;
	struct order o;
	uint32_t task = NONE;

	*out = (struct fold_processes){ 0 };
	out->rows = malloc((p->nr_processes + 1ULL) * sizeof(*out->rows));
	if (!tops || !out->rows || order_cells(p, f, &o)) {
		free(tops);
		fold_processes_fini(out);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < o.nr; i++) {
		const struct profile_count *c = &p->counts[o.counts[i]];
		uint32_t process = p->tasks[c->task].process;

		if (!row || row->process != process) {
			row = &out->rows[out->nr_rows++];
			*row = (struct fold_process_row){ .process = process,
							  .top_function = NONE };
			task = NONE;
		}
		row->nr_tasks += c->task != task;
		task = c->task;
		add_to_process(p, f, c, tops, row);
		out->count += c->count;
		out->weight += c->weight;
	}
	out->group_tops = group_tops(p, f);
	add_cpu(p, f, out);
	free(o.counts);
	free(tops);
	return 0;
}

void fold_processes_fini(struct fold_processes *out)
{
	free(out->rows);
	free(out->group_tops);
	*out = (struct fold_processes){ 0 };
}

/* Find the function with most self weight of each task. */
static void task_tops(const struct profile *p, const struct fold_filter *f, struct fold_task *tasks)
{
	uint32_t *buckets = calloc(p->nr_tasks + 1ULL, sizeof(*buckets));
	uint32_t *best = malloc((p->nr_tasks + 1ULL) * sizeof(*best));

	for (uint32_t i = 0; buckets && i < p->nr_tasks; i++)
		buckets[i] = i;
	if (buckets && best)
		find_tops(p, f, true, buckets, p->nr_tasks, best);
	for (uint32_t i = 0; i < p->nr_tasks; i++)
		tasks[i].top_function = buckets && best ? best[i] : NONE;
	free(buckets);
	free(best);
}

void fold_tasks(const struct profile *p, const struct fold_filter *f, struct fold_task *tasks)
{
	assert(tasks || !p->nr_tasks);
	memset(tasks, 0, p->nr_tasks * sizeof(*tasks));
	for (uint32_t i = 0; i < p->nr_counts; i++) {
		const struct profile_count *c = &p->counts[i];
		const struct profile_stack *stack = &p->stacks[c->stack];
		struct fold_task *task = &tasks[c->task];
		const struct profile_function *fn;

		if (!fold_passes_kind(p, f, c))
			continue;
		task->count += c->count;
		task->weight += c->weight;
		if (!stack->nr)
			continue;
		fn = &p->functions[p->frames[stack->first]];
		if (fn->kernel || fn->kind == 'k')
			task->kernel += c->weight;
	}
	task_tops(p, f, tasks);
}

void fold_waits(const struct profile *p, uint8_t hide_idle, double *tasks)
{
	assert(tasks || !p->nr_tasks);
	memset(tasks, 0, p->nr_tasks * WAIT_NR * sizeof(*tasks));
	for (uint32_t i = 0; i < p->nr_counts && p->stack_waits; i++) {
		const struct profile_count *c = &p->counts[i];
		bool idle = fold_hides(p, hide_idle, c->stack);

		if (p->stack_waits[c->stack])
			tasks[c->task * WAIT_NR + (idle ? WAIT_NO : p->stack_waits[c->stack])] +=
				c->weight;
	}
}

/*
 * The callers and callees of one function. Pure; any thread.
 *
 * Invariant: a sample with the function on its stack counts for exactly one
 * caller, and for exactly one callee unless it is the function's own.
 */

#define FOLD_CALLERS_NONE FOLD_NONE

/* Sums by function; the last one is of no function. */
struct fold_callers_sums {
	double *count, *weight;
};

/* The function in one stack. */
struct sighting {
	uint32_t times;
	uint32_t caller, callee; /* functions; FOLD_CALLERS_NONE: none */
	bool self;
};

static bool fold_callers_is_hidden(const struct profile_function *fn, const struct fold_filter *f)
{
	return fn->kernel || fn->kind == 'k' ? f->hide_kernel : f->hide_user;
}

/* Find the function, leaf first. Hidden frames are no neighbours. */
static struct sighting look_at(const struct profile *p, const struct fold_filter *f,
			       const struct profile_stack *stack, uint32_t function)
{
	struct sighting s = { 0, FOLD_CALLERS_NONE, FOLD_CALLERS_NONE, true };
	const uint32_t *frames = &p->frames[stack->first];
	uint32_t before = FOLD_CALLERS_NONE;

	for (uint32_t i = 0; i < stack->nr; i++) {
		if (frames[i] == function) {
			if (!s.times++) {
				s.callee = before;
				s.self = before == FOLD_CALLERS_NONE;
			}
			s.caller = FOLD_CALLERS_NONE;
		} else if (fold_callers_is_hidden(&p->functions[frames[i]], f)) {
			continue;
		} else if (s.times && s.caller == FOLD_CALLERS_NONE) {
			s.caller = frames[i];
		}
		before = frames[i];
	}
	return s;
}

static int fold_callers_sums_init(struct fold_callers_sums *s, uint32_t nr)
{
	s->count = calloc(nr + 1ULL, sizeof(*s->count));
	s->weight = calloc(nr + 1ULL, sizeof(*s->weight));
	return s->count && s->weight ? 0 : -ENOMEM;
}

static void fold_callers_sums_fini(struct fold_callers_sums *s)
{
	free(s->count);
	free(s->weight);
}

static void fold_callers_sums_add(struct fold_callers_sums *s, uint32_t at,
				  const struct profile_count *c)
{
	s->count[at] += c->count;
	s->weight[at] += c->weight;
}

static int compare(const void *pa, const void *pb, void *arg)
{
	const struct profile *p = arg;
	const struct fold_neighbour *a = pa, *b = pb;
	uint32_t x, y;

	if (a->weight != b->weight)
		return a->weight < b->weight ? 1 : -1;
	x = a->function == FOLD_CALLERS_NONE ? FOLD_CALLERS_NONE : p->functions[a->function].id;
	y = b->function == FOLD_CALLERS_NONE ? FOLD_CALLERS_NONE : p->functions[b->function].id;
	return COMPARE(x, y);
}

/* List functions with a weight, hottest first. */
static int fold_callers_make_rows(const struct profile *p, const struct fold_callers_sums *s,
				  struct fold_neighbour **rows, uint32_t *nr)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i <= p->nr_functions; i++)
		n += s->count[i] > 0;
	*rows = malloc((n + 1ULL) * sizeof(**rows));
	if (!*rows)
		return -ENOMEM;
	for (uint32_t i = 0; i <= p->nr_functions; i++)
		if (s->count[i] > 0)
			(*rows)[(*nr)++] = (struct fold_neighbour){ i < p->nr_functions
									    ? i
									    : FOLD_CALLERS_NONE,
								    s->count[i], s->weight[i] };
	qsort_r(*rows, *nr, sizeof(**rows), compare, (void *)p);
	return 0;
}

static void add_cell(const struct profile *p, const struct sighting *s,
		     const struct profile_count *c, struct fold_callers_sums *callers,
		     struct fold_callers_sums *callees, struct fold_callers *out)
{
	out->count += c->count;
	out->total += c->weight;
	fold_callers_sums_add(callers, s->caller == FOLD_CALLERS_NONE ? p->nr_functions : s->caller,
			      c);
	if (s->self)
		out->self += c->weight;
	else
		fold_callers_sums_add(callees, s->callee, c);
	if (s->times > 1)
		out->recursive += c->weight;
	out->depth_max = MAX(out->depth_max, s->times);
}

int fold_callers(const struct profile *p, const struct fold_filter *f, uint32_t function,
		 struct fold_callers *out)
{
	struct fold_callers_sums callers = { 0 }, callees = { 0 };
	int ret = -ENOMEM;

	assert(function < p->nr_functions);
	*out = (struct fold_callers){ 0 };
	if (fold_callers_sums_init(&callers, p->nr_functions) ||
	    fold_callers_sums_init(&callees, p->nr_functions))
		goto out;
	for (uint32_t i = 0; i < p->nr_counts; i++) {
		const struct profile_count *c = &p->counts[i];
		struct sighting s;

		if (!fold_passes(p, f, c))
			continue;
		out->all_count += c->count;
		out->all_weight += c->weight;
		s = look_at(p, f, &p->stacks[c->stack], function);
		if (s.times)
			add_cell(p, &s, c, &callers, &callees, out);
	}
	ret = fold_callers_make_rows(p, &callers, &out->callers, &out->nr_callers);
	if (!ret)
		ret = fold_callers_make_rows(p, &callees, &out->callees, &out->nr_callees);
out:
	fold_callers_sums_fini(&callers);
	fold_callers_sums_fini(&callees);
	if (ret)
		fold_callers_fini(out);
	return ret;
}

void fold_callers_fini(struct fold_callers *out)
{
	free(out->callers);
	free(out->callees);
	*out = (struct fold_callers){ 0 };
}

/*
 * The hottest source line of each function. Pure; any thread.
 *
 * Weights are kept by (function, line): instances of one template have the
 * lines of each other.
 */

struct entry {
	uint32_t function, line; /* line PROFILE_NO_LINE: free */
	double weight;
};

struct table {
	struct entry *entries;
	uint32_t mask;
};

static struct entry *entry_of(const struct table *t, uint32_t function, uint32_t line)
{
	uint32_t at = (uint32_t)keyhash_number((uint64_t)function << 32 | line) & t->mask;

	while (t->entries[at].line != PROFILE_NO_LINE &&
	       (t->entries[at].line != line || t->entries[at].function != function))
		at = (at + 1) & t->mask;
	return &t->entries[at];
}

/* Return the line of frame @i of a stack; PROFILE_NO_LINE: unknown. */
static uint32_t line_of(const struct profile *p, const struct profile_stack *s, uint32_t i)
{
	uint32_t line = i < s->nr ? p->frame_lines[s->first + i] : PROFILE_NO_LINE;

	return line < p->nr_lines && p->lines[line].file < p->nr_files && p->lines[line].line
		       ? line
		       : PROFILE_NO_LINE;
}

static int make_table(struct table *t, const struct profile *p)
{
	uint64_t capacity = 64;

	/* At most one entry per count. */
	while (capacity < 2ULL * p->nr_counts)
		capacity *= 2;
	if (capacity > UINT32_MAX)
		return -ENOMEM;
	t->entries = malloc(capacity * sizeof(*t->entries));
	t->mask = (uint32_t)(capacity - 1);
	for (uint64_t i = 0; i < capacity && t->entries; i++)
		t->entries[i].line = PROFILE_NO_LINE;
	return t->entries ? 0 : -ENOMEM;
}

int fold_lines(const struct profile *p, const struct fold_filter *f, uint32_t *lines)
{
	double *best;
	struct table t;
	int rc;

	assert(lines || !p->nr_functions);
	for (uint32_t i = 0; i < p->nr_functions; i++)
		lines[i] = PROFILE_NO_LINE;
	if (!p->has_source)
		return 0;
	rc = make_table(&t, p);
	best = rc ? NULL : calloc(p->nr_functions + 1ULL, sizeof(*best));
	for (uint32_t i = 0; best && i < p->nr_counts; i++) {
		const struct profile_count *c = &p->counts[i];
		const struct profile_stack *s = &p->stacks[c->stack];
		uint32_t line = line_of(p, s, 0), fn;
		struct entry *e;

		if (line == PROFILE_NO_LINE || !fold_passes(p, f, c))
			continue;
		fn = p->frames[s->first];
		e = entry_of(&t, fn, line);
		*e = (struct entry){ fn, line, (e->line == line ? e->weight : 0) + c->weight };
		/* Weights only grow: the last leader is the heaviest. */
		if (e->weight > best[fn]) {
			best[fn] = e->weight;
			lines[fn] = line;
		}
	}
	if (!rc)
		free(t.entries);
	rc = rc || best ? rc : -ENOMEM;
	free(best);
	return rc;
}

int fold_all_lines(const struct profile *p, const struct fold_filter *f, uint32_t *lines)
{
	int rc = fold_lines(p, f, lines);
	double *most = rc || !p->has_source ? NULL : calloc(p->nr_functions + 1ULL, sizeof(*most));

	if (rc || !p->has_source || !most)
		return rc || !p->has_source ? rc : -ENOMEM;
	/* Lines by self samples are kept. */
	for (uint32_t i = 0; i < p->nr_functions; i++)
		most[i] = lines[i] == PROFILE_NO_LINE ? 0 : INFINITY;
	for (uint32_t i = 0; i < p->nr_counts; i++) {
		const struct profile_count *c = &p->counts[i];
		const struct profile_stack *s = &p->stacks[c->stack];

		for (uint32_t k = 1; k < s->nr && fold_passes(p, f, c); k++) {
			uint32_t fn = p->frames[s->first + k], line = line_of(p, s, k);

			if (line == PROFILE_NO_LINE || c->weight <= most[fn])
				continue;
			most[fn] = c->weight;
			lines[fn] = line;
		}
	}
	free(most);
	return 0;
}
