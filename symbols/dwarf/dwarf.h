/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Look up inlined functions and lines of sampled places.
 *
 * Named places are added to the queue of their object; the object with the
 * longest queue is first. Debug files are kept open while they are used, few at a time. A file that
 * costs too much time is not used again.
 *
 * One thread: the loader. Helpers read; a helper that hangs is abandoned.
 */
#ifndef SYMBOLS_SOURCE_LINES_H
#define SYMBOLS_SOURCE_LINES_H

#include "symbols/source/chains.h"
#include "symbols/object/image_cache.h"
#include "symbols/name/demangler.h"
#include "symbols/name/places.h"
#include "symbols/name/symtab.h"

struct lines_object;
struct lines_job;

struct lines {
	const struct image_cache *images;
	struct places *places;
	struct symtab *symtab;
	struct chains *chains;
	struct lines_job *job;	       /* running; or NULL */
	bool off, no_lines;	       /* nothing is looked up; functions only */
	uint64_t began_ns, emptied_ns; /* when it was set up; when its queue was last empty */
	struct lines_object **list;
	uint32_t nr_list;
	uint32_t *by_object; /* index in list + 1; 0: none */
	uint32_t nr_by_object;
	atomic_ulong nr_found, nr_waiting; /* written here, relaxed */
	struct demangler demangler;
};

void lines_init(struct lines *l, const struct image_cache *images, struct places *places,
		struct symtab *symtab, struct chains *chains);
void lines_fini(struct lines *l);

/* Place @id got its name: queue it. */
void lines_add(struct lines *l, uint32_t id);
/*
 * Use other tables from now on: @ids is by old id of a place the new one + 1, 0: it is not moved.
 */
void lines_move(struct lines *l, struct places *places, struct chains *chains, const uint32_t *ids,
		uint32_t nr_ids);
/* The line of place @id is known from another source: a jitdump. */
void lines_told(struct lines *l, uint32_t id, const char *file, uint32_t line);
struct hotspots_chain;
/* Keep the source of a place in compiled Java code, unless it is another place by now. */
void lines_java(struct lines *l, const struct hotspots_chain *chain);
/* Object @object has more to read than before: try refused look-ups again. */
void lines_again(struct lines *l, uint32_t object);
/*
 * Take results, start the next look-up. Unless @now, few places wait for more. False: no work, or a
 * helper is busy.
 */
bool lines_work(struct lines *l, bool now);
/* Return true while a helper is busy. */
bool lines_busy(const struct lines *l);

#endif
