// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Slots of an insert-only lock-free table: hash -> dense id.
 *
 * Runs on: any thread; intern_grow() on the builder. Invariants: a slot goes
 * from 0 to its value once and never changes, so a probe may stop at the first
 * empty slot; an id in a slot names an entry that is complete.
 *
 * Growing: the builder links the larger array to the old one, then copies the
 * full slots and closes the empty ones. A key in the old array is before the
 * first closed slot of its probe; a probe that meets a closed slot continues in
 * the larger array. So a key has one id, however long copying takes.
 */
#include "symbols/base/intern.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <urcu/urcu-qsbr.h>

#include "symbols/base/base.h"

/* Longest probe: far beyond any run of a half full table, and a bound for the hot path. */
#define PROBES_MAX 256u
#define SLOTS_MIN  8u
#define SLOTS_MAX  (1u << 31)

/*
 * A slot that must be empty: continue in the larger array. Not an id: the low half of one is never
 * 0.
 */
#define CLOSED (1ULL << 32)
/* Result: not in this array, which takes no more keys. */
#define MOVED (INTERN_FULL - 1)

struct intern_slots {
	uint32_t mask;			       /* number of slots - 1 */
	_Atomic(struct intern_slots *) larger; /* set when growing begins */
	_Atomic uint64_t slot[];	       /* tag << 32 | id + 1 */
};

static size_t slots_size(uint64_t nr)
{
	return sizeof(struct intern_slots) + nr * sizeof(((struct intern_slots *)0)->slot[0]);
}

static struct intern_slots *slots_new(uint64_t nr)
{
	struct intern_slots *s = alloc_sparse(slots_size(nr));

	if (s)
		s->mask = (uint32_t)(nr - 1);
	return s;
}

static uint64_t slots_nr(const struct intern_slots *s)
{
	return (uint64_t)s->mask + 1;
}

static void slots_free(struct intern_slots *s)
{
	if (s)
		free_sparse(s, slots_size(slots_nr(s)));
}

static uint64_t slots_round(uint64_t nr)
{
	uint64_t size = SLOTS_MIN;

	while (size < nr && size < SLOTS_MAX)
		size *= 2;
	return size;
}

static uint64_t slot_value(uint64_t hash, uint32_t id)
{
	return (hash & 0xffffffff00000000ULL) | (id + 1);
}

static bool slot_has_tag(uint64_t slot, uint64_t hash)
{
	return slot >> 32 == hash >> 32;
}

/* Return the first slot to probe, for a hash or for the slot value of a key. */
static uint32_t home(uint64_t hash)
{
	return (uint32_t)(hash >> 32);
}

static uint32_t slot_id(uint64_t slot)
{
	return (uint32_t)slot - 1;
}

int intern_init(struct intern *t, uint32_t nr_slots, uint32_t max_ids)
{
	struct intern_slots *s = slots_new(slots_round(nr_slots));

	if (!s)
		return -ENOMEM;
	t->secret = keyhash_new_key();
	t->secret.k1 |= 1;
	atomic_init(&t->slots, s);
	atomic_init(&t->next, 0);
	t->max_ids = MIN(max_ids, MOVED - 1);
	return 0;
}

void intern_fini(struct intern *t)
{
	slots_free(atomic_load_explicit(&t->slots, memory_order_relaxed));
	atomic_store_explicit(&t->slots, NULL, memory_order_relaxed);
}

/* The state of one look-up. */
struct probe {
	struct intern *t;
	const struct intern_ops *ops;
	void *store;
	const void *key;
	uint64_t hash;
	uint32_t new_id; /* our complete entry; INTERN_FULL: none */
};

/* Take the next id, never beyond max_ids: a counter that went on would wrap. */
static uint32_t id_take(struct probe *p)
{
	struct intern *t = p->t;
	unsigned int id = atomic_load_explicit(&t->next, memory_order_relaxed);

	do {
		if (id >= t->max_ids || !p->ops->room(p->store, id, p->key))
			return INTERN_FULL;
		/* Relaxed: an id publishes nothing, the slot does. */
	} while (!atomic_compare_exchange_weak_explicit(&t->next, &id, id + 1, memory_order_relaxed,
							memory_order_relaxed));
	return id;
}

/*
 * Return an id with an unwritten entry, unless a later one is taken (then it is wasted).
 */
static void id_put_back(struct intern *t, uint32_t id)
{
	unsigned int next = id + 1;

	atomic_compare_exchange_strong_explicit(&t->next, &next, id, memory_order_relaxed,
						memory_order_relaxed);
}

/* Make an entry for the key, once per look-up. */
static bool make_entry(struct probe *p)
{
	if (p->new_id != INTERN_FULL)
		return true;
	p->new_id = id_take(p);
	if (p->new_id != INTERN_FULL && !p->ops->write(p->store, p->new_id, p->key)) {
		id_put_back(p->t, p->new_id);
		p->new_id = INTERN_FULL;
	}
	return p->new_id != INTERN_FULL;
}

