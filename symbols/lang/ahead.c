// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory read ahead: at a sample, the pieces that the thread's last samples needed are
 * read in the first call. If nothing else is needed, one call is all.
 *
 * Runs on: a reader.
 */
#include "symbols/script/script.h"

#include <string.h>

#include "symbols/base/search.h"

#define PAGE 4096ULL
/* Larger pieces are texts, which are needed once. */
#define MORE_SIZE 256U
/* A piece that this many samples did not need is not read ahead. */
#define IDLE_MAX 2

void ahead_want(struct lang_reader *r, struct lang_thread *t, const struct lang_sample *s)
{
	struct lang_memory *m = &r->memory;
	struct lang_work *w = &r->work;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < t->nr_ahead; i++) {
		lang_memory_queue(m, t->ahead[i].addr, t->ahead[i].size, PIECE_WINDOW);
		if (++t->idle_ahead[i] > IDLE_MAX)
			continue;
		t->ahead[nr] = t->ahead[i];
		t->idle_ahead[nr++] = t->idle_ahead[i];
	}
	t->nr_ahead = nr;
	for (uint32_t i = 0; i < t->nr_more; i++)
		w->more[i] = lang_memory_want_ahead(m, t->more[i].addr, t->more[i].size);
	w->first_new = m->nr;
	for (int i = 0; i < 2; i++)
		lang_memory_set_tail(m, i, t->again[i].addr, t->again[i].size);
	lang_memory_set_tail(m, 2, s->sp, (uint32_t)MIN(t->compared, s->stack_size) & ~7U);
}

/* Move the last of @nr pieces to its place by address: near ones are read as one. */
static void insert_sorted(struct lang_ahead *pieces, uint8_t *idle, uint32_t nr)
{
	struct lang_ahead last = pieces[nr - 1];
	uint32_t at = search_split(nr - 1, i, pieces[i].addr <= last.addr);

	memmove(pieces + at + 1, pieces + at, (nr - 1 - at) * sizeof(*pieces));
	memmove(idle + at + 1, idle + at, nr - 1 - at);
	pieces[at] = last;
	idle[at] = 0;
}

/* Read this piece ahead at the next sample. */
static void keep_window(const struct lang_memory *m, struct lang_thread *t, uint32_t piece)
{
	const struct lang_piece *p = &m->pieces[piece];

	for (uint32_t i = 0; i < t->nr_ahead; i++) {
		if (t->ahead[i].addr != p->addr)
			continue;
		t->ahead[i].size = MAX(t->ahead[i].size, p->size);
		t->idle_ahead[i] = 0;
		return;
	}
	if (t->nr_ahead == LANG_AHEAD)
		return;
	t->ahead[t->nr_ahead++] = (struct lang_ahead){ p->addr, p->size };
	insert_sorted(t->ahead, t->idle_ahead, t->nr_ahead);
}

/* Find the bytes of a frame in the windows read so far. */
static const uint8_t *find_frame(const struct lang_memory *m, struct lang_thread *t, uint64_t addr,
				 uint32_t size)
{
	for (uint32_t i = 0; i < m->fetched; i++) {
		const uint8_t *bytes;

		if (m->kind[i] != PIECE_WINDOW)
			continue;
		bytes = lang_memory_bytes(m, i, i + 1, addr, size);
		if (!bytes)
			continue;
		keep_window(m, t, i);
		return bytes;
	}
	return NULL;
}

const uint8_t *ahead_frame(struct lang_reader *r, struct lang_thread *t, uint64_t addr,
			   uint32_t size, bool alone)
{
	struct lang_memory *m = &r->memory;
	uint32_t page = (uint32_t)(addr & (PAGE - 1));
	const uint8_t *bytes = find_frame(m, t, addr, size);

	if (bytes)
		return bytes;
	if (alone) {
		lang_memory_queue(m, addr, size, PIECE_WINDOW);
	} else {
		/* Its callers are below it, mostly. */
		lang_memory_queue(m, addr - page, page + size, PIECE_WINDOW);
		if (page < PAGE / 2)
			lang_memory_queue(m, addr - page - PAGE, PAGE, PIECE_WINDOW);
	}
	return lang_memory_fetch(m) ? find_frame(m, t, addr, size) : NULL;
}

/* The piece to read for the bytes @a: the window on them, if there is one. */
static struct lang_ahead around(const struct lang_thread *t, const struct lang_ahead *a)
{
	for (uint32_t i = 0; i < t->nr_ahead; i++)
		if (a->addr >= t->ahead[i].addr &&
		    a->addr + a->size <= t->ahead[i].addr + t->ahead[i].size)
			return t->ahead[i];
	return *a;
}

static void keep_more(const struct lang_memory *m, const struct lang_work *w, struct lang_thread *t)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < t->nr_more; i++) {
		bool needed = w->more[i] >= 0 && m->kind[w->more[i]] == PIECE_NEEDED;
		uint8_t idle = needed ? 0 : (uint8_t)(t->idle_more[i] + 1);

		if (idle > IDLE_MAX)
			continue;
		t->more[nr] = t->more[i];
		t->idle_more[nr++] = idle;
	}
	for (uint32_t i = w->first_new; i < m->nr && nr < LANG_MORE; i++) {
		if (m->kind[i] != PIECE_NEEDED || m->pieces[i].size > MORE_SIZE)
			continue;
		t->more[nr++] = (struct lang_ahead){ m->pieces[i].addr, m->pieces[i].size };
		insert_sorted(t->more, t->idle_more, nr);
	}
	t->nr_more = nr;
}

void ahead_keep(const struct lang_reader *r, struct lang_thread *t, uint32_t compared)
{
	const struct lang_work *w = &r->work;

	keep_more(&r->memory, w, t);
	for (size_t i = 0; i < ARRAY_SIZE(t->again); i++)
		t->again[i] = w->first_read[i] ? around(t, &w->again[i])
					       : (struct lang_ahead){ 0, 0 };
	/* Follow a deeper stack now, a flatter one slowly: another call costs more than 1 KiB. */
	t->compared = compared > t->compared ? compared
					     : t->compared - (t->compared - compared) / 128;
}
