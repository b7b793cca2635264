// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Map ids of the tables to indices of one profile.
 *
 * Runs on: the builder. Indices are in arrays by id (fresh memory is zero and not resident, so only
 * used pages cost). Stacks and tasks are numbered in order of id: cells have no order, and the
 * tables are large,
 * so they are read from front to end. Texts are borrowed until the end, then
 * all copied into one pool.
 */
#include "sampler/profile/assemble.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/profile/assemble_work.h"
#include "sampler/profile/hardware.h"
#include "sampler/profile/modules.h"
#include "sampler/profile/names.h"
#include "sampler/profile/processes.h"
#include "symbols/base/array.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"

static int index_init(struct assemble_index *index, uint32_t nr)
{
	index->nr = nr;
	index->of = calloc(nr + 1ULL, sizeof(*index->of));
	return index->of ? 0 : -ENOMEM;
}

static void work_fini(struct assemble_work *w)
{
	free(w->stacks.of);
	free(w->tasks.of);
	free(w->processes.of);
	free(w->symbols.of);
	free(w->files.of);
	free(w->spots);
	free(w->frames);
}

static int work_init(struct assemble_work *w)
{
	const struct assemble_input *in = w->in;

	if (index_init(&w->stacks, stacks_nr(in->stacks)) ||
	    index_init(&w->tasks, maps_nr_tasks(in->maps)) ||
	    index_init(&w->symbols, symbols_nr(in->symbols)) ||
	    index_init(&w->files, symbols_nr_files(in->symbols)))
		return -ENOMEM;
	w->nr_places = places_nr(in->places);
	w->spots = calloc(w->nr_places + 1ULL, sizeof(*w->spots));
	w->p->files = calloc(w->files.nr + 1ULL, sizeof(*w->p->files));
	return w->spots && w->p->files ? 0 : -ENOMEM;
}

/* Reserve as much as the last profile needed, and an eighth. False: out of memory. */
static bool reserve(struct assemble_work *w)
{
	const struct assemble_sizes *last = w->in->sizes;
	struct profile *p = w->p;

	return !last ||
	       (array_reserve(&p->functions, &w->max_functions, last->functions * 9ULL / 8) &&
		array_reserve(&p->lines, &w->max_lines, last->lines * 9ULL / 8) &&
		array_reserve(&w->frames, &w->max_frames, last->frames * 9ULL / 8));
}

/* Note them for the next profile. */
static void note_sizes(const struct assemble_work *w)
{
	const struct profile *p = w->p;

	if (w->in->sizes)
		*w->in->sizes =
			(struct assemble_sizes){ p->nr_functions, p->nr_lines, w->nr_frames };
}

/* Give the marked ids indices in order; returns how many there are. */
static uint32_t index_number(struct assemble_index *index)
{
	uint32_t nr = 0;

	for (uint64_t id = 0; id <= index->nr; id++)
		if (index->of[id])
			index->of[id] = ++nr;
	return nr;
}

/* Return whether a count is CPU time, which has no stack. */
static bool is_cpu(const struct history_cell *c)
{
	return c->event == PROFILE_CPU || c->event == PROFILE_CPU_REST;
}

/* Compute the position of the first count of each stack, by index of the stack. */
static uint32_t *cell_starts(const struct assemble_work *w)
{
	const struct assemble_input *in = w->in;
	uint32_t *start = calloc(w->p->nr_stacks + 1ULL, sizeof(*start));
	uint32_t at = 0;

	if (!start)
		return NULL;
	for (uint32_t i = 0; i < in->nr_counts; i++)
		if (!is_cpu(&in->counts[i]))
			start[*assemble_index_at(&w->stacks, in->counts[i].stack) - 1]++;
	for (uint32_t i = 0; i < w->p->nr_stacks; i++) {
		uint32_t nr = start[i];

		start[i] = at;
		at += nr;
	}
	return start;
}

