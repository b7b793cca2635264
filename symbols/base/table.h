/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tables of ids.
 *
 * The caller owes: one owner for hashset and array; for intern and chunked, readers that are
 * urcu-qsbr readers or hold the table.
 *
 * The room does: keys → dense ids, by a hash with a secret key where another process chose the
 * keys; entries of chunked and ids never move.
 *
 * Not for: removal of single entries: tables are replaced as a whole.
 */
#ifndef SYMBOLS_BASE_TABLE_H
#define SYMBOLS_BASE_TABLE_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct chunked_block;
struct intern_slots;

/*
 * Append-only store in chunks: an entry never moves, and readers look at it
 * without a lock.
 *
 * Memory order, for all users: the writer makes a chunk, writes entries, then
 * publishes their number with release. A reader that got the number with
 * acquire, or an id passed on from there (by any release and acquire), sees the chunk and all
 * writes to the entries below that number. The pointers to chunks are not atomic: each is written
 * once, before any number that needs it. Later writes to a published entry need separate atomics.
 *
 * Two ways to use it. Publish complete entries: each id below chunked_nr() is
 * then readable. Or publish empty (zeroed) entries ahead and give out their ids
 * by another counter: then an entry has a mark when it is complete.
 *
 * Threads: chunked_reserve() and chunked_publish() from one thread at a time;
 * chunked_nr() and chunked_at() from any.
 */

struct chunked {
	size_t size;   /* of an entry */
	uint32_t bits; /* a chunk has 2^bits entries */
	uint32_t max;  /* entries at most */
	void **chunks;
	/* The writer's: */
	size_t nr_chunks;	     /* made */
	struct chunked_block *block; /* small chunks are cut from it; NULL: none yet */
	size_t used;		     /* bytes that are cut */
	atomic_uint nr;		     /* published */
};

/* Make an empty store of at most @max entries of @size bytes. 0 or -ENOMEM. */
int chunked_init(struct chunked *c, size_t size, uint32_t bits, uint32_t max);
/* Free all entries. Also of a store that is all zero. */
void chunked_fini(struct chunked *c);
/* Make the chunk of entry @id, zeroed, if it is not there. NULL: out of memory, or @id >= max. */
void *chunked_reserve(struct chunked *c, uint32_t id);

/* Let readers see the entries below @nr, all reserved. Never fewer than before. */
static inline void chunked_publish(struct chunked *c, uint32_t nr)
{
	assert(nr >= atomic_load_explicit(&c->nr, memory_order_relaxed) && nr <= c->max);
	/* Release: see above. */
	atomic_store_explicit(&c->nr, nr, memory_order_release);
}

/* Return the number of entries published. */
static inline uint32_t chunked_nr(const struct chunked *c)
{
	/* Acquire: pairs with chunked_publish(). */
	return atomic_load_explicit(&c->nr, memory_order_acquire);
}

/* Return entry @id, which is below a number that this thread knows to be published (or reserved).
 */
static inline void *chunked_at(const struct chunked *c, uint32_t id)
{
	assert(c->chunks[id >> c->bits]);
	return (char *)c->chunks[id >> c->bits] + (id & ((1u << c->bits) - 1)) * c->size;
}

/* The same of a store with holes: only some of its published entries were reserved. NULL: a hole.
 */
static inline void *chunked_find(const struct chunked *c, uint32_t id)
{
	return c->chunks[id >> c->bits] ? chunked_at(c, id) : NULL;
}

/* Writer. Return the bytes of all chunks, and of the part of the directory that is in use. */
size_t chunked_memory(const struct chunked *c);

/*
 * Hash table of dense ids: the caller keeps the entries, and compares keys.
 *
 * 	uint32_t at = 0, id;
 *
 * 	while ((id = hashset_next(&s, hash, &at)) != HASHSET_NONE)
 * 		if (entry[id] is the key)
 * 			return id;
 *
 * Open addressing, at most half full, so look-ups are O(1) as long as hashes
 * differ: a key that has many entries under one hash makes them linear. All
 * zero is an empty set.
 *
 * Threads: one owner; there is no locking. For lock-free inserts see struct intern.
 */

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

/*
 * A hash with a secret key: SipHash-1-3 (Aumasson and Bernstein 2012) over words.
 *
 * For tables of texts and numbers that another process chose: with hash_u64() it could choose a
 * million with one hash, and each look-up would compare all of them. The key is random, and another
 * one after each start: hashes are never stored in files, and no order depends on them.
 *
 * Pure, except the keys; any thread.
 */

struct keyhash_key {
	uint64_t k0, k1;
};

/* The state of a hash. */
struct keyhash {
	uint64_t v0, v1, v2, v3;
};

