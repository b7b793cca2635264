/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Look up what the source has at sampled places: inlined functions, lines.
 *
 * Named places are put into the queue of their object; the object with the
 * longest queue comes first. Debug files stay open while they are of use, few
 * at a time. A file that costs too much time is not asked again.
 *
 * One thread: the loader. Any file here may hang; afterwards nothing borrowed
 * is touched before the stop of the objects was looked at.
 */
#ifndef SYMBOLS_LINES_H
#define SYMBOLS_LINES_H

#include "symbols/chains.h"
#include "symbols/objects.h"
#include "symbols/places.h"
#include "symbols/symtab.h"

struct lines_object;

struct lines {
	const struct objects *objects;
	struct places *places;
	struct symtab *symtab;
	struct chains *chains;
	bool off;
	struct lines_object **list;
	uint32_t nr_list;
	uint32_t *by_dso;		/* index in list + 1; 0: none */
	uint32_t nr_by_dso;
	atomic_ulong nr_found, nr_waiting;	/* written here, relaxed */
	char demangled[TEXT_MAX + 64];
};

void lines_init(struct lines *l, const struct objects *objects, struct places *places,
		struct symtab *symtab, struct chains *chains);
void lines_fini(struct lines *l);

/* Place @id got its name. */
void lines_add(struct lines *l, uint32_t id);
/* Look some places up, a few ms. False: nothing is left to do. */
bool lines_work(struct lines *l);

#endif
