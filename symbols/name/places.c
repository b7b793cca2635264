// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Places in chunks, so that entries never move.
 *
 * Runs on: any thread; places_grow() on the builder, places_name() on the loader.
 * Invariant: the builder keeps chunks ahead of the used ids; a hot thread that
 * outruns them gets PLACE_NONE. It wakes the builder before (places_crowded()).
 */
#include "symbols/name/places.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/base/intern.h"

#define CHUNK_BITS  14
#define CHUNK_SIZE  (1u << CHUNK_BITS)
#define SLOTS_FIRST (4 * CHUNK_SIZE)
#define SLOTS_SMALL (1u << 12) /* half of them used, a sample with all frames new still fits */

/* In symbol of an entry that was never written. */
#define SYMBOL_UNBUILT (SYMBOL_NONE - 1)

struct places {
	struct intern intern;
	uint32_t serial;
	uint32_t nr_chunks; /* existing ones; builder only */
	uint32_t max_chunks;
	uint32_t nr_before;	/* places at the last places_grow() */
	atomic_uint crowded_at; /* places at which to call it again; relaxed: a hint */
	_Atomic(struct place *) chunk[];
};

struct key {
	uint64_t offset;
	uint32_t object;
};

/*
 * Hash a place with two secret words: at each frame of a sample keyhash.h would cost too much, and
 * no process sees which slots are full.
 */
static uint64_t place_hash(const struct keyhash_key *secret, uint32_t object, uint64_t offset)
{
	return hash_u64((offset ^ hash_u64(object ^ secret->k0)) * secret->k1);
}

static struct place *entry(const struct places *p, uint32_t id)
{
	/* Acquire: the entries as chunk_add() made them. */
	struct place *chunk =
		atomic_load_explicit(&p->chunk[id >> CHUNK_BITS], memory_order_acquire);

	return chunk ? &chunk[id & (CHUNK_SIZE - 1)] : NULL;
}

static bool same(const void *store, uint32_t id, const void *key)
{
	const struct place *place = entry(store, id);
	const struct key *k = key;

	return place->offset == k->offset && place->object == k->object;
}

static bool room(const void *store, uint32_t id, const void *key)
{
	return entry(store, id);
}

static bool write_place(void *store, uint32_t id, const void *key)
{
	struct place *place = entry(store, id);
	const struct key *k = key;

	if (!place)
		return false;
	place->offset = k->offset;
	place->object = k->object;
	/* Release: the place is complete; pairs with the acquire in places_at(). */
	atomic_store_explicit(&place->symbol, SYMBOL_NONE, memory_order_release);
	return true;
}

static const struct intern_ops ops = { same, room, write_place };

static int chunk_add(struct places *p)
{
	struct place *chunk = alloc_sparse(CHUNK_SIZE * sizeof(*chunk));

	if (!chunk)
		return -ENOMEM;
	for (uint32_t i = 0; i < CHUNK_SIZE; i++)
		atomic_init(&chunk[i].symbol, SYMBOL_UNBUILT);
	/* Release: the empty entries; pairs with the acquire in entry(). */
	atomic_store_explicit(&p->chunk[p->nr_chunks++], chunk, memory_order_release);
	return 0;
}

/* Half a chunk is left, or the slots are half full. */
static void set_crowded(struct places *p)
{
	uint64_t chunks = p->nr_chunks * (uint64_t)CHUNK_SIZE - CHUNK_SIZE / 2;
	uint64_t slots = intern_slots_nr(&p->intern) / 2;
	uint64_t at = MIN(p->nr_chunks < p->max_chunks ? chunks : UINT32_MAX - 1, slots);
	uint32_t nr = places_nr(p);

	/* Still crowded: out of memory, which is not retried at each place. */
	at = at >= nr ? at + 1 : nr + CHUNK_SIZE / 16;
	atomic_store_explicit(&p->crowded_at, (unsigned int)MIN(at, UINT32_MAX),
			      memory_order_relaxed);
}

