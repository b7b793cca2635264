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

#include "sampler/profile/hardware.h"
#include "sampler/profile/modules.h"
#include "sampler/profile/names.h"
#include "sampler/profile/processes.h"
#include "symbols/base/array.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/name/wait_kind.h"

/* By id, index + 1; 0: none yet. The last entry is for all ids out of range. */
struct index {
	uint32_t *of;
	uint32_t nr;
};

/* The frames of a place: one function, and the functions inlined there. */
struct spot {
	uint32_t first, nr; /* in frames; first + 1, 0: none yet */
	bool script;	    /* code of a language */
	bool interpreter;   /* code of an interpreter */
	bool kernel;	    /* code of the kernel */
	uint8_t wait;	    /* the frame of a wait: enum wait_kind */
	bool long_wait;
	struct wait_hint hint;
};

/* Frames that a stack does not show. */
struct left_out {
	bool script, interpreter; /* as in spot */
};

struct spot_frame {
	uint32_t function; /* index in the profile's functions */
	uint32_t line;	   /* index in its lines, or PROFILE_NO_LINE */
};

struct work {
	const struct assemble_input *in;
	struct profile *p;
	struct index stacks, tasks, processes, symbols, files;
	uint32_t max_functions, max_lines;
	struct spot *spots; /* by id of the place, as an index is */
	uint32_t nr_places;
	struct spot_frame *frames;
	uint32_t nr_frames, max_frames;
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
	free(w->symbols.of);
	free(w->files.of);
	free(w->spots);
	free(w->frames);
}

static int work_init(struct work *w)
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

/* Give the marked ids indices in order; returns how many there are. */
static uint32_t index_number(struct index *index)
{
	uint32_t nr = 0;

	for (uint64_t id = 0; id <= index->nr; id++)
		if (index->of[id])
			index->of[id] = ++nr;
	return nr;
}

/* Compute the position of the first count of each stack, by index of the stack. */
static uint32_t *cell_starts(const struct work *w)
{
	const struct assemble_input *in = w->in;
	uint32_t *start = calloc(w->p->nr_stacks + 1ULL, sizeof(*start));
	uint32_t at = 0;

	if (!start)
		return NULL;
	for (uint32_t i = 0; i < in->nr_counts; i++)
		start[*index_at(&w->stacks, in->counts[i].stack) - 1]++;
	for (uint32_t i = 0; i < w->p->nr_stacks; i++) {
		uint32_t nr = start[i];

		start[i] = at;
		at += nr;
	}
	return start;
}

/* Copy the counts in order of stack, so that readers walk the frames from front to end. */
static int add_cells(struct work *w)
{
	const struct assemble_input *in = w->in;
	struct profile *p = w->p;
	uint32_t *start;

	for (uint32_t i = 0; i < in->nr_counts; i++) {
		*index_at(&w->stacks, in->counts[i].stack) = 1;
		*index_at(&w->tasks, in->counts[i].task) = 1;
	}
	p->nr_stacks = index_number(&w->stacks);
	p->nr_tasks = index_number(&w->tasks);
	p->counts = malloc(MAX(in->nr_counts, 1u) * sizeof(*p->counts));
	start = cell_starts(w);
	if (!p->counts || !start) {
		free(start);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < in->nr_counts; i++) {
		const struct history_cell *c = &in->counts[i];
		uint32_t stack = *index_at(&w->stacks, c->stack) - 1;

		p->counts[start[stack]++] = (struct profile_count){
			.stack = stack,
			.task = *index_at(&w->tasks, c->task) - 1,
			.event = c->event,
			.count = c->count,
			.weight = c->weight,
		};
	}
	p->nr_counts = in->nr_counts;
	free(start);
	return 0;
}

/* Return a task, the unknown one for an id that is not in the table. */
static struct task task_of(const struct work *w, uint32_t id)
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
static uint32_t process_index(struct work *w, const struct task *t, uint32_t *shown)
{
	uint32_t *index = index_at(&w->processes, t->process);
	struct profile_process *process;

	if (!*index)
		*index = ++w->p->nr_processes;
	else if (t->tid != t->pid || t->number < shown[*index - 1])
		return *index - 1;
	shown[*index - 1] = t->tid == t->pid ? t->number : 0;
	process = &w->p->processes[*index - 1];
	process->id = t->process;
	process->pid = t->pid;
	process->uid = t->uid;
	process->parent = t->parent;
	process->comm_is_old = t->tid != t->pid;
	process->comm = t->tid != t->pid && t->process_comm.size ? t->process_comm : t->comm;
	return *index - 1;
}

