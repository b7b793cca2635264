// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Counts and tables → the arrays of one profile: places, stacks, objects, processes, texts, the
 * heat strip. Runs on: the builder.
 *
 * Runs on: the builder. Indices are in arrays by id (fresh memory is zero and not resident, so only
 * used pages cost). Stacks and tasks are numbered in order of id: cells have no order, and the
 * tables are large, so they are read from front to end. Texts are borrowed until the end, then all
 * copied into one pool.
 */
#include "sampler/profile/internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/table.h"
#include "symbols/base/text.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/jit/jit.h"
#include "symbols/name/name.h"
#include "symbols/process/process.h"
#include "symbols/symbols.h"

/*
 * A profile while it is assembled: indices of the ids that it shows, frames of places.
 *
 * Runs on: the builder.
 */

/* By id, index + 1; 0: none yet. The last entry is for all ids out of range. */
struct assemble_index {
	uint32_t *of;
	uint32_t nr;
};

/* The frames of a place: one function, and the functions inlined there. */
struct assemble_spot {
	uint32_t first, nr; /* in frames; first + 1, 0: none yet */
	uint32_t nr_tails;  /* the first of them: functions that the call led through */
	enum assemble_frame frame;
	bool kernel;  /* code of the kernel */
	uint8_t wait; /* the frame of a wait: enum wait_kind */
	bool long_wait;
	struct wait_hint hint;
};

struct assemble_spot_frame {
	uint32_t function; /* index in the profile's functions */
	uint32_t line;	   /* index in its lines, or PROFILE_NO_LINE */
};

struct assemble_work {
	const struct assemble_input *in;
	struct profile *p;
	struct assemble_index stacks, tasks, processes, symbols, files;
	uint32_t max_functions, max_lines;
	struct assemble_spot *spots; /* by id of the place, as an index is */
	uint32_t nr_places;
	struct assemble_spot_frame *frames;
	uint32_t nr_frames, max_frames;
	uint32_t max_shown, max_shown_lines; /* p->frames, p->frame_lines */
	bool has_scripts;		     /* a spot of a language */
};

static inline uint32_t *assemble_index_at(const struct assemble_index *index, uint32_t id)
{
	return &index->of[MIN(id, index->nr)];
}

static inline struct assemble_spot *assemble_spot_at(const struct assemble_work *w, uint32_t id)
{
	return &w->spots[MIN(id, w->nr_places)];
}

/*
 * Frames of a place in a profile: its function, the functions inlined there, its source lines.
 *
 * Runs on: the builder.
 */

/* Append a zeroed function; NULL: out of memory. */
static struct profile_function *function_new(struct assemble_work *w)
{
	struct profile *p = w->p;

	if (!array_reserve(&p->functions, &w->max_functions, p->nr_functions + 1ull))
		return NULL;
	memset(&p->functions[p->nr_functions], 0, sizeof(*p->functions));
	return &p->functions[p->nr_functions++];
}

/* Return the function of symbol @id, index + 1 (places share it); 0: out of memory. */
static uint32_t symbol_function(struct assemble_work *w, uint32_t id, const struct symbol *symbol)
{
	uint32_t *index = assemble_index_at(&w->symbols, id);
	struct profile_function *f = *index ? NULL : function_new(w);

	if (f) {
		*f = (struct profile_function){
			.id = id,
			.name = symbol->name,
			.module = symbol->module,
			.kind = symbol->kind,
			.kernel = symbol->object == OBJECT_ID_KERNEL,
			.inlined = symbol->inlined,
			.first_line = atomic_load_explicit(&symbol->line, memory_order_relaxed),
			.start = symbol->start,
		};
		*index = w->p->nr_functions;
	}
	return *index;
}

/* Make a function for a place without a symbol; names_copy() names it. */
static uint32_t place_function(struct assemble_work *w, uint32_t id, const struct place *place)
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
static const struct symbol *symbol_of(const struct assemble_work *w, const struct place *place,
				      uint32_t *id)
{
	if (!place)
		return NULL;
	/* Acquire: the symbol's fields; pairs with the release in places_name(). */
	*id = atomic_load_explicit(&place->symbol, memory_order_acquire);
	return *id < w->symbols.nr ? symbols_at(w->in->symbols, *id) : NULL;
}

/* Add a frame to the spot at hand. */
static int add_frame(struct assemble_work *w, uint32_t function, uint32_t line)
{
	if (!function || !array_reserve(&w->frames, &w->max_frames, w->nr_frames + 1ull))
		return -ENOMEM;
	w->frames[w->nr_frames++] = (struct assemble_spot_frame){ function - 1, line };
	return 0;
}

/* Return the address of a place, as linked; 0: none, or its file is not loaded yet. */
static uint64_t address_of(const struct assemble_work *w, const struct place *place)
{
	const struct object *object = place ? objects_at(w->in->objects, place->object) : NULL;
	const struct image *image;
	uint64_t vaddr = 0;

	if (!object)
		return 0;
	if (object->identity.kind == OBJECT_KERNEL || object->identity.kind == OBJECT_ANON)
		return place->offset;
	/* Acquire: pairs with the release of a finished image in image_cache.c. */
	image = atomic_load_explicit(&object->image, memory_order_acquire);
	if (image)
		image_vaddr(image, place->offset, &vaddr);
	return vaddr;
}

/* Return the index of a source line and address; PROFILE_NO_LINE: both unknown. */
static int add_line(struct assemble_work *w, const struct symbol_frame *f, uint64_t address,
		    uint32_t *out)
{
	struct profile *p = w->p;
	uint32_t file = PROFILE_NO_LINE, *index;

	*out = PROFILE_NO_LINE;
	if (!f->line && !address)
		return 0;
	if (f->line && f->file < w->files.nr) {
		index = assemble_index_at(&w->files, f->file);
		if (!*index) {
			p->files[p->nr_files] = symbols_file(w->in->symbols, f->file);
			*index = ++p->nr_files;
		}
		file = *index - 1;
		p->has_source = true;
	}
	if (!array_reserve(&p->lines, &w->max_lines, p->nr_lines + 1ull))
		return -ENOMEM;
	*out = p->nr_lines;
	p->lines[p->nr_lines++] = (struct profile_line){ file, f->line, address };
	return 0;
}

