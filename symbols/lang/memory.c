// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Gather and fetch pieces of memory.
 *
 * Runs on: a reader. Invariants: pieces below m->fetched were requested; they, and
 * LANG_BYTES_BEHIND bytes behind each, have no byte of an earlier sample, which may be another
 * user's.
 */
#include "symbols/lang/memory.h"

#include <string.h>

#define PROBES 8

void lang_memory_begin(struct lang_memory *m)
{
	m->nr = m->fetched = m->used_bytes = m->calls = 0;
	m->error = 0;
	m->any_ahead = false;
	m->tail_first = m->tail_end = 0;
	memset(m->tail, 0, sizeof(m->tail));
}

int lang_memory_queue(struct lang_memory *m, uint64_t addr, uint32_t size,
		      enum lang_piece_kind kind)
{
	if (m->nr == LANG_PIECES_MAX || !size || size > LANG_PIECE_MAX ||
	    size > LANG_BYTES_MAX - m->used_bytes || addr < 4096 || addr >= 1ULL << 56)
		return -1;
	m->pieces[m->nr] = (struct lang_piece){ addr, size, m->used_bytes };
	m->read_whole[m->nr] = false;
	m->kind[m->nr] = (uint8_t)kind;
	/* A piece may end inside a word: the rest of that must not be of an earlier sample. */
	if (size & 7)
		memset(m->bytes + m->used_bytes + (size & ~7U), 0, 8);
	m->used_bytes += (size + 7) & ~7U;
	if (m->used_bytes > LANG_BYTES_MAX)
		m->used_bytes = LANG_BYTES_MAX;
	return (int)m->nr++;
}

static uint32_t slot_of(uint64_t addr)
{
	return (uint32_t)hash_u64(addr) & (LANG_MEMORY_SLOTS - 1);
}

int lang_memory_want_ahead(struct lang_memory *m, uint64_t addr, uint32_t size)
{
	uint32_t at = slot_of(addr);
	int piece = lang_memory_queue(m, addr, size, PIECE_AHEAD);

	if (piece < 0)
		return piece;
	if (!m->any_ahead)
		memset(m->slots, 0, sizeof(m->slots));
	m->any_ahead = true;
	/* A piece without a slot would only be read twice. */
	for (int i = 0; i < PROBES && m->slots[at]; i++)
		at = (at + 1) & (LANG_MEMORY_SLOTS - 1);
	m->slots[at] = (uint16_t)(piece + 1);
	return piece;
}

static int find_ahead(const struct lang_memory *m, uint64_t addr, uint32_t size)
{
	uint32_t at = slot_of(addr);

	for (int i = 0; i <= PROBES && m->slots[at]; i++) {
		int piece = m->slots[at] - 1;

		if (m->pieces[piece].addr == addr && m->pieces[piece].size == size)
			return piece;
		at = (at + 1) & (LANG_MEMORY_SLOTS - 1);
	}
	return -1;
}

static int want(struct lang_memory *m, uint64_t addr, uint32_t size, enum lang_piece_kind kind)
{
	int piece = m->any_ahead ? find_ahead(m, addr, size) : -1;

	if (piece < 0)
		return lang_memory_queue(m, addr, size, kind);
	m->kind[piece] = (uint8_t)kind;
	return piece;
}

int lang_memory_want(struct lang_memory *m, uint64_t addr, uint32_t size)
{
	return want(m, addr, size, PIECE_NEEDED);
}

int lang_memory_want_once(struct lang_memory *m, uint64_t addr, uint32_t size)
{
	return want(m, addr, size, PIECE_ONCE);
}

void lang_memory_set_tail(struct lang_memory *m, int i, uint64_t addr, uint32_t size)
{
	m->tail[i].addr = addr;
	m->tail[i].size = size;
}

static void queue_tail(struct lang_memory *m)
{
	m->tail_first = m->nr;
	for (int i = 0; i < LANG_TAIL; i++)
		lang_memory_queue(m, m->tail[i].addr, m->tail[i].size, PIECE_TAIL);
	m->tail_end = m->nr;
}

/* Clear a piece that could not be read: decoders may look at it behind the piece before. */
static void clear(struct lang_memory *m, uint32_t piece)
{
	memset(m->bytes + m->pieces[piece].at, 0, m->pieces[piece].size);
}

/* Read all pieces that are queued. */
static bool fetch(struct lang_memory *m)
{
	if (m->fetched < m->nr)
		memset(m->bytes + m->used_bytes, 0, LANG_BYTES_BEHIND);
	while (m->fetched < m->nr) {
		const int wanted = (int)MIN(m->nr - m->fetched, LANG_READ_MAX);
		int nr;

		if (m->calls == LANG_CALLS_MAX) {
			memset(m->bytes + m->pieces[m->fetched].at, 0, LANG_BYTES_BEHIND);
			return false;
		}
		m->calls++;
		nr = m->read(m->ctx, m->pieces + m->fetched, (uint32_t)wanted, m->bytes);
		m->error = nr < 0 ? nr : 0;
		nr = MAX(MIN(nr, wanted), 0);
		memset(m->read_whole + m->fetched, true, (size_t)nr);
		m->fetched += (uint32_t)nr;
		if (nr < wanted)
			clear(m, m->fetched++);
	}
	return true;
}

bool lang_memory_fetch(struct lang_memory *m)
{
	if (m->fetched == m->nr)
		return true;
	queue_tail(m);
	return fetch(m);
}

bool lang_memory_fetch_tail(struct lang_memory *m)
{
	queue_tail(m);
	return fetch(m);
}

const uint8_t *lang_memory_piece(const struct lang_memory *m, int piece)
{
	return piece >= 0 && (uint32_t)piece < m->fetched && m->read_whole[piece]
		       ? m->bytes + m->pieces[piece].at
		       : NULL;
}

const uint8_t *lang_memory_bytes(const struct lang_memory *m, uint32_t first, uint32_t end,
				 uint64_t addr, uint32_t size)
{
	for (uint32_t i = first; i < end; i++) {
		const struct lang_piece *p = &m->pieces[i];
		uint64_t at = addr - p->addr; /* too large if it is below */

		if (at < p->size && size <= p->size - at && m->read_whole[i])
			return m->bytes + p->at + at;
	}
	return NULL;
}

const uint8_t *lang_memory_read(struct lang_memory *m, uint64_t addr, uint32_t size)
{
	int piece = lang_memory_want(m, addr, size);

	return piece >= 0 && lang_memory_fetch(m) ? lang_memory_piece(m, piece) : NULL;
}
