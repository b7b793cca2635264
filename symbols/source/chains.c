// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Chains in a pool of blocks, found through chunks of pointers by place.
 *
 * A chain is written before its pointer is published (release), and never
 * touched again; so is a file before the release of nr_files.
 */
#include "symbols/source/chains.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"

#define CHUNK_BITS     12
#define CHUNK_SIZE     (1U << CHUNK_BITS)
#define NR_CHUNKS      (1U << 14)
#define BLOCK_SIZE     (64UL << 10)
#define FILE_BITS      10
#define FILE_SIZE      (1U << FILE_BITS)
#define NR_FILE_CHUNKS 1024U
#define FIRST_SLOTS    1024U

struct chain {
	uint32_t nr;
	struct symbol_frame frames[];
};

/* By place; the pointer is the release, acquired by chains_at(). */
struct chunk {
	_Atomic(const struct chain *) chains[CHUNK_SIZE];
};

struct block {
	struct block *next;
	size_t used;
	_Alignas(8) char bytes[BLOCK_SIZE];
};

struct chains {
	struct block *blocks;
	size_t memory;
	struct text_arena *texts;
	uint32_t *slots;  /* files by hash: id + 1, 0 empty; a power of two */
	uint64_t *hashes; /* of the raw path of each file */
	uint32_t nr_slots, max_files;
	/* Release by the writer, acquire by readers. */
	_Alignas(CACHELINE) atomic_uint nr_files;
	_Atomic(struct safe_text *) files[NR_FILE_CHUNKS]; /* published by nr_files */
	_Atomic(struct chunk *) chunks[NR_CHUNKS];	   /* release, acquire in chains_at() */
};

int chains_new(struct chains **out)
{
	struct chains *c = aligned_alloc(CACHELINE, sizeof(*c));

	if (!c)
		return -ENOMEM;
	memset(c, 0, sizeof(*c));
	c->texts = text_arena_new();
	c->nr_slots = FIRST_SLOTS;
	c->slots = calloc(c->nr_slots, sizeof(*c->slots));
	if (!c->texts || !c->slots) {
		chains_free(c);
		return -ENOMEM;
	}
	*out = c;
	return 0;
}

void chains_free(struct chains *c)
{
	if (!c)
		return;
	while (c->blocks) {
		struct block *next = c->blocks->next;

		free(c->blocks);
		c->blocks = next;
	}
	for (size_t i = 0; i < NR_CHUNKS; i++)
		free(atomic_load_explicit(&c->chunks[i], memory_order_relaxed));
	for (size_t i = 0; i < NR_FILE_CHUNKS; i++)
		free(atomic_load_explicit(&c->files[i], memory_order_relaxed));
	free(c->slots);
	free(c->hashes);
	text_arena_free(c->texts);
	free(c);
}

/* Allocate @size bytes that live as long as the table; NULL at the limit. */
static void *take(struct chains *c, size_t size)
{
	struct block *b = c->blocks;
	void *bytes;

	size = (size + 7) & ~7UL;
	if (!b || b->used + size > BLOCK_SIZE) {
		if (size > BLOCK_SIZE || c->memory + sizeof(*b) > CHAINS_MEMORY_MAX)
			return NULL;
		b = malloc(sizeof(*b));
		if (!b)
			return NULL;
		b->next = c->blocks;
		b->used = 0;
		c->blocks = b;
		c->memory += sizeof(*b);
	}
	bytes = b->bytes + b->used;
	b->used += size;
	return bytes;
}

int chains_put(struct chains *c, uint32_t place, const struct symbol_frame *frames, uint32_t nr)
{
	struct chunk *chunk;
	struct chain *chain;

	if (place >> CHUNK_BITS >= NR_CHUNKS)
		return -ENOSPC;
	chain = take(c, sizeof(*chain) + nr * sizeof(*frames));
	if (!chain)
		return -ENOSPC;
	chain->nr = nr;
	memcpy(chain->frames, frames, nr * sizeof(*frames));
	chunk = atomic_load_explicit(&c->chunks[place >> CHUNK_BITS], memory_order_relaxed);
	if (!chunk) {
		chunk = calloc(1, sizeof(*chunk));
		if (!chunk)
			return -ENOMEM;
		c->memory += sizeof(*chunk);
		/* Publishes an empty chunk; pairs with chains_at(). */
		atomic_store_explicit(&c->chunks[place >> CHUNK_BITS], chunk, memory_order_release);
	}
	/* Publishes the chain; pairs with chains_at(). */
	atomic_store_explicit(&chunk->chains[place & (CHUNK_SIZE - 1)], chain,
			      memory_order_release);
	return 0;
}