/* Find the key from its home slot on, or claim the first empty slot for a new entry. */
static uint32_t slots_get(struct intern_slots *s, struct probe *p)
{
	for (uint32_t i = 0, at = home(p->hash); i < PROBES_MAX && i <= s->mask; i++, at++) {
		_Atomic uint64_t *slot = &s->slot[at & s->mask];
		/* Acquire: the entry of the id; pairs with the release below. */
		uint64_t v = atomic_load_explicit(slot, memory_order_acquire);

		if (!v) {
			if (!make_entry(p))
				return INTERN_FULL;
			/*
			 * Release: publishes the entry; a loser acquires the entry
			 * of the winner.
			 */
			if (atomic_compare_exchange_strong_explicit(slot, &v,
								    slot_value(p->hash, p->new_id),
								    memory_order_release,
								    memory_order_acquire))
				return p->new_id;
		}
		if (v == CLOSED)
			return MOVED;
		if (slot_has_tag(v, p->hash) && p->ops->same(p->store, slot_id(v), p->key))
			return slot_id(v);
	}
	/* Relaxed: acquired in intern_get(). */
	return atomic_load_explicit(&s->larger, memory_order_relaxed) ? MOVED : INTERN_FULL;
}

uint32_t intern_get(struct intern *t, const struct intern_ops *ops, void *store, uint64_t hash,
		    const void *key)
{
	struct probe p = { t, ops, store, key, hash, INTERN_FULL };
	/* Acquire: the slots that intern_grow() filled; pairs with its release. */
	struct intern_slots *s = atomic_load_explicit(&t->slots, memory_order_acquire);
	uint32_t id = slots_get(s, &p);

	while (id == MOVED) {
		/* Acquire: the empty slots; pairs with the release in intern_grow(). */
		s = atomic_load_explicit(&s->larger, memory_order_acquire);
		id = slots_get(s, &p);
	}
	grace_reader_done(t);
	return id;
}

uint32_t intern_nr(const struct intern *t)
{
	return atomic_load_explicit(&t->next, memory_order_relaxed);
}

/* Copy a slot into the larger array, while other threads insert new keys there. */
static void slots_put(struct intern_slots *s, uint64_t v)
{
	for (uint32_t i = 0, at = home(v); i < PROBES_MAX; i++, at++) {
		uint64_t empty = 0;

		/* Release: passes on the entry that slots_move() acquired. */
		if (atomic_compare_exchange_strong_explicit(&s->slot[at & s->mask], &empty, v,
							    memory_order_release,
							    memory_order_relaxed))
			return;
	}
}

/* Copy the full slots and close the empty ones. */
static void slots_move(struct intern_slots *to, struct intern_slots *from)
{
	for (uint64_t i = 0; i < slots_nr(from); i++) {
		uint64_t v = 0;

		/*
		 * Acquire: the entry, which is passed on. Release: a thread that
		 * meets the closed slot finds the larger array. Pairs with
		 * slots_get().
		 */
		if (!atomic_compare_exchange_strong_explicit(&from->slot[i], &v, CLOSED,
							     memory_order_acq_rel,
							     memory_order_acquire))
			slots_put(to, v);
	}
}

/* Return the number of slots to have: at least twice the ids. */
static uint64_t slots_wanted(const struct intern *t, const struct intern_slots *s)
{
	uint64_t used = intern_nr(t);

	return used * 2 > slots_nr(s) ? slots_round(used * 2) : slots_nr(s);
}

int intern_grow(struct intern *t)
{
	/* Relaxed: only this thread writes it. */
	struct intern_slots *old = atomic_load_explicit(&t->slots, memory_order_relaxed);
	uint64_t nr = slots_wanted(t, old);
	struct intern_slots *new;

	if (nr == slots_nr(old))
		return 0;
	new = slots_new(nr);
	if (!new)
		return -ENOMEM;
	/* Release: the empty slots; pairs with the acquire in intern_get(). */
	atomic_store_explicit(&old->larger, new, memory_order_release);
	assert(slots_nr(new) > slots_nr(old));
	slots_move(new, old);
	/* Release: the filled slots; pairs with the acquire in intern_get(). */
	atomic_store_explicit(&t->slots, new, memory_order_release);
	urcu_qsbr_synchronize_rcu();
	grace_waited(t);
	slots_free(old);
	return 0;
}

uint64_t intern_slots_nr(const struct intern *t)
{
	return slots_nr(atomic_load_explicit(&t->slots, memory_order_relaxed));
}

size_t intern_memory(const struct intern *t)
{
	const struct intern_slots *s = atomic_load_explicit(&t->slots, memory_order_relaxed);

	return sizeof(*s) + slots_nr(s) * sizeof(s->slot[0]);
}

size_t intern_growth(const struct intern *t)
{
	const struct intern_slots *s = atomic_load_explicit(&t->slots, memory_order_relaxed);

	return (slots_wanted(t, s) - slots_nr(s)) * sizeof(s->slot[0]);
}
