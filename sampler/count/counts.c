// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Counts by (stack, task, event, slice): open addressing, relaxed adds, swapped each tick.
 *
 * Runs on: counts_add() on sampler threads, the rest on the builder. Invariant:
 * a slot's key goes from 0 to its value once while the table is in place; the
 * table that is out of place is empty (all zeroes) and seen by the builder
 * alone, because a grace period has passed since it was taken out.
 */
#include "sampler/count/count.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <urcu/urcu-qsbr.h>

#include "symbols/base/base.h"
#include "symbols/base/intern.h"

#define PROBES_MAX 128u
#define SLOTS_MIN  8u
#define SLOTS_MAX  (1u << 28)

/* Bits of a key. */
#define TASK_AT	 22
#define EVENT_AT (TASK_AT + 20)
#define SLICE_AT (EVENT_AT + 4)

_Static_assert(1u << TASK_AT == COUNTS_TABLE_STACKS, "bits of a key");
_Static_assert(1u << (EVENT_AT - TASK_AT) == COUNTS_TABLE_TASKS, "bits of a key");
_Static_assert(1u << (SLICE_AT - EVENT_AT) == COUNTS_TABLE_EVENTS, "bits of a key");
_Static_assert(1u << (64 - SLICE_AT) == COUNTS_SLICES, "bits of a key");

struct slot {
	_Atomic uint64_t key, count, weight;
};

struct cell_table {
	uint32_t mask; /* number of slots - 1 */
	char apart_from_mask[CACHELINE];
	atomic_uint used; /* slots used: exact without writers */
	char apart_from_used[CACHELINE];
	struct slot slot[];
};

struct counts {
	_Atomic(struct cell_table *) table;
	struct cell_table *spare; /* empty; may be NULL */
	struct count *aside;	  /* of this tick, from tables that were too small */
	uint32_t nr_aside;
	uint32_t min_slots, max_slots;
	atomic_uint crowded_at; /* used slots at which to wake the builder; relaxed */
};

static uint32_t slots_round(uint32_t nr)
{
	uint32_t size = SLOTS_MIN;

	while (size < nr && size < SLOTS_MAX)
		size *= 2;
	return size;
}

/* Set the limit to half full, early enough for a larger table; UINT32_MAX: no larger one. */
static void set_crowded(struct counts *c, const struct cell_table *t)
{
	uint32_t size = t->mask + 1;

	atomic_store_explicit(&c->crowded_at,
			      c->nr_aside + size < c->max_slots ? size / 2 : UINT32_MAX,
			      memory_order_relaxed);
}

static size_t table_size(uint32_t nr_slots)
{
	return sizeof(struct cell_table) + nr_slots * sizeof(((struct cell_table *)0)->slot[0]);
}

static struct cell_table *table_new(uint32_t nr_slots)
{
	struct cell_table *t = alloc_sparse(table_size(nr_slots));

	assert(nr_slots && !(nr_slots & (nr_slots - 1)));
	if (t)
		t->mask = nr_slots - 1;
	return t;
}

static void table_free(struct cell_table *t)
{
	if (t)
		free_sparse(t, table_size(t->mask + 1));
}

int counts_new(struct counts **out, uint32_t nr_slots, uint32_t max_slots)
{
	struct counts *c = calloc(1, sizeof(*c));
	struct cell_table *t;

	if (!c)
		return -ENOMEM;
	c->min_slots = slots_round(nr_slots);
	c->max_slots = MAX(slots_round(max_slots), c->min_slots);
	t = table_new(c->min_slots);
	if (!t) {
		free(c);
		return -ENOMEM;
	}
	atomic_init(&c->table, t);
	set_crowded(c, t);
	*out = c;
	return 0;
}

void counts_free(struct counts *c)
{
	if (!c)
		return;
	table_free(atomic_load_explicit(&c->table, memory_order_relaxed));
	table_free(c->spare);
	free(c->aside);
	free(c);
}

/* Find or claim the slot of @key, NULL when its neighbourhood is full. */
static struct slot *slot_get(struct cell_table *t, uint64_t key)
{
	uint32_t at = (uint32_t)hash_u64(key);

	for (uint32_t i = 0; i < PROBES_MAX && i <= t->mask; i++, at++) {
		struct slot *slot = &t->slot[at & t->mask];
		/* All relaxed: only the key is published, counts start from zero. */
		uint64_t found = atomic_load_explicit(&slot->key, memory_order_relaxed);

		if (!found && atomic_compare_exchange_strong_explicit(&slot->key, &found, key,
								      memory_order_relaxed,
								      memory_order_relaxed)) {
			atomic_fetch_add_explicit(&t->used, 1, memory_order_relaxed);
			return slot;
		}
		if (found == key)
			return slot;
	}
	return NULL;
}

/* Never 0, which is an empty slot: the last stack is not counted. */
static uint64_t key_of(uint32_t stack, uint32_t task, uint32_t event, uint32_t slice)
{
	return ((uint64_t)stack | (uint64_t)task << TASK_AT | (uint64_t)event << EVENT_AT |
		(uint64_t)slice << SLICE_AT) +
	       1;
}