/* Fill in the tasks and their processes. */
static int add_tasks(struct work *w)
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

/* Append a zeroed function; NULL: out of memory. */
static struct profile_function *function_new(struct work *w)
{
	struct profile *p = w->p;

	if (!array_reserve(&p->functions, &w->max_functions, p->nr_functions + 1ull))
		return NULL;
	memset(&p->functions[p->nr_functions], 0, sizeof(*p->functions));
	return &p->functions[p->nr_functions++];
}

/* Return the function of symbol @id, index + 1 (places share it); 0: out of memory. */
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
			.kernel = symbol->object == OBJECT_ID_KERNEL,
			.inlined = symbol->inlined,
		};
		*index = w->p->nr_functions;
	}
	return *index;
}

/* Make a function for a place without a symbol; names_copy() names it. */
static uint32_t place_function(struct work *w, uint32_t id, const struct place *place)
{
	const struct object *object =
		objects_at(w->in->objects, place ? place->object : OBJECT_ID_UNKNOWN);
	struct profile_function *f = function_new(w);

	if (!f)
		return 0;
	*f = (struct profile_function){
		.id = ASSEMBLE_PLACE | id,
		.module = object ? object->name : TEXT("?"),
		.kind = '?',
		.kernel = place && place->object == OBJECT_ID_KERNEL,
	};
	return w->p->nr_functions;
}

/* Return the symbol of @place; NULL: none, or newer than the index. */
static const struct symbol *symbol_of(const struct work *w, const struct place *place, uint32_t *id)
{
	if (!place)
		return NULL;
	/* Acquire: the symbol's fields; pairs with the release in places_name(). */
	*id = atomic_load_explicit(&place->symbol, memory_order_acquire);
	return *id < w->symbols.nr ? symbols_at(w->in->symbols, *id) : NULL;
}

/* Add a frame to the spot at hand. */
static int add_frame(struct work *w, uint32_t function, uint32_t line)
{
	if (!function || !array_reserve(&w->frames, &w->max_frames, w->nr_frames + 1ull))
		return -ENOMEM;
	w->frames[w->nr_frames++] = (struct spot_frame){ function - 1, line };
	return 0;
}

/* Return the index of a source line; PROFILE_NO_LINE: unknown. */
static int add_line(struct work *w, const struct symbol_frame *f, uint32_t *out)
{
	struct profile *p = w->p;
	uint32_t file = PROFILE_NO_LINE, *index;

	*out = PROFILE_NO_LINE;
	if (!f->line)
		return 0;
	if (f->file < w->files.nr) {
		index = index_at(&w->files, f->file);
		if (!*index) {
			p->files[p->nr_files] = symbols_file(w->in->symbols, f->file);
			*index = ++p->nr_files;
		}
		file = *index - 1;
	}
	if (!array_reserve(&p->lines, &w->max_lines, p->nr_lines + 1ull))
		return -ENOMEM;
	*out = p->nr_lines;
	p->lines[p->nr_lines++] = (struct profile_line){ file, f->line };
	return 0;
}

/* Make the frames of place @id in @function: inlined functions first. */
static int add_frames(struct work *w, uint32_t id, uint32_t function)
{
	uint32_t nr, line;
	const struct symbol_frame *f = symbols_source(w->in->symbols, id, &nr);

	for (uint32_t i = 0; i < nr; i++) {
		const struct symbol *inlined;

		if (add_line(w, &f[i], &line))
			return -ENOMEM;
		if (f[i].symbol == SYMBOL_NONE) {
			if (add_frame(w, function, line))
				return -ENOMEM;
			continue;
		}
		inlined = NULL;
		if (f[i].symbol < w->symbols.nr)
			inlined = symbols_at(w->in->symbols, f[i].symbol);
		if (inlined && add_frame(w, symbol_function(w, f[i].symbol, inlined), line))
			return -ENOMEM;
	}
	return nr ? 0 : add_frame(w, function, PROFILE_NO_LINE);
}

