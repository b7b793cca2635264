// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Limits of the processes with JIT code: of all, and of one user.
 *
 * Runs on: the loader.
 */
#include <stdlib.h>

#include "symbols/jit/jitdumps.h"
#include "symbols/jit/jitdumps_private.h"

void jitdumps_remove(struct jitdumps *j, uint32_t i)
{
	struct jitdumps_entry *e = j->entries[i];

	atomic_fetch_sub_explicit(&j->memory, e->memory, memory_order_relaxed);
	j->nr_open -= e->held;
	j->entries[i] = j->entries[--j->nr_entries];
	j->by_object[j->entries[i]->object] = i + 1;
	j->by_object[e->object] = 0;
	jitdump_job_drop(&e->r->read.job);
	free(e);
}

bool jitdumps_evict(struct jitdumps *j, uint32_t uid)
{
	struct jitreads_candidate *candidates = calloc(j->nr_entries, sizeof(*candidates));
	uint32_t oldest;

	for (uint32_t i = 0; candidates && i < j->nr_entries; i++) {
		const struct jitdumps_entry *e = j->entries[i];
		const struct object *object = objects_at(j->objects, e->object);

		/* Code of a jitdump is in layers: it does not leave. */
		candidates[i] = (struct jitreads_candidate){
			e->uid, atomic_load_explicit(&object->used, memory_order_relaxed),
			e->runs || e->opened
		};
	}
	oldest = candidates ? jitreads_victim(candidates, j->nr_entries, uid) : UINT32_MAX;
	free(candidates);
	if (oldest != UINT32_MAX)
		jitdumps_remove(j, oldest);
	return oldest != UINT32_MAX;
}

bool jitdumps_may_open(const struct jitdumps *j, const struct jitdumps_entry *e)
{
	uint32_t nr = 0;

	if (j->no_proc || j->nr_open < JITREADS_USER(JITDUMPS_OPEN_MAX))
		return j->nr_open < JITDUMPS_OPEN_MAX;
	for (uint32_t i = 0; i < j->nr_entries; i++)
		nr += j->entries[i]->held && j->entries[i]->uid == e->uid;
	return j->nr_open < JITDUMPS_OPEN_MAX && nr < JITREADS_USER(JITDUMPS_OPEN_MAX);
}

bool jitdumps_is_full(const struct jitdumps *j, const struct jitdumps_entry *e)
{
	size_t memory = atomic_load_explicit(&j->memory, memory_order_relaxed), sum = 0;

	if (j->no_proc || memory < JITREADS_USER(JITDUMPS_MEMORY_MAX))
		return memory >= JITDUMPS_MEMORY_MAX;
	for (uint32_t i = 0; i < j->nr_entries; i++)
		sum += j->entries[i]->uid == e->uid ? j->entries[i]->memory : 0;
	return memory >= JITDUMPS_MEMORY_MAX || sum >= JITREADS_USER(JITDUMPS_MEMORY_MAX);
}
