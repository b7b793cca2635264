// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The last count of each event, by its id and its task: open addressing, never removed from.
 *
 * Runs on: one sampler thread, or the replay. Invariant: at most three
 * quarters are used, so a search ends.
 */
#include "sampler/pipeline/deltas.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/keyhash.h"

/* Slots of the largest table. */
#define DELTAS_MAX (1U << 22)

struct last {
	uint64_t id, value; /* id 0: empty; the kernel's begin with 1 */
	uint32_t tid;	    /* 0: of all tasks of the event */
};

struct deltas {
	uint32_t mask, used;
	struct last last[];
};

/* Return how many of @size slots may be used. */
static uint32_t limit_of(uint32_t size)
{
	return size / 4 * 3;
}

struct deltas *deltas_new(uint32_t nr)
{
	uint32_t size = 16;
	struct deltas *d;

	while (limit_of(size) < nr && size < DELTAS_MAX)
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

/* Find the slot of a count; an empty one: it is new. */
static struct last *find(struct deltas *d, uint64_t id, uint32_t tid)
{
	/* The author of a recording chooses the ids. */
	uint64_t at = keyhash_number(id);

	if (tid)
		at = keyhash_number(at + tid);
	for (;; at++) {
		struct last *last = &d->last[at & d->mask];

		if (!last->id || (last->id == id && last->tid == tid))
			return last;
	}
}

struct deltas *deltas_reserve(struct deltas *d, uint32_t nr)
{
	uint32_t size = d->mask + 1;
	struct deltas *larger;

	if (nr <= limit_of(size) - d->used || size >= DELTAS_MAX)
		return d;
	larger = deltas_new(MAX(2 * limit_of(size), d->used + nr));
	if (!larger)
		return d;
	for (const struct last *last = d->last; last < d->last + size; last++)
		if (last->id)
			*find(larger, last->id, last->tid) = *last;
	larger->used = d->used;
	free(d);
	return larger;
}

uint64_t deltas_take(struct deltas *d, uint64_t id, uint32_t tid, uint64_t value)
{
	struct last *last = find(d, id, tid);
	uint32_t limit = limit_of(d->mask + 1);
	uint64_t was;

	if (!id || (!last->id && d->used >= limit))
		return 0;
	d->used += !last->id;
	assert(d->used <= limit);
	last->id = id;
	last->tid = tid;
	was = last->value;
	last->value = value;
	/* A hostile file may have a smaller value. */
	return value > was ? value - was : 0;
}

uint32_t deltas_of_sample(struct deltas *d, const struct record_sample *s, uint32_t tid,
			  deltas_slot_fn slot, void *ctx,
			  struct pipeline_member out[static EVENTS_MAX])
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < s->nr_reads && nr < EVENTS_MAX; i++) {
		uint64_t value[2];

		memcpy(value, s->reads + (size_t)i * s->read_size, sizeof(value));
		out[nr].event = slot(ctx, value[1]);
		out[nr].count = deltas_take(d, value[1], tid, value[0]);
		nr += out[nr].event >= 0 && out[nr].count;
	}
	return nr;
}
