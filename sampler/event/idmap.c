// SPDX-License-Identifier: GPL-2.0-or-later
/* The event of an id: a table that readers search without a lock. */
#include "sampler/event/internal.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "symbols/base/base.h"
#include "symbols/base/thread.h"

/*
 * Event ids -> slots: an open-addressing table that readers never wait for.
 *
 * Threads: see internal.h. Invariant: an entry's slot is written before its id
 * is, and never more than half of a table is used, so a search ends.
 */

struct entry {
	_Atomic uint64_t id; /* 0: empty; release publishes the slot, pairs with find */
	atomic_int slot;
	uint32_t closed_s; /* writer only: when its event was closed; 0: it is open */
};

struct idmap_table {
	struct reclaim reclaim;
	size_t mask, used; /* used: writer only */
	struct entry entries[];
};

static struct idmap_table *table_new(size_t nr)
{
	size_t size = 16;
	struct idmap_table *t;

	while (size < 2 * nr)
		size *= 2;
	t = xcalloc(1, sizeof(*t) + size * sizeof(t->entries[0]));
	t->mask = size - 1;
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

static void table_put(struct idmap_table *t, uint64_t id, int slot, uint32_t closed_s)
{
	struct entry *entry = table_at(t, id);

	assert(id && t->used <= t->mask);
	t->used += !atomic_load_explicit(&entry->id, memory_order_relaxed);
	entry->closed_s = closed_s;
	atomic_store_explicit(&entry->slot, slot, memory_order_relaxed);
	atomic_store_explicit(&entry->id, id, memory_order_release);
}

static struct idmap_table *current(const struct idmap *m)
{
	return atomic_load_explicit(&m->table, memory_order_acquire);
}

static void free_table(struct reclaim *r)
{
	reclaim_grace_over();
	free((char *)r - offsetof(struct idmap_table, reclaim));
}

/* Replace the table; readers may still be in the old one. */
static void publish(struct idmap *m, struct idmap_table *t)
{
	struct idmap_table *old = current(m);

	atomic_store_explicit(&m->table, t, memory_order_release);
	reclaim_later(&old->reclaim, free_table);
}

void idmap_init(struct idmap *m)
{
	atomic_init(&m->table, table_new(0));
	m->closed_s = 0;
}

void idmap_fini(struct idmap *m)
{
	free(current(m));
	atomic_store_explicit(&m->table, NULL, memory_order_relaxed);
}

/* Return the id of @entry; 0: it is empty, or closed for so long that it is forgotten. */
static uint64_t kept_id(const struct idmap *m, const struct entry *entry)
{
	uint64_t id = atomic_load_explicit(&entry->id, memory_order_relaxed);

	return entry->closed_s && m->closed_s - entry->closed_s > IDMAP_KEPT_S ? 0 : id;
}

/* Copy the ids that are kept to a table with a quarter used at most. */
static void renew(struct idmap *m)
{
	const struct idmap_table *t = current(m);
	struct idmap_table *fresh;
	size_t nr = 0;

	for (size_t i = 0; i <= t->mask; i++)
		nr += kept_id(m, &t->entries[i]) != 0;
	fresh = table_new(2 * nr);
	for (size_t i = 0; i <= t->mask; i++)
		if (kept_id(m, &t->entries[i]))
			table_put(fresh, kept_id(m, &t->entries[i]),
				  atomic_load_explicit(&t->entries[i].slot, memory_order_relaxed),
				  t->entries[i].closed_s);
	publish(m, fresh);
}

/* In place while at most half is used. */
void idmap_add(struct idmap *m, uint64_t id, int slot)
{
	const struct idmap_table *t = current(m);

	assert(!(t->mask & (t->mask + 1)));
	if (!id)
		return;
	if (2 * (t->used + 1) > t->mask + 1)
		renew(m);
	table_put(current(m), id, slot, 0);
}

void idmap_close(struct idmap *m, uint64_t id, uint64_t now_ns)
{
	struct entry *entry = id ? table_at(current(m), id) : NULL;

	if (!entry || atomic_load_explicit(&entry->id, memory_order_relaxed) != id)
		return;
	m->closed_s = MAX(m->closed_s, (uint32_t)(now_ns / 1000000000) + 1);
	entry->closed_s = m->closed_s;
}

void idmap_replace(struct idmap *m, const uint64_t *ids, const int *slots, size_t nr)
{
	struct idmap_table *t = table_new(nr + nr / 2);

	assert(nr == 0 || (ids && slots));
	for (size_t i = 0; i < nr; i++)
		if (ids[i])
			table_put(t, ids[i], slots[i], 0);
	publish(m, t);
}

int idmap_find(const struct idmap *m, uint64_t id)
{
	struct entry *entry;
	int slot = IDMAP_UNKNOWN;

	if (!id)
		return IDMAP_UNKNOWN;
	entry = table_at(current(m), id);
	if (atomic_load_explicit(&entry->id, memory_order_acquire) == id)
		slot = atomic_load_explicit(&entry->slot, memory_order_relaxed);
	reclaim_reader_done();
	return slot;
}
