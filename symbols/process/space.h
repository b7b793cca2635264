/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Address spaces: immutable snapshots for readers, drafts for the writer.
 *
 * A space is a tree of mappings; spaces share its nodes (copy on write), so a change in a large
 * process copies a few of them, and fork shares all. A space also keeps a short list of replaced
 * mappings, each with the time of its end, for look-ups in the past; that of a child begins empty.
 *
 * Threads: look-ups (space_find() to space_want()) on any urcu-qsbr reader; all else
 * under the lock of the maps. Memory that readers may use is freed through urcu-qsbr.
 */
#ifndef SYMBOLS_PROCESS_SPACE_H
#define SYMBOLS_PROCESS_SPACE_H

#include <stdatomic.h>

#include "symbols/process/mapping.h"

#define SPACE_MAPPINGS_MAX 100000u
/* Above these bytes of all spaces a fork gets the published space of its parent. */
#define SPACE_BYTES_MAX (256ul << 20)

struct space_stats {
	uint64_t last_serial;	  /* of a space; under the lock of the maps */
	atomic_ulong nr_spaces;	  /* relaxed: figures only */
	atomic_ulong nr_mappings; /* of all spaces */
	atomic_ulong bytes;	  /* of all spaces, nodes that they share once */
};

/* One address space of a process. Immutable once published. */
struct space;
struct space_edit;

/* Find the mapping of @addr at @time_ns; NULL: none. Any reader. */
const struct mapping *space_find(const struct space *s, uint64_t addr, uint64_t time_ns);
/* Test whether @m, which space_find() returned of @s, has ended: it is for its time only. */
bool space_has_ended(const struct space *s, const struct mapping *m);
/*
 * Return the number of a space: unique, also after its end. A cache of mappings by
 * number is valid only with that space in hand; space_read() after each
 * access is for ThreadSanitizer only.
 */
uint64_t space_serial(const struct space *s);
void space_read(const struct space *s);
/* Find an executable mapping of @object; NULL: none. */
const struct mapping *space_find_object(const struct space *s, const struct object *object);
uint32_t space_nr_mappings(const struct space *s);
/* Test for mappings that were replaced, which are of no use to a child. */
bool space_has_old(const struct space *s);
/*
 * Request the images of all objects mapped there, so that a stack does not request
 * them one by one. True: wake the loader.
 */
bool space_want(const struct space *s);

/* Take and drop a reference: one for each process with this space. @s may be NULL. */
struct space *space_get(struct space *s);
void space_put(struct space *s);

/* Begin a draft of the next space after @from (NULL: empty). NULL when out of memory. */
struct space_edit *space_edit_new(struct space *from, struct space_stats *stats);
void space_edit_free(struct space_edit *d);
/*
 * Add a mapping, with an object of which the caller has a reference until the draft has ended. In
 * overlaps the later birth wins; the loser is trimmed, and the part lost is kept
 * with its end. False: unchanged (known already, or full).
 */
bool space_edit_add(struct space_edit *d, const struct mapping *m);
/*
 * Add a mapping of /proc/PID/maps read at @read_ns: in an unknown range it has
 * always been there, over an older mapping since @read_ns; mappings born after @read_ns are kept.
 */
bool space_edit_merge(struct space_edit *d, const struct mapping *m, uint64_t read_ns);
/*
 * Return the space of a child that is forked at @time_ns, with one reference; the draft goes on,
 * and children before its next change share that space. NULL when out of memory.
 */
struct space *space_edit_fork(struct space_edit *d, uint64_t time_ns);
/*
 * End the draft: return the space to publish, with one reference. Drops mappings
 * that ended before @keep_from_ns.
 */
struct space *space_edit_freeze(struct space_edit *d, uint64_t keep_from_ns);

#endif
