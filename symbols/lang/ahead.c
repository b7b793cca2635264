// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory of frames, read ahead: at a sample, the pieces of the thread's last chain
 * are read in the first call.
 *
 * Runs on: a reader thread.
 */
#include "symbols/lang/chain.h"

#define PAGE 4096ULL

uint32_t ahead_want(struct lang_memory *m, const struct lang_thread *t)
{
	uint32_t first = m->nr;

	for (uint32_t i = 0; i < t->nr_ahead; i++)
		lang_memory_want(m, t->ahead[i].addr, t->ahead[i].size);
	return first;
}

/* Read this piece ahead at the next sample. */
static void keep_ahead(const struct lang_memory *m, struct lang_thread *t, uint32_t piece)
{
	const struct lang_piece *p = &m->pieces[piece];

	for (uint32_t i = 0; i < t->nr_ahead; i++)
		if (t->ahead[i].addr == p->addr && t->ahead[i].size >= p->size)
			return;
	if (t->nr_ahead < LANG_AHEAD)
		t->ahead[t->nr_ahead++] = (struct lang_ahead){ p->addr, p->size };
}

const uint8_t *ahead_frame(struct lang_memory *m, struct lang_thread *t, uint32_t first,
			   uint64_t addr, uint32_t size, bool alone)
{
	uint32_t page = (uint32_t)(addr & (PAGE - 1));
	const uint8_t *bytes;
	int piece;

	for (uint32_t i = first; i < m->fetched; i++) {
		bytes = lang_memory_bytes(m, i, i + 1, addr, size);
		if (bytes) {
			keep_ahead(m, t, i);
			return bytes;
		}
	}
	if (alone) {
		piece = lang_memory_want(m, addr, size);
	} else {
		/* Its callers are below it, mostly. */
		piece = lang_memory_want(m, addr - page, page + size);
		if (page < PAGE / 2)
			lang_memory_want(m, addr - page - PAGE, PAGE);
	}
	if (piece < 0 || !lang_memory_fetch(m))
		return NULL;
	bytes = lang_memory_piece(m, piece);
	if (!bytes)
		return NULL;
	keep_ahead(m, t, (uint32_t)piece);
	return lang_memory_bytes(m, (uint32_t)piece, (uint32_t)piece + 1, addr, size);
}
