// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From ids of the tables to indices of one profile.
 *
 * Runs on: the builder. Indices are noted in arrays by id (fresh memory is
 * zero and not resident, so these cost what is touched). Stacks and tasks are
 * numbered in order of id: cells come in no order, and the tables are large,
 * so they are read from front to end. Texts are borrowed until the end, then
 * all copied into one pool.
 */
#include "sampler/assemble.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/modules.h"
#include "symbols/base.h"
#include "symbols/text.h"

/* Beyond the dso's name: "+0x", 16 digits, NUL. */
#define PLACE_TEXT_MAX 24

/* By id, index + 1; 0: not met yet. The last entry is for all ids that are out of range. */
struct index {
	uint32_t *of;
	uint32_t nr;
};

struct work {
	const struct assemble_input *in;
	struct profile *p;
	struct index stacks, tasks, processes, places, symbols;
	uint32_t max_functions;
};

static int index_init(struct index *index, uint32_t nr)
{
	index->nr = nr;
	index->of = calloc(nr + 1ULL, sizeof(*index->of));
	return index->of ? 0 : -ENOMEM;
}

static uint32_t *index_at(const struct index *index, uint32_t id)
{
	return &index->of[MIN(id, index->nr)];
}

static void work_fini(struct work *w)
{
	free(w->stacks.of);
	free(w->tasks.of);
	free(w->processes.of);
	free(w->places.of);
	free(w->symbols.of);
}

static int work_init(struct work *w)
{
	const struct assemble_input *in = w->in;

	if (index_init(&w->stacks, stacks_nr(in->stacks)) ||
	    index_init(&w->tasks, maps_nr_tasks(in->maps)) ||
	    index_init(&w->places, places_nr(in->places)) ||
	    index_init(&w->symbols, symbols_nr(in->symbols)))
		return -ENOMEM;
	return 0;
}

/* Give the marked ids indices in order; returns how many there are. */
static uint32_t index_number(struct index *index)
{
	uint32_t nr = 0;

	for (uint64_t id = 0; id <= index->nr; id++)
		if (index->of[id])
			index->of[id] = ++nr;
	return nr;
}

/* Where the cells of each stack begin among all cells, by index of the stack. */
static uint32_t *cell_starts(const struct work *w)
{
	const struct assemble_input *in = w->in;
	uint32_t *start = calloc(w->p->nr_stacks + 1ULL, sizeof(*start));
	uint32_t at = 0;

	if (!start)
		return NULL;
	for (uint32_t i = 0; i < in->nr_cells; i++)
		start[*index_at(&w->stacks, in->cells[i].stack) - 1]++;
	for (uint32_t i = 0; i < w->p->nr_stacks; i++) {
		uint32_t nr = start[i];

		start[i] = at;
		at += nr;
	}
	return start;
}

/* Copy the cells, in order of stack: whoever walks them walks the frames from front to end. */
static int add_cells(struct work *w)
{
	const struct assemble_input *in = w->in;
	struct profile *p = w->p;
	uint32_t *start;

	for (uint32_t i = 0; i < in->nr_cells; i++) {
		*index_at(&w->stacks, in->cells[i].stack) = 1;
		*index_at(&w->tasks, in->cells[i].task) = 1;
	}
	p->nr_stacks = index_number(&w->stacks);
	p->nr_tasks = index_number(&w->tasks);
	p->cells = malloc(MAX(in->nr_cells, 1u) * sizeof(*p->cells));
	start = cell_starts(w);
	if (!p->cells || !start) {
		free(start);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < in->nr_cells; i++) {
		const struct history_cell *c = &in->cells[i];
		uint32_t stack = *index_at(&w->stacks, c->stack) - 1;

		p->cells[start[stack]++] = (struct profile_cell){
			.stack = stack,
			.task = *index_at(&w->tasks, c->task) - 1,
			.event = c->event,
			.count = c->count,
			.weight = c->weight,
		};
	}
	p->nr_cells = in->nr_cells;
	free(start);
	return 0;
}

/* What is known of a task; of one that the table does not hold, that it is unknown. */
static struct task task_of(const struct work *w, uint32_t id)
{
	const struct task *t = maps_task(w->in->maps, id);

	if (!t)
		t = maps_task(w->in->maps, TASK_UNKNOWN);
	return t ? *t : (struct task){ .pid = -1, .tid = -1, .uid = (uid_t)-1, .comm = TEXT("?") };
}

