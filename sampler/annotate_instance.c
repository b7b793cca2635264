// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Of one function by name the code in one process. Runs on: the builder.
 *
 * An instance is an address: of code that was compiled again the one with samples is shown.
 */
#include "sampler/annotate_instance.h"

#include <stdlib.h>

#include "sampler/annotate_points.h"
#include "symbols/process/maps.h"

/* More is all of it, but for rounding. */
#define WHOLE 0.999

bool annotate_has_instances(const struct assemble_input *in, const struct symbol *symbol)
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

bool annotate_is_instance(const struct assemble_input *in, const struct place *place,
			  uint32_t object, uint32_t function)
{
	return is_function(place, function) && owner_of(in, place->object) == owner_of(in, object);
}

/* Return the innermost place of @function in a stack; PLACE_NONE: it has none. */
static uint32_t place_in(const struct assemble_input *in, uint32_t stack, uint32_t function)
{
	uint32_t nr = 0;
	const uint32_t *places = stacks_at(in->stacks, stack, &nr);

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

void annotate_choose_instance(struct listing_instance *at, struct symbols *symbols,
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

void annotate_tell_instance(struct profile_annotate *a, const struct assemble_input *in,
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
