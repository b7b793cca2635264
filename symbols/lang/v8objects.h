/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Objects of V8's heap: heads, types by maps, strings. Read in steps: pieces are there after the
 * next lang_memory_fetch().
 *
 * Runs on: a reader. Hostile memory.
 */
#ifndef SYMBOLS_LANG_V8OBJECTS_H
#define SYMBOLS_LANG_V8OBJECTS_H

#include "symbols/lang/lang.h"
#include "symbols/lang/memory.h"

#define V8_MAPS_MAX 128
#define V8_PAGE	    (256U << 10)
/* The kinds of strings, in the lower bits of their types; sequential ones are 0. */
#define V8_STRING_TYPES	   128
#define V8_STRING_SHAPE	   7
#define V8_STRING_CONS	   1
#define V8_STRING_EXTERNAL 2
#define V8_STRING_THIN	   5
#define V8_STRING_LATIN1   8
/* How many strings stand for another one. */
#define V8_STRING_DEPTH 2

/* Types of objects by their maps, as they are queued. */
struct v8_types {
	uint32_t nr;
	uint64_t map[V8_MAPS_MAX];
	int piece[V8_MAPS_MAX];
};

/* Return whether @value may be a pointer to an object. */
static inline bool v8objects_is_tagged(uint64_t value)
{
	return lang_memory_is_pointer(value - 1);
}

static inline bool v8objects_is_smi(uint64_t value)
{
	return !(value << 32);
}

/* Queue the type of the object with its head in @piece. */
void v8objects_want_type(struct lang_memory *m, const struct lang_process *p, struct v8_types *t,
			 int piece);
/* The type of the object with its head in @piece; -1: unknown. */
int v8objects_type(const struct lang_memory *m, const struct v8_types *t, int piece);
/*
 * Queue @size bytes, but none of the next page of the heap, which may not be mapped: no object is
 * in both. The rest is then of another piece, or 0, and no part of an object.
 */
int v8objects_want(struct lang_memory *m, uint64_t addr, uint32_t size);
/* The same: the head of the object at @tagged; -1: no object. */
void v8objects_want_head(struct lang_memory *m, uint64_t tagged, uint32_t size, int *piece);
/* The bytes of a piece; NULL: not read, or fewer than @size, so that it is no such object. */
const uint8_t *v8objects_whole(const struct lang_memory *m, int piece, uint32_t size);
/*
 * Follow a string that refers to another one (*again: its head was queued), or to the first of the
 * two that it is: if the second is not empty, its length is another one.
 */
void v8objects_follow(struct lang_memory *m, const struct lang_process *p, const struct v8_types *t,
		      int *piece, bool *again);
/* The length of the string with its head in @piece. */
uint32_t v8objects_length(const struct lang_memory *m, const struct lang_process *p, int piece);

#endif
