// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which events the records in the rings belong to, for a recording's header.
 *
 * Runs on: set-up, then the builder. Events are added and closed: a recorder calls this after each
 * change.
 */
#include <errno.h>
#include <stdlib.h>

#include "sampler/event/counters.h"

#include "sampler/event/counters_private.h"

static void each_slot(const struct counters *c, const struct slot *s, counters_attr_fn fn,
		      void *ctx)
{
	size_t nr = (size_t)s->nr_tasks * c->env.nr_cpus, nr_ids = 0;
	uint64_t *ids = xcalloc(MAX(2 * nr, 1u), sizeof(*ids));

	for (size_t i = 0; i < nr; i++) {
		if (s->fds[i].fd >= 0)
			ids[nr_ids++] = s->fds[i].id;
		if (s->fds[i].wake_fd >= 0)
			ids[nr_ids++] = s->fds[i].wake_id;
	}
	fn(ctx, s->event.name, &s->attr, ids, nr_ids);
	free(ids);
}

/* For the whole system the owners of the side-band rings are the side-band events; read their ids.
 */
static void side_leaders(const struct counters *c, counters_attr_fn fn, void *ctx)
{
	const struct counters_sys *sys = &c->env.sys;
	uint64_t *ids = xcalloc(c->env.nr_cpus, sizeof(*ids)), id;
	struct perf_event_attr attr;
	size_t nr = 0;

	for (uint32_t i = 0; i < c->env.nr_cpus; i++)
		if (!sys->ioctl(sys->ctx, c->cpus[i].side_fd, PERF_EVENT_IOC_ID,
				(uint64_t)(uintptr_t)&id))
			ids[nr++] = id;
	attr_side(&attr, false, c->side_size);
	attr.mmap_data = c->env.attr.data_maps;
	fn(ctx, "dummy:u", &attr, ids, nr);
	free(ids);
}

void counters_each_attr(const struct counters *c, counters_attr_fn fn, void *ctx)
{
	for (uint32_t i = 0; i < c->nr_slots; i++)
		each_slot(c, &c->slots[i], fn, ctx);
	if (c->waking.nr_tasks)
		each_slot(c, &c->waking, fn, ctx);
	if (c->switches.nr_tasks)
		each_slot(c, &c->switches, fn, ctx);
	if (c->env.attr.tasks)
		each_slot(c, &c->side, fn, ctx);
	else
		side_leaders(c, fn, ctx);
}
