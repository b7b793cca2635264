// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Hash table of dense ids: open addressing with linear probing.
 *
 * Invariant: at least half of the slots are empty, so every search ends.
 */
#include "symbols/base/hashset.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"

#define SLOTS_MIN 64u
#define SLOTS_MAX (1u << 31)

void hashset_fini(struct hashset *s)
{
	free_sparse(s->slots, s->nr_slots * sizeof(*s->slots));
	memset(s, 0, sizeof(*s));
}

static void put(struct hashset *s, struct hashset_slot slot)
{
	uint32_t i = slot.hash & (s->nr_slots - 1);

	while (s->slots[i].id)
		i = (i + 1) & (s->nr_slots - 1);
	s->slots[i] = slot;
}

int hashset_reserve(struct hashset *s, uint32_t nr)
{
	struct hashset larger = { .nr_slots = SLOTS_MIN, .nr = s->nr };
	uint64_t wanted = 2 * ((uint64_t)s->nr + nr);

	if (wanted <= s->nr_slots)
		return 0;
	while (larger.nr_slots < wanted && larger.nr_slots < SLOTS_MAX)
		larger.nr_slots *= 2;
	if (larger.nr_slots < wanted)
		return -ENOMEM;
	larger.slots = alloc_sparse(larger.nr_slots * sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->nr_slots; i++)
		if (s->slots[i].id)
			put(&larger, s->slots[i]);
	free_sparse(s->slots, s->nr_slots * sizeof(*s->slots));
	*s = larger;
	return 0;
}

void hashset_add(struct hashset *s, uint64_t hash, uint32_t id)
{
	assert(id != HASHSET_NONE && 2 * (uint64_t)(s->nr + 1) <= s->nr_slots);
	put(s, (struct hashset_slot){ .hash = (uint32_t)hash, .id = id + 1 });
	s->nr++;
}

void hashset_replace(struct hashset *s, uint64_t hash, uint32_t old, uint32_t id)
{
	uint32_t i = (uint32_t)hash & (s->nr_slots - 1);

	while (s->slots[i].id != old + 1 || s->slots[i].hash != (uint32_t)hash) {
		assert(s->slots[i].id);
		i = (i + 1) & (s->nr_slots - 1);
	}
	s->slots[i].id = id + 1;
}

/* Move the ids that a search would no longer find behind the empty slot @hole. */
static void close_gap(struct hashset *s, uint32_t hole)
{
	const uint32_t mask = s->nr_slots - 1;

	for (uint32_t i = (hole + 1) & mask; s->slots[i].id; i = (i + 1) & mask) {
		/* Its search begins after the hole, and does not pass it. */
		if (((i - s->slots[i].hash) & mask) < ((i - hole) & mask))
			continue;
		s->slots[hole] = s->slots[i];
		s->slots[i].id = 0;
		hole = i;
	}
}

void hashset_remove(struct hashset *s, uint64_t hash, uint32_t id)
{
	const uint32_t mask = s->nr_slots - 1;

	if (!s->nr_slots)
		return;
	for (uint32_t i = (uint32_t)hash & mask; s->slots[i].id; i = (i + 1) & mask) {
		if (s->slots[i].id != id + 1 || s->slots[i].hash != (uint32_t)hash)
			continue;
		s->slots[i].id = 0;
		s->nr--;
		close_gap(s, i);
		return;
	}
}

void hashset_clear(struct hashset *s)
{
	if (s->slots)
		memset(s->slots, 0, s->nr_slots * sizeof(*s->slots));
	s->nr = 0;
}

size_t hashset_memory(const struct hashset *s)
{
	return s->nr_slots * sizeof(*s->slots);
}
