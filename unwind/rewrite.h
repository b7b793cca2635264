/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Find the caller of a function that is replacing its frame
 * (__builtin_eh_return): libgcc on its way to the frame that catches an
 * exception.
 *
 * Its CFI describes the old frame, but the slots may hold the registers of the
 * new one. Pure; sampler threads.
 */
#ifndef UNWIND_REWRITE_H
#define UNWIND_REWRITE_H

#include "unwind/cfi.h"
#include "unwind/guess.h"

/* Frames from the innermost one that are searched: such a function calls few others. */
#define REWRITE_FRAMES 3

/*
 * x86-64: correct @to, the caller by CFI. If the return address was already
 * overwritten, set sp to the sp of the frame that catches; else restore fp if it
 * was overwritten and its source is found. @from is the frame of the function.
 * The result is a guess.
 */
void rewrite_undo(const struct fp_input *in, const struct arch_frame *from, struct arch_frame *to);

/*
 * AArch64, where a called function writes: libgcc keeps a context in the frame
 * with the original CFA and return address. Set @to to the caller in that
 * context; an fp that may be overwritten becomes unknown. Return true if the
 * frame was not rewritten: @to is certain.
 */
bool rewrite_check(const struct fp_input *in, enum cfi_doubt doubt, const struct arch_frame *from,
		   struct arch_frame *to);

#endif
