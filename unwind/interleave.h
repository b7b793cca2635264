/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Native frames and frames of an interpreter's language -> one stack.
 *
 * Each C frame of the interpreter's loop runs a group of frames of the
 * language, innermost first; the k-th group belongs to the k-th C frame. The
 * group is put behind (outside of) its C frame. Pure; hostile numbers.
 */
#ifndef UNWIND_MERGE_H
#define UNWIND_MERGE_H

#include "symbols/lang/lang.h"
#include "unwind/unwind.h"

#define MERGE_FRAMES_MAX (UNWIND_FRAMES_MAX + 256U)
/* In a merged frame: the rest is the index of a language frame, else of a native one. */
#define MERGE_LANG (1U << 31)

enum merge_verdict {
	MERGE_CERTAIN,
	MERGE_GUESSED,
	MERGE_NONE, /* they do not fit: the native frames alone */
};

/* Why a result is a guess: bits. */
enum merge_doubt {
	MERGE_CUT = 1 << 0,	  /* the native stack is not whole, or has guesses */
	MERGE_UNALIGNED = 1 << 1, /* groups and C frames of the loop do not match one to one */
	MERGE_ENTERING = 1 << 2,  /* the loop may not have stored its frame yet */
	MERGE_LATE = 1 << 3,	  /* other threads may have run between sample and read */
	MERGE_BROKEN = 1 << 4,	  /* frames are not in order on their stack */
	MERGE_CHANGED = 1 << 5,	  /* the stack was not that of the sample any more */
	MERGE_UNTRIED = 1 << 6,	  /* a version that was never compared with the truth */
};
#define MERGE_DOUBTS 7

struct merge_result {
	enum merge_verdict verdict;
	uint32_t doubts;
	bool deep; /* there are more frames of the language; native ones beyond them are left out */
	uint32_t nr;
	uint32_t frame[MERGE_FRAMES_MAX];
	uint64_t place[MERGE_FRAMES_MAX]; /* of frames of a language: lang_place() */
};

struct codes;

/*
 * @native as it was unwound. Certain: both stacks are whole, each group is in its C frame, all
 * checks of the slot held, and the stack was that of the sample beyond the innermost C frame of
 * the loop.
 */
void merge_stacks(const struct lang_process *p, const struct unwind_result *native,
		  const struct lang_slot *slot, struct merge_result *out);

/*
 * The same for V8: each frame of JavaScript is that of the native frame with its frame pointer;
 * compiled code is replaced by its function and inlined ones, as the table of the code in
 * @codes has them, a builtin keeps its name and is put before it.
 * Certain: the native stack is whole, each frame of JavaScript in it was read, all checks held,
 * the stack was that of the sample beyond the innermost of them, and the sampled code is known to
 * be in the body of its function.
 */
void merge_v8(const struct lang_process *p, const struct codes *codes,
	      const struct unwind_result *native, const struct lang_slot *slot,
	      struct merge_result *out);

/* Return the doubts that do not depend on the native stack. */
uint32_t merge_doubts(const struct lang_process *p, const struct lang_slot *slot);

#endif
