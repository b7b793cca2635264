// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From ids of the tables to indices of one profile.
 *
 * Runs on: the builder. Each id met for the first time gets the next index,
 * noted in an array by id (fresh memory is zero and not resident, so these
 * cost what is touched). Texts are borrowed until the end, then all copied
 * into one pool.
 */
#include "sampler/assemble.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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
	uint32_t *stack_ids;			/* by index in p->stacks */
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
	free(w->stack_ids);
}

/* Upper bounds: every cell may have a stack and a task of its own. */
static int work_init(struct work *w)
{
	const struct assemble_input *in = w->in;
	struct profile *p = w->p;
	size_t nr = MAX(in->nr_cells, 1u);

	if (index_init(&w->stacks, stacks_nr(in->stacks)) ||
	    index_init(&w->tasks, maps_nr_tasks(in->maps)) ||
	    index_init(&w->places, places_nr(in->places)) ||
	    index_init(&w->symbols, symbols_nr(in->symbols)))
		return -ENOMEM;
	p->cells = malloc(nr * sizeof(*p->cells));
	p->stacks = calloc(MIN(nr, w->stacks.nr + 1ULL), sizeof(*p->stacks));
	p->tasks = calloc(MIN(nr, w->tasks.nr + 1ULL), sizeof(*p->tasks));
	w->stack_ids = malloc(MIN(nr, w->stacks.nr + 1ULL) * sizeof(*w->stack_ids));
	return p->cells && p->stacks && p->tasks && w->stack_ids ? 0 : -ENOMEM;
}

static uint32_t stack_index(struct work *w, uint32_t id)
{
	uint32_t *index = index_at(&w->stacks, id);

	if (!*index) {
		w->stack_ids[w->p->nr_stacks] = id;
		*index = ++w->p->nr_stacks;
	}
	return *index - 1;
}

static uint32_t task_index(struct work *w, uint32_t id)
{
	uint32_t *index = index_at(&w->tasks, id);

	if (!*index) {
		w->p->tasks[w->p->nr_tasks].id = id;
		*index = ++w->p->nr_tasks;
	}
	return *index - 1;
}

static void add_cells(struct work *w)
{
	for (uint32_t i = 0; i < w->in->nr_cells; i++) {
		const struct history_cell *c = &w->in->cells[i];

		w->p->cells[w->p->nr_cells++] = (struct profile_cell){
			.stack = stack_index(w, c->stack),
			.task = task_index(w, c->task),
			.event = c->event,
			.count = c->count,
			.weight = c->weight,
		};
	}
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

static int by_id(const void *a, const void *b)
{
	const struct profile_task *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

/* Put the tasks in order of id (and so of time), and tell the cells. */
static int sort_tasks(struct work *w)
{
	struct profile *p = w->p;
	uint32_t *moved = malloc(MAX(p->nr_tasks, 1u) * sizeof(*moved));

	if (!moved)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->nr_tasks; i++)
		p->tasks[i].process = i;
	qsort(p->tasks, p->nr_tasks, sizeof(*p->tasks), by_id);
	for (uint32_t i = 0; i < p->nr_tasks; i++)
		moved[p->tasks[i].process] = i;
	for (uint32_t i = 0; i < p->nr_cells; i++)
		p->cells[i].task = moved[p->cells[i].task];
	free(moved);
	return 0;
}

static int add_tasks(struct work *w)
{
	struct profile *p = w->p;
	uint32_t max = 0;

	if (sort_tasks(w))
		return -ENOMEM;
	for (uint32_t i = 0; i < p->nr_tasks; i++)
		max = MAX(max, task_of(w, p->tasks[i].id).process);
	p->processes = calloc(MAX(p->nr_tasks, 1u), sizeof(*p->processes));
	if (!p->processes || index_init(&w->processes, max))
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

/* Lay out all stacks in one array of frames. */
static int add_stacks(struct work *w)
{
	struct profile *p = w->p;
	uint64_t nr_frames = 0;

	for (uint32_t i = 0; i < p->nr_stacks; i++) {
		stacks_at(w->in->stacks, w->stack_ids[i], &p->stacks[i].nr);
		p->stacks[i].first = (uint32_t)nr_frames;
		nr_frames += p->stacks[i].nr;
	}
	if (nr_frames > UINT32_MAX)
		return -ENOMEM;
	p->frames = malloc(MAX(nr_frames, 1ULL) * sizeof(*p->frames));
	if (!p->frames)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->nr_stacks; i++) {
		uint32_t nr;
		const uint32_t *places = stacks_at(w->in->stacks, w->stack_ids[i], &nr);

		/* Complete by now perhaps, but it had no frames when they were counted. */
		for (uint32_t j = 0; j < p->stacks[i].nr; j++) {
			uint32_t function = function_of(w, places[j]);

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

static size_t pool_size(const struct profile *p)
{
	size_t size = 1;

	for (uint32_t i = 0; i < p->nr_functions; i++)
		size += p->functions[i].module.size + 1 +
			(is_unnamed(&p->functions[i]) ? p->functions[i].module.size + PLACE_TEXT_MAX :
							p->functions[i].name.size + 1);
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
	size_t max = f->module.size + PLACE_TEXT_MAX;
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
	free(p->pool);
	p->cells = NULL;
	p->stacks = NULL;
	p->tasks = NULL;
	p->processes = NULL;
	p->frames = NULL;
	p->functions = NULL;
	p->pool = NULL;
	p->nr_cells = p->nr_stacks = p->nr_tasks = p->nr_processes = 0;
	p->nr_frames = p->nr_functions = 0;
}

int assemble(struct profile *p, const struct assemble_input *in)
{
	struct work w = { .in = in, .p = p };
	int ret = work_init(&w);

	if (!ret) {
		add_cells(&w);
		ret = add_tasks(&w);
	}
	if (!ret)
		ret = add_stacks(&w);
	if (!ret)
		ret = add_texts(&w);
	if (ret)
		clear(p);
	work_fini(&w);
	return ret;
}