int places_new(struct places **out, uint32_t max_places)
{
	static atomic_uint nr_tables;
	uint32_t max = MIN(MAX(max_places, 1u), 1u << 31);
	uint32_t max_chunks = (max + CHUNK_SIZE - 1) / CHUNK_SIZE;
	size_t size = sizeof(struct places) + max_chunks * sizeof(((struct places *)0)->chunk[0]);
	struct places *p;
	int ret;

	size = (size + CACHELINE - 1) / CACHELINE * CACHELINE;
	p = aligned_alloc(CACHELINE, size);
	if (!p)
		return -ENOMEM;
	memset(p, 0, size);
	/* Relaxed: only unique. */
	p->serial = atomic_fetch_add_explicit(&nr_tables, 1, memory_order_relaxed) + 1;
	p->max_chunks = max_chunks;
	ret = intern_init(&p->intern, MIN(SLOTS_FIRST, 2 * max), max);
	if (!ret)
		ret = places_grow(p);
	if (ret) {
		places_free(p);
		return ret;
	}
	*out = p;
	return 0;
}

int places_begin_small(struct places *p)
{
	uint32_t nr_slots = (uint32_t)MIN(intern_slots_nr(&p->intern), SLOTS_SMALL);
	int ret;

	intern_fini(&p->intern);
	ret = intern_init(&p->intern, nr_slots, p->intern.max_ids);
	if (!ret)
		set_crowded(p);
	return ret;
}

void places_free(struct places *p)
{
	if (!p)
		return;
	for (uint32_t i = 0; i < p->nr_chunks; i++)
		free_sparse(atomic_load_explicit(&p->chunk[i], memory_order_relaxed),
			    CHUNK_SIZE * sizeof(struct place));
	intern_fini(&p->intern);
	free(p);
}

uint32_t places_intern(struct places *p, uint32_t object, uint64_t offset)
{
	struct key key = { offset, object };

	return intern_get(&p->intern, &ops, p, place_hash(&p->intern.secret, object, offset), &key);
}

const struct place *places_at(const struct places *p, uint32_t id)
{
	const struct place *place = id < p->intern.max_ids ? entry(p, id) : NULL;

	/* Acquire: offset and dso; pairs with the release in write_place(). */
	if (!place || atomic_load_explicit(&place->symbol, memory_order_acquire) == SYMBOL_UNBUILT)
		return NULL;
	return place;
}

uint32_t places_nr(const struct places *p)
{
	return intern_nr(&p->intern);
}

void places_name(struct places *p, uint32_t id, uint32_t symbol)
{
	if (!places_at(p, id))
		return;
	/* Release: the loader's symbol; pairs with the acquire in places_at(). */
	atomic_store_explicit(&entry(p, id)->symbol, symbol, memory_order_release);
}

/* Keep a whole chunk ahead of the writers, or twice their use since the last call. */
int places_grow(struct places *p)
{
	uint32_t nr = places_nr(p);
	/* A returned id may make it fewer than before. */
	uint64_t used = nr > p->nr_before ? nr - p->nr_before : 0;
	uint64_t ahead = MAX((uint64_t)CHUNK_SIZE, 2 * used);

	int ret = 0;

	p->nr_before = nr;
	while (!ret && p->nr_chunks < p->max_chunks &&
	       p->nr_chunks * (uint64_t)CHUNK_SIZE < nr + ahead)
		ret = chunk_add(p);
	if (!ret)
		ret = intern_grow(&p->intern);
	set_crowded(p);
	return ret;
}

bool places_crowded(const struct places *p)
{
	return places_nr(p) >= atomic_load_explicit(&p->crowded_at, memory_order_relaxed);
}

uint32_t places_room(const struct places *p)
{
	return (uint32_t)MIN(p->nr_chunks * (uint64_t)CHUNK_SIZE, p->intern.max_ids);
}

uint32_t places_serial(const struct places *p)
{
	return p->serial;
}

size_t places_memory(const struct places *p)
{
	return sizeof(*p) + p->max_chunks * sizeof(p->chunk[0]) + intern_memory(&p->intern) +
	       p->nr_chunks * CHUNK_SIZE * sizeof(struct place);
}
