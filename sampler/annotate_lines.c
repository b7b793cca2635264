// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The samples of a function of a language by source line.
 *
 * Frames of interpreters are left out in any view: the interpreter's work for a line counts for
 * the line. Runs on: the builder.
 */
#include "sampler/annotate_lines.h"

#include <errno.h>
#include <stdio.h>

#include "sampler/annotate_points.h"
#include "symbols/lang/lang.h"
#include "symbols/process/maps.h"

bool annotate_lines_has(const struct symbol *symbol)
{
	return symbol && profile_language_name(symbol->kind);
}

/* A frame of the function in one stack. */
struct found {
	const struct symbol_frame *frame;
	uint32_t place;
	bool own; /* the innermost frame beside the interpreter's */
};

static bool is_interpreter(const struct assemble_input *in, const struct place *place)
{
	const struct object *object = place ? objects_at(in->objects, place->object) : NULL;

	return object && atomic_load_explicit(&object->interpreter, memory_order_relaxed);
}

/* Find the innermost frame of @function in stack @id. */
static bool find(const struct assemble_input *in, uint32_t id, uint32_t function,
		 struct found *found)
{
	uint32_t nr = 0, nr_frames;
	const uint32_t *places = stacks_at(in->stacks, id, &nr);

	found->own = true;
	for (uint32_t i = 0; places && i < nr; i++) {
		const struct place *place = places_at(in->places, places[i]);
		const struct symbol_frame *frames =
			symbols_source(in->symbols, places[i], &nr_frames);
		/* Acquire: pairs with the release in places_name(). */
		uint32_t symbol = place ? atomic_load_explicit(&place->symbol, memory_order_acquire)
					: SYMBOL_NONE;

		if (is_interpreter(in, place))
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

int annotate_lines(struct profile_annotate *a, const struct assemble_input *in,
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
