// SPDX-License-Identifier: GPL-2.0-or-later
/* Strings of V8 in parts. Runs on: a reader. */
#include "symbols/lang/v8rope.h"

#include <string.h>

struct v8_rope v8rope_of(int piece)
{
	return (struct v8_rope){ .head = { piece }, .nr = piece >= 0 };
}

void v8rope_want_types(struct lang_memory *m, const struct lang_process *p, struct v8_types *t,
		       const struct v8_rope *rope)
{
	for (uint32_t i = 0; i < rope->nr; i++)
		v8objects_want_type(m, p, t, rope->head[i]);
}

/* Put the two strings of part @i in its place. Return how many they are. */
static uint32_t split(struct lang_memory *m, const struct lang_process *p, struct v8_rope *rope,
		      uint32_t i)
{
	const uint8_t *head = lang_memory_piece(m, rope->head[i]);
	uint64_t first = bytes_u64(head + p->v8.number[V8_CONS_FIRST]);
	uint64_t second = bytes_u64(head + p->v8.number[V8_CONS_SECOND]);

	v8objects_want_head(m, first, V8_HEAD, &rope->head[i]);
	if (rope->nr == V8_ROPE_MAX) {
		rope->nr = i + 1;
		rope->is_cut = true;
		return 1;
	}
	memmove(rope->head + i + 2, rope->head + i + 1, (rope->nr - i - 1) * sizeof(rope->head[0]));
	rope->nr++;
	v8objects_want_head(m, second, V8_HEAD, &rope->head[i + 1]);
	return 2;
}

void v8rope_follow(struct lang_memory *m, const struct lang_process *p, const struct v8_types *t,
		   struct v8_rope *rope, bool *again)
{
	for (uint32_t i = 0, nr; i < rope->nr; i += nr) {
		int type = v8objects_type(m, t, rope->head[i]);

		nr = 1;
		if (type >= 0 && type < V8_STRING_TYPES &&
		    (type & V8_STRING_SHAPE) == V8_STRING_CONS) {
			nr = split(m, p, rope, i);
			*again = true;
		} else {
			v8objects_follow(m, p, t, &rope->head[i], again);
		}
	}
}

/* Set @text to a flat string; an empty one for another object. False: it is not flat. */
static bool set_flat(const struct lang_memory *m, const struct lang_process *p,
		     const struct v8_types *t, int piece, struct lang_text *text)
{
	int type = v8objects_type(m, t, piece);
	uint32_t length = MIN(v8objects_length(m, p, piece), (uint32_t)CODES_TEXT_MAX);

	text->size = 0;
	if (piece < 0 || type >= V8_STRING_TYPES)
		return true;
	if (type < 0 || type & V8_STRING_SHAPE)
		return false;
	text->addr = m->pieces[piece].addr + (uint64_t)p->v8.number[V8_STRING_CHARS];
	text->encoding = type & V8_STRING_LATIN1 ? LANG_LATIN1 : LANG_UTF16;
	text->size = type & V8_STRING_LATIN1 ? length : 2 * length;
	return true;
}

bool v8rope_want_text(struct lang_memory *m, const struct lang_process *p, const struct v8_types *t,
		      struct v8_rope *rope, struct lang_text *text)
{
	uint32_t size = 0;

	for (uint32_t i = 0; i < rope->nr; i++) {
		if (rope->head[i] >= 0 && v8objects_type(m, t, rope->head[i]) < 0)
			return false;
		if (!set_flat(m, p, t, rope->head[i], text)) {
			/* Too deep, or not in this heap. */
			rope->nr = i;
			rope->is_cut = true;
			break;
		}
		size += text->size;
	}
	if (rope->nr == 1 && !rope->is_cut)
		return true;
	for (uint32_t i = 0; i < rope->nr; i++) {
		set_flat(m, p, t, rope->head[i], text);
		rope->bytes[i] = text->size ? lang_memory_want(m, text->addr, text->size) : -1;
	}
	text->size = size;
	return true;
}

void v8rope_set_text(const struct lang_memory *m, const struct lang_process *p,
		     const struct v8_types *t, const struct v8_rope *rope, char **room,
		     struct lang_text *text)
{
	static const struct lang_text dots = { .fixed = "..." };
	uint16_t size = 0;
	char *out = *room;

	if ((rope->nr <= 1 && !rope->is_cut) || !text->size || text->fixed)
		return;
	for (uint32_t i = 0; i < rope->nr; i++) {
		struct lang_text part = { .piece = rope->bytes[i] };

		set_flat(m, p, t, rope->head[i], &part);
		size = functions_put_text(m, &part, out, size);
	}
	if (rope->is_cut)
		size = functions_put_text(m, &dots, out, size);
	out[size] = '\0';
	text->fixed = out;
	text->size = 0;
	*room += size + 1;
}
