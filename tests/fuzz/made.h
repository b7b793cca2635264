/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A made-up process and its reader, as new for each input: only the bytes that the last input has
 * changed are put back, since all of them are 1.8 MiB.
 */
#ifndef TESTS_FUZZ_MADE_H
#define TESTS_FUZZ_MADE_H

#include <stddef.h>

#include "tests/symbols/pymake.h"

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

/* Make @r a reader of @m that knows nothing yet. False: out of memory. */
static inline bool made_reader(struct lang_reader *r, struct pymake *m)
{
	for (uint32_t i = 0; i < LANG_THREADS; i++)
		if (r->threads[i].process)
			memset(&r->threads[i], 0, sizeof(r->threads[i]));
	for (uint32_t i = 0; i < LANG_KNOWN; i++)
		if (r->known[i].process)
			memset(&r->known[i], 0, sizeof(r->known[i]));
	memset(r->replaces, 0, sizeof(r->replaces));
	r->next_way = 0;
	r->memory.read = pymake_read;
	r->memory.ctx = m;
	r->codes = codes_new();
	return r->codes;
}

#endif