/* Make the frames of place @id in @function: inlined functions first. */
static int add_frames(struct assemble_work *w, uint32_t id, uint32_t function, uint64_t address,
		      uint32_t *nr_tails)
{
	const struct symbol_frame none = { .line = 0 };
	uint32_t nr, line, nr_before = w->nr_frames;
	const struct symbol_frame *f = symbols_source(w->in->symbols, id, &nr);

	for (uint32_t i = 0; i < nr; i++) {
		const struct symbol *inlined;
		bool tail = f[i].symbol != SYMBOL_NONE && f[i].file == SYMBOL_TAIL_CALL;

		if (add_line(w, &f[i], tail ? 0 : address, &line))
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
		*nr_tails += inlined && tail;
	}
	if (w->nr_frames > nr_before)
		return 0;
	return add_line(w, &none, address, &line) ? -ENOMEM : add_frame(w, function, line);
}

/* By these a program begins, whatever it interprets: they are shown, as of one that is a stub. */
static bool assemble_begins(const struct symbol *symbol)
{
	return symbol && !symbol->made_up &&
	       (!strcmp(symbol->name.str, "main") || !strcmp(symbol->name.str, "_start"));
}

enum assemble_frame assemble_frame_of(const struct assemble_input *in, const struct place *place,
				      const struct symbol *symbol)
{
	const struct object *object = place ? objects_at(in->objects, place->object) : NULL;

	if (!object)
		return ASSEMBLE_OTHER;
	if (object->identity.kind == OBJECT_SCRIPT)
		return ASSEMBLE_SCRIPT;
	/* Relaxed: set once. */
	if (atomic_load_explicit(&object->interpreter, memory_order_relaxed))
		return assemble_begins(symbol) ? ASSEMBLE_OTHER : ASSEMBLE_INTERPRETER;
	return object->identity.kind == OBJECT_ANON && (!symbol || symbol->made_up)
		       ? ASSEMBLE_NAMELESS
		       : ASSEMBLE_OTHER;
}

/* Set the kind of the code at @place. */
static void classify(const struct assemble_work *w, struct assemble_spot *spot,
		     const struct place *place, const struct symbol *symbol)
{
	const struct object *object = place ? objects_at(w->in->objects, place->object) : NULL;

	if (!object)
		return;
	spot->frame = assemble_frame_of(w->in, place, symbol);
	spot->kernel = place->object == OBJECT_ID_KERNEL;
	if (place->object == w->in->wait && place->offset < WAIT_FOUND)
		spot->wait = (uint8_t)MIN(place->offset, WAIT_OTHER);
	spot->long_wait = spot->wait && place->offset == WAIT_LONG;
}

/* Return the meaning of the function on the stack of a waiting task. */
static struct wait_hint hint_of(const struct assemble_work *w, const struct assemble_spot *spot)
{
	const struct assemble_spot_frame *outer = &w->frames[spot->first - 1 + spot->nr - 1];
	const struct safe_text *name = &w->p->functions[outer->function].name;

	return name->str ? wait_hint(name->str, name->size, spot->kernel)
			 : (struct wait_hint){ .kind = WAIT_NO };
}

/* Get the frames of place @id. 0 or -ENOMEM. */
static int assemble_spot(struct assemble_work *w, struct assemble_spot *spot, uint32_t id)
{
	const struct place *place = places_at(w->in->places, id);
	uint32_t symbol_id, first = w->nr_frames, nr_tails = 0;
	const struct symbol *symbol = symbol_of(w, place, &symbol_id);
	uint32_t function = symbol ? symbol_function(w, symbol_id, symbol)
				   : place_function(w, id, place);
	int ret = add_frames(w, id, function, address_of(w, place), &nr_tails);

	*spot = (struct assemble_spot){ .first = first + 1,
					.nr = w->nr_frames - first,
					.nr_tails = nr_tails };
	classify(w, spot, place, symbol);
	w->has_scripts |= spot->frame == ASSEMBLE_SCRIPT;
	if (!ret && w->in->wait_places)
		spot->hint = hint_of(w, spot);
	return ret;
}

/*
 * Stacks of a profile: the frames of their places, without the frames that are not shown.
 *
 * Runs on: the builder.
 */

/* Frames that a stack does not show. */
struct left_out {
	bool script, interpreter; /* with the code of its compiler */
};

/* Return the places of stack @id, perhaps in @room; none for newer ids. */
static const uint32_t *places_of(const struct assemble_work *w, uint64_t id,
				 struct stacks_room *room, uint32_t *nr)
{
	return stacks_at(w->in->stacks, id < w->stacks.nr ? (uint32_t)id : STACK_NONE, room, nr);
}

/*
 * Find the frames that a stack does not show. Frames of an interpreter, and code of its compiler
 * without a name, are left out of stacks with frames of its language only: their work for a
 * function counts for the function.
 */
static struct left_out find_left_out(const struct assemble_work *w, const uint32_t *places,
				     uint32_t nr)
{
	if (w->in->shown_frames != FRAMES_LANGUAGE)
		return (struct left_out){ .script = w->in->shown_frames == FRAMES_NATIVE };
	for (uint32_t i = 0; i < nr && w->has_scripts; i++)
		if (assemble_spot_at(w, places[i])->frame == ASSEMBLE_SCRIPT)
			return (struct left_out){ .interpreter = true };
	return (struct left_out){ false, false };
}

/* The places of a stack as they are shown. */
struct shown {
	enum wait_kind wait; /* WAIT_NO: not of a wait */
	enum profile_idle idle;
	uint32_t lead; /* of a wait: the place of its kind, which is innermost */
	const uint32_t *places;
	uint32_t nr;
};

/* Frames of code without a name that may follow each other. */
#define NAMELESS_MAX 8U

