// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Samples of one function by instruction and by line, of all processes or of one.
 *
 * Runs on: the builder. By range, not by symbol: inlined code has other names, but is code of the
 * function.
 */
#include "sampler/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/base/thread.h"
#include "symbols/code/code.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/name/name.h"
#include "symbols/process/process.h"
#include "symbols/script/script.h"
#include "symbols/symbols.h"

/*
 * The points of an annotated function: samples by address or line. Runs on: the builder.
 *
 * The points of an annotated function. Runs on: the builder.
 */

static int by_place(const void *pa, const void *pb)
{
	const struct profile_point *a = pa, *b = pb;

	if (a->event != b->event)
		return COMPARE(a->event, b->event);
	if (a->vaddr != b->vaddr)
		return COMPARE(a->vaddr, b->vaddr);
	return COMPARE(a->task, b->task);
}

/* Return the number of task @id in profiles. */
static uint32_t points_task(const struct assemble_input *in, uint32_t id)
{
	const struct task *t = maps_task(in->maps, id);

	if (!t)
		t = maps_task(in->maps, TASK_UNKNOWN);
	return t ? t->number : 0;
}

/* Return the innermost place of a stack; PLACE_NONE: it has none. */
static uint32_t points_place(const struct assemble_input *in, uint32_t stack)
{
	struct stacks_room room;
	uint32_t nr = 0;
	const uint32_t *places = stacks_at(in->stacks, stack, &room, &nr);

	return places && nr ? places[0] : PLACE_NONE;
}

/* Append @point to a->points; @max: elements allocated. 0 or -ENOMEM. */
static int points_add(struct profile_annotate *a, uint32_t *max, const struct profile_point *point)
{
	if (!array_reserve(&a->points, max, a->nr_points + 1ull))
		return -ENOMEM;
	a->points[a->nr_points++] = *point;
	return 0;
}

/* Sort the points, and add up all of one event, address and task. */
static void points_sum(struct profile_annotate *a)
{
	uint32_t nr = 0;

	if (a->nr_points)
		qsort(a->points, a->nr_points, sizeof(*a->points), by_place);
	for (uint32_t i = 0; i < a->nr_points; i++) {
		if (nr && !by_place(&a->points[nr - 1], &a->points[i])) {
			a->points[nr - 1].count += a->points[i].count;
			a->points[nr - 1].weight += a->points[i].weight;
			a->points[nr - 1].total += a->points[i].total;
		} else {
			a->points[nr++] = a->points[i];
		}
	}
	a->nr_points = nr;
}

/*
 * One function, many processes with code of it: which one is annotated. Runs on: the builder.
 *
 * Of one function by name the code in one process. Runs on: the builder.
 *
 * An instance is an address: of code that was compiled again the one with samples is shown.
 */

/* More is all of it, but for rounding. */
#define WHOLE 0.999

/* Report whether many processes have @symbol, each at an address of its own. */
static bool annotate_has_instances(const struct assemble_input *in, const struct symbol *symbol)
{
	const struct object *object = symbol ? objects_at(in->objects, symbol->object) : NULL;

	return object && object->identity.kind == OBJECT_SCRIPT;
}

static uint64_t owner_of(const struct assemble_input *in, uint32_t object_id)
{
	const struct object *object = objects_at(in->objects, object_id);

	return object && object->identity.kind == OBJECT_ANON ? object->identity.owner : 0;
}

static bool is_function(const struct place *place, uint32_t function)
{
	/* Acquire: pairs with the release in places_name(). */
	return place && atomic_load_explicit(&place->symbol, memory_order_acquire) == function;
}

/* Report whether @place is in @function in the process of @object, which is memory. */
static bool annotate_is_instance(const struct assemble_input *in, const struct place *place,
				 uint32_t object, uint32_t function)
{
	return is_function(place, function) && owner_of(in, place->object) == owner_of(in, object);
}

/* Return the innermost place of @function in a stack; PLACE_NONE: it has none. */
static uint32_t place_in(const struct assemble_input *in, uint32_t stack, uint32_t function)
{
	struct stacks_room room;
	uint32_t nr = 0;
	const uint32_t *places = stacks_at(in->stacks, stack, &room, &nr);

	for (uint32_t i = 0; places && i < nr; i++)
		if (is_function(places_at(in->places, places[i]), function))
			return places[i];
	return PLACE_NONE;
}

