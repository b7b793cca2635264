// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes that JVMs take, and the limits of one user and of all.
 *
 * Runs on: the loader; a replay.
 */
#include <errno.h>

#include "symbols/jit/hotspots.h"
#include "symbols/jit/hotspots_private.h"

/* Return the bytes of @e: without the code that a job has read since it began. */
static size_t memory_of(struct hotspots_entry *e)
{
	if (!e->reading)
		e->code_memory = 0;
	else if (!e->runs)
		e->code_memory = e->reading->vm.memory;
	return sizeof(*e) + e->code_memory + jitcode_memory(e->code) + jitcode_memory(e->methods) +
	       (e->map ? codemap_memory(e->map) : 0) + e->nr_ranges * sizeof(*e->ranges) +
	       e->max_calls * sizeof(*e->calls) + (e->nr_found ? e->found_memory : 0) +
	       e->max_recorded * sizeof(*e->recorded) + e->recorded_size +
	       e->max_methods * sizeof(*e->reading->methods) + e->methods_size;
}

void hotspots_count(struct hotspots *h, struct hotspots_entry *e)
{
	size_t memory = memory_of(e);

	atomic_fetch_add_explicit(&h->memory, memory - e->memory, memory_order_relaxed);
	e->memory = memory;
}

void hotspots_discount(struct hotspots *h, struct hotspots_entry *e)
{
	atomic_fetch_sub_explicit(&h->memory, e->memory, memory_order_relaxed);
	e->memory = 0;
}

/* Return the bytes of the processes of @uid. */
static size_t memory_of_user(const struct hotspots *h, uint32_t uid)
{
	size_t sum = 0;

	for (uint32_t i = 0; i < h->nr_entries; i++)
		if (h->entries[i]->uid == uid)
			sum += h->entries[i]->memory;
	return sum;
}

int hotspots_admit(struct hotspots *h, struct hotspots_entry *e, size_t more)
{
	hotspots_count(h, e);
	if (atomic_load_explicit(&h->memory, memory_order_relaxed) + more > HOTSPOTS_MEMORY_MAX)
		return -ENOSPC;
	if (!h->recorded && memory_of_user(h, e->uid) + more > HOTSPOTS_USER_MEMORY)
		return -ENOSPC;
	return 0;
}

int hotspots_add_code(struct hotspots *h, struct hotspots_entry *e, struct jitcode *code,
		      const struct jitcode_load *load)
{
	size_t more = jitcode_growth(code, load->name_size);
	size_t names = jitcode_memory(e->code) + jitcode_memory(e->methods);
	int rc = more ? hotspots_admit(h, e, more) : 0;

	if (more && names + more > HOTSPOTS_NAMES_MEMORY)
		rc = -E2BIG;
	if (rc)
		e->refused = rc;
	return rc ? rc : jitcode_add(code, load);
}