/* Note whether it is code of a language or of an interpreter. */
static void classify(const struct work *w, struct spot *spot, const struct place *place)
{
	const struct object *object = place ? objects_at(w->in->objects, place->object) : NULL;

	if (!object)
		return;
	spot->script = object->identity.kind == OBJECT_SCRIPT;
	spot->kernel = place->object == OBJECT_ID_KERNEL;
	if (place->object == w->in->wait)
		spot->wait = (uint8_t)MIN(place->offset, WAIT_OTHER);
	spot->long_wait = spot->wait && place->offset == WAIT_LONG;
	spot->interpreter = atomic_load_explicit(&object->interpreter, memory_order_relaxed);
}

/* Return the meaning of the function on the stack of a waiting task. */
static struct wait_hint hint_of(const struct work *w, const struct spot *spot)
{
	const struct spot_frame *outer = &w->frames[spot->first - 1 + spot->nr - 1];
	const struct safe_text *name = &w->p->functions[outer->function].name;

	return name->str ? wait_hint(name->str, name->size, spot->kernel)
			 : (struct wait_hint){ WAIT_NO, false };
}

/* Get the frames of place @id. */
static int make_spot(struct work *w, struct spot *spot, uint32_t id)
{
	const struct place *place = places_at(w->in->places, id);
	uint32_t symbol_id, first = w->nr_frames;
	const struct symbol *symbol = symbol_of(w, place, &symbol_id);
	int ret;

	if (symbol)
		ret = add_frames(w, id, symbol_function(w, symbol_id, symbol));
	else
		ret = add_frame(w, place_function(w, id, place), PROFILE_NO_LINE);
	*spot = (struct spot){ .first = first + 1, .nr = w->nr_frames - first };
	classify(w, spot, place);
	if (!ret && w->in->wait_places)
		spot->hint = hint_of(w, spot);
	return ret;
}

static struct spot *spot_at(const struct work *w, uint32_t id)
{
	return &w->spots[MIN(id, w->nr_places)];
}

/* Return the places of stack @id; none for newer ids. */
static const uint32_t *places_of(const struct work *w, uint64_t id, uint32_t *nr)
{
	return stacks_at(w->in->stacks, id < w->stacks.nr ? (uint32_t)id : STACK_NONE, nr);
}

/*
 * Find the frames that a stack does not show. Frames of an interpreter are left out of stacks with
 * frames of its language only: its work for a function counts for the function.
 */
static struct left_out find_left_out(const struct work *w, const uint32_t *places, uint32_t nr)
{
	if (w->in->shown_frames != FRAMES_LANGUAGE)
		return (struct left_out){ .script = w->in->shown_frames == FRAMES_NATIVE };
	for (uint32_t i = 0; i < nr; i++)
		if (spot_at(w, places[i])->script)
			return (struct left_out){ .interpreter = true };
	return (struct left_out){ false, false };
}

static bool is_left_out(struct left_out out, const struct spot *spot)
{
	return (out.script && spot->script) || (out.interpreter && spot->interpreter);
}

/* The places of a stack as they are shown. */
struct shown {
	enum wait_kind wait; /* WAIT_NO: not of a wait */
	bool idle;	     /* a long wait for work */
	uint32_t lead;	     /* of a wait: the place of its kind, which is innermost */
	const uint32_t *places;
	uint32_t nr;
};

/* Return the kind of the wait that these functions show. */
static enum wait_kind look_at(const struct work *w, const uint32_t *places, uint32_t nr)
{
	struct wait_look look = { .kind = WAIT_NO };

	for (uint32_t i = 0; i < nr; i++)
		wait_look_at(&look, spot_at(w, places[i])->hint, spot_at(w, places[i])->kernel);
	return look.kind ? look.kind : WAIT_OTHER;
}

/* The frames of the scheduler are in each wait, and left out. */
static struct shown shown_of(const struct work *w, const uint32_t *places, uint32_t nr)
{
	struct shown s = { .places = places, .nr = nr };
	bool is_long;

