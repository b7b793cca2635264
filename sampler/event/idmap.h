/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Event ids of the kernel -> event slots, looked up for each sample.
 *
 * Open addressing. One writer; idmap_find() from any thread, lock-free. A table is filled in place
 * until it is crowded and then replaced as a whole; old tables live until idmap_fini(), since
 * look-ups have no way
 * to say that they are done (tables double, so all old ones together are no
 * larger than the current one; events are replaced by hand).
 */
#ifndef SAMPLER_EVENT_IDMAP_H
#define SAMPLER_EVENT_IDMAP_H

#include <stdatomic.h>

#include "symbols/base/base.h"

#define IDMAP_UNKNOWN (-2) /* never heard of */

struct idmap_table;

struct idmap {
	_Atomic(struct idmap_table *) table; /* release by the writer, acquire by readers */
};

void idmap_init(struct idmap *m);
void idmap_fini(struct idmap *m);

/* Writer: one more id; 0 is not one. An id that is there gets the new slot. */
void idmap_add(struct idmap *m, uint64_t id, int slot);
/* Writer: replace all ids. */
void idmap_replace(struct idmap *m, const uint64_t *ids, const int *slots, size_t nr);

/* The slot of @id, as given (negative: of no event, see counters_private.h), or IDMAP_UNKNOWN. Any
 * thread. */
int idmap_find(const struct idmap *m, uint64_t id);

#endif