const struct symbol_frame *chains_at(const struct chains *c, uint32_t place, uint32_t *nr)
{
	const struct chain *chain;
	struct chunk *chunk;

	*nr = 0;
	if (place >> CHUNK_BITS >= NR_CHUNKS)
		return NULL;
	/* Pair with the releases in chains_put(). */
	chunk = atomic_load_explicit(&c->chunks[place >> CHUNK_BITS], memory_order_acquire);
	if (!chunk)
		return NULL;
	chain = atomic_load_explicit(&chunk->chains[place & (CHUNK_SIZE - 1)],
				     memory_order_acquire);
	if (!chain)
		return NULL;
	*nr = chain->nr;
	return chain->frames;
}

static uint64_t hash_path(const char *path)
{
	uint64_t hash = 0xcbf29ce484222325ULL;

	for (; *path; path++)
		hash = (hash ^ (uint8_t)*path) * 0x100000001b3ULL;
	return hash_u64(hash);
}

/* Keep the slots at most half full, with space for one more file. */
static int reserve_file(struct chains *c, uint32_t id)
{
	uint32_t nr_slots = c->nr_slots * 2, *slots;

	if (id == c->max_files) {
		uint32_t max = c->max_files ? c->max_files * 2 : FIRST_SLOTS;
		uint64_t *hashes = reallocarray(c->hashes, max, sizeof(*hashes));

		if (!hashes)
			return -ENOMEM;
		c->hashes = hashes;
		c->max_files = max;
	}
	if ((id + 1) * 2 <= c->nr_slots)
		return 0;
	slots = calloc(nr_slots, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < id; i++) {
		uint32_t at = (uint32_t)c->hashes[i] & (nr_slots - 1);

		while (slots[at])
			at = (at + 1) & (nr_slots - 1);
		slots[at] = i + 1;
	}
	free(c->slots);
	c->slots = slots;
	c->nr_slots = nr_slots;
	return 0;
}

/*
 * A path is identified by its hash alone: 64 bits, and a collision only shows
 * another file's name.
 */
uint32_t chains_intern_file(struct chains *c, const char *path)
{
	uint32_t id = atomic_load_explicit(&c->nr_files, memory_order_relaxed), at;
	uint64_t hash = hash_path(path);
	struct safe_text *files;

	at = (uint32_t)hash & (c->nr_slots - 1);
	for (; c->slots[at]; at = (at + 1) & (c->nr_slots - 1))
		if (c->hashes[c->slots[at] - 1] == hash)
			return c->slots[at] - 1;
	if (id >= NR_FILE_CHUNKS * FILE_SIZE || reserve_file(c, id))
		return SYMBOL_NO_FILE;
	files = atomic_load_explicit(&c->files[id >> FILE_BITS], memory_order_relaxed);
	if (!files) {
		files = calloc(FILE_SIZE, sizeof(*files));
		if (!files)
			return SYMBOL_NO_FILE;
		atomic_store_explicit(&c->files[id >> FILE_BITS], files, memory_order_relaxed);
	}
	files[id & (FILE_SIZE - 1)] = text_arena_add(c->texts, path, strlen(path));
	c->hashes[id] = hash;
	for (at = (uint32_t)hash & (c->nr_slots - 1); c->slots[at];)
		at = (at + 1) & (c->nr_slots - 1);
	c->slots[at] = id + 1;
	/* Publishes the text and its chunk; pairs with chains_file(). */
	atomic_store_explicit(&c->nr_files, id + 1, memory_order_release);
	return id;
}

struct safe_text chains_file(const struct chains *c, uint32_t id)
{
	/* Pairs with the release in chains_intern_file(). */
	if (id >= atomic_load_explicit(&c->nr_files, memory_order_acquire))
		return TEXT("");
	return atomic_load_explicit(&c->files[id >> FILE_BITS],
				    memory_order_relaxed)[id & (FILE_SIZE - 1)];
}

uint32_t chains_nr_files(const struct chains *c)
{
	return atomic_load_explicit(&c->nr_files, memory_order_acquire);
}

size_t chains_memory(const struct chains *c)
{
	return c->memory + text_arena_size(c->texts) + c->nr_slots * sizeof(*c->slots) +
	       c->max_files * sizeof(*c->hashes);
}