/* Copy the counts in order of stack, so that readers walk the frames from front to end. */
static int add_cells(struct assemble_work *w)
{
	const struct assemble_input *in = w->in;
	struct profile *p = w->p;
	uint32_t *start;

	for (uint32_t i = 0; i < in->nr_counts; i++) {
		if (is_cpu(&in->counts[i]))
			continue;
		*assemble_index_at(&w->stacks, in->counts[i].stack) = 1;
		*assemble_index_at(&w->tasks, in->counts[i].task) = 1;
		p->nr_counts++;
	}
	p->nr_stacks = index_number(&w->stacks);
	p->nr_tasks = index_number(&w->tasks);
	p->counts = malloc(MAX(p->nr_counts, 1u) * sizeof(*p->counts));
	start = cell_starts(w);
	if (!p->counts || !start) {
		free(start);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < in->nr_counts; i++) {
		const struct history_cell *c = &in->counts[i];
		uint32_t stack;

		if (is_cpu(c))
			continue;
		stack = *assemble_index_at(&w->stacks, c->stack) - 1;
		p->counts[start[stack]++] = (struct profile_count){
			.stack = stack,
			.task = *assemble_index_at(&w->tasks, c->task) - 1,
			.event = c->event,
			.count = c->count,
			.weight = c->weight,
		};
	}
	free(start);
	return 0;
}

/* Return a task, the unknown one for an id that is not in the table. */
static struct task task_of(const struct assemble_work *w, uint32_t id)
{
	const struct task *t = maps_task(w->in->maps, id);

	if (!t)
		t = maps_task(w->in->maps, TASK_UNKNOWN);
	return t ? *t
		 : (struct task){ .pid = -1,
				  .tid = -1,
				  .uid = (uid_t)-1,
				  .comm = TEXT("?"),
				  .process_comm = TEXT("") };
}

/*
 * Return the index of the process of @t. It has the name of its main thread: the latest sampled
 * one, its number in @shown, else the one at the first sample of another thread.
 */
static uint32_t process_index(struct assemble_work *w, const struct task *t, uint32_t *shown)
{
	uint32_t *index = assemble_index_at(&w->processes, t->process);
	struct profile_process *process;
	/* Of no process, or of several: they have the name of none of their threads. */
	bool is_main = t->tid == t->pid && (t->pid >= 0 || !t->process_comm.size);

	if (!*index)
		*index = ++w->p->nr_processes;
	else if (!is_main || t->number < shown[*index - 1])
		return *index - 1;
	shown[*index - 1] = is_main ? t->number : 0;
	process = &w->p->processes[*index - 1];
	process->id = t->process;
	process->pid = t->pid;
	process->uid = t->uid;
	process->parent = t->parent;
	process->comm_is_old = !is_main;
	process->comm = !is_main && t->process_comm.size ? t->process_comm : t->comm;
	return *index - 1;
}

/* Fill in the tasks and their processes. */
static int add_tasks(struct assemble_work *w)
{
	struct profile *p = w->p;
	uint32_t max = 0, *shown;

	p->tasks = calloc(MAX(p->nr_tasks, 1u), sizeof(*p->tasks));
	p->processes = calloc(MAX(p->nr_tasks, 1u), sizeof(*p->processes));
	if (!p->tasks || !p->processes)
		return -ENOMEM;
	for (uint64_t id = 0; id <= w->tasks.nr; id++) {
		if (!w->tasks.of[id])
			continue;
		p->tasks[w->tasks.of[id] - 1].id = id;
		max = MAX(max, task_of(w, id).process);
	}
	shown = calloc(MAX(p->nr_tasks, 1u), sizeof(*shown));
	if (!shown || index_init(&w->processes, max)) {
		free(shown);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < p->nr_tasks; i++) {
		struct task t = task_of(w, p->tasks[i].id);

		p->tasks[i].id = t.number;
		p->tasks[i].tid = t.tid;
		p->tasks[i].comm = t.comm;
		p->tasks[i].process = process_index(w, &t, shown);
	}
	free(shown);
	return 0;
}

/*
 * Fill in the CPU time of tasks and processes: by clocks of the kernel, in a recording by switches.
 * Time of tasks without samples is of their process, if that has any.
 */
