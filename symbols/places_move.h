/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Places on their way into another table, with their names and chains.
 *
 * One thread at a time: the builder moves the places that are in use, then the loader takes the new
 * table over, and frees the old one.
 */
#ifndef SYMBOLS_PLACES_MOVE_H
#define SYMBOLS_PLACES_MOVE_H

#include "symbols/name/places.h"
#include "symbols/source/chains.h"

struct places_move {
	struct places *from, *to;
	const struct chains *from_chains;
	struct chains *to_chains;
	uint32_t *ids; /* by old id the new one + 1; 0: not moved */
	uint32_t nr_ids;
	uint32_t *files; /* by old id of a file the new one + 1; 0: not moved */
	uint32_t nr_files;
};

/*
 * Begin to move to @to (borrowed), with a new table of chains. Later ids of @from do not move, if
 * it does not grow until all threads use @to. NULL: out of memory.
 */
struct places_move *places_move_new(struct places *from, struct places *to,
				    const struct chains *chains);
/* Builder: return the new id of place @id, moved now if it was not; PLACE_NONE: the table is full.
 */
uint32_t places_move_one(struct places_move *m, uint32_t id);
/* Loader: move the names and chains that the old tables got since. */
void places_move_late(struct places_move *m);
/* Free @m, and none of the tables. */
void places_move_free(struct places_move *m);
/* The same, and the new chains. */
void places_move_cancel(struct places_move *m);

#endif
