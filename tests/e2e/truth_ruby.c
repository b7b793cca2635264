// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Ruby's chain of frames, by its interface for profilers. A block has the name of its method there,
 * and eval the file of its caller. See tests/lang_truth_trap.h.
 */
#include <pthread.h>
#include <ruby.h>
#include <ruby/debug.h>
#include <ruby/thread.h>

#include "tests/lang_truth_trap.h"

#define IS_TEXT(value, text)                                                                       \
	(RSTRING_LEN(value) == sizeof(text) - 1 &&                                                 \
	 !memcmp(RSTRING_PTR(value), text, sizeof(text) - 1))

/* Is @sp on the stack that the thread began with? */
static int is_first_stack(uintptr_t sp)
{
	static uintptr_t low, high;
	pthread_attr_t attr;
	void *base;
	size_t size;

	if (!high && !pthread_getattr_np(pthread_self(), &attr)) {
		pthread_attr_getstack(&attr, &base, &size);
		low = (uintptr_t)base;
		high = low + size;
	}
	return sp >= low && sp < high;
}

static void truth_walk(struct truth_entry *e, const ucontext_t *context)
{
	VALUE frames[TRUTH_FRAMES + 1];
	int lines[TRUTH_FRAMES + 1], nr, is_main = 0;

	if (!ruby_native_thread_p())
		return;
	nr = rb_profile_frames(0, TRUTH_FRAMES + 1, frames, lines);
	/* The frame that the interpreter begins with has no statement. */
	if (nr && !lines[nr - 1])
		nr--;
	for (int i = 0; i < nr; i++) {
		VALUE first = rb_profile_frame_first_lineno(frames[i]), label, path;

		if (NIL_P(first)) /* in C */
			continue;
		label = rb_profile_frame_base_label(frames[i]);
		path = rb_profile_frame_path(frames[i]);
		is_main = IS_TEXT(label, "<main>");
		truth_put(e, 0, NULL, 0, RSTRING_PTR(label), RSTRING_LEN(label), RSTRING_PTR(path),
			  RSTRING_LEN(path), lines[i]);
	}
	/* While it changes to another fiber the frames may be of one, the C stack of the other. */
	if (e->tid == getpid() &&
	    is_main != is_first_stack((uintptr_t)context->uc_mcontext.gregs[REG_RSP]))
		e->cut = 1;
}