/*
 * Return whether place @i, code without a name, is called by a function of a language or by its
 * interpreter: the code of others is called from another file.
 */
static bool is_compiled(const struct assemble_work *w, const struct shown *s, uint32_t i)
{
	enum assemble_frame frame = ASSEMBLE_NAMELESS;
	uint32_t end = MIN(s->nr, i + NAMELESS_MAX);

	assert(i < s->nr);
	while (frame == ASSEMBLE_NAMELESS && ++i < end)
		frame = assemble_spot_at(w, s->places[i])->frame;
	return frame == ASSEMBLE_SCRIPT || frame == ASSEMBLE_INTERPRETER;
}

static bool is_left_out(const struct assemble_work *w, struct left_out out, const struct shown *s,
			uint32_t i)
{
	assert(i < s->nr);
	switch (assemble_spot_at(w, s->places[i])->frame) {
	case ASSEMBLE_SCRIPT:
		return out.script;
	case ASSEMBLE_INTERPRETER:
		return out.interpreter;
	case ASSEMBLE_NAMELESS:
		return out.interpreter && is_compiled(w, s, i);
	default:
		return false;
	}
}

/* Return the kind of the wait that these functions show. */
static enum wait_kind look_at(const struct assemble_work *w, const uint32_t *places, uint32_t nr)
{
	struct wait_look look = { .kind = WAIT_NO };

	for (uint32_t i = 0; i < nr; i++)
		wait_look_at(&look, assemble_spot_at(w, places[i])->hint,
			     assemble_spot_at(w, places[i])->kernel);
	return look.kind ? look.kind : WAIT_OTHER;
}

/* Is it the stack of a kernel thread? Its outermost function is that of all of them. */
static bool is_kthread(const struct assemble_work *w, const uint32_t *places, uint32_t nr)
{
	for (uint32_t i = nr; i-- > 0 && assemble_spot_at(w, places[i])->kernel;)
		if (assemble_spot_at(w, places[i])->hint.kthread)
			return true;
	return false;
}

static enum profile_idle idle_of(enum wait_kind wait, bool is_long)
{
	if (wait == WAIT_KTHREAD)
		return PROFILE_IDLE_KTHREAD;
	return is_long && (wait == WAIT_POLL || wait == WAIT_CONDITION) ? PROFILE_IDLE
									: PROFILE_BUSY;
}

/* The frames of the scheduler are in each wait, and left out. */
static struct shown shown_of(const struct assemble_work *w, const uint32_t *places, uint32_t nr)
{
	struct shown s = { .places = places, .nr = nr };
	bool is_long;

	if (!nr || !w->in->wait_places || !assemble_spot_at(w, places[0])->wait)
		return s;
	is_long = assemble_spot_at(w, places[0])->long_wait;
	/* Its kind, if that is known without a stack. */
	if (is_long && nr > 1 && assemble_spot_at(w, places[1])->wait) {
		s.places++;
		s.nr--;
	}
	s.wait = (enum wait_kind)assemble_spot_at(w, *s.places)->wait;
	for (s.places++, s.nr--; s.nr && assemble_spot_at(w, *s.places)->hint.scheduler; s.nr--)
		s.places++;
	if (s.wait == WAIT_OTHER)
		s.wait = look_at(w, s.places, s.nr);
	/* Kernel threads wait for work in functions that have no meaning here. */
	if (s.wait == WAIT_OTHER && is_kthread(w, s.places, s.nr))
		s.wait = WAIT_KTHREAD;
	s.idle = idle_of(s.wait, is_long);
	s.lead = w->in->wait_places[s.wait];
	return s;
}

/*
 * Return the first frame of place @i of a stack to show: where the place before is in a function
 * that the call leads through, the frames up to that are there already.
 */
