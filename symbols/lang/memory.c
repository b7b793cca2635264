// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Gather and fetch pieces of memory.
 *
 * Runs on: a reader thread. Invariant: pieces below m->fetched were requested.
 */
#include "symbols/lang/memory.h"

#include <string.h>

void lang_memory_begin(struct lang_memory *m)
{
	m->nr = m->fetched = m->used = m->calls = 0;
	m->error = 0;
}

int lang_memory_want(struct lang_memory *m, uint64_t addr, uint32_t size)
{
	if (m->nr == LANG_PIECES_MAX || !size || size > LANG_PIECE_MAX ||
	    size > LANG_BYTES_MAX - m->used || addr < 4096 || addr >= 1ULL << 56)
		return -1;
	m->pieces[m->nr] = (struct lang_piece){ addr, size, m->used };
	m->read_whole[m->nr] = false;
	m->used += (size + 7) & ~7U;
	if (m->used > LANG_BYTES_MAX)
		m->used = LANG_BYTES_MAX;
	return (int)m->nr++;
}

bool lang_memory_fetch(struct lang_memory *m)
{
	while (m->fetched < m->nr) {
		int nr;

		if (m->calls == LANG_CALLS_MAX)
			return false;
		m->calls++;
		nr = m->read(m->ctx, m->pieces + m->fetched, m->nr - m->fetched, m->bytes);
		m->error = nr < 0 ? nr : 0;
		nr = MAX(MIN(nr, (int)(m->nr - m->fetched)), 0);
		memset(m->read_whole + m->fetched, true, (size_t)nr);
		/* The next piece cannot be read. */
		m->fetched = MIN(m->fetched + (uint32_t)nr + 1, m->nr);
	}
	return true;
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

		if (addr >= p->addr && addr - p->addr < p->size &&
		    size <= p->size - (addr - p->addr) && m->read_whole[i])
			return m->bytes + p->at + (addr - p->addr);
	}
	return NULL;
}

const uint8_t *lang_memory_read(struct lang_memory *m, uint64_t addr, uint32_t size)
{
	int piece = lang_memory_want(m, addr, size);

	return piece >= 0 && lang_memory_fetch(m) ? lang_memory_piece(m, piece) : NULL;
}
