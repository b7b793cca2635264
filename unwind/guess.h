/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guess the caller where there is no CFI: JIT code, hand-written assembly, Go,
 * 32-bit processes. Every frame found here is marked as guessed.
 *
 * A guess is accepted only if it reads inside the stack copy, the stack grows,
 * and the return address is in an executable mapping. Pure; sampler threads.
 */
#ifndef UNWIND_FP_H
#define UNWIND_FP_H

#include "symbols/process/maps.h"
#include "unwind/arch.h"
#include "unwind/stack_copy.h"

struct fp_input {
	const struct arch_ops *arch;
	const struct stack_copy *copy;
	const struct space *space;
	uint64_t time_ns;
	uint8_t word;	      /* 8, or 4 in a 32-bit process */
	bool first;	      /* the innermost frame, or one that a signal interrupted */
	bool frames_kept;     /* all code here keeps frame pointers: use them first */
	bool called_from_any; /* JIT: callers may use fp for any value */
};

enum fp_result {
	FP_FOUND,  /* @f is the caller */
	FP_ROOT,   /* the chain ends here */
	FP_BEYOND, /* the chain continues beyond the stack copy */
	FP_NONE,   /* no guess is acceptable */
};

/* Return true if @pc may be a return address: the byte before it is code. */
bool fp_is_code(const struct fp_input *in, uint64_t pc);

/*
 * Replace @f by its caller: pc, sp and fp; all other registers become unknown.
 * Where a record does not give sp, the value is a lower bound and marked invalid.
 */
enum fp_result fp_step(const struct fp_input *in, struct arch_frame *f);

#endif
