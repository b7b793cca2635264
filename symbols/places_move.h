/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Places on their way into another table, with their names and chains.
 *
 * Code that a JIT made in a process that has ended has names, and its addresses are of no use any
 * more: such places with one function and chain become one, of an object of their own. Else a
 * program that starts again and again fills the tables with the same stacks.
 *
 * One thread at a time: the builder moves the places that are in use, then the loader takes the new
 * table over, and frees the old one.
 */
#ifndef SYMBOLS_PLACES_MOVE_H
#define SYMBOLS_PLACES_MOVE_H

#include "symbols/name/places.h"
#include "symbols/name/symtab.h"
#include "symbols/image/image.h"
#include "symbols/source/chains.h"

struct places_move {
	struct places *from, *to;
	const struct chains *from_chains;
	struct chains *to_chains;
	uint32_t *ids; /* by old id the new one + 1; 0: not moved */
	uint32_t nr_ids;
	uint32_t *files; /* by old id of a file the new one + 1; 0: not moved */
	uint32_t nr_files;
	const struct objects *objects;
	const struct symtab *symtab;
	uint32_t ended; /* the object of code of ended processes; OBJECT_ID_UNKNOWN: none */
};

/*
 * Begin to move to @to (borrowed), with a new table of chains. Later ids of @from do not move, if
 * it does not grow until all threads use @to. NULL: out of memory.
 */
struct places_move *places_move_new(struct places *from, struct places *to,
				    const struct chains *chains, struct objects *objects,
				    const struct symtab *symtab);
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
