/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of the sampled places: each place once, in the order of ids; again when there are better
 * symbols.
 *
 * One thread: the loader; the counters are read by any thread. Everything is borrowed.
 */
#ifndef SYMBOLS_PLACE_NAMES_H
#define SYMBOLS_PLACE_NAMES_H

#include "symbols/lang/codes.h"
#include "symbols/name/naming.h"
#include "symbols/name/places.h"
#include "symbols/name/symtab.h"
#include "symbols/places_move.h"
#include "symbols/source/chains.h"
#include "symbols/dwarf/dwarf.h"

struct place_names {
	struct places *places;
	struct objects *objects;
	struct symtab *symtab;
	struct naming *naming;
	struct lines *lines;
	struct chains *chains;
	const struct codes *codes;
	const atomic_bool *stop; /* release by loader_stop() */
	uint32_t script;	 /* object of all code of interpreters */
	uint32_t wait;		 /* object of the kinds of waits */
	struct place_names_waiting {
		uint32_t place; /* without a name yet */
		uint64_t since_ns;
	} * waiting; /* owned */
	uint32_t nr_waiting, max_waiting;
	uint32_t next_waiting; /* where the next pass goes on */
	bool any_named;	       /* since it began with the first */
	uint32_t next_place;   /* places below this id are done */
	uint64_t named_ns;     /* time of the last pass */
	bool held;	       /* new places wait for the next pass */
	uint8_t *changed;      /* by object: 1: place_names_note(); owned */
	uint32_t max_changed;
	bool has_changed;
	/* Relaxed: statistics. */
	_Alignas(CACHELINE) atomic_ulong nr_named, nr_unnamed;
};

void place_names_fini(struct place_names *n);
/* Use the new table of @m, with what is known of the old one; all others are named again. */
void place_names_move(struct place_names *n, struct places_move *m);
/*
 * Name the places that waited for images, then new ones, then look up source lines. @more: an image
 * was read; @now: make up names instead of waiting for better ones. True: more work.
 */
bool place_names_pass(struct place_names *n, bool more, bool now);
/* Note that @object has more symbols; without memory its places keep their names. */
void place_names_note(struct place_names *n, uint32_t object);
/* Name the places of noted objects again that have only an address, or changed code: in one pass.
 */
void place_names_rename(struct place_names *n);
/* The same of kernel code that was made where other code may have been. */
void place_names_rename_kernel(struct place_names *n);
/* The debug file of @object arrived: look up the source of its places again. */
void place_names_fetched(struct place_names *n, uint32_t object);
/* Return the number of places without a name. */
uint32_t place_names_left(const struct place_names *n);

#endif
