/* SPDX-License-Identifier: GPL-2.0-or-later */
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
#ifndef SYMBOLS_BASE_CHUNKED_H
#define SYMBOLS_BASE_CHUNKED_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
