// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Hash tables of dense ids, interning tables and arrays with entries that never move. hashset: one
 * owner; intern and chunked: lock-free readers.
 *
 * Invariant: at least half of the slots are empty, so every search ends.
 */
#include "symbols/base/base.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <urcu/urcu-qsbr.h>

#include "symbols/base/table.h"

#include "symbols/base/thread.h"

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

	assert(!(s->nr_slots & (s->nr_slots - 1)));
	assert(2 * (uint64_t)s->nr <= s->nr_slots);
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
	assert(wanted <= s->nr_slots);
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

	assert(id != HASHSET_NONE && s->nr);
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

	assert(!s->slots[hole].id);
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

	assert(s->nr <= s->nr_slots / 2);
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

/*
 * A hash with a secret key: the key, and bytes.
 */

struct keyhash_key keyhash_new_key(void)
{
	struct keyhash_key key;

	/* Before the kernel has random numbers: numbers that are hard to guess from outside. */
	if (getrandom(&key, sizeof(key), GRND_NONBLOCK) != (ssize_t)sizeof(key))
		key = (struct keyhash_key){ hash_u64(time_now_ns()),
					    hash_u64((uintptr_t)&key ^ time_thread_ns()) };
	return key;
}

void keyhash_bytes(struct keyhash *h, const void *bytes, size_t size)
{
	const uint8_t *p = bytes;
	uint64_t word;

	assert(bytes || !size);
	keyhash_word(h, size);
	for (; size >= sizeof(word); p += sizeof(word), size -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		keyhash_word(h, word);
	}
	if (!size)
		return;
	word = 0;
	memcpy(&word, p, size);
	keyhash_word(h, word);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

static struct keyhash_key names_key, numbers_key;

static void make_keys(void)
{
	names_key = keyhash_new_key();
	numbers_key = keyhash_new_key();
}

uint64_t keyhash_name(const char *name, size_t size)
{
	struct keyhash h;
	uint64_t hash;

	assert(name || !size);
	pthread_once(&once, make_keys);
	h = keyhash_begin(&names_key);
	keyhash_bytes(&h, name, size);
	hash = keyhash_end(&h);
	return hash ? hash : 1;
}

uint64_t keyhash_number(uint64_t number)
{
	pthread_once(&once, make_keys);
	/* An odd factor: different numbers have different hashes. */
	return hash_u64((number ^ numbers_key.k0) * (numbers_key.k1 | 1));
}

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
 *
 * The builder may have no CPU for a minute, so larger arrays are linked before they are needed
 * (their memory is not resident until then): a key that finds no empty slot in its probe is in the
 * next array. As a slot is never emptied, all threads find it there.
 */

/* Longest probe of the last array: far beyond any run of a half full table. */
#define PROBES_MAX 256u

/* The same of an array with a larger one: one of a million keys of a half full one goes on. */
#define PROBES 64u

/* Slots to have ahead of a late builder; more in tables that are larger already. */
#define SLOTS_AHEAD (1u << 20)

#define INTERN_SLOTS_MIN 8u

/*
 * A slot that must be empty: continue in the larger array. Not an id: the low half of one is never
 * 0.
 */
#define CLOSED (1ULL << 32)

/* Result: not in this array, which takes no more keys. */
#define MOVED (INTERN_FULL - 1)

struct intern_slots {
	uint32_t mask;			       /* number of slots - 1 */
	uint32_t probes;		       /* the longest probe */
	_Atomic(struct intern_slots *) larger; /* set before all others can be full */
	_Atomic uint64_t slot[];	       /* tag << 32 | id + 1 */
};

static size_t slots_size(uint64_t nr)
{
	return sizeof(struct intern_slots) + nr * sizeof(((struct intern_slots *)0)->slot[0]);
}

static struct intern_slots *slots_new(uint64_t nr)
{
	struct intern_slots *s = alloc_sparse(slots_size(nr));

	if (s) {
		s->mask = (uint32_t)(nr - 1);
		s->probes = PROBES_MAX;
	}
	return s;
}

static uint64_t slots_nr(const struct intern_slots *s)
{
	return (uint64_t)s->mask + 1;
}

/* Relaxed: the builder's view, which alone writes it. */
static struct intern_slots *slots_larger(const struct intern_slots *s)
{
	return atomic_load_explicit(&s->larger, memory_order_relaxed);
}

/* Free @s and the larger arrays below @end (NULL: all). */
static void slots_free(struct intern_slots *s, const struct intern_slots *end)
{
	struct intern_slots *larger;

	for (; s && s != end; s = larger) {
		larger = slots_larger(s);
		free_sparse(s, slots_size(slots_nr(s)));
	}
}

static uint64_t slots_round(uint64_t nr)
{
	uint64_t size = INTERN_SLOTS_MIN;

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

/* Link larger arrays behind @first, as far as there is memory. */
static void slots_add_larger(struct intern_slots *first, uint32_t max_ids)
{
	uint64_t most = MIN(slots_round(max_ids * 2ULL), MAX(SLOTS_AHEAD, 4 * slots_nr(first)));
	struct intern_slots *last = first, *larger;

	while ((larger = slots_larger(last)))
		last = larger;
	while (slots_nr(last) < most && (larger = slots_new(slots_nr(last) * 2))) {
		if (slots_nr(larger) < most)
			larger->probes = PROBES;
		/* Release: the empty slots; pairs with the acquire in intern_get(). */
		atomic_store_explicit(&last->larger, larger, memory_order_release);
		last = larger;
	}
}

int intern_init(struct intern *t, uint32_t nr_slots, uint32_t max_ids)
{
	struct intern_slots *s = slots_new(slots_round(nr_slots));

	assert(max_ids);
	if (!s)
		return -ENOMEM;
	slots_add_larger(s, max_ids);
	if (slots_larger(s))
		s->probes = PROBES;
	t->secret = keyhash_new_key();
	t->secret.k1 |= 1;
	atomic_init(&t->slots, s);
	atomic_init(&t->next, 0);
	t->max_ids = MIN(max_ids, MOVED - 1);
	return 0;
}

void intern_fini(struct intern *t)
{
	slots_free(atomic_load_explicit(&t->slots, memory_order_relaxed), NULL);
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
	for (uint32_t i = 0, at = home(p->hash); i < s->probes && i <= s->mask; i++, at++) {
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
	assert(id == INTERN_FULL || id < t->max_ids);
	return id;
}

/* Copy a slot into a larger array, while other threads insert new keys there. */
static void slots_put(struct intern_slots *s, uint64_t v)
{
	for (; s; s = slots_larger(s)) {
		for (uint32_t i = 0, at = home(v); i < s->probes && i <= s->mask; i++, at++) {
			uint64_t empty = 0;

			/* Release: passes on the entry that slots_move() acquired. */
			if (atomic_compare_exchange_strong_explicit(&s->slot[at & s->mask], &empty,
								    v, memory_order_release,
								    memory_order_relaxed))
				return;
		}
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

/* Return the first array with @nr slots behind @s, or link one. NULL: out of memory. */
static struct intern_slots *slots_of_size(const struct intern *t, struct intern_slots *s,
					  uint64_t nr)
{
	struct intern_slots *larger;

	for (; (larger = slots_larger(s)); s = larger)
		if (slots_nr(larger) >= nr)
			return larger;
	larger = slots_new(nr);
	if (!larger)
		return NULL;
	/* Release: the empty slots; pairs with the acquire in intern_get(). */
	atomic_store_explicit(&s->larger, larger, memory_order_release);
	return larger;
}

int intern_grow(struct intern *t)
{
	/* Relaxed: only this thread writes it. */
	struct intern_slots *old = atomic_load_explicit(&t->slots, memory_order_relaxed);
	uint64_t nr = slots_wanted(t, old);
	struct intern_slots *new;

	assert(nr >= slots_nr(old));
	if (nr == slots_nr(old))
		return 0;
	new = slots_of_size(t, old, nr);
	if (!new)
		return -ENOMEM;
	assert(slots_nr(new) > slots_nr(old));
	/* A probe that meets a closed slot goes on, array by array, to the new one. */
	for (struct intern_slots *s = old; s != new; s = slots_larger(s))
		slots_move(new, s);
	/* Release: the filled slots; pairs with the acquire in intern_get(). */
	atomic_store_explicit(&t->slots, new, memory_order_release);
	urcu_qsbr_synchronize_rcu();
	grace_waited(t);
	slots_free(old, new);
	slots_add_larger(new, t->max_ids);
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

/*
 * Append-only store in chunks.
 */

/*
 * Small chunks are cut from blocks that are mapped by themselves: they are freed together, and
 * would leave holes in the heap, among memory that stays.
 */
#define BLOCK_SIZE (256u << 10)

struct chunked_block {
	struct chunked_block *before;
	_Alignas(CACHELINE) char chunks[];
};

static size_t nr_chunks(const struct chunked *c, uint32_t nr)
{
	return ((size_t)nr + (1u << c->bits) - 1) >> c->bits;
}

static size_t chunk_size(const struct chunked *c)
{
	return c->size << c->bits;
}

static size_t directory_size(const struct chunked *c)
{
	return nr_chunks(c, c->max) * sizeof(*c->chunks);
}

static bool is_small(const struct chunked *c)
{
	return chunk_size(c) <= BLOCK_SIZE / 8;
}

/* Cut a chunk from the last block, or from a new one. NULL: out of memory. */
static void *cut(struct chunked *c)
{
	size_t size = chunk_size(c);
	void *chunk;

	assert(size && size <= BLOCK_SIZE);
	if (!c->block || c->used + size > BLOCK_SIZE) {
		struct chunked_block *b = alloc_sparse(BLOCK_SIZE);

		if (!b)
			return NULL;
		b->before = c->block;
		c->block = b;
		c->used = offsetof(struct chunked_block, chunks);
	}
	chunk = (char *)c->block + c->used;
	c->used += size;
	return chunk;
}

static void free_chunks(struct chunked *c)
{
	struct chunked_block *before;

	/* The rest of the directory has no pages yet. */
	for (size_t i = 0; !is_small(c) && c->nr_chunks; i++) {
		c->nr_chunks -= c->chunks[i] != NULL;
		free_sparse(c->chunks[i], chunk_size(c));
	}
	for (; c->block; c->block = before) {
		before = c->block->before;
		free_sparse(c->block, BLOCK_SIZE);
	}
}

int chunked_init(struct chunked *c, size_t size, uint32_t bits, uint32_t max)
{
	assert(size && bits < 32 && max);
	memset(c, 0, sizeof(*c));
	c->size = size;
	c->bits = bits;
	c->max = max;
	c->chunks = alloc_sparse(directory_size(c));
	return c->chunks ? 0 : -ENOMEM;
}

void chunked_fini(struct chunked *c)
{
	free_chunks(c);
	free_sparse(c->chunks, directory_size(c));
	c->chunks = NULL;
}

void *chunked_reserve(struct chunked *c, uint32_t id)
{
	void **chunk;

	assert(c->size && c->bits < 32);
	if (id >= c->max)
		return NULL;
	chunk = &c->chunks[id >> c->bits];
	if (!*chunk) {
		*chunk = is_small(c) ? cut(c) : alloc_sparse(chunk_size(c));
		c->nr_chunks += *chunk != NULL;
	}
	return *chunk ? chunked_at(c, id) : NULL;
}

size_t chunked_memory(const struct chunked *c)
{
	return nr_chunks(c, chunked_nr(c)) * sizeof(*c->chunks) +
	       (c->nr_chunks << c->bits) * c->size;
}
