/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names and paths of V8: strings that may be two others, which may be two others again, as names by
 * assignment are ("Controller" and ".handle"). Read in steps, as v8objects.h has them.
 *
 * Runs on: a reader. Hostile memory.
 */
#ifndef SYMBOLS_LANG_V8ROPE_H
#define SYMBOLS_LANG_V8ROPE_H

#include "symbols/script/script.h"
#include "symbols/lang/v8objects.h"

#define V8_ROPE_MAX   8U /* flat strings */
#define V8_ROPE_DEPTH 7

struct v8_rope {
	int head[V8_ROPE_MAX], bytes[V8_ROPE_MAX]; /* pieces of the flat strings, in order */
	uint32_t nr;
	bool is_cut; /* it goes on */
};

/* Begin with one string, by the piece of its head; -1: none. */
struct v8_rope v8rope_of(int piece);
/* Queue the types of its strings. */
void v8rope_want_types(struct lang_memory *m, const struct lang_process *p, struct v8_types *t,
		       const struct v8_rope *rope);
/* Put the parts of strings in their places; *again: their heads were queued. */
void v8rope_follow(struct lang_memory *m, const struct lang_process *p, const struct v8_types *t,
		   struct v8_rope *rope, bool *again);
/*
 * Set @text: to the string if it is flat, else to its size, and queue the bytes of the parts. Size
 * 0: an empty string, or another object. False: unreadable now, as while the collector moves it.
 */
bool v8rope_want_text(struct lang_memory *m, const struct lang_process *p, const struct v8_types *t,
		      struct v8_rope *rope, struct lang_text *text);
/* Set the text of a rope that is not flat, with its bytes in *@room, which is cut by them. */
void v8rope_set_text(const struct lang_memory *m, const struct lang_process *p,
		     const struct v8_types *t, const struct v8_rope *rope, char **room,
		     struct lang_text *text);

#endif
