// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names and chains of places, from one table to another.
 *
 * Runs on: the builder, until the loader takes over; then the loader.
 */
#include "symbols/places_move.h"

#include <stdlib.h>

#include "symbols/base/array.h"
#include "symbols/base/base.h"
#include "symbols/source/dwarf.h"

struct places_move *places_move_new(struct places *from, struct places *to,
				    const struct chains *chains)
{
	struct places_move *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	*m = (struct places_move){ .from = from, .to = to, .from_chains = chains };
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

static void copy_chain(struct places_move *m, uint32_t object, const struct symbol_frame *frames,
		       uint32_t nr, uint32_t id)
{
	struct symbol_frame out[DWARF_FRAMES_MAX];

	nr = MIN(nr, DWARF_FRAMES_MAX);
	for (uint32_t i = 0; i < nr; i++) {
		out[i] = frames[i];
		out[i].file = move_file(m, object, frames[i].file);
	}
	chains_put(m->to_chains, id, out, nr);
}

/* Give @id, which is @place in the old table, its name and chain as they are now. */
static void copy(struct places_move *m, const struct place *place, uint32_t old, uint32_t id)
{
	/* Acquire: the symbol's fields; pairs with the release in places_name(). */
	uint32_t symbol = atomic_load_explicit(&place->symbol, memory_order_acquire), nr, was;
	const struct symbol_frame *frames = chains_at(m->from_chains, old, &nr);

	if (symbol != SYMBOL_NONE)
		places_name(m->to, id, symbol);
	if (frames && !chains_at(m->to_chains, id, &was))
		copy_chain(m, place->object, frames, nr, id);
}

uint32_t places_move_one(struct places_move *m, uint32_t id)
{
	const struct place *place = id < m->nr_ids ? places_at(m->from, id) : NULL;
	uint32_t to;

	if (!place)
		return PLACE_NONE;
	if (m->ids[id])
		return m->ids[id] - 1;
	if (places_crowded(m->to))
		places_grow(m->to);
	to = places_intern(m->to, place->object, place->offset);
	if (to == PLACE_NONE)
		return to;
	m->ids[id] = to + 1;
	copy(m, place, id, to);
	return to;
}

void places_move_late(struct places_move *m)
{
	for (uint32_t i = 0; i < m->nr_ids; i++)
		if (m->ids[i])
			copy(m, places_at(m->from, i), i, m->ids[i] - 1);
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
