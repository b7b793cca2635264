// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Heads, types and strings of V8's heap. Runs on: a reader.
 */
#include "symbols/lang/v8objects.h"

/* Queue the type of an object with this map. */
static void want_type(struct lang_memory *m, const struct lang_process *p, struct v8_types *t,
		      uint64_t map)
{
	for (uint32_t i = t->nr; i-- > 0;)
		if (t->map[i] == map)
			return;
	if (t->nr == V8_MAPS_MAX || !v8objects_is_tagged(map))
		return;
	t->map[t->nr] = map;
	t->piece[t->nr++] = lang_memory_want(m, map - 1 + (uint64_t)p->v8.number[V8_MAP_TYPE], 2);
}

void v8objects_want_type(struct lang_memory *m, const struct lang_process *p, struct v8_types *t,
			 int piece)
{
	const uint8_t *head = lang_memory_piece(m, piece);

	if (head)
		want_type(m, p, t, bytes_u64(head));
}

/* The type of an object with this map; -1: unknown. */
static int type_of(const struct lang_memory *m, const struct v8_types *t, uint64_t map)
{
	for (uint32_t i = t->nr; i-- > 0;) {
		const uint8_t *bytes = t->map[i] == map ? lang_memory_piece(m, t->piece[i]) : NULL;

		if (bytes)
			return bytes[0] | bytes[1] << 8;
	}
	return -1;
}

int v8objects_type(const struct lang_memory *m, const struct v8_types *t, int piece)
{
	const uint8_t *head = lang_memory_piece(m, piece);

	return head ? type_of(m, t, bytes_u64(head)) : -1;
}

void v8objects_want_head(struct lang_memory *m, uint64_t tagged, uint32_t size, int *piece)
{
	*piece = v8objects_is_tagged(tagged) ? v8objects_want(m, tagged - 1, size) : -1;
}

int v8objects_want(struct lang_memory *m, uint64_t addr, uint32_t size)
{
	uint64_t left = V8_PAGE - addr % V8_PAGE;

	return lang_memory_want(m, addr, (uint32_t)MIN((uint64_t)size, left));
}

const uint8_t *v8objects_whole(const struct lang_memory *m, int piece, uint32_t size)
{
	const uint8_t *bytes = lang_memory_piece(m, piece);

	return bytes && m->pieces[piece].size >= size ? bytes : NULL;
}

void v8objects_follow(struct lang_memory *m, const struct lang_process *p, const struct v8_types *t,
		      int *piece, bool *again)
{
	int type = v8objects_type(m, t, *piece);
	const int16_t *n = p->v8.number;
	int at;

	if (type < 0 || type >= V8_STRING_TYPES)
		return;
	if ((type & V8_STRING_SHAPE) == V8_STRING_THIN)
		at = n[V8_THIN_ACTUAL];
	else if ((type & V8_STRING_SHAPE) == V8_STRING_CONS)
		at = n[V8_CONS_FIRST];
	else
		return;
	v8objects_want_head(m, bytes_u64(lang_memory_piece(m, *piece) + at), V8_HEAD, piece);
	*again = true;
}

uint32_t v8objects_length(const struct lang_memory *m, const struct lang_process *p, int piece)
{
	const uint8_t *head = lang_memory_piece(m, piece);

	return head ? bytes_u32(head + p->v8.number[V8_STRING_LENGTH]) : 0;
}
