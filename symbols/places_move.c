// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names and chains of places, from one table to another.
 *
 * Runs on: the builder, until the loader takes over; then the loader.
 */
#include "symbols/places_move.h"

#include <stdlib.h>
#include <string.h>

#include "symbols/base/array.h"
#include "symbols/base/base.h"
#include "symbols/source/dwarf.h"

struct places_move *places_move_new(struct places *from, struct places *to,
				    const struct chains *chains, struct objects *objects,
				    const struct symtab *symtab)
{
	/* No process has the id 0. */
	const struct object_identity identity = { .kind = OBJECT_ANON, .layer = UINT32_MAX };
	struct places_move *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	*m = (struct places_move){
		.from = from, .to = to, .from_chains = chains, .objects = objects, .symtab = symtab
	};
	m->ended = objects_intern(objects, &identity, "//anon", 6, 0, 0, 0)->id;
	m->nr_ids = places_room(from);
	m->ids = calloc(MAX(m->nr_ids, 1u), sizeof(*m->ids));
	if (m->ids && !chains_new(&m->to_chains))
		return m;
	free(m->ids);
	free(m);
	return NULL;
}

/* Return the new id of a file, which leaves the table with the last place that has it. */
static uint32_t move_file(struct places_move *m, uint32_t object, uint32_t file)
{
	if (file == SYMBOL_NO_FILE || !array_reserve_zeroed(&m->files, &m->nr_files, file + 1ULL))
		return SYMBOL_NO_FILE;
	if (!m->files[file])
		m->files[file] =
			chains_move_file(m->to_chains, object, chains_file(m->from_chains, file)) +
			1;
	return m->files[file] - 1;
}

/* Move the chain of place @old. Return its new number; CHAINS_NONE: it has none. */
static uint32_t move_chain(struct places_move *m, uint32_t object, uint32_t old)
{
	struct symbol_frame out[DWARF_FRAMES_MAX];
	const struct symbol_frame *frames;
	uint32_t nr;

	frames = chains_at(m->from_chains, old, &nr);
	if (!frames)
		return CHAINS_NONE;
	nr = MIN(nr, DWARF_FRAMES_MAX);
	for (uint32_t i = 0; i < nr; i++) {
		out[i] = frames[i];
		out[i].file = move_file(m, object, frames[i].file);
	}
	return chains_intern(m->to_chains, out, nr);
}

static uint32_t symbol_of(const struct place *place)
{
	/* Acquire: the symbol's fields; pairs with the release in places_name(). */
	return atomic_load_explicit(&place->symbol, memory_order_acquire);
}

/*
 * Return whether the place is code of a JIT in a process that has ended, and has the name that it
 * will keep. A jitdump has its code, which can still be shown by address.
 */
static bool is_ended(const struct places_move *m, const struct place *place)
{
	const struct object *object = objects_at(m->objects, place->object);
	const struct symbol *s = symtab_at(m->symtab, symbol_of(place));
	const char *source = object ? atomic_load_explicit(&object->source, memory_order_relaxed)
				    : NULL;

	if (!object || object->identity.kind != OBJECT_ANON || !s || s->made_up ||
	    m->ended == OBJECT_ID_UNKNOWN)
		return false;
	return object->id == m->ended ||
	       (!object_is_mapped(object) && !(source && !strcmp(source, "jitdump")) &&
		!atomic_load_explicit(&object->interpreter, memory_order_relaxed));
}

uint32_t places_move_one(struct places_move *m, uint32_t id)
{
	const struct place *place = id < m->nr_ids ? places_at(m->from, id) : NULL;
	uint32_t symbol, chain, to, nr;

	if (!place)
		return PLACE_NONE;
	if (m->ids[id])
		return m->ids[id] - 1;
	if (places_crowded(m->to))
		places_grow(m->to);
	symbol = symbol_of(place);
	chain = move_chain(m, place->object, id);
	to = is_ended(m, place) ? places_intern(m->to, m->ended, (uint64_t)symbol << 32 | chain)
				: places_intern(m->to, place->object, place->offset);
	if (to == PLACE_NONE)
		return to;
	m->ids[id] = to + 1;
	if (symbol != SYMBOL_NONE)
		places_name(m->to, to, symbol);
	if (chain != CHAINS_NONE && !chains_at(m->to_chains, to, &nr))
		chains_set(m->to_chains, to, chain);
	return to;
}

/* Give place @id the name and chain that place @old got since it moved. */
static void move_late(struct places_move *m, uint32_t old, uint32_t id)
{
	const struct place *place = places_at(m->from, old);
	uint32_t symbol = symbol_of(place), chain, nr;

	/* Code of ended processes has both; it is one place for many. */
	if (places_at(m->to, id)->object == m->ended)
		return;
	if (symbol != SYMBOL_NONE)
		places_name(m->to, id, symbol);
	if (chains_at(m->to_chains, id, &nr))
		return;
	chain = move_chain(m, place->object, old);
	if (chain != CHAINS_NONE)
		chains_set(m->to_chains, id, chain);
}

void places_move_late(struct places_move *m)
{
	for (uint32_t i = 0; i < m->nr_ids; i++)
		if (m->ids[i])
			move_late(m, i, m->ids[i] - 1);
}

void places_move_free(struct places_move *m)
{
	free(m->ids);
	free(m->files);
	free(m);
}

void places_move_cancel(struct places_move *m)
{
	if (!m)
		return;
	chains_free(m->to_chains);
	places_move_free(m);
}
