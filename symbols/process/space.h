/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Address spaces: immutable snapshots for readers, drafts for the writer.
 *
 * A space is an array of leaves, each a sorted run of mappings; spaces share
 * leaves (copy on write), so a change in a large process copies one leaf, and
 * fork shares all. Beside the live mappings a space keeps a short list of
 * replaced ones, each with the time of its end, for look-ups in the past.
 *
 * Threads: everything but space_find() (maps.h) under the lock of the maps.
 * What readers may still see is freed through urcu-qsbr.
 */
#ifndef SYMBOLS_PROCESS_SPACE_H
#define SYMBOLS_PROCESS_SPACE_H

#include <stdatomic.h>

#include "symbols/process/maps.h"

#define SPACE_MAPPINGS_MAX 100000u

struct space_stats {
	uint64_t last_serial;	  /* of a space; under the lock of the maps */
	atomic_ulong nr_spaces;	  /* relaxed: figures only */
	atomic_ulong nr_mappings; /* of all spaces */
};

struct space_edit;

/* References: one for each process that shows it. NULL is fine for both. */
struct space *space_get(struct space *s);
void space_put(struct space *s);

/* What becomes the next space after @from (NULL: an empty one). NULL when memory is out. */
struct space_edit *space_edit_new(struct space *from, struct space_stats *stats);
void space_edit_free(struct space_edit *d);
/*
 * Put a mapping in. Where it overlaps others, the later birth wins; the loser
 * is trimmed, and what it lost is remembered with its end. False: nothing
 * changed (known already, no room).
 */
bool space_edit_add(struct space_edit *d, const struct mapping *m);
/*
 * Put in what /proc/PID/maps showed at @read_ns: an unknown range is taken as
 * always there, one that contradicts an older mapping as there since @read_ns;
 * what was born after @read_ns stays.
 */
bool space_edit_merge(struct space_edit *d, const struct mapping *m, uint64_t read_ns);
/* Publishable result, one reference; ends the draft. Forgets what ended before @keep_from_ns. */
struct space *space_edit_freeze(struct space_edit *d, uint64_t keep_from_ns);

#endif
