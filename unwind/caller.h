/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Find the caller of one frame: by its row, by libunwind, by the layout of Java's or V8's code, or
 * by a guess.
 *
 * Private to unwind/. Runs on the sampler thread that owns the unwinder.
 */
#ifndef UNWIND_CALLER_H
#define UNWIND_CALLER_H

#include <assert.h>

#include "unwind/internal.h"

/* The state of one walk over a stack. Everything in it is borrowed from the caller of walk_stack().
 */
struct walk {
	struct unwinder *u;
	const struct unwind_input *in;
	struct unwind_result *out;
	struct stack_copy copy;
	const struct mapping *mapping; /* of the current frame */
	uint64_t serial;	       /* of the space */
	uint64_t pc;		       /* look-up pc of the current frame */
	uint64_t offset;	       /* of pc in its object */
	uint32_t place;
	uint32_t row_hits, steps;
	uint32_t clock;	     /* time stamp for object_touch() */
	uint8_t rewrites;    /* frames that may have been rewritten */
	uint8_t word;	     /* of the process: 8 or 4 */
	bool exact;	     /* pc is the instruction itself, not a return address */
	bool guessed;	     /* the current frame was found by a guess */
	bool crossed;	     /* a signal frame was passed: this may be another stack */
	bool dropped;	     /* rows have dropped registers that a step may need */
	bool rows;	     /* use them */
	struct arch_frame f; /* the current frame; last, since it is loaded, not cleared */
};

/* Add the current frame to the result; not beyond UNWIND_FRAMES_MAX. */
static inline void caller_add_frame(struct walk *w, uint64_t pc, uint64_t sp, uint32_t place,
				    const struct mapping *mapping)
{
	struct unwind_result *out = w->out;

	assert(out->nr < UNWIND_FRAMES_MAX);
	if (mapping)
		object_touch(mapping->object, w->clock);
	out->ip[out->nr] = pc;
	out->sp[out->nr] = sp;
	out->place[out->nr++] = place;
}

/* Return the recent look-up of @pc in this space, or NULL. */
static inline const struct recent_entry *caller_recent(const struct walk *w, uint64_t pc)
{
	const struct recent_entry *r = recent_slot(&w->u->recent, w->serial, pc);

	return recent_answers(r, w->serial, pc, w->in->time_ns) ? r : NULL;
}

/*
 * Replace the current frame by that of its caller. Return WALK_ON; WALK_AGAIN (call again: the
 * place has a row now), WALK_REDO, or the reason to stop.
 */
int caller_find(struct walk *w);

/*
 * Return true if the kernel executes the return from a signal handler: the pc of the innermost
 * frame is behind the system call, where another function may begin.
 */
bool caller_in_sigreturn(const struct walk *w);
#endif