/* The process of @t; it shows as its main thread, of these the latest, if there is one. */
static uint32_t process_index(struct work *w, const struct task *t)
{
	uint32_t *index = index_at(&w->processes, t->process);
	struct profile_process *process;

	if (!*index)
		*index = ++w->p->nr_processes;
	else if (t->tid != t->pid)
		return *index - 1;
	process = &w->p->processes[*index - 1];
	process->id = t->process;
	process->pid = t->pid;
	process->uid = t->uid;
	process->comm = t->comm;
	return *index - 1;
}

/* Fill in the tasks, in order of id and so of time, and their processes. */
static int add_tasks(struct work *w)
{
	struct profile *p = w->p;
	uint32_t max = 0;

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
	if (index_init(&w->processes, max))
		return -ENOMEM;
	for (uint32_t i = 0; i < p->nr_tasks; i++) {
		struct task t = task_of(w, p->tasks[i].id);

		p->tasks[i].tid = t.tid;
		p->tasks[i].comm = t.comm;
		p->tasks[i].process = process_index(w, &t);
	}
	return 0;
}

/* A new function, zeroed, at the end of the list; NULL without memory. */
static struct profile_function *function_new(struct work *w)
{
	struct profile *p = w->p;

	if (p->nr_functions == w->max_functions) {
		uint32_t max = MAX(1024u, 2 * w->max_functions);
		void *list = reallocarray(p->functions, max, sizeof(*p->functions));

		if (!list)
			return NULL;
		p->functions = list;
		w->max_functions = max;
	}
	memset(&p->functions[p->nr_functions], 0, sizeof(*p->functions));
	return &p->functions[p->nr_functions++];
}

/* The function of symbol @id, index + 1 (places share it), 0 without memory. */
static uint32_t symbol_function(struct work *w, uint32_t id, const struct symbol *symbol)
{
	uint32_t *index = index_at(&w->symbols, id);
	struct profile_function *f = *index ? NULL : function_new(w);

	if (f) {
		*f = (struct profile_function){
			.id = id,
			.name = symbol->name,
			.module = symbol->module,
			.kind = symbol->kind,
			.kernel = symbol->dso == DSO_ID_KERNEL,
		};
		*index = w->p->nr_functions;
	}
	return *index;
}

/* The function that a place without a symbol is for itself; it is named in the pool. */
static uint32_t place_function(struct work *w, uint32_t id, const struct place *place)
{
	const struct dso *dso = dsos_at(w->in->dsos, place ? place->dso : DSO_ID_UNKNOWN);
	struct profile_function *f = function_new(w);

	if (!f)
		return 0;
	*f = (struct profile_function){
		.id = ASSEMBLE_PLACE | id,
		.module = dso ? dso->name : TEXT("?"),
		.kind = '?',
		.kernel = place && place->dso == DSO_ID_KERNEL,
	};
	return w->p->nr_functions;
}

/* The function of place @id, index + 1, 0 without memory. */
static uint32_t function_of(struct work *w, uint32_t id)
{
	uint32_t *index = index_at(&w->places, id);
	const struct place *place;
	const struct symbol *symbol = NULL;
	uint32_t symbol_id = SYMBOL_NONE;

	if (*index)
		return *index;
	place = places_at(w->in->places, id);
	if (place)
		/* Acquire: the symbol's fields; pairs with the release in places_name(). */
		symbol_id = atomic_load_explicit(&place->symbol, memory_order_acquire);
	/* A symbol made since the index was: next time. */
	if (symbol_id < w->symbols.nr)
		symbol = symbols_at(w->in->symbols, symbol_id);
	*index = symbol ? symbol_function(w, symbol_id, symbol) : place_function(w, id, place);
	return *index;
}

/* The places of stack @id; none for ids out of range, though there may be such a stack by now. */
static const uint32_t *places_of(const struct work *w, uint64_t id, uint32_t *nr)
{
	return stacks_at(w->in->stacks, id < w->stacks.nr ? (uint32_t)id : STACK_NONE, nr);
}

/* Say where each stack lies in the frames; returns how many frames that makes. */
static uint64_t lay_out_stacks(struct work *w)
{
	uint64_t nr_frames = 0;

	for (uint64_t id = 0; id <= w->stacks.nr; id++) {
		struct profile_stack *stack;

		if (!w->stacks.of[id])
			continue;
		stack = &w->p->stacks[w->stacks.of[id] - 1];
		places_of(w, id, &stack->nr);
		stack->first = (uint32_t)nr_frames;
		nr_frames += stack->nr;
	}
	return nr_frames;
}

