// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A hash table with linear probing, at most half full. The author of a recording chooses the keys.
 */
#include "ui/export/dense.h"

#include <stdlib.h>

#include "symbols/base/keyhash.h"

#define SLOTS_MIN 256u

void dense_fini(struct dense *d)
{
	free(d->keys);
	free(d->slots);
	*d = (struct dense){ 0 };
}

/* Return the slot of @key, or the empty one for it. */
static uint32_t *slot_of(const struct dense *d, uint64_t key)
{
	uint32_t mask = d->nr_slots - 1, at = (uint32_t)keyhash_number(key) & mask;

	while (d->slots[at] && d->keys[d->slots[at] - 1] != key)
		at = (at + 1) & mask;
	return &d->slots[at];
}

static bool grow(struct dense *d)
{
	uint32_t nr_slots = d->nr_slots ? d->nr_slots * 2 : SLOTS_MIN;
	uint32_t *slots = nr_slots ? calloc(nr_slots, sizeof(*slots)) : NULL;
	uint64_t *keys = slots ? reallocarray(d->keys, nr_slots / 2, sizeof(*keys)) : NULL;

	if (!keys) {
		free(slots);
		return false;
	}
	free(d->slots);
	d->keys = keys;
	d->slots = slots;
	d->nr_slots = nr_slots;
	for (uint32_t i = 0; i < d->nr; i++)
		*slot_of(d, keys[i]) = i + 1;
	return true;
}

uint32_t dense_add(struct dense *d, uint64_t key, bool *is_new)
{
	uint32_t *slot;

	*is_new = false;
	if (d->nr >= d->nr_slots / 2 && !grow(d))
		return DENSE_NONE;
	slot = slot_of(d, key);
	if (!*slot) {
		d->keys[d->nr] = key;
		*slot = ++d->nr;
		*is_new = true;
	}
	return *slot - 1;
}