static void add_cpu(struct assemble_work *w)
{
	const struct assemble_input *in = w->in;
	struct profile *p = w->p;
	bool clocks = false;

	for (uint32_t i = 0; i < in->nr_counts && !clocks; i++)
		clocks = is_cpu(&in->counts[i]);
	p->cpu_known = false;
	p->cpu_other_ns = 0;
	for (uint32_t i = 0; i < in->nr_counts; i++) {
		const struct history_cell *c = &in->counts[i];
		uint32_t task, process;

		if (clocks ? !is_cpu(c) : c->event != PROFILE_RUNNING)
			continue;
		p->cpu_known = true;
		task = *assemble_index_at(&w->tasks, c->task);
		process = *assemble_index_at(&w->processes, task_of(w, c->task).process);
		if (task && c->event != PROFILE_CPU_REST)
			p->tasks[task - 1].cpu_ns += c->weight;
		else if (process)
			p->processes[process - 1].cpu_rest_ns += c->weight;
		else
			p->cpu_other_ns += c->weight;
	}
}

#define CLEAR(member) (free(member), (member) = NULL)

/* Free and clear everything: a partial profile borrows texts. */
static void clear(struct profile *p)
{
	CLEAR(p->counts);
	CLEAR(p->stacks);
	CLEAR(p->stack_waits);
	CLEAR(p->stack_idle);
	CLEAR(p->tasks);
	CLEAR(p->processes);
	CLEAR(p->ancestors);
	CLEAR(p->frames);
	CLEAR(p->frame_lines);
	CLEAR(p->lines);
	CLEAR(p->files);
	CLEAR(p->functions);
	CLEAR(p->modules);
	CLEAR(p->branches);
	CLEAR(p->accesses);
	CLEAR(p->pool);
	text_arena_free(p->names);
	p->names = NULL;
	p->nr_counts = p->nr_stacks = p->nr_tasks = p->nr_processes = p->nr_ancestors = 0;
	p->nr_branches = p->nr_accesses = 0;
	p->nr_frames = p->nr_functions = p->nr_modules = p->nr_lines = p->nr_files = 0;
}

/* Report whether a stack is not in the tables: it has no frame, and its samples no function. */
static bool is_no_stack(const struct assemble_work *w, uint32_t stack)
{
	return w->stacks.of[w->stacks.nr] == stack + 1;
}

/*
 * Count all samples, samples of each module, samples in code with a name that was searched and not
 * found, and samples without a stack.
 */
static void count_unnamed(const struct assemble_work *w)
{
	struct profile *p = w->p;

	p->window_samples = p->window_unnamed = p->window_no_stack = 0;
	for (uint32_t i = 0; i < p->nr_counts; i++) {
		const struct profile_stack *s = &p->stacks[p->counts[i].stack];
		const struct profile_function *f;

		assert(p->counts[i].stack < p->nr_stacks && p->counts[i].task < p->nr_tasks);
		if (p->counts[i].event >= EVENTS_MAX)
			continue; /* running time */
		p->window_samples += p->counts[i].count;
		if (is_no_stack(w, p->counts[i].stack))
			p->window_no_stack += p->counts[i].count;
		assert(s->first + s->nr <= p->nr_frames);
		f = s->nr ? &p->functions[p->frames[s->first]] : NULL;
		if (f && p->nr_modules)
			p->modules[f->module_index].self += p->counts[i].count;
		if (f && f->unnamed && !(f->id & ASSEMBLE_PLACE))
			p->window_unnamed += p->counts[i].count;
	}
}

int assemble(struct profile *p, const struct assemble_input *in)
{
	struct assemble_work w = { .in = in, .p = p };
	int ret = work_init(&w);

	if (!ret && !reserve(&w))
		ret = -ENOMEM;
	if (!ret)
		ret = add_cells(&w);
	if (!ret)
		ret = add_tasks(&w);
	if (!ret)
		add_cpu(&w);
	if (!ret)
		ret = assemble_stacks(&w);
	if (!ret)
		ret = hardware_fill(p, in, assemble_function_of, &w);
	if (!ret)
		ret = modules_fill(p, in);
	if (!ret)
		ret = processes_fill(p, in);
	if (!ret)
		ret = names_copy(p, in);
	if (ret)
		clear(p);
	count_unnamed(&w);
	note_sizes(&w);
	work_fini(&w);
	return ret;
}