/* Fill in the stacks: all in one array of frames. */
static int add_stacks(struct work *w)
{
	struct profile *p = w->p;
	uint64_t nr_frames;

	p->stacks = calloc(MAX(p->nr_stacks, 1u), sizeof(*p->stacks));
	if (!p->stacks)
		return -ENOMEM;
	nr_frames = lay_out_stacks(w);
	if (nr_frames > UINT32_MAX)
		return -ENOMEM;
	p->frames = malloc(MAX(nr_frames, 1ULL) * sizeof(*p->frames));
	if (!p->frames)
		return -ENOMEM;
	for (uint64_t id = 0; id <= w->stacks.nr; id++) {
		uint32_t nr;
		const uint32_t *places = w->stacks.of[id] ? places_of(w, id, &nr) : NULL;

		/* One that is complete only now had no frames when they were counted. */
		for (uint32_t i = 0; places && i < p->stacks[w->stacks.of[id] - 1].nr; i++) {
			uint32_t function = function_of(w, places[i]);

			if (!function)
				return -ENOMEM;
			p->frames[p->nr_frames++] = function - 1;
		}
	}
	return 0;
}

static bool is_unnamed(const struct profile_function *f)
{
	return f->id & ASSEMBLE_PLACE && !f->name.str;
}

static size_t name_room(const struct profile_function *f)
{
	return is_unnamed(f) ? f->module.size + (size_t)PLACE_TEXT_MAX : f->name.size + (size_t)1;
}

static size_t pool_size(const struct profile *p)
{
	size_t size = 1;

	for (uint32_t i = 0; i < p->nr_functions; i++)
		size += p->functions[i].module.size + 1 + name_room(&p->functions[i]);
	for (uint32_t i = 0; i < p->nr_tasks; i++)
		size += p->tasks[i].comm.size + 1;
	for (uint32_t i = 0; i < p->nr_processes; i++)
		size += p->processes[i].comm.size + 1;
	return size;
}

/* Move a borrowed text into the pool. */
static void pool_take(char **pool, struct safe_text *text)
{
	if (text->size)
		memcpy(*pool, text->str, text->size);
	(*pool)[text->size] = '\0';
	text->str = *pool;
	*pool += text->size + 1;
}

/* Name a place: where in which file, or the address where the object says nothing. */
static void pool_name_place(const struct work *w, char **pool, struct profile_function *f)
{
	const struct place *place = places_at(w->in->places, f->id & ~ASSEMBLE_PLACE);
	const struct dso *dso = dsos_at(w->in->dsos, place ? place->dso : DSO_ID_UNKNOWN);
	size_t max = name_room(f);
	bool relative = dso && (dso->identity.kind == DSO_FILE || dso->identity.kind == DSO_VDSO);

	f->name = text_format(*pool, max, "%s%s0x%" PRIx64, relative ? dso->name.str : "",
			      relative ? "+" : "", place ? place->offset : 0);
	*pool += max;
}

/* Copy all texts, so that the profile outlives the tables. */
static int add_texts(struct work *w)
{
	struct profile *p = w->p;
	char *pool = malloc(pool_size(p));

	if (!pool)
		return -ENOMEM;
	p->pool = pool;
	for (uint32_t i = 0; i < p->nr_functions; i++) {
		struct profile_function *f = &p->functions[i];

		if (is_unnamed(f))
			pool_name_place(w, &pool, f);
		else
			pool_take(&pool, &f->name);
		pool_take(&pool, &f->module);
	}
	for (uint32_t i = 0; i < p->nr_tasks; i++)
		pool_take(&pool, &p->tasks[i].comm);
	for (uint32_t i = 0; i < p->nr_processes; i++)
		pool_take(&pool, &p->processes[i].comm);
	return 0;
}

/* Take out everything again: half a profile borrows texts. */
static void clear(struct profile *p)
{
	free(p->cells);
	free(p->stacks);
	free(p->tasks);
	free(p->processes);
	free(p->frames);
	free(p->functions);
	free(p->modules);
	text_arena_free(p->names);
	free(p->pool);
	p->modules = NULL;
	p->names = NULL;
	p->cells = NULL;
	p->stacks = NULL;
	p->tasks = NULL;
	p->processes = NULL;
	p->frames = NULL;
	p->functions = NULL;
	p->pool = NULL;
	p->nr_cells = p->nr_stacks = p->nr_tasks = p->nr_processes = 0;
	p->nr_frames = p->nr_functions = p->nr_modules = 0;
}

int assemble(struct profile *p, const struct assemble_input *in)
{
	struct work w = { .in = in, .p = p };
	int ret = work_init(&w);

	if (!ret)
		ret = add_cells(&w);
	if (!ret)
		ret = add_tasks(&w);
	if (!ret)
		ret = add_stacks(&w);
	if (!ret)
		ret = modules_fill(p, in);
	if (!ret)
		ret = add_texts(&w);
	if (ret)
		clear(p);
	work_fini(&w);
	return ret;
}
