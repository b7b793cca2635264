/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hash table of dense ids: the caller keeps the entries, and compares keys.
 *
 *	uint32_t at = 0, id;
 *
 *	while ((id = hashset_next(&s, hash, &at)) != HASHSET_NONE)
 *		if (entry[id] is the key)
 *			return id;
 *
 * Open addressing, at most half full, so look-ups are O(1) as long as hashes
 * differ: a key that has many entries under one hash makes them linear. All
 * zero is an empty set.
 *
 * Threads: one owner; there is no locking. For lock-free inserts see intern.h.
 */
#ifndef SYMBOLS_BASE_HASHSET_H
#define SYMBOLS_BASE_HASHSET_H

#include <stddef.h>
#include <stdint.h>

#define HASHSET_NONE UINT32_MAX

struct hashset_slot {
	uint32_t hash;
	uint32_t id; /* + 1; 0: empty */
};

struct hashset {
	struct hashset_slot *slots;
	uint32_t nr_slots; /* 0 or a power of two */
	uint32_t nr;
};

void hashset_fini(struct hashset *s);
/* Reserve @nr more ids. 0 or -ENOMEM: as before. */
int hashset_reserve(struct hashset *s, uint32_t nr);
/* Add @id, for which there is room; the same hash may have several ids. */
void hashset_add(struct hashset *s, uint64_t hash, uint32_t id);
/* Put @id in the place of @old, which is in the set under @hash. */
void hashset_replace(struct hashset *s, uint64_t hash, uint32_t old, uint32_t id);
/* Remove @id, if it is in the set under @hash. */
void hashset_remove(struct hashset *s, uint64_t hash, uint32_t id);
/* Remove all ids and keep the memory. */
void hashset_clear(struct hashset *s);
size_t hashset_memory(const struct hashset *s);

/*
 * Return the next id under the lower 32 bits of @hash, HASHSET_NONE at the end.
 * @at is the position of the search, 0 at its begin; no id is added during a search.
 */
static inline uint32_t hashset_next(const struct hashset *s, uint64_t hash, uint32_t *at)
{
	for (; *at < s->nr_slots; (*at)++) {
		const struct hashset_slot *slot =
			&s->slots[((uint32_t)hash + *at) & (s->nr_slots - 1)];

		if (!slot->id)
			break;
		if (slot->hash == (uint32_t)hash) {
			(*at)++;
			return slot->id - 1;
		}
	}
	return HASHSET_NONE;
}

#endif