static uint32_t first_shown(const struct assemble_work *w, const uint32_t *places, uint32_t i)
{
	const struct assemble_spot *spot = assemble_spot_at(w, places[i]), *inner;
	uint32_t function;

	if (!i || !spot->nr_tails)
		return 0;
	inner = assemble_spot_at(w, places[i - 1]);
	function = w->frames[inner->first - 1 + inner->nr - 1].function;
	for (uint32_t k = 0; k < spot->nr_tails; k++)
		if (w->frames[spot->first - 1 + k].function == function)
			return k + 1;
	return 0;
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

/* Get the frames of all places of a stack, and @most that it may show. 0 or -ENOMEM. */
static int add_spots(struct assemble_work *w, const uint32_t *places, uint32_t nr, uint64_t *most)
{
	*most = 0;
	for (uint32_t i = 0; i < nr; i++) {
		struct assemble_spot *spot = assemble_spot_at(w, places[i]);

		if (!spot->first && assemble_spot(w, spot, places[i]))
			return -ENOMEM;
		*most += spot->nr;
	}
	return 0;
}

/* Make room for @nr frames more; their lines are written from the first line of the profile on. */
static bool reserve_frames(struct assemble_work *w, uint64_t nr)
{
	struct profile *p = w->p;
	bool first = p->nr_lines && !p->frame_lines;

	nr += p->nr_frames;
	if (!array_reserve(&p->frames, &w->max_shown, nr))
		return false;
	if (p->nr_lines && !array_reserve(&p->frame_lines, &w->max_shown_lines, w->max_shown))
		return false;
	for (uint32_t i = 0; first && i < p->nr_frames; i++)
		p->frame_lines[i] = PROFILE_NO_LINE;
	return true;
}

/* Append the frames of one place from @first on. */
static void put_spot(struct assemble_work *w, const struct assemble_spot *spot, uint32_t first)
{
	struct profile *p = w->p;

	for (uint32_t k = first; k < spot->nr; k++, p->nr_frames++) {
		p->frames[p->nr_frames] = w->frames[spot->first - 1 + k].function;
		if (p->frame_lines)
			p->frame_lines[p->nr_frames] = w->frames[spot->first - 1 + k].line;
	}
}

/* Append the frames of a stack. 0 or -ENOMEM. */
static int put_stack(struct assemble_work *w, uint32_t stack, const uint32_t *places, uint32_t nr)
{
	struct assemble_spot *lead = NULL;
	struct left_out out;
	struct shown s;
	uint64_t most;

	if (add_spots(w, places, nr, &most))
		return -ENOMEM;
	s = shown_of(w, places, nr);
	if (s.wait) {
		lead = assemble_spot_at(w, s.lead);
		if (!lead->first && assemble_spot(w, lead, s.lead))
			return -ENOMEM;
		most += lead->nr;
	}
	if (mark(&w->p->stack_waits, w->p->nr_stacks, stack, (uint8_t)s.wait) ||
	    mark(&w->p->stack_idle, w->p->nr_stacks, stack, s.idle) || !reserve_frames(w, most))
		return -ENOMEM;
	if (lead)
		put_spot(w, lead, 0);
	out = find_left_out(w, s.places, s.nr);
	for (uint32_t i = 0; i < s.nr; i++)
		if (!is_left_out(w, out, &s, i))
			put_spot(w, assemble_spot_at(w, s.places[i]), first_shown(w, s.places, i));
	return 0;
}

/*
 * Fill in the stacks: all in one array of frames, in one pass, as to find the places of a stack
 * costs more than to write its frames. 0 or -ENOMEM.
 */
static int assemble_stacks(struct assemble_work *w)
{
	struct profile *p = w->p;
	uint64_t last = w->in->sizes ? w->in->sizes->shown * 9ULL / 8 : 0;

	p->stacks = calloc(MAX(p->nr_stacks, 1u), sizeof(*p->stacks));
	if (!p->stacks || !reserve_frames(w, MAX(last, 1ULL)))
		return -ENOMEM;
	for (uint64_t id = 0; id <= w->stacks.nr; id++) {
		struct profile_stack *stack;
		struct stacks_room room;
		const uint32_t *places;
		uint32_t nr;

		if (!w->stacks.of[id])
			continue;
		stack = &p->stacks[w->stacks.of[id] - 1];
		stack->first = p->nr_frames;
		places = places_of(w, id, &room, &nr);
		if (places && put_stack(w, w->stacks.of[id] - 1, places, nr))
			return -ENOMEM;
		stack->nr = p->nr_frames - stack->first;
	}
	return 0;
}

/* Return the function that the code of a place is in. @ctx: struct assemble_work. */
static uint32_t assemble_function_of(void *ctx, uint32_t place)
{
	struct assemble_work *w = ctx;
	struct assemble_spot *spot = assemble_spot_at(w, place);

	if (!spot->first && assemble_spot(w, spot, place))
		return UINT32_MAX;
	return w->frames[spot->first - 1 + spot->nr - 1].function;
}

/*
 * The objects of a profile's functions, and the state of their names: source, state, reason, fix.
 * Runs on: the builder. Texts are copied into the profile's arena.
 *
 * From functions to the objects they are code of.
 *
 * Runs on: the builder; the loader goes on loading beside it, so that a state
 * may be a tick old.
 */

/* Return the object of @f, and set f->unnamed. */
static uint32_t object_of(const struct assemble_input *in, struct profile_function *f)
{
	const struct symbol *symbol;
	const struct place *place;

	f->unnamed = f->id & ASSEMBLE_PLACE;
	if (f->unnamed) {
		place = places_at(in->places, f->id & ~ASSEMBLE_PLACE);
		return place ? place->object : OBJECT_ID_UNKNOWN;
	}
	symbol = symbols_at(in->symbols, f->id);
	f->unnamed = symbol && symbol->made_up;
	return symbol ? symbol->object : OBJECT_ID_UNKNOWN;
}

static enum profile_module_state state_of(const struct object *object)
{
	/* Pairs with the releases of the loader: with FAILED the reason is set. */
	int state = atomic_load_explicit(&object->state, memory_order_acquire);

	/* Memory has no image, but may have a perf map. */
	if (object->identity.kind == OBJECT_ANON &&
	    atomic_load_explicit(&object->source, memory_order_relaxed))
		return PROFILE_MODULE_READY;
	switch (state) {
	case OBJECT_READY:
		return PROFILE_MODULE_READY;
	case OBJECT_FAILED:
		return PROFILE_MODULE_FAILED;
	case OBJECT_ASIDE:
		return PROFILE_MODULE_ASIDE;
	case OBJECT_NEW:
		if (atomic_load_explicit(&object->nr_evicted, memory_order_relaxed))
			return PROFILE_MODULE_AWAY;
		return PROFILE_MODULE_LOADING;
	default:
		return PROFILE_MODULE_LOADING;
	}
}

static const char *words(const char *text)
{
	return text ? text : "";
}

/* Return the build-id in hexadecimal, of the image or as recorded. */
static struct safe_text build_id_of(struct profile *p, const struct object *object)
{
	/* Acquire: pairs with the release of a finished image in image_cache.c. */
	const struct image *image = atomic_load_explicit(&object->image, memory_order_acquire);
	bool of_image = image && image->build_id_size;
	const uint8_t *id = of_image ? image->build_id : object->identity.build_id;
	size_t size = of_image ? image->build_id_size : object->identity.build_id_size;
	char text[2 * sizeof(image->build_id) + 1];

	for (size_t i = 0; i < size; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
	return size ? text_arena_add(p->names, text, 2 * size) : TEXT("");
}

/* Note the segments with code of a file. */
static void fill_code(const struct object *object, struct profile_module *m)
{
	/* Acquire: as in build_id_of(). */
	const struct image *image = atomic_load_explicit(&object->image, memory_order_acquire);

	if (object->identity.kind != OBJECT_FILE || !image)
		return;
	for (uint32_t i = 0; i < image->nr_segments && m->nr_code < PROFILE_CODE_MAX; i++) {
		const struct image_segment *s = &image->segments[i];

		if (s->exec)
			m->code[m->nr_code++] = (struct profile_code){ s->vaddr,
								       s->vaddr + s->mem_size,
								       s->offset };
	}
}

/* Describe object @id. */
static void fill_module(struct profile *p, const struct assemble_input *in, uint32_t id,
			struct profile_module *m)
{
	const struct object *object = objects_at(in->objects, id);

	*m = (struct profile_module){
		.id = id,
		.name = TEXT("?"),
		.path = TEXT("?"),
		.state = PROFILE_MODULE_FAILED,
		.source = "",
		.reason = "",
		.fix = "",
		.debug = "",
	};
	if (!object)
		return;
	m->state = state_of(object);
	m->name = text_arena_add(p->names, object->name.str, object->name.size);
	m->path = text_arena_add(p->names, object->path.str, object->path.size);
	m->build_id = build_id_of(p, object);
	fill_code(object, m);
	m->source = words(atomic_load_explicit(&object->source, memory_order_relaxed));
	m->reason = words(atomic_load_explicit(&object->reason, memory_order_relaxed));
	m->fix = words(atomic_load_explicit(&object->fix, memory_order_relaxed));
	m->debug = words(atomic_load_explicit(&object->debug, memory_order_relaxed));
	m->language_reason = atomic_load_explicit(&object->language_reason, memory_order_relaxed);
	m->language_fix = atomic_load_explicit(&object->language_fix, memory_order_relaxed);
	if (!m->language_reason && object->identity.kind == OBJECT_FILE) {
		m->language_reason = runtime_fix_in(RUNTIME_SCRIPTS, m->path.str);
		m->language_fix = m->language_reason ? "none: functions of the interpreter are "
						       "shown"
						     : NULL;
	}
	m->language_version = atomic_load_explicit(&object->language_version, memory_order_relaxed);
	m->nr_symbols = atomic_load_explicit(&object->nr_symbols, memory_order_relaxed);
	m->nr_tabled = atomic_load_explicit(&object->nr_tabled, memory_order_relaxed);
	m->nr_derived = atomic_load_explicit(&object->nr_derived, memory_order_relaxed);
	m->nr_bare = atomic_load_explicit(&object->nr_bare, memory_order_relaxed);
	m->permille = atomic_load_explicit(&object->permille, memory_order_relaxed);
	m->nr_evicted = atomic_load_explicit(&object->nr_evicted, memory_order_relaxed);
	m->memory = atomic_load_explicit(&object->memory, memory_order_relaxed);
	if (m->state == PROFILE_MODULE_LOADING)
		m->reason = "still loading";
	else if (!*m->reason)
		m->reason = m->debug;
	if (in->kept) {
		m->state = PROFILE_MODULE_KEPT;
		m->source = "--keep";
		m->reason = "";
	}
}

/* Set the module of @f, and the reason if it has no name. */
static void fill_function(const struct profile *p, struct profile_function *f, uint32_t module)
{
	const struct profile_module *m = &p->modules[module];

	assert(module < p->nr_modules);
	f->module_index = module;
	if (!f->unnamed)
		return;
	f->reason = m->reason;
	f->fix = m->fix;
	if (f->id & ASSEMBLE_PLACE)
		f->reason = "still loading";
	else if (m->id == OBJECT_ID_UNKNOWN)
		f->reason = "an address outside of all mappings of its process";
	else if (m->state == PROFILE_MODULE_KEPT)
		f->reason = "it had no name when it was kept";
	else if (!*m->reason || m->reason == m->debug)
		f->reason = "no symbol covers this address";
}

/*
 * Fill p->modules and each function's module_index; functions are there, the
 * rest of @p does not matter. 0, or -ENOMEM: there are none.
 */
static int modules_fill(struct profile *p, const struct assemble_input *in)
{
	uint32_t nr_objects = objects_nr(in->objects), nr = 0;
	uint32_t *index = calloc(nr_objects + 1ULL, sizeof(*index));

	if (!p->names)
		p->names = text_arena_new();
	if (!index || !p->names)
		goto fail;
	for (uint32_t i = 0; i < p->nr_functions; i++)
		index[MIN(object_of(in, &p->functions[i]), nr_objects)] = 1;
	for (uint32_t id = 0; id <= nr_objects; id++)
		nr += index[id];
	p->modules = calloc(MAX(nr, 1u), sizeof(*p->modules));
	if (!p->modules)
		goto fail;
	for (uint32_t id = 0; id <= nr_objects; id++) {
		if (!index[id])
			continue;
		fill_module(p, in, id, &p->modules[p->nr_modules]);
		index[id] = p->nr_modules++;
	}
	for (uint32_t i = 0; i < p->nr_functions; i++)
		fill_function(p, &p->functions[i],
			      index[MIN(object_of(in, &p->functions[i]), nr_objects)]);
	free(index);
	return 0;
fail:
	free(index);
	return -ENOMEM;
}

/*
 * Details of processes from /proc, and their ancestors. Runs on: the builder. It takes the details
 * read so far, and requests the others for a later profile.
 */

#define LEVELS_MAX    64 /* enough for a tree of processes, not for hostile pids */
#define ANCESTORS_MAX 4096u

/* Pids with an entry; open addressing, 0 is free. */
struct pids {
	pid_t *slots;
	uint32_t capacity; /* a power of two, never full */
};

/* Add @pid; false: it was there already. */
static bool pids_add(struct pids *t, pid_t pid)
{
	uint32_t i = (uint32_t)keyhash_number((uint64_t)pid) & (t->capacity - 1);

	while (t->slots[i] && t->slots[i] != pid)
		i = (i + 1) & (t->capacity - 1);
	if (t->slots[i])
		return false;
	t->slots[i] = pid;
	return true;
}

static void fill(struct profile_process *process, const struct process_details *d)
{
	uint64_t now_ns = time_clock_ns(CLOCK_BOOTTIME);

	if (d->parent)
		process->parent = d->parent;
	if (process->comm_is_old && d->comm.size)
		process->comm = d->comm;
	process->program = d->program;
	process->comm = details_name(process->comm, d->program);
	/* Newer than that of the tasks: it may have changed without an exec. */
	if (d->uid != (uid_t)-1)
		process->uid = d->uid;
	process->up_ns = d->start_ns && now_ns > d->start_ns ? now_ns - d->start_ns : 0;
	process->command = d->command;
	process->cgroup = d->cgroup;
	process->container = d->container;
	memcpy(process->service, d->service, sizeof(process->service));
	process->nr_more = d->nr ? d->nr - 1 : 0;
}

/* Get the details of processes that are shown as one. */
static bool merged(const struct profile *p, const struct assemble_input *in, uint32_t process,
		   struct process_details *d)
{
	if (!maps_merged(in->maps, process, d))
		return false;
	d->cgroup = text_arena_add(p->names, d->cgroup.str, d->cgroup.size);
	d->container = text_arena_add(p->names, d->container.str, d->container.size);
	return true;
}

/* Append an ancestor; NULL: out of memory. */
static struct profile_process *ancestor_new(struct profile *p)
{
	struct profile_process *more;

	if (p->nr_ancestors >= ANCESTORS_MAX)
		return NULL;
	if (p->nr_ancestors & (p->nr_ancestors - 1))
		return &p->ancestors[p->nr_ancestors];
	more = reallocarray(p->ancestors, MAX(2 * p->nr_ancestors, 1u), sizeof(*more));
	if (!more)
		return NULL;
	p->ancestors = more;
	return &p->ancestors[p->nr_ancestors];
}

/*
 * Add the ancestors of @pid, up to the first known one. Not proftop, which started the command, nor
 * the shells above it: the command is the root.
 */
static void add_ancestors(struct profile *p, const struct assemble_input *in, struct pids *there,
			  pid_t pid, uint64_t now_ns)
{
	const pid_t self = getpid();

	for (int level = 0; level < LEVELS_MAX && pid > 0 && pid != self; level++) {
		struct profile_process *a = ancestor_new(p);
		struct process_details d;

		if (!a || !pids_add(there, pid) ||
		    !details_get(in->details, 0, pid, now_ns, p->names, &d))
			return;
		*a = (struct profile_process){ .id = PROFILE_ANCESTOR | (uint32_t)pid,
					       .pid = pid,
					       .uid = d.uid,
					       .comm = d.comm };
		fill(a, &d);
		p->nr_ancestors++;
		pid = a->parent;
	}
}

/* After the modules: texts go into the profile's arena. 0 or -ENOMEM. */
static int processes_fill(struct profile *p, const struct assemble_input *in)
{
	uint64_t now_ns = time_now_ns();
	struct pids there = { .capacity = 16 };

	assert(!p->ancestors);
	if (!in->details)
		return 0;
	while (there.capacity < 2 * (p->nr_processes + ANCESTORS_MAX + LEVELS_MAX))
		there.capacity *= 2;
	there.slots = calloc(there.capacity, sizeof(*there.slots));
	if (!there.slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->nr_processes; i++) {
		struct profile_process *process = &p->processes[i];
		struct process_details d;

		pids_add(&there, process->pid);
		if (merged(p, in, process->id, &d) ||
		    details_get(in->details, process->id, process->pid, now_ns, p->names, &d))
			fill(process, &d);
	}
	for (uint32_t i = 0; i < p->nr_processes; i++)
		add_ancestors(p, in, &there, p->processes[i].parent, now_ns);
	free(there.slots);
	return 0;
}

/*
 * The last step of a profile: name functions that are places, and copy every text that is borrowed
 * from the tables. Runs on: the builder.
 *
 * All texts of a profile, copied into one pool. Runs on: the builder. The texts are clean already.
 */

/* Beyond the dso's name: "+0x", 16 digits, NUL. */
#define PLACE_TEXT_MAX 24

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
	for (uint32_t i = 0; i < p->nr_files; i++)
		size += p->files[i].size + (size_t)1;
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

/* Name a place: object and offset, or the address alone. */
static void pool_name_place(const struct assemble_input *in, char **pool,
			    struct profile_function *f)
{
	const struct place *place = places_at(in->places, f->id & ~ASSEMBLE_PLACE);
	const struct object *object =
		objects_at(in->objects, place ? place->object : OBJECT_ID_UNKNOWN);
	size_t max = name_room(f);
	bool relative = object && (object->identity.kind == OBJECT_FILE ||
				   object->identity.kind == OBJECT_VDSO);

	f->name = text_format(*pool, max, "%s%s0x%" PRIx64, relative ? object->name.str : "",
			      relative ? "+" : "", place ? place->offset : 0);
	*pool += max;
}

/* Copy all texts except of modules, so that @p outlives the tables. 0 or -ENOMEM. */
static int names_copy(struct profile *p, const struct assemble_input *in)
{
	char *pool = malloc(pool_size(p));

	if (!pool)
		return -ENOMEM;
	p->pool = pool;
	for (uint32_t i = 0; i < p->nr_functions; i++) {
		struct profile_function *f = &p->functions[i];

		if (is_unnamed(f))
			pool_name_place(in, &pool, f);
		else
			pool_take(&pool, &f->name);
		pool_take(&pool, &f->module);
	}
	for (uint32_t i = 0; i < p->nr_tasks; i++)
		pool_take(&pool, &p->tasks[i].comm);
	for (uint32_t i = 0; i < p->nr_processes; i++)
		pool_take(&pool, &p->processes[i].comm);
	for (uint32_t i = 0; i < p->nr_files; i++)
		pool_take(&pool, &p->files[i]);
	return 0;
}

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
		*w->in->sizes = (struct assemble_sizes){ p->nr_functions, p->nr_lines, w->nr_frames,
							 p->nr_frames };
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
		if (!f || !f->unnamed || f->id & ASSEMBLE_PLACE)
			continue;
		p->window_unnamed += p->counts[i].count;
		if (p->nr_modules)
			p->modules[f->module_index].unnamed += p->counts[i].count;
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

/*
 * The heat strip from the slices.
 *
 * Runs on: the builder. Whether a stack counts is computed once for each query, from its places.
 */

#define SECOND_NS 1000000000ULL

enum { UNKNOWN, NO, YES };

static void forget(struct strip_filter *f)
{
	free(f->stacks);
	free(f->places);
	free(f->tasks);
	free(f->names);
	f->stacks = f->places = f->tasks = f->names = NULL;
	f->nr_stacks = f->nr_places = f->nr_tasks = f->nr_names = 0;
}

/* Free the compiled filter of the query. */
static void drop_made(struct strip_filter *f)
{
	if (f->made)
		f->query->matcher->free(f->made);
	f->made = NULL;
}

void strip_filter_fini(struct strip_filter *f)
{
	forget(f);
	drop_made(f);
	free(f->query);
	f->query = NULL;
}

void strip_filter_set(struct strip_filter *f, struct strip_query *query)
{
	assert(!query || query->columns <= STRIP_COLUMNS_MAX);
	if (!f->query || !query || !strip_same_samples(f->query, query)) {
		forget(f);
		drop_made(f);
		f->seq++;
		if (query && query->filter[0])
			f->made = query->matcher->make(query->filter);
	}
	free(f->query);
	f->query = query;
}

/* Grow an array of answers to @nr. False: no memory. */
static bool grow(uint8_t **list, uint32_t *nr, uint32_t wanted)
{
	uint8_t *larger;

	if (wanted <= *nr)
		return true;
	wanted += wanted / 2 + 64;
	larger = realloc(*list, wanted);
	if (!larger)
		return false;
	memset(larger + *nr, UNKNOWN, wanted - *nr);
	*list = larger;
	*nr = wanted;
	return true;
}

/* Return whether functions are compared. */
static bool has_functions(const struct strip_filter *f)
{
	return f->query->function != STRIP_ALL || (f->made && !f->query->only_tasks);
}

static bool is_wanted(const struct strip_filter *f, const struct assemble_input *in, uint32_t id)
{
	const struct symbol *symbol;

	if (!f->made)
		return id == f->query->function;
	symbol = symbols_at(in->symbols, id);
	return symbol &&
	       f->query->matcher->finds(f->made, &(struct strip_name){ symbol->name, symbol->module,
								       symbol->kind });
}

static bool test_place(const struct strip_filter *f, const struct assemble_input *in, uint32_t id)
{
	const struct place *place = places_at(in->places, id);
	const struct symbol_frame *frames;
	uint32_t symbol = SYMBOL_NONE, nr = 0;

	/* Acquire: the symbol's fields; pairs with the release in places_name(). */
	if (place)
		symbol = atomic_load_explicit(&place->symbol, memory_order_acquire);
	if (symbol >= symbols_nr(in->symbols))
		return !f->made && f->query->function == (ASSEMBLE_PLACE | id);
	if (is_wanted(f, in, symbol))
		return true;
	frames = symbols_source(in->symbols, id, &nr);
	for (uint32_t i = 0; frames && i < nr; i++)
		if (frames[i].symbol != SYMBOL_NONE && is_wanted(f, in, frames[i].symbol))
			return true;
	return false;
}

static bool has_place(struct strip_filter *f, const struct assemble_input *in, uint32_t id)
{
	if (!grow(&f->places, &f->nr_places, id + 1))
		return false;
	if (f->places[id] == UNKNOWN)
		f->places[id] = test_place(f, in, id) ? YES : NO;
	return f->places[id] == YES;
}

static bool has_stack(struct strip_filter *f, const struct assemble_input *in, uint32_t id)
{
	struct stacks_room room;
	const uint32_t *places;
	uint32_t nr;

	if (id == STACK_NONE || !grow(&f->stacks, &f->nr_stacks, id + 1))
		return false;
	if (f->stacks[id] != UNKNOWN)
		return f->stacks[id] == YES;
	places = stacks_at(in->stacks, id, &room, &nr);
	f->stacks[id] = NO;
	for (uint32_t i = 0; places && i < nr && f->stacks[id] == NO; i++)
		if (has_place(f, in, places[i]))
			f->stacks[id] = YES;
	return f->stacks[id] == YES;
}

static bool has_task(struct strip_filter *f, const struct assemble_input *in, uint32_t id)
{
	const struct strip_query *q = f->query;
	const struct task *t;

	if (q->process == STRIP_ALL && q->thread == STRIP_ALL)
		return true;
	if (!grow(&f->tasks, &f->nr_tasks, id + 1))
		return false;
	if (f->tasks[id] == UNKNOWN) {
		t = maps_task(in->maps, id);
		f->tasks[id] = t && (q->process == STRIP_ALL || t->process == q->process) &&
					       (q->thread == STRIP_ALL || t->number == q->thread)
				       ? YES
				       : NO;
	}
	return f->tasks[id] == YES;
}

/* Report whether the filter finds the name of a task or of its process. */
static bool is_named(struct strip_filter *f, const struct assemble_input *in, uint32_t id)
{
	const struct strip_matcher *m = f->query->matcher;
	const struct task *t;

	if (!grow(&f->names, &f->nr_names, id + 1))
		return false;
	if (f->names[id] == UNKNOWN) {
		t = maps_task(in->maps, id);
		f->names[id] =
			t && (m->finds(f->made, &(struct strip_name){ .name = t->comm }) ||
			      m->finds(f->made, &(struct strip_name){ .name = t->process_comm }))
				? YES
				: NO;
	}
	return f->names[id] == YES;
}

/* Report whether the function or the filter of the query selects a sample. */
static bool is_selected(struct strip_filter *f, const struct assemble_input *in,
			const struct count *c)
{
	if (!f->made)
		return f->query->function == STRIP_ALL || has_stack(f, in, c->stack);
	return f->query->inverted !=
	       ((has_functions(f) && has_stack(f, in, c->stack)) || is_named(f, in, c->task));
}

/* Return the length of a slice. One that was ended early has samples of the moment before: it
 * counts as a whole one. */
static uint64_t length_of(const struct slice *slice)
{
	return MAX(slice->end_ns - slice->begin_ns, COUNTS_SLICE_NS);
}

/* Return the weight per second of the selected samples of a slice. */
static double amount(struct strip_filter *f, const struct strip_input *in,
		     const struct slice *slice)
{
	uint8_t event = slice->events < in->nr_events ? in->events[slice->events] : STRIP_NO_EVENT;
	uint64_t ns = length_of(slice);
	struct slice_reader r;
	struct count c;
	double weight = 0;

	if (event == STRIP_NO_EVENT)
		return 0;
	for (slice_read_begin(&r, slice); slice_read(&r, &c);)
		if (c.event == event && has_task(f, in->tables, c.task) &&
		    is_selected(f, in->tables, &c))
			weight += (double)c.weight;
	return weight * 1e9 / (double)ns;
}

/* Return the same of @nr slices from @first on; *@sum: their times and marks. */
static double amount_of(struct strip_filter *f, const struct strip_input *in, uint32_t first,
			uint32_t nr, struct slice *sum)
{
	double weight = 0, ns = 0;

	*sum = (struct slice){ .begin_ns = slices_at(in->slices, first)->begin_ns };
	for (uint32_t i = first; i < first + nr; i++) {
		const struct slice *slice = slices_at(in->slices, i);

		if (slice->amount_seq != f->seq)
			slices_set_amount(in->slices, i, amount(f, in, slice), f->seq);
		weight += slice->amount * (double)length_of(slice);
		ns += (double)length_of(slice);
		sum->end_ns = slice->end_ns;
		sum->marks |= slice->marks;
	}
	return weight / ns;
}

/* Add a slice to the column of its middle; one longer than a column, to all that it covers. */
static void add_slice(struct strip *s, const struct slice *slice, double peak)
{
	uint64_t length = slice->end_ns - slice->begin_ns;
	uint32_t middle = strip_column_at(s, slice->begin_ns + length / 2);
	bool is_long = length > s->column_ns;
	uint32_t first = is_long ? strip_column_at(s, slice->begin_ns) : middle;
	uint32_t last = is_long ? strip_column_at(s, slice->end_ns - 1) : middle;

	s->columns[middle].marks |= slice->marks;
	for (uint32_t i = first; i <= last; i++) {
		struct strip_column *c = &s->columns[i];

		if (c->end_ns && peak <= c->peak)
			continue;
		c->peak = peak;
		c->begin_ns = slice->begin_ns;
		c->end_ns = slice->end_ns;
		s->max = MAX(s->max, peak);
	}
}

/* Return a round length of columns of which @columns cover @span_ns. */
static uint64_t column_length(uint64_t span_ns, uint32_t columns)
{
	static const unsigned int steps[] = { 2, 5, 10 };
	uint64_t unit = 100000000ULL, length = unit;

	for (unsigned int i = 0; length * columns < span_ns && length < UINT64_MAX / 100; i++) {
		length = unit * steps[i % 3];
		if (i % 3 == 2)
			unit *= 10;
	}
	return length;
}

/* The same of a grid: whole seconds up to the last one that is wanted. */
static void lay_out_grid(struct strip *s, const struct strip_query *q)
{
	uint64_t first = s->first_ns / SECOND_NS, last = (s->last_ns - 1) / SECOND_NS;
	uint64_t until = q->until_ns ? (q->until_ns - 1) / SECOND_NS : last;
	uint64_t seconds;

	until = MIN(MAX(until, first), last);
	seconds = MIN(until - first + 1, (uint64_t)q->columns);
	s->begin_ns = (until + 1 - seconds) * SECOND_NS;
	s->column_ns = SECOND_NS / STRIP_GRID_ROWS;
	s->nr = (uint32_t)seconds * STRIP_GRID_ROWS;
}

/* Set the times of the columns: the last one has the newest slice, and they move in whole columns.
 */
static void lay_out(struct strip *s, const struct strip_query *q)
{
	uint64_t span = s->last_ns - s->first_ns, end;

	if (q->span_ns)
		span = MIN(span, q->span_ns);
	/* The first and the last column are cut by the grid. */
	s->column_ns = column_length(span, q->columns > 1 ? q->columns - 1 : 1);
	end = (s->last_ns + s->column_ns - 1) / s->column_ns * s->column_ns;
	s->nr = (uint32_t)MIN((end - s->first_ns + s->column_ns - 1) / s->column_ns,
			      (uint64_t)q->columns);
	s->nr = MAX(s->nr, 1u);
	s->begin_ns = end - s->nr * s->column_ns;
}

/* Forget answers that other tables or new names made wrong. */
static void refresh(struct strip_filter *f, const struct strip_input *in)
{
	uint32_t of = stacks_serial(in->tables->stacks);

	if (f->of == of && (f->nr_named == in->nr_named || !has_functions(f)))
		return;
	forget(f);
	f->of = of;
	f->nr_named = in->nr_named;
}

struct strip *strip_make(struct strip_filter *f, const struct strip_input *in)
{
	const struct strip_query *q = f->query;
	uint32_t nr = slices_nr(in->slices);
	uint64_t count, weight, end_ns;
	struct strip *s;

	if (!q || !q->columns || !nr)
		return NULL;
	assert(q->columns <= STRIP_COLUMNS_MAX);
	s = calloc(1, sizeof(*s) + q->columns * (q->grid ? STRIP_GRID_ROWS : 1ULL) *
					   sizeof(s->columns[0]));
	if (!s)
		return NULL;
	refresh(f, in);
	s->first_ns = slices_at(in->slices, 0)->begin_ns;
	s->last_ns = slices_at(in->slices, nr - 1)->end_ns;
	s->dropped = slices_dropped(in->slices, &count, &weight);
	s->merged = slices_merged(in->slices);
	s->grid = q->grid;
	if (q->grid)
		lay_out_grid(s, q);
	else
		lay_out(s, q);
	end_ns = s->begin_ns + s->nr * s->column_ns;
	for (uint32_t i = slices_find(in->slices, s->begin_ns), step; i < nr; i += step) {
		struct slice sum;
		double peak;

		step = q->grid ? 1 : slices_moment(in->slices, i);
		peak = amount_of(f, in, i, step, &sum);
		if (sum.begin_ns >= end_ns)
			break;
		add_slice(s, &sum, peak);
	}
	return s;
}
