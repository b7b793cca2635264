// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Chains in a pool of blocks, found through chunks of pointers by place.
 *
 * A chain is written before its pointer is published (release), and never
 * changed after that. Files are in a chunked store, found by a hash set.
 */
#include "symbols/source/chains.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/base/chunked.h"
#include "symbols/base/hashset.h"
#include "symbols/base/keyhash.h"

#define CHUNK_BITS 12
#define CHUNK_SIZE (1U << CHUNK_BITS)
#define NR_CHUNKS  (1U << 14)
#define BLOCK_SIZE (64UL << 10)
#define FILE_BITS  10
#define FILES_MAX  (1U << 20)
/* The bytes of files are counted by object, in slots by hash: one object may name millions. */
#define NR_SHARES 4096U

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

/* Clean texts, complete when published. */
struct files {
	struct text_arena *texts;
	struct keyhash_key secret; /* against texts that were chosen for one bucket */
	struct hashset set;
	struct chunked list; /* struct safe_text */
	uint32_t memory;     /* bytes, with each file's part of set and list */
	uint32_t shares[NR_SHARES];
};

struct chains {
	struct block *blocks;
	size_t memory;
	struct files files;
	_Atomic(struct chunk *) chunks[NR_CHUNKS]; /* release, acquire in chains_at() */
};

int chains_new(struct chains **out)
{
	struct chains *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->files.secret = keyhash_new_key();
	c->files.texts = text_arena_new();
	if (!c->files.texts ||
	    chunked_init(&c->files.list, sizeof(struct safe_text), FILE_BITS, FILES_MAX)) {
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
	chunked_fini(&c->files.list);
	hashset_fini(&c->files.set);
	text_arena_free(c->files.texts);
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

static uint64_t hash_text(const struct files *f, struct safe_text text)
{
	struct keyhash h = keyhash_begin(&f->secret);

	keyhash_bytes(&h, text.str, text.size);
	return keyhash_end(&h);
}

/* Return the id of a clean text; SYMBOL_NO_FILE: it is new. */
static uint32_t find_file(const struct files *f, uint64_t hash, struct safe_text text)
{
	uint32_t id, at = 0;

	while ((id = hashset_next(&f->set, hash, &at)) != HASHSET_NONE) {
		const struct safe_text *is = chunked_at(&f->list, id);

		if (is->size == text.size && !memcmp(is->str, text.str, text.size))
			return id;
	}
	return SYMBOL_NO_FILE;
}

/* Charge a new text to the table and to the share of @object. False: too little memory is left. */
static bool charge_text(struct files *f, uint32_t object, size_t size, bool moved)
{
	/* A set has four slots for each id at most. */
	uint32_t cost =
		(uint32_t)(size + 1 + sizeof(struct safe_text) + 4 * sizeof(struct hashset_slot));
	uint32_t left = CHAINS_FILES_MEMORY_MAX - f->memory;
	uint32_t *share = &f->shares[hash_u64(object ^ f->secret.k0) % NR_SHARES];

	/* An eighth of the rest, not of the limit: later objects also get a share. */
	if (cost > left || (!moved && *share + cost > left / 8))
		return false;
	f->memory += cost;
	*share += cost;
	return true;
}

static uint32_t add_file(struct files *f, uint64_t hash, struct safe_text text)
{
	uint32_t id = chunked_nr(&f->list);
	struct safe_text *file = chunked_reserve(&f->list, id);

	if (!file || hashset_reserve(&f->set, 1))
		return SYMBOL_NO_FILE;
	*file = text_arena_add(f->texts, text.str, text.size);
	hashset_add(&f->set, hash, id);
	chunked_publish(&f->list, id + 1);
	return id;
}

uint32_t chains_intern_file(struct chains *c, uint32_t object, const char *path)
{
	char buf[TEXT_MAX + 1];
	struct safe_text text = text_sanitise(buf, sizeof(buf), path, strlen(path));
	uint64_t hash = hash_text(&c->files, text);
	uint32_t id = find_file(&c->files, hash, text);

	if (id != SYMBOL_NO_FILE || !charge_text(&c->files, object, text.size, false))
		return id;
	return add_file(&c->files, hash, text);
}

uint32_t chains_move_file(struct chains *c, uint32_t object, struct safe_text file)
{
	uint64_t hash = hash_text(&c->files, file);
	uint32_t id = find_file(&c->files, hash, file);

	if (id != SYMBOL_NO_FILE || !charge_text(&c->files, object, file.size, true))
		return id;
	return add_file(&c->files, hash, file);
}

struct safe_text chains_file(const struct chains *c, uint32_t id)
{
	const struct safe_text *file;

	if (id >= chunked_nr(&c->files.list))
		return TEXT("");
	file = chunked_at(&c->files.list, id);
	return *file;
}

uint32_t chains_nr_files(const struct chains *c)
{
	return chunked_nr(&c->files.list);
}

size_t chains_memory(const struct chains *c)
{
	return c->memory + sizeof(c->files) + text_arena_size(c->files.texts) +
	       hashset_memory(&c->files.set) + chunked_memory(&c->files.list);
}