	if (!nr || !w->in->wait_places || !spot_at(w, places[0])->wait)
		return s;
	is_long = spot_at(w, places[0])->long_wait;
	/* Its kind, if that is known without a stack. */
	if (is_long && nr > 1 && spot_at(w, places[1])->wait) {
		s.places++;
		s.nr--;
	}
	s.wait = (enum wait_kind)spot_at(w, *s.places)->wait;
	for (s.places++, s.nr--; s.nr && spot_at(w, *s.places)->hint.scheduler; s.nr--)
		s.places++;
	if (s.wait == WAIT_OTHER)
		s.wait = look_at(w, s.places, s.nr);
	s.idle = is_long && (s.wait == WAIT_POLL || s.wait == WAIT_CONDITION);
	s.lead = w->in->wait_places[s.wait];
	return s;
}

/* How many frames a stack has to show. */
static uint32_t stack_frames(const struct work *w, const struct shown *s)
{
	struct left_out out = find_left_out(w, s->places, s->nr);
	uint32_t frames = s->wait ? spot_at(w, s->lead)->nr : 0;

	for (uint32_t i = 0; i < s->nr; i++) {
		const struct spot *spot = spot_at(w, s->places[i]);

		frames += is_left_out(out, spot) ? 0 : spot->nr;
	}
	return frames;
}

/* Set one of @nr bytes, which are allocated for the first that is not zero. */
static int mark(uint8_t **bytes, uint32_t nr, ptrdiff_t at, uint8_t value)
{
	if (!value)
		return 0;
	if (!*bytes)
		*bytes = calloc(nr, 1);
	if (!*bytes)
		return -ENOMEM;
	(*bytes)[at] = value;
	return 0;
}

/* Get the frames of all places of a stack, and set its number of frames. */
static int lay_out_stack(struct work *w, struct profile_stack *stack, const uint32_t *places,
			 uint32_t nr)
{
	struct shown s;

	for (uint32_t i = 0; i < nr; i++)
		if (!spot_at(w, places[i])->first && make_spot(w, spot_at(w, places[i]), places[i]))
			return -ENOMEM;
	s = shown_of(w, places, nr);
	if (s.wait && !spot_at(w, s.lead)->first && make_spot(w, spot_at(w, s.lead), s.lead))
		return -ENOMEM;
	if (mark(&w->p->stack_waits, w->p->nr_stacks, stack - w->p->stacks, (uint8_t)s.wait) ||
	    mark(&w->p->stack_idle, w->p->nr_stacks, stack - w->p->stacks, s.idle))
		return -ENOMEM;
	stack->nr = stack_frames(w, &s);
	return 0;
}

/* Set the first frame of each stack, and the number of all frames. */
static int lay_out_stacks(struct work *w, uint64_t *nr_frames)
{
	*nr_frames = 0;
	for (uint64_t id = 0; id <= w->stacks.nr; id++) {
		struct profile_stack *stack;
		const uint32_t *places;
		uint32_t nr;

		if (!w->stacks.of[id])
			continue;
		stack = &w->p->stacks[w->stacks.of[id] - 1];
		stack->first = (uint32_t)*nr_frames;
		places = places_of(w, id, &nr);
		if (places && lay_out_stack(w, stack, places, nr))
			return -ENOMEM;
		*nr_frames += stack->nr;
	}
	return *nr_frames > UINT32_MAX ? -ENOMEM : 0;
}

/* Write the frames of one place; return the position after them. */
static uint32_t put_spot(const struct work *w, uint32_t at, const struct spot *spot)
{
	for (uint32_t k = 0; k < spot->nr; k++, at++) {
		w->p->frames[at] = w->frames[spot->first - 1 + k].function;
		if (w->p->frame_lines)
			w->p->frame_lines[at] = w->frames[spot->first - 1 + k].line;
	}
	return at;
}

/* Write the frames of the @nr @places of a stack, from frame @at on. */
static void put_stack(const struct work *w, uint32_t at, const uint32_t *places, uint32_t nr)
{
	const struct shown s = shown_of(w, places, nr);
	struct left_out out = find_left_out(w, s.places, s.nr);

	if (s.wait)
		at = put_spot(w, at, spot_at(w, s.lead));
	for (uint32_t i = 0; i < s.nr; i++)
		if (!is_left_out(out, spot_at(w, s.places[i])))
			at = put_spot(w, at, spot_at(w, s.places[i]));
}

