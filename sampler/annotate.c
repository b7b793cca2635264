// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The samples of one function by address: the innermost places of the counted stacks. Runs on: the
 * builder. By range, not by symbol: inlined code has other names, but is code of the function.
 */
#include "sampler/annotate.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "sampler/annotate_instance.h"
#include "sampler/annotate_lines.h"
#include "sampler/annotate_points.h"
#include "symbols/object/image.h"
#include "symbols/process/maps.h"
#include "symbols/base/reclaim.h"

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
	 * An address where there is no file, else an offset in it (places.h). An evicted image
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
		    point.vaddr < l->vaddr || point.vaddr - l->vaddr >= l->size ||
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
static void fill_function(struct annotate *an, struct symbols *symbols, struct profile_annotate *a,
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
	fill_function(an, symbols, p->annotate, in, id);
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