/* Return whether @place is in the code of @l. */
static bool is_listed(const struct assemble_input *in, const struct listing *l,
		      const struct place *place)
{
	return owner_of(in, place->object) == owner_of(in, l->instance.object) &&
	       place->offset >= l->vaddr && place->offset - l->vaddr < l->size;
}

/* Return whether the code is that of processes that have ended: its place is no address. */
static bool is_ended(const struct assemble_input *in, const struct place *place)
{
	const struct object *object = objects_at(in->objects, place->object);

	return object && object->identity.kind == OBJECT_ANON && !object->identity.owner;
}

/*
 * Set *@at for @function: the code with most samples, but the one before while it has any.
 */
static void annotate_choose_instance(struct listing_instance *at, struct symbols *symbols,
				     const struct assemble_input *in, uint32_t function)
{
	struct listing *last = symbols_code(symbols, function);
	struct profile_annotate sums = { 0 };
	const struct profile_point *best = NULL;
	bool kept = false;
	uint32_t max = 0;

	for (uint32_t i = 0; i < in->nr_counts && !kept; i++) {
		uint32_t id = place_in(in, in->counts[i].stack, function);
		struct profile_point point = { .vaddr = id, .weight = in->counts[i].weight };

		if (id == PLACE_NONE || is_ended(in, places_at(in->places, id)))
			continue;
		kept = last && at->object && is_listed(in, last, places_at(in->places, id));
		if (points_add(&sums, &max, &point))
			break;
	}
	listing_put(last);
	points_sum(&sums);
	for (uint32_t i = 0; i < sums.nr_points && !kept; i++)
		if (!best || sums.points[i].weight > best->weight)
			best = &sums.points[i];
	if (best) {
		const struct place *place = places_at(in->places, (uint32_t)best->vaddr);

		*at = (struct listing_instance){ place->object, place->offset };
	}
	free(sums.points);
}

/* Set a->inside if other code than that of the listing has samples of the function. */
static void annotate_tell_instance(struct profile_annotate *a, const struct assemble_input *in,
				   const struct listing_instance *at)
{
	double all = 0, here = 0;
	pid_t pid = 0;

	for (uint32_t i = 0; i < in->nr_counts; i++) {
		uint32_t id = points_place(in, in->counts[i].stack);
		const struct place *place = id == PLACE_NONE ? NULL : places_at(in->places, id);
		const struct task *task = maps_task(in->maps, in->counts[i].task);

		if (!is_function(place, a->code_of))
			continue;
		all += in->counts[i].weight;
		if (task && owner_of(in, place->object) == owner_of(in, at->object))
			pid = task->pid;
	}
	for (uint32_t i = 0; i < a->nr_points; i++)
		here += a->points[i].weight;
	if (pid <= 0 || here > all * WHOLE)
		return;
	text_format(a->inside, sizeof(a->inside), "process %d", (int)pid);
	a->inside_share = here / all;
}

/* Report whether the code at place @id has a part of the inlined @function. */
static bool has_part(const struct assemble_input *in, uint32_t id, uint32_t function)
{
	uint32_t nr = 0;
	const struct symbol_frame *chain = symbols_source(in->symbols, id, &nr);

	for (uint32_t i = 0; chain && i < nr; i++)
		if (chain[i].symbol == function)
			return true;
	return false;
}

/*
 * Report whether @place is in the function. In reused memory the address alone does not decide,
 * nor the name: other processes have functions of that name.
 */
static bool is_in(const struct assemble_input *in, const struct place *place, uint32_t object_id,
		  uint32_t function)
{
	const struct object *object = objects_at(in->objects, place->object);

	if (object && object->identity.kind == OBJECT_ANON)
		return annotate_is_instance(in, place, object_id, function);
	return place->object == object_id;
}

