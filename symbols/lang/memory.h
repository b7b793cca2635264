/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pieces of another process's memory: queued, then fetched in one call. Bounded
 * in pieces, bytes and calls.
 *
 * One thread. No allocation. Pieces are valid until lang_memory_begin().
 */
#ifndef SYMBOLS_LANG_MEMORY_H
#define SYMBOLS_LANG_MEMORY_H

#include "symbols/base/base.h"

#define LANG_PIECES_MAX 1024U
#define LANG_BYTES_MAX	(512U << 10)
#define LANG_PIECE_MAX	(16U << 10)
#define LANG_CALLS_MAX	16U /* 1 to 3 us each, while the thread is preempted */

struct lang_piece {
	uint64_t addr;
	uint32_t size, at; /* at: in bytes */
};

/*
 * Read @nr pieces in order into @bytes at their places; returns how many were
 * read whole before the first that was not, or -errno.
 */
typedef int (*lang_read_fn)(void *ctx, const struct lang_piece *pieces, uint32_t nr,
			    uint8_t *bytes);

struct lang_memory {
	lang_read_fn read;
	void *ctx;
	uint32_t nr, fetched, used, calls;
	int error; /* of the last call; 0 */
	struct lang_piece pieces[LANG_PIECES_MAX];
	bool read_whole[LANG_PIECES_MAX];
	uint8_t bytes[LANG_BYTES_MAX];
};

/* Forget all pieces, before another thread or process. */
void lang_memory_begin(struct lang_memory *m);
/* Queue a piece; returns its number, -1: full, or an impossible address. */
int lang_memory_want(struct lang_memory *m, uint64_t addr, uint32_t size);
/*
 * Read the queued pieces in one call; behind a piece that cannot be read, in
 * another. False: no call is left.
 */
bool lang_memory_fetch(struct lang_memory *m);
/* The bytes of piece @piece; NULL: not read. */
const uint8_t *lang_memory_piece(const struct lang_memory *m, int piece);
/* The bytes at @addr if they are in a piece from number @first to @end; NULL. */
const uint8_t *lang_memory_bytes(const struct lang_memory *m, uint32_t first, uint32_t end,
				 uint64_t addr, uint32_t size);
/* Queue and fetch one piece; NULL: it cannot be read. */
const uint8_t *lang_memory_read(struct lang_memory *m, uint64_t addr, uint32_t size);

static inline uint64_t lang_memory_u64(const uint8_t *bytes)
{
	uint64_t value;

	__builtin_memcpy(&value, bytes, sizeof(value));
	return value;
}

static inline uint32_t lang_memory_u32(const uint8_t *bytes)
{
	uint32_t value;

	__builtin_memcpy(&value, bytes, sizeof(value));
	return value;
}

/* Could a pointer to an object be this? User half, aligned, not the first page. */
static inline bool lang_memory_is_pointer(uint64_t addr)
{
	return addr >= 4096 && addr < 1ULL << 56 && !(addr & 7);
}

#endif