/* Fill in the stacks: all in one array of frames. */
static int add_stacks(struct work *w)
{
	struct profile *p = w->p;
	uint64_t nr_frames;

	p->stacks = calloc(MAX(p->nr_stacks, 1u), sizeof(*p->stacks));
	if (!p->stacks || lay_out_stacks(w, &nr_frames))
		return -ENOMEM;
	p->frames = malloc(MAX(nr_frames, 1ULL) * sizeof(*p->frames));
	if (p->nr_lines)
		p->frame_lines = malloc(MAX(nr_frames, 1ULL) * sizeof(*p->frame_lines));
	if (!p->frames || (p->nr_lines && !p->frame_lines))
		return -ENOMEM;
	for (uint64_t id = 0; id <= w->stacks.nr; id++) {
		const struct profile_stack *stack;
		const uint32_t *places;
		uint32_t nr;

		if (!w->stacks.of[id])
			continue;
		stack = &p->stacks[w->stacks.of[id] - 1];
		places = places_of(w, id, &nr);
		/* A stack completed after the frames were counted has none. */
		if (places && stack->nr)
			put_stack(w, stack->first, places, nr);
	}
	p->nr_frames = (uint32_t)nr_frames;
	return 0;
}

/* Return the function that the code of a place is in. */
static uint32_t function_of(void *ctx, uint32_t place)
{
	struct work *w = ctx;
	struct spot *spot = spot_at(w, place);

	if (!spot->first && make_spot(w, spot, place))
		return UINT32_MAX;
	return w->frames[spot->first - 1 + spot->nr - 1].function;
}

/* Clear everything: a partial profile borrows texts. */
static void clear(struct profile *p)
{
	free(p->counts);
	free(p->stacks);
	free(p->stack_waits);
	free(p->stack_idle);
	free(p->tasks);
	free(p->processes);
	free(p->ancestors);
	free(p->frames);
	free(p->frame_lines);
	free(p->lines);
	free(p->files);
	free(p->functions);
	free(p->modules);
	free(p->branches);
	free(p->accesses);
	text_arena_free(p->names);
	free(p->pool);
	p->modules = NULL;
	p->branches = NULL;
	p->accesses = NULL;
	p->names = NULL;
	p->frame_lines = NULL;
	p->lines = NULL;
	p->files = NULL;
	p->counts = NULL;
	p->stacks = NULL;
	p->stack_waits = p->stack_idle = NULL;
	p->tasks = NULL;
	p->processes = NULL;
	p->ancestors = NULL;
	p->frames = NULL;
	p->functions = NULL;
	p->pool = NULL;
	p->nr_counts = p->nr_stacks = p->nr_tasks = p->nr_processes = p->nr_ancestors = 0;
	p->nr_branches = p->nr_accesses = 0;
	p->nr_frames = p->nr_functions = p->nr_modules = p->nr_lines = p->nr_files = 0;
}

/* Count all samples, and samples in code with a name that was searched and not found. */
static void count_unnamed(struct profile *p)
{
	p->window_samples = p->window_unnamed = 0;
	for (uint32_t i = 0; i < p->nr_counts; i++) {
		const struct profile_stack *s = &p->stacks[p->counts[i].stack];
		const struct profile_function *f;

		assert(p->counts[i].stack < p->nr_stacks && p->counts[i].task < p->nr_tasks);
		if (p->counts[i].event >= EVENTS_MAX)
			continue; /* running time */
		p->window_samples += p->counts[i].count;
		assert(s->first + s->nr <= p->nr_frames);
		f = s->nr ? &p->functions[p->frames[s->first]] : NULL;
		if (f && f->unnamed && !(f->id & ASSEMBLE_PLACE))
			p->window_unnamed += p->counts[i].count;
	}
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
		ret = hardware_fill(p, in, function_of, &w);
	if (!ret)
		ret = modules_fill(p, in);
	if (!ret)
		ret = processes_fill(p, in);
	if (!ret)
		ret = names_copy(p, in);
	if (ret)
		clear(p);
	count_unnamed(p);
	work_fini(&w);
	return ret;
}
