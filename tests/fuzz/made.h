/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A made-up process and its reader, as new for each input: only the bytes that the last input has
 * changed are put back, since all of them are 1.8 MiB.
 */
#ifndef TESTS_FUZZ_MADE_H
#define TESTS_FUZZ_MADE_H

#include <stddef.h>
#include <stdlib.h>

#include "tests/makers/cpython.h"
#include "symbols/base/base.h"
#include "symbols/script/internal.h"

/* Have @m as @image, as which the last input has left it, or as another one. */
static inline void made_begin(struct pymake *m, const struct pymake *image)
{
	static const struct pymake *last;

	if (last != image)
		memcpy(m, image, sizeof(*m));
	last = image;
}

/* Put 8 bytes back. */
static inline void made_undo(struct pymake *m, const struct pymake *image, uint32_t at)
{
	memcpy(m->bytes + at, image->bytes + at, 8);
}

/* Put back all but the bytes. */
static inline void made_end(struct pymake *m, const struct pymake *image)
{
	size_t from = offsetof(struct pymake, end);

	memcpy((uint8_t *)m + from, (const uint8_t *)image + from, sizeof(*m) - from);
}

/* Known code that this input may have set. */
struct made_known {
	struct lang_known *list[16 * LANG_FRAMES_MAX];
	uint32_t nr;
};

static inline struct made_known *made_known(void)
{
	static struct made_known known;

	return &known;
}

/* Note the code of a chain, after each lang_chain(): to look at all known code is slow. */
static inline void made_note(const struct lang_reader *r)
{
	struct made_known *k = made_known();

	for (uint32_t i = 0; i < r->work.nr_codes && k->nr < ARRAY_SIZE(k->list); i++)
		k->list[k->nr++] = r->work.script_functions_of[i].known;
}

/* Forget @nr threads; return how many there were. */
static inline uint32_t made_forget(struct lang_thread *t, uint32_t nr)
{
	uint32_t had = 0;

	for (uint32_t i = 0; i < nr; i++) {
		if (!t[i].process)
			continue;
		memset(&t[i], 0, sizeof(t[i]));
		had++;
	}
	return had;
}

/* Forget the threads of process 1: mostly only @tid. */
static inline void made_forget_threads(struct lang_reader *r, pid_t tid)
{
	uint64_t hash = hash_u64(1ULL << 32 ^ (uint32_t)tid);

	if (made_forget(&r->threads[hash & (LANG_THREADS - LANG_WAYS)], LANG_WAYS) < r->next_way)
		made_forget(r->threads, LANG_THREADS);
	r->next_way = 0;
}

static inline void made_forget_known(struct lang_reader *r)
{
	struct made_known *k = made_known();
	static uint32_t inputs;

	for (uint32_t i = 0; i < k->nr; i++)
		memset(k->list[i], 0, sizeof(*k->list[i]));
	k->nr = 0;
	if (++inputs % 1024)
		return;
	/* None was missed. */
	for (uint32_t i = 0; i < LANG_KNOWN; i++)
		if (r->known[i].process)
			abort();
}

/* Make @r a reader of @m that knows nothing yet, for process 1 and thread 42. False: no memory. */
static inline bool made_reader(struct lang_reader *r, struct pymake *m)
{
	made_forget_threads(r, 42);
	made_forget_known(r);
	memset(r->replaces, 0, sizeof(r->replaces));
	memset(r->searches, 0, sizeof(r->searches));
	r->memory.read = pymake_read;
	r->memory.ctx = m;
	r->codes = script_functions_new();
	return r->codes;
}

#endif
