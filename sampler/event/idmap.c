// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Event ids -> slots: an open-addressing table that readers never wait for.
 *
 * Threads: see idmap.h. Invariant: an entry's slot is written before its id
 * is, and never more than half of a table is used, so a search ends.
 */
#include "sampler/event/idmap.h"

#include <assert.h>
#include <stdlib.h>

struct entry {
	_Atomic uint64_t id; /* 0: empty; release publishes the slot, pairs with find */
	atomic_int slot;
};

struct idmap_table {
	struct idmap_table *older;
	size_t mask, used; /* used: writer only */
	struct entry entries[];
};

static struct idmap_table *table_new(size_t nr, struct idmap_table *older)
{
	size_t size = 16;
	struct idmap_table *t;

	while (size < 2 * nr)
		size *= 2;
	t = xcalloc(1, sizeof(*t) + size * sizeof(t->entries[0]));
	t->mask = size - 1;
	t->older = older;
	return t;
}

/* Return the entry of @id, or the empty one for it. */
static struct entry *table_at(struct idmap_table *t, uint64_t id)
{
	for (size_t i = hash_u64(id) & t->mask;; i = (i + 1) & t->mask) {
		uint64_t seen = atomic_load_explicit(&t->entries[i].id, memory_order_acquire);

		if (seen == id || !seen)
			return &t->entries[i];
	}
}

static void table_put(struct idmap_table *t, uint64_t id, int slot)
{
	struct entry *entry = table_at(t, id);

	assert(id && t->used <= t->mask);
	t->used += !atomic_load_explicit(&entry->id, memory_order_relaxed);
	atomic_store_explicit(&entry->slot, slot, memory_order_relaxed);
	atomic_store_explicit(&entry->id, id, memory_order_release);
}

static struct idmap_table *current(const struct idmap *m)
{
	return atomic_load_explicit(&m->table, memory_order_acquire);
}

void idmap_init(struct idmap *m)
{
	atomic_init(&m->table, table_new(0, NULL));
}

void idmap_fini(struct idmap *m)
{
	struct idmap_table *t = current(m), *older;

	for (; t; t = older) {
		older = t->older;
		free(t);
	}
	atomic_store_explicit(&m->table, NULL, memory_order_relaxed);
}

/* In place while at most half is used; else into a table of twice the size. */
void idmap_add(struct idmap *m, uint64_t id, int slot)
{
	struct idmap_table *t = current(m), *larger;

	assert(!(t->mask & (t->mask + 1)));
	if (!id)
		return;
	if (2 * (t->used + 1) > t->mask + 1) {
		larger = table_new(t->mask + 1, t);
		for (size_t i = 0; i <= t->mask; i++) {
			uint64_t old =
				atomic_load_explicit(&t->entries[i].id, memory_order_relaxed);

			if (old)
				table_put(larger, old,
					  atomic_load_explicit(&t->entries[i].slot,
							       memory_order_relaxed));
		}
		table_put(larger, id, slot);
		atomic_store_explicit(&m->table, larger, memory_order_release);
		return;
	}
	table_put(t, id, slot);
}

void idmap_replace(struct idmap *m, const uint64_t *ids, const int *slots, size_t nr)
{
	struct idmap_table *t = table_new(nr + nr / 2, current(m));

	for (size_t i = 0; i < nr; i++)
		if (ids[i])
			table_put(t, ids[i], slots[i]);
	atomic_store_explicit(&m->table, t, memory_order_release);
}

int idmap_find(const struct idmap *m, uint64_t id)
{
	struct entry *entry;

	if (!id)
		return IDMAP_UNKNOWN;
	entry = table_at(current(m), id);
	if (atomic_load_explicit(&entry->id, memory_order_acquire) != id)
		return IDMAP_UNKNOWN;
	return atomic_load_explicit(&entry->slot, memory_order_relaxed);
}
