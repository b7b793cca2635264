// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Chains in a pool of blocks, found through chunks of pointers by place.
 *
 * A chain is written before its pointer is published (release), and never
 * changed after that. Equal chains are kept once: a program with a JIT that starts again and again
 * has the same ones at new addresses. Files are in a chunked store. Both are found by hash sets.
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
#define BLOCKS_MAX (CHAINS_MEMORY_MAX / BLOCK_SIZE)
#define WORD	   8U /* chains begin at multiples */
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

/* Chains by their number: the words before it in all blocks. */
struct pool {
	char *blocks[BLOCKS_MAX];
	uint32_t nr_blocks;
	size_t used; /* bytes of the last block */
	struct hashset set;
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
	struct pool pool;
	size_t memory;
	struct keyhash_key secret; /* against chains that were chosen for one bucket */
	struct files files;
	_Atomic(struct chunk *) chunks[NR_CHUNKS]; /* release, acquire in chains_at() */
};

int chains_new(struct chains **out)
{
	struct chains *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->secret = keyhash_new_key();
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
	for (uint32_t i = 0; i < c->pool.nr_blocks; i++)
		free_sparse(c->pool.blocks[i], BLOCK_SIZE);
	hashset_fini(&c->pool.set);
	for (size_t i = 0; i < NR_CHUNKS; i++)
		free(atomic_load_explicit(&c->chunks[i], memory_order_relaxed));
	chunked_fini(&c->files.list);
	hashset_fini(&c->files.set);
	text_arena_free(c->files.texts);
	free(c);
}

static bool is_full(const struct chains *c, size_t size)
{
	return c->memory + hashset_memory(&c->pool.set) + size > CHAINS_MEMORY_MAX;
}

static struct chain *chain_of(const struct pool *p, uint32_t number)
{
	size_t at = (size_t)number * WORD;

	return (struct chain *)(p->blocks[at / BLOCK_SIZE] + at % BLOCK_SIZE);
}

/* Reserve @size bytes, which live as long as the table. Return their number; CHAINS_NONE: the
 * limit. */
static uint32_t take(struct chains *c, size_t size)
{
	struct pool *p = &c->pool;
	size_t at;

	size = (size + WORD - 1) / WORD * WORD;
	if (!p->nr_blocks || p->used + size > BLOCK_SIZE) {
		if (size > BLOCK_SIZE || p->nr_blocks == BLOCKS_MAX || is_full(c, BLOCK_SIZE))
			return CHAINS_NONE;
		p->blocks[p->nr_blocks] = alloc_sparse(BLOCK_SIZE);
		if (!p->blocks[p->nr_blocks])
			return CHAINS_NONE;
		p->nr_blocks++;
		p->used = 0;
		c->memory += BLOCK_SIZE;
	}
	at = (p->nr_blocks - 1) * BLOCK_SIZE + p->used;
	p->used += size;
	return (uint32_t)(at / WORD);
}

static uint64_t hash_chain(const struct chains *c, const struct symbol_frame *frames, uint32_t nr)
{
	struct keyhash h = keyhash_begin(&c->secret);

	for (uint32_t i = 0; i < nr; i++) {
		keyhash_word(&h, (uint64_t)frames[i].symbol << 32 | frames[i].file);
		keyhash_word(&h, frames[i].line);
	}
	return keyhash_end(&h);
}

uint32_t chains_intern(struct chains *c, const struct symbol_frame *frames, uint32_t nr)
{
	uint64_t hash = hash_chain(c, frames, nr);
	uint32_t number, at = 0;
	struct chain *chain;

	while ((number = hashset_next(&c->pool.set, hash, &at)) != HASHSET_NONE) {
		chain = chain_of(&c->pool, number);
		if (chain->nr == nr && !memcmp(chain->frames, frames, nr * sizeof(*frames)))
			return number;
	}
	if (hashset_reserve(&c->pool.set, 1))
		return CHAINS_NONE;
	number = take(c, sizeof(*chain) + nr * sizeof(*frames));
	if (number == CHAINS_NONE)
		return CHAINS_NONE;
	chain = chain_of(&c->pool, number);
	chain->nr = nr;
	memcpy(chain->frames, frames, nr * sizeof(*frames));
	hashset_add(&c->pool.set, hash, number);
	return number;
}

int chains_set(struct chains *c, uint32_t place, uint32_t number)
{
	const struct chain *chain = chain_of(&c->pool, number);
	struct chunk *chunk;

	if (place >> CHUNK_BITS >= NR_CHUNKS)
		return -ENOSPC;
	chunk = atomic_load_explicit(&c->chunks[place >> CHUNK_BITS], memory_order_relaxed);
	if (!chunk) {
		if (is_full(c, sizeof(*chunk)))
			return -ENOSPC;
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

int chains_put(struct chains *c, uint32_t place, const struct symbol_frame *frames, uint32_t nr)
{
	uint32_t number = place >> CHUNK_BITS < NR_CHUNKS ? chains_intern(c, frames, nr)
							  : CHAINS_NONE;

	return number == CHAINS_NONE ? -ENOSPC : chains_set(c, place, number);
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
	return c->memory + hashset_memory(&c->pool.set) + sizeof(c->files) +
	       text_arena_size(c->files.texts) + hashset_memory(&c->files.set) +
	       chunked_memory(&c->files.list);
}
