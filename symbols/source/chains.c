// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Chains in a pool of blocks, found through chunks of pointers by place.
 *
 * A chain is written before its pointer is published (release), and never
 * changed after that. Files are in a chunked store, found by a hash set; tables of several
 * generations of places share it.
 */
#include "symbols/source/chains.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/base/chunked.h"
#include "symbols/base/hashset.h"

#define CHUNK_BITS 12
#define CHUNK_SIZE (1U << CHUNK_BITS)
#define NR_CHUNKS  (1U << 14)
#define BLOCK_SIZE (64UL << 10)
#define FILE_BITS  10
#define FILES_MAX  (1U << 20)

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

struct file {
	struct safe_text path;
	uint64_t hash; /* of the raw path */
};

struct chain_files {
	struct text_arena *texts;
	struct hashset set;
	struct chunked list;  /* struct file, complete when published */
	atomic_uint nr_users; /* tables of chains */
};

struct chains {
	struct block *blocks;
	size_t memory;
	struct chain_files *files;
	_Atomic(struct chunk *) chunks[NR_CHUNKS]; /* release, acquire in chains_at() */
};

/* End the use of @f by one table; the last one frees it. */
static void files_leave(struct chain_files *f)
{
	/* Release and acquire: what the other tables' threads did is before it is freed. */
	if (!f || atomic_fetch_sub_explicit(&f->nr_users, 1, memory_order_acq_rel) > 1)
		return;
	chunked_fini(&f->list);
	hashset_fini(&f->set);
	text_arena_free(f->texts);
	free(f);
}

static struct chain_files *files_new(void)
{
	struct chain_files *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	atomic_init(&f->nr_users, 1);
	f->texts = text_arena_new();
	if (!chunked_init(&f->list, sizeof(struct file), FILE_BITS, FILES_MAX) && f->texts)
		return f;
	files_leave(f);
	return NULL;
}

int chains_new(struct chains **out)
{
	struct chains *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->files = files_new();
	if (!c->files) {
		chains_free(c);
		return -ENOMEM;
	}
	*out = c;
	return 0;
}

int chains_new_beside(struct chains **out, const struct chains *old)
{
	struct chains *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->files = old->files;
	/* Relaxed: @old uses it all the time. */
	atomic_fetch_add_explicit(&c->files->nr_users, 1, memory_order_relaxed);
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
	files_leave(c->files);
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

/*
 * A path is identified by its hash alone: 64 bits, and a collision only shows
 * another file's name.
 */
uint32_t chains_intern_file(struct chains *c, const char *path)
{
	struct chain_files *f = c->files;
	uint32_t id, at = 0;
	uint64_t hash = hash_path(path);
	struct file *file;

	while ((id = hashset_next(&f->set, hash, &at)) != HASHSET_NONE) {
		file = chunked_at(&f->list, id);
		if (file->hash == hash)
			return id;
	}
	id = chunked_nr(&f->list);
	file = chunked_reserve(&f->list, id);
	if (!file || hashset_reserve(&f->set, 1))
		return SYMBOL_NO_FILE;
	*file = (struct file){ text_arena_add(f->texts, path, strlen(path)), hash };
	hashset_add(&f->set, hash, id);
	chunked_publish(&f->list, id + 1);
	return id;
}

struct safe_text chains_file(const struct chains *c, uint32_t id)
{
	const struct file *file;

	if (id >= chunked_nr(&c->files->list))
		return TEXT("");
	file = chunked_at(&c->files->list, id);
	return file->path;
}

uint32_t chains_nr_files(const struct chains *c)
{
	return chunked_nr(&c->files->list);
}

size_t chains_memory(const struct chains *c)
{
	return c->memory + text_arena_size(c->files->texts) + hashset_memory(&c->files->set) +
	       chunked_memory(&c->files->list);
}
