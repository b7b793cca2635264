/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Event ids of the kernel -> event slots, looked up for each sample.
 *
 * Open addressing. One writer; idmap_find() from any thread, lock-free: an online urcu-qsbr reader.
 * A table is filled in place until it is crowded and then replaced as a whole, by one without the
 * ids of events that were closed some time ago; the old one is freed after a grace period.
 */
#ifndef SAMPLER_EVENT_IDMAP_H
#define SAMPLER_EVENT_IDMAP_H

#include <stdatomic.h>

#include "symbols/base/base.h"

#define IDMAP_UNKNOWN (-2) /* never heard of, or forgotten */
#define IDMAP_KEPT_S  10   /* seconds; samples are handled within a fraction of one */

struct idmap_table;

struct idmap {
	_Atomic(struct idmap_table *) table; /* release by the writer, acquire by readers */
	uint32_t closed_s;		     /* writer: when an event was last closed */
};

void idmap_init(struct idmap *m);
void idmap_fini(struct idmap *m);

/* Writer: one more id; 0 is not one. An id that is there gets the new slot. */
void idmap_add(struct idmap *m, uint64_t id, int slot);
/*
 * Writer: the event of @id is closed at @now_ns. Its last samples may still be in a ring: the id is
 * known for IDMAP_KEPT_S at least.
 */
void idmap_close(struct idmap *m, uint64_t id, uint64_t now_ns);
/* Writer: replace all ids. */
void idmap_replace(struct idmap *m, const uint64_t *ids, const int *slots, size_t nr);

/* The slot of @id, as given (negative: of no event, see counters_private.h), or IDMAP_UNKNOWN. Any
 * thread. */
int idmap_find(const struct idmap *m, uint64_t id);

#endif