/* Get the address of place @id in its object; false: not in @function. */
static bool vaddr_of(const struct assemble_input *in, uint32_t id, uint32_t object_id,
		     uint32_t function, const struct image *image, uint64_t *vaddr)
{
	const struct place *place = id == PLACE_NONE ? NULL : places_at(in->places, id);

	if (!place || !is_in(in, place, object_id, function))
		return false;
	*vaddr = place->offset;
	/*
	 * An address where there is no file, else an offset in it (name.h). An evicted image
	 * keeps its segments.
	 */
	return !image || !image->nr_segments || image_vaddr(image, place->offset, vaddr);
}

/*
 * Fill the points of @a: the counts of @in in its listing, of @object, added up; for an inlined
 * function only code that contains its parts. 0 or -ENOMEM.
 */
static int add_points(struct profile_annotate *a, const struct assemble_input *in,
		      uint32_t object_id)
{
	const struct object *object = objects_at(in->objects, object_id);
	const struct listing *l = a->listing;
	/* Acquire: pairs with the release of the image. */
	const struct image *image =
		object ? atomic_load_explicit(&object->image, memory_order_acquire) : NULL;
	uint32_t max = 0;

	assert(l);
	for (uint32_t i = 0; i < in->nr_counts; i++) {
		const struct history_cell *c = &in->counts[i];
		uint32_t place = points_place(in, c->stack);
		struct profile_point point = { .event = c->event,
					       .count = c->count,
					       .weight = c->weight,
					       .total = c->weight };

		if (!vaddr_of(in, place, object_id, a->code_of, image, &point.vaddr) ||
		    !listing_covers(l, point.vaddr) ||
		    (a->code_of != a->function && !has_part(in, place, a->function)))
			continue;
		point.task = points_task(in, c->task);
		if (points_add(a, &max, &point))
			return -ENOMEM;
	}
	reclaim_reader_done();
	points_sum(a);
	return 0;
}

/* Sum the samples of the inlined function by outer function, as points at its id. */
static void sum_by_owner(struct profile_annotate *sums, const struct assemble_input *in,
			 uint32_t function)
{
	uint32_t max = 0;

	for (uint32_t i = 0; i < in->nr_counts; i++) {
		const struct history_cell *c = &in->counts[i];
		uint32_t place = points_place(in, c->stack);
		struct profile_point point = { .count = c->count, .weight = c->weight };

		if (place == PLACE_NONE || !has_part(in, place, function))
			continue;
		/* Acquire: pairs with the release of the loader. */
		point.vaddr = atomic_load_explicit(&places_at(in->places, place)->symbol,
						   memory_order_acquire);
		if (points_add(sums, &max, &point))
			break;
	}
	reclaim_reader_done();
	points_sum(sums);
}

/*
 * The samples of a function of a language by source line.
 *
 * Frames of interpreters, and code of their compilers, are left out in any view: their work for a
 * line counts for the line. Runs on: the builder.
 */

/* Return whether it is a function of a language, with source lines instead of instructions. */
static bool annotate_lines_has(const struct symbol *symbol)
{
	return symbol && profile_language_name(symbol->kind);
}

/* A frame of the function in one stack. */
struct found {
	const struct symbol_frame *frame;
	uint32_t place;
	bool own; /* the innermost frame beside the interpreter's */
};

/* Find the innermost frame of @function in stack @id. */
static bool find(const struct assemble_input *in, uint32_t id, uint32_t function,
		 struct found *found)
{
	struct stacks_room room;
	uint32_t nr = 0, nr_frames;
	const uint32_t *places = stacks_at(in->stacks, id, &room, &nr);
	enum assemble_frame frame, inner = ASSEMBLE_OTHER;

	found->own = true;
	for (uint32_t i = 0; places && i < nr; i++) {
		const struct place *place = places_at(in->places, places[i]);
		const struct symbol_frame *frames =
			symbols_source(in->symbols, places[i], &nr_frames);
		/* Acquire: pairs with the release in places_name(). */
		uint32_t symbol = place ? atomic_load_explicit(&place->symbol, memory_order_acquire)
					: SYMBOL_NONE;

		frame = assemble_frame_of(in, place, symbols_at(in->symbols, symbol));
		/* Nameless code that another file has called is no compiled function. */
		found->own &= frame != ASSEMBLE_OTHER || inner != ASSEMBLE_NAMELESS;
		inner = frame;
		if (frame == ASSEMBLE_INTERPRETER || frame == ASSEMBLE_NAMELESS)
			continue;
		for (uint32_t k = 0; frames && k < nr_frames; k++, found->own = false) {
			if ((frames[k].symbol == SYMBOL_NONE ? symbol : frames[k].symbol) !=
			    function)
				continue;
			found->frame = &frames[k];
			found->place = places[i];
			return true;
		}
		found->own = false;
	}
	return false;
}

