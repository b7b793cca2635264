// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Frames of a place in a profile: its function, the functions inlined there, its source lines.
 *
 * Runs on: the builder.
 */
#include "sampler/profile/assemble.h"

#include <errno.h>
#include <string.h>

#include "sampler/profile/assemble_work.h"
#include "symbols/base/array.h"

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

/* Return the index of a source line; PROFILE_NO_LINE: unknown. */
static int add_line(struct assemble_work *w, const struct symbol_frame *f, uint32_t *out)
{
	struct profile *p = w->p;
	uint32_t file = PROFILE_NO_LINE, *index;

	*out = PROFILE_NO_LINE;
	if (!f->line)
		return 0;
	if (f->file < w->files.nr) {
		index = assemble_index_at(&w->files, f->file);
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
static int add_frames(struct assemble_work *w, uint32_t id, uint32_t function)
{
	uint32_t nr, line, nr_before = w->nr_frames;
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
	return w->nr_frames > nr_before ? 0 : add_frame(w, function, PROFILE_NO_LINE);
}

/* Note whether it is code of a language or of an interpreter. */
static void classify(const struct assemble_work *w, struct assemble_spot *spot,
		     const struct place *place)
{
	const struct object *object = place ? objects_at(w->in->objects, place->object) : NULL;

	if (!object)
		return;
	spot->script = object->identity.kind == OBJECT_SCRIPT;
	spot->kernel = place->object == OBJECT_ID_KERNEL;
	if (place->object == w->in->wait && place->offset < WAIT_FOUND)
		spot->wait = (uint8_t)MIN(place->offset, WAIT_OTHER);
	spot->long_wait = spot->wait && place->offset == WAIT_LONG;
	spot->interpreter = atomic_load_explicit(&object->interpreter, memory_order_relaxed);
}

/* Return the meaning of the function on the stack of a waiting task. */
static struct wait_hint hint_of(const struct assemble_work *w, const struct assemble_spot *spot)
{
	const struct assemble_spot_frame *outer = &w->frames[spot->first - 1 + spot->nr - 1];
	const struct safe_text *name = &w->p->functions[outer->function].name;

	return name->str ? wait_hint(name->str, name->size, spot->kernel)
			 : (struct wait_hint){ .kind = WAIT_NO };
}

int assemble_spot(struct assemble_work *w, struct assemble_spot *spot, uint32_t id)
{
	const struct place *place = places_at(w->in->places, id);
	uint32_t symbol_id, first = w->nr_frames;
	const struct symbol *symbol = symbol_of(w, place, &symbol_id);
	int ret;

	if (symbol)
		ret = add_frames(w, id, symbol_function(w, symbol_id, symbol));
	else
		ret = add_frame(w, place_function(w, id, place), PROFILE_NO_LINE);
	*spot = (struct assemble_spot){ .first = first + 1, .nr = w->nr_frames - first };
	classify(w, spot, place);
	w->has_scripts |= spot->script;
	if (!ret && w->in->wait_places)
		spot->hint = hint_of(w, spot);
	return ret;
}
