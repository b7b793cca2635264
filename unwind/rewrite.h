/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who calls a function that is replacing its own frame (__builtin_eh_return,
 * CFI_REWRITE_BEFORE): libgcc on its way to the frame that catches an exception.
 *
 * Its CFI describes the old frame, though the slots may hold the registers of
 * the new one. So all that is found here is a guess. Pure; sampler threads.
 */
#ifndef UNWIND_REWRITE_H
#define UNWIND_REWRITE_H

#include "unwind/cfi.h"
#include "unwind/fp.h"

/* It is the innermost frame or calls few functions: the stack is searched no further from the top.
 */
#define REWRITE_FRAMES 3

/*
 * @to is what the CFI made of such a function: if its return address was written over already, give
 * it the sp of the frame that catches; else the fp that was written over, where it can be found.
 * @from is its frame.
 */
void rewrite_undo(const struct fp_input *in, const struct arch_frame *from, struct arch_frame *to);

/*
 * The same where a function that was called writes (AArch64): libgcc keeps a context in the frame,
 * with its CFA and return address as they were. @to gets the caller by that context; where its fp
 * may have been overwritten, it becomes unknown. True: the frame was not rewritten, @to is certain.
 */
bool rewrite_check(const struct fp_input *in, enum cfi_doubt doubt, const struct arch_frame *from,
		   struct arch_frame *to);

#endif
