// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Append-only store in chunks.
 */
#include "symbols/base/chunked.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"

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