/* Note the place of the function: its code, or its file. */
static void note_place(const struct assemble_input *in, const struct found *found,
		       struct listing_lines *lines)
{
	const struct place *place = places_at(in->places, found->place);
	const struct object *object = objects_at(in->objects, place->object);

	if (object && object->identity.kind == OBJECT_SCRIPT)
		lines->code = lang_place_code(place->offset);
	else
		snprintf(lines->file, sizeof(lines->file), "%s",
			 symbols_file(in->symbols, found->frame->file).str);
}

static struct profile_point point_of(const struct assemble_input *in, const struct history_cell *c,
				     const struct found *found)
{
	return (struct profile_point){
		.vaddr = found->frame->line,
		.event = c->event,
		.count = found->own ? c->count : 0,
		.weight = found->own ? c->weight : 0,
		.task = points_task(in, c->task),
		.total = c->weight,
	};
}

/*
 * Fill a->points with the counts of the function a->function by line: its own, and in the total
 * also the ones of its calls; the innermost frame counts. Get the process with the heaviest count,
 * and the lines seen, into @lines. 0 or -ENOMEM.
 */
static int annotate_lines(struct profile_annotate *a, const struct assemble_input *in,
			  struct listing_lines *lines)
{
	uint32_t max = 0;
	double most = -1;

	*lines = (struct listing_lines){ .code = LISTING_NONE };
	for (uint32_t i = 0; i < in->nr_counts; i++) {
		const struct history_cell *c = &in->counts[i];
		const struct task *task = maps_task(in->maps, c->task);
		struct profile_point point;
		struct found found;

		if (!find(in, c->stack, a->function, &found))
			continue;
		point = point_of(in, c, &found);
		if (points_add(a, &max, &point))
			return -ENOMEM;
		if (found.frame->line) {
			lines->first = lines->first ? MIN(lines->first, found.frame->line)
						    : found.frame->line;
			lines->last = MAX(lines->last, found.frame->line);
		}
		if (c->weight <= most)
			continue;
		most = c->weight;
		lines->pid = task && task->pid > 0 ? task->pid : 0;
		note_place(in, &found, lines);
	}
	points_sum(a);
	return 0;
}

/*
 * Set a->code_of to the outer function with most samples of the inlined a->function, or to @last,
 * if it has any; unchanged when none has.
 */
static void find_outer(struct profile_annotate *a, const struct assemble_input *in, uint32_t last)
{
	struct profile_annotate sums = { 0 };
	const struct profile_point *best = NULL;
	const struct symbol *owner;
	double all = 0;

	sum_by_owner(&sums, in, a->function);
	for (uint32_t i = 0; i < sums.nr_points; i++) {
		const struct profile_point *pt = &sums.points[i];

		all += pt->weight;
		/* The shown function does not change while it has samples. */
		if (!best ||
		    (best->vaddr != last && (pt->vaddr == last || pt->weight > best->weight)))
			best = pt;
	}
	owner = best ? symbols_at(in->symbols, (uint32_t)best->vaddr) : NULL;
	if (owner) {
		a->code_of = (uint32_t)best->vaddr;
		a->inside_share = all > 0 ? best->weight / all : 0;
		text_format(a->inside, sizeof(a->inside), "%s", owner->name.str);
	}
	free(sums.points);
}

/* Request the code; returns it as far as it is read. */
static struct listing *take_listing(struct annotate *an, struct symbols *symbols, uint32_t function)
{
	symbols_want_code(symbols, function, &an->at);
	/* A replay has no loader thread. */
	if (an->replay)
		symbols_run(symbols);
	return symbols_code(symbols, function);
}

