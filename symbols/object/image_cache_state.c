// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lists of objects and retries.
 *
 * Runs on: the loader.
 */
#include "symbols/object/image_cache_state.h"

#include "symbols/base/array.h"

bool image_cache_ids_add(struct image_cache_ids *ids, uint32_t id)
{
	if (!array_reserve(&ids->list, &ids->max, ids->nr + 1ull))
		return false;
	ids->list[ids->nr++] = id;
	return true;
}

void image_cache_retry_at(struct image_cache *o, uint32_t id, pid_t pid, unsigned int tries,
			  uint64_t due_ns)
{
	if (!array_reserve(&o->retries, &o->max_retries, o->nr_retries + 1ull))
		return;
	o->retries[o->nr_retries++] = (struct image_cache_retry){ id, pid, tries, due_ns };
}