bool counts_add(struct counts *c, uint32_t stack, uint32_t task, uint32_t event, uint64_t weight,
		uint32_t slice)
{
	struct slot *slot;

	if (stack >= COUNTS_TABLE_STACKS - 1 || task >= COUNTS_TABLE_TASKS ||
	    event >= COUNTS_TABLE_EVENTS)
		return false;
	/* Acquire: the zeroed table; pairs with the release in counts_swap(). */
	slot = slot_get(atomic_load_explicit(&c->table, memory_order_acquire),
			key_of(stack, task, event, slice & (COUNTS_SLICES - 1)));
	if (slot) {
		/* Relaxed: read after a grace period only. */
		atomic_fetch_add_explicit(&slot->count, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&slot->weight, weight, memory_order_relaxed);
	}
	grace_reader_done(c);
	return slot != NULL;
}

bool counts_crowded(const struct counts *c)
{
	/* Acquire: as in counts_add(). */
	const struct cell_table *t = atomic_load_explicit(&c->table, memory_order_acquire);

	return atomic_load_explicit(&t->used, memory_order_relaxed) >=
	       atomic_load_explicit(&c->crowded_at, memory_order_relaxed);
}

/*
 * Return the size of the next table: four times the counts of this tick; it shrinks step by step.
 */
static uint32_t next_size(const struct counts *c, const struct cell_table *t)
{
	uint32_t used = c->nr_aside + atomic_load_explicit(&t->used, memory_order_relaxed);
	uint32_t size = t->mask + 1;

	if (used > size / 4)
		return MIN(slots_round(MIN(used, SLOTS_MAX / 4) * 4), c->max_slots);
	if (used < size / 32)
		return MAX(size / 2, c->min_slots);
	return size;
}

/* Get an empty table of @size slots, or of another size without memory for that. */
static struct cell_table *table_take(struct counts *c, uint32_t size)
{
	struct cell_table *t = c->spare;

	if (!t || t->mask + 1 != size)
		t = table_new(size);
	if (t && t != c->spare)
		table_free(c->spare);
	if (!t)
		t = c->spare;
	c->spare = NULL;
	return t;
}

/* Copy the counts and clear the table, which no other thread sees. */
static uint32_t table_drain(struct cell_table *t, struct count *out)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i <= t->mask; i++) {
		struct slot *slot = &t->slot[i];
		uint64_t key = atomic_load_explicit(&slot->key, memory_order_relaxed);

		if (!key)
			continue;
		key--;
		out[nr].stack = (uint32_t)key & (COUNTS_TABLE_STACKS - 1);
		out[nr].task = (uint32_t)(key >> TASK_AT) & (COUNTS_TABLE_TASKS - 1);
		out[nr].event = (uint32_t)(key >> EVENT_AT) & (COUNTS_TABLE_EVENTS - 1);
		out[nr].slice = (uint32_t)(key >> SLICE_AT);
		out[nr].count = atomic_exchange_explicit(&slot->count, 0, memory_order_relaxed);
		out[nr].weight = atomic_exchange_explicit(&slot->weight, 0, memory_order_relaxed);
		atomic_store_explicit(&slot->key, 0, memory_order_relaxed);
		nr++;
	}
	atomic_store_explicit(&t->used, 0, memory_order_relaxed);
	return nr;
}

/* Get the list of counts set aside, with space for @more. NULL: out of memory, nothing changed. */
static struct count *aside_reserve(struct counts *c, uint32_t more)
{
	struct count *list = realloc(c->aside, ((size_t)c->nr_aside + more) * sizeof(*list));

	if (list)
		c->aside = list;
	return list;
}

/* Swap in an empty table of @size; set aside the counts of the old one. 0 or -ENOMEM. */
static int replace(struct counts *c, uint32_t size)
{
	/* Relaxed: only this thread writes it. */
	struct cell_table *old = atomic_load_explicit(&c->table, memory_order_relaxed);
	/* For a full table: it may still fill up. The caller returns unused memory. */
	struct count *list = aside_reserve(c, old->mask + 1);
	struct cell_table *new = list ? table_take(c, size) : NULL;

	if (!new)
		return -ENOMEM;
	/* Release: the zeroed table; pairs with the acquire in counts_add(). */
	atomic_store_explicit(&c->table, new, memory_order_release);
	urcu_qsbr_synchronize_rcu();
	grace_waited(c);
	c->nr_aside += table_drain(old, list + c->nr_aside);
	c->spare = old;
	return 0;
}

static struct cell_table *table_of(const struct counts *c)
{
	/* Relaxed: only the builder writes it. */
	return atomic_load_explicit(&c->table, memory_order_relaxed);
}

bool counts_grow(struct counts *c)
{
	struct cell_table *t = table_of(c);
	bool more = c->nr_aside + t->mask + 1 < c->max_slots && !replace(c, next_size(c, t));

	/* Without memory another try before the next tick is useless. */
	if (more)
		set_crowded(c, table_of(c));
	else
		atomic_store_explicit(&c->crowded_at, UINT32_MAX, memory_order_relaxed);
	return more;
}

int counts_swap(struct counts *c, struct count **out, uint32_t *nr)
{
	int code = replace(c, next_size(c, table_of(c)));
	struct count *shrunk;

	if (code)
		return code;
	*nr = c->nr_aside;
	shrunk = realloc(c->aside, MAX(*nr, 1u) * sizeof(*shrunk));
	*out = shrunk ? shrunk : c->aside;
	c->aside = NULL;
	c->nr_aside = 0;
	set_crowded(c, table_of(c));
	return 0;
}