/* Return the function of place @place, SYMBOL_NONE: it has no name yet. */
static uint32_t function_of(const struct assemble_input *in, uint32_t place)
{
	const struct place *p = places_at(in->places, place);

	/* Acquire: pairs with the release in places_name(). */
	return p ? atomic_load_explicit(&p->symbol, memory_order_acquire) : SYMBOL_NONE;
}

/* Return the function of the place @wanted: from before a change of generation. */
static uint32_t function_wanted(struct annotate_place *at, const struct assemble_input *in,
				uint32_t wanted)
{
	uint32_t serial = places_serial(in->places);

	if (at->function != wanted)
		*at = (struct annotate_place){ wanted, serial, SYMBOL_NONE };
	if (at->serial == serial)
		at->symbol = function_of(in, wanted & ~ASSEMBLE_PLACE);
	return at->symbol;
}

/* Fill @a for the function of a language @id. */
static void fill_lines(struct annotate *an, struct symbols *symbols, struct profile_annotate *a,
		       const struct assemble_input *in, uint32_t id)
{
	struct listing_lines lines;

	an->in[0] = an->in[1] = id;
	if (in->kept) {
		a->why = "names were kept, no lines";
		return;
	}
	if (annotate_lines(a, in, &lines)) {
		a->why = "out of memory";
		return;
	}
	/* Its place is not known without samples; the listing is kept. */
	if (a->nr_points)
		symbols_want_lines(symbols, id, &lines);
	if (an->replay)
		symbols_run(symbols);
	a->listing = symbols_code(symbols, id);
	an->waits = !a->listing;
}

/* Fill @a for the function @id. */
static void fill_counts(struct annotate *an, struct symbols *symbols, struct profile_annotate *a,
			const struct assemble_input *in, uint32_t id)
{
	const struct symbol *symbol = symbols_at(symbols, id);
	bool shared;

	a->function = a->code_of = id;
	if (!symbol) {
		a->why = id < symbols_nr(symbols) ? "forgotten: no sample of the function is left"
						  : "no name yet: the extent of the function is "
						    "unknown";
		return;
	}
	if (annotate_lines_has(symbol)) {
		fill_lines(an, symbols, a, in, id);
		return;
	}
	if (symbol->inlined) {
		find_outer(a, in, an->in[0] == id ? an->in[1] : SYMBOL_NONE);
		symbol = symbols_at(symbols, a->code_of);
	}
	shared = annotate_has_instances(in, symbol);
	if (an->in[1] != a->code_of || !shared)
		an->at = (struct listing_instance){ 0 };
	an->in[0] = id;
	an->in[1] = a->code_of;
	if (shared)
		annotate_choose_instance(&an->at, symbols, in, a->code_of);
	a->listing = take_listing(an, symbols, a->code_of);
	an->waits = !a->listing;
	if (a->listing && add_points(a, in, shared ? an->at.object : symbol->object))
		a->why = "out of memory";
	if (a->listing && shared)
		annotate_tell_instance(a, in, &an->at);
}

void annotate_fill(struct annotate *an, struct symbols *symbols, struct profile *p,
		   const struct assemble_input *in)
{
	/* Relaxed: a function more or less late. */
	uint32_t wanted = atomic_load_explicit(&an->function, memory_order_relaxed), id = wanted;
	const struct symbol *symbol;

	an->waits = false;
	if (wanted == SYMBOL_NONE) {
		an->place.function = SYMBOL_NONE;
		return;
	}
	p->annotate = calloc(1, sizeof(*p->annotate));
	if (!p->annotate)
		return;
	if (wanted & ASSEMBLE_PLACE)
		id = function_wanted(&an->place, in, wanted);
	fill_counts(an, symbols, p->annotate, in, id);
	symbol = wanted == id ? NULL : symbols_at(symbols, id);
	if (symbol)
		text_format(p->annotate->name, sizeof(p->annotate->name), "%s", symbol->name.str);
	p->annotate->function = wanted;
}

bool annotate_is_due(struct annotate *an, struct symbols *symbols)
{
	struct listing *l = an->waits ? symbols_code(symbols, an->in[1]) : NULL;

	listing_put(l);
	return l;
}
