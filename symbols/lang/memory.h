/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pieces of another process's memory: queued, then fetched in one call. Bounded
 * in pieces, bytes and calls. Pieces that earlier samples needed can be queued
 * ahead; one that is needed again is then there without a call. Each call ends
 * with the tail, so that nothing was read after the tail of the last call.
 *
 * One thread. No allocation. Pieces are valid until lang_memory_begin().
 */
#ifndef SYMBOLS_LANG_MEMORY_H
#define SYMBOLS_LANG_MEMORY_H

#include "symbols/base/base.h"
#include "symbols/base/bytes.h"

#define LANG_PIECES_MAX 4096U
#define LANG_READ_MAX	1024U /* pieces of a call: IOV_MAX */
#define LANG_BYTES_MAX	(512U << 10)
#define LANG_PIECE_MAX	(16U << 10)
/*
 * A decoder may read up to this far behind the end of a piece: there are other pieces of this
 * sample, or zeros.
 */
#define LANG_BYTES_BEHIND 256U
#define LANG_CALLS_MAX	  32U /* 1 to 3 us each, while the thread is preempted */

#define LANG_MEMORY_SLOTS 256U /* a power of two, more than pieces queued ahead */

struct lang_piece {
	uint64_t addr;
	uint32_t size, at; /* at: in bytes */
};

enum lang_piece_kind {
	PIECE_AHEAD, /* nothing has needed it */
	PIECE_NEEDED,
	PIECE_ONCE,   /* needed, but not at the next samples */
	PIECE_WINDOW, /* on frames */
	PIECE_TAIL,
};

#define LANG_TAIL 3

/*
 * Read @nr pieces, at most LANG_READ_MAX, in order into @bytes at their places; returns how many
 * were read whole before the first that was not, or -errno.
 */
typedef int (*lang_read_fn)(void *ctx, const struct lang_piece *pieces, uint32_t nr,
			    uint8_t *bytes);

struct lang_memory {
	lang_read_fn read;
	void *ctx;
	uint32_t nr, fetched, used_bytes, calls;
	bool any_ahead;
	int error; /* of the last call; 0 */
	struct lang_piece pieces[LANG_PIECES_MAX];
	bool read_whole[LANG_PIECES_MAX];
	uint8_t kind[LANG_PIECES_MAX];	   /* enum lang_piece_kind */
	struct lang_piece tail[LANG_TAIL]; /* size 0: none */
	uint32_t tail_first, tail_end;	   /* pieces of the last call */
	uint16_t slots[LANG_MEMORY_SLOTS]; /* pieces queued ahead, by address: number + 1 */
	uint8_t bytes[LANG_BYTES_MAX + LANG_BYTES_BEHIND];
};

/* Forget all pieces, before another thread or process. */
void lang_memory_begin(struct lang_memory *m);
/*
 * Queue a piece, unless it was queued ahead; returns its number, -1: full, or an impossible
 * address.
 */
int lang_memory_want(struct lang_memory *m, uint64_t addr, uint32_t size);
/* The same for a piece that the next samples do not need. */
int lang_memory_want_once(struct lang_memory *m, uint64_t addr, uint32_t size);
/* Queue a piece that a later lang_memory_want() may need; as lang_memory_want(). */
int lang_memory_want_ahead(struct lang_memory *m, uint64_t addr, uint32_t size);
/* Queue a piece, also if it was read before. */
int lang_memory_queue(struct lang_memory *m, uint64_t addr, uint32_t size,
		      enum lang_piece_kind kind);
/* Set a piece of the tail. */
void lang_memory_set_tail(struct lang_memory *m, int i, uint64_t addr, uint32_t size);
/*
 * Read the queued pieces and the tail in one call; behind a piece that cannot be read, in
 * another. False: no call is left.
 */
bool lang_memory_fetch(struct lang_memory *m);
/* Read the tail again, alone. */
bool lang_memory_fetch_tail(struct lang_memory *m);
/* The bytes of piece @piece; NULL: not read. */
const uint8_t *lang_memory_piece(const struct lang_memory *m, int piece);
/* The bytes at @addr if they are in a piece from number @first to @end; NULL. */
const uint8_t *lang_memory_bytes(const struct lang_memory *m, uint32_t first, uint32_t end,
				 uint64_t addr, uint32_t size);
/* Queue and fetch one piece; NULL: it cannot be read. */
const uint8_t *lang_memory_read(struct lang_memory *m, uint64_t addr, uint32_t size);

/* Return whether this may be a pointer to an object: user half, aligned, not the first page. */
static inline bool lang_memory_is_pointer(uint64_t addr)
{
	return addr >= 4096 && addr < 1ULL << 56 && !(addr & 7);
}

#endif