/* Return a random key. */
struct keyhash_key keyhash_new_key(void);
/* Hash a name with one key for the whole process; never 0. */
uint64_t keyhash_name(const char *name, size_t size);
/* Hash a number, as a pid, with one key for the whole process: faster than SipHash, and weaker. */
uint64_t keyhash_number(uint64_t number);

static inline uint64_t keyhash_rotate(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static inline void keyhash_round(struct keyhash *h)
{
	h->v0 += h->v1;
	h->v1 = keyhash_rotate(h->v1, 13) ^ h->v0;
	h->v0 = keyhash_rotate(h->v0, 32);
	h->v2 += h->v3;
	h->v3 = keyhash_rotate(h->v3, 16) ^ h->v2;
	h->v0 += h->v3;
	h->v3 = keyhash_rotate(h->v3, 21) ^ h->v0;
	h->v2 += h->v1;
	h->v1 = keyhash_rotate(h->v1, 17) ^ h->v2;
	h->v2 = keyhash_rotate(h->v2, 32);
}

/* Begin a hash. */
static inline struct keyhash keyhash_begin(const struct keyhash_key *key)
{
	return (struct keyhash){ key->k0 ^ 0x736f6d6570736575ULL, key->k1 ^ 0x646f72616e646f6dULL,
				 key->k0 ^ 0x6c7967656e657261ULL, key->k1 ^ 0x7465646279746573ULL };
}

/* Append one word. */
static inline void keyhash_word(struct keyhash *h, uint64_t word)
{
	h->v3 ^= word;
	keyhash_round(h);
	h->v0 ^= word;
}

/* Append @size bytes, and their number. */
void keyhash_bytes(struct keyhash *h, const void *bytes, size_t size);

/* Return the hash of all that was appended. */
static inline uint64_t keyhash_end(const struct keyhash *begun)
{
	struct keyhash h = *begun;

	h.v2 ^= 0xff;
	for (int i = 0; i < 3; i++)
		keyhash_round(&h);
	return h.v0 ^ h.v1 ^ h.v2 ^ h.v3;
}

/*
 * Insert-only lock-free interning: each key gets one dense u32 id.
 *
 * The table holds slots only; the caller stores the entries (in chunks, so
 * that they never move) and compares keys. Open addressing; a slot is
 * (tag << 32 | id + 1), 0 when empty, and is published with release after the
 * entry is complete: a thread that finds an id (acquire) can read its entry. The
 * tag is the upper half of the hash and decides the home slot, so growing reads
 * no entry.
 *
 * Threads: find and insert from any thread, lock-free. intern_grow() from one
 * thread (the builder) at the same time. Old slot arrays are freed after a grace
 * period of urcu-qsbr, so callers of intern_get() are registered readers.
 *
 * When two threads insert one key at the same time, one id is wasted: its entry
 * is complete, but never found.
 *
 * A full table is a normal state: INTERN_FULL, counted by the caller. Probes are bounded, so a long
 * run of full slots acts as a full table, also for keys of other processes: a hash of keys that a
 * process can choose must use the table's secret.
 */

#define INTERN_FULL UINT32_MAX

struct intern {
	_Atomic(struct intern_slots *) slots;
	struct keyhash_key secret;     /* for the caller's hash; k1 is odd: to multiply with */
	_Alignas(64) atomic_uint next; /* ids handed out */
	uint32_t max_ids;
};

struct intern_ops {
	/* Compare entry @id with @key. Called only for published ids. */
	bool (*same)(const void *store, uint32_t id, const void *key);
	/*
	 * Test whether entry @id has storage. Called before an id is taken, so that
	 * a full table costs no ids.
	 */
	bool (*room)(const void *store, uint32_t id, const void *key);
	/*
	 * Write @key into entry @id. False: no storage, and nothing was written: the
	 * id may be used again.
	 */
	bool (*write)(void *store, uint32_t id, const void *key);
};

int intern_init(struct intern *t, uint32_t nr_slots, uint32_t max_ids);
void intern_fini(struct intern *t);
/* Return the id of @key, inserted if new. @hash: its upper 32 bits are used, well mixed. */
uint32_t intern_get(struct intern *t, const struct intern_ops *ops, void *store, uint64_t hash,
		    const void *key);
/* Return the number of ids handed out; the last entries may be incomplete. */
static inline uint32_t intern_nr(const struct intern *t)
{
	return atomic_load_explicit(&t->next, memory_order_relaxed);
}

/* Double the slots when over half full. Builder only. 0 or -ENOMEM: unchanged. */
int intern_grow(struct intern *t);
/* Return the number of slots. Builder only. */
uint64_t intern_slots_nr(const struct intern *t);
/* Return the bytes of the slots. Builder only. */
size_t intern_memory(const struct intern *t);
/* Return the bytes that the next intern_grow() will add. Builder only. */
size_t intern_growth(const struct intern *t);

#endif
