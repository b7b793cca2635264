// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The last count of each event, by its id: open addressing, never removed from.
 *
 * Runs on: one sampler thread, or the replay. Invariant: at most three
 * quarters are used, so a search ends.
 */
#include "sampler/pipeline/deltas.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/keyhash.h"

struct last {
	uint64_t id, value; /* id 0: empty; the kernel's begin with 1 */
};

struct deltas {
	uint32_t mask, used;
	struct last last[];
};

struct deltas *deltas_new(uint32_t nr)
{
	uint32_t size = 16;
	struct deltas *d;

	while (size / 4 * 3 < nr && size < 1u << 24)
		size *= 2;
	d = calloc(1, sizeof(*d) + size * sizeof(d->last[0]));
	assert(!(size & (size - 1)));
	if (d)
		d->mask = size - 1;
	return d;
}

void deltas_free(struct deltas *d)
{
	free(d);
}

uint64_t deltas_take(struct deltas *d, uint64_t id, uint64_t value)
{
	/* The author of a recording chooses the ids. */
	uint32_t at = (uint32_t)keyhash_number(id);
	struct last *last;
	uint64_t was;

	while (d->last[at & d->mask].id && d->last[at & d->mask].id != id)
		at++;
	last = &d->last[at & d->mask];
	if (!id || (!last->id && d->used >= d->mask / 4 * 3))
		return 0;
	d->used += !last->id;
	assert(d->used <= d->mask / 4 * 3);
	last->id = id;
	was = last->value;
	last->value = value;
	/* A hostile file may have a smaller value. */
	return value > was ? value - was : 0;
}

uint32_t deltas_of_sample(struct deltas *d, const struct record_sample *s, deltas_slot_fn slot,
			  void *ctx, struct pipeline_member out[static EVENTS_MAX])
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < s->nr_reads && nr < EVENTS_MAX; i++) {
		uint64_t value[2];

		memcpy(value, s->reads + (size_t)i * s->read_size, sizeof(value));
		out[nr].event = slot(ctx, value[1]);
		out[nr].count = deltas_take(d, value[1], value[0]);
		nr += out[nr].event >= 0 && out[nr].count;
	}
	return nr;
}
