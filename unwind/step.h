/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One frame by libunwind, over a remote address space made of a frame's
 * registers, the stack dump, and one object's .eh_frame.
 *
 * Code addresses shown to libunwind are canonical: 1 << 62 | serial of the
 * image << 38 | vaddr. They are the same in every process, so one address space (and its
 * cache of rules) serves all processes of the machine. The look-up pc is given
 * as the current one (the instruction itself, or the call before a return
 * address), so that each step stands alone and the cache has one meaning.
 *
 * Threads: one struct step per thread. libunwind takes a lock of its address
 * space and changes the signal mask in each step.
 */
#ifndef UNWIND_STEP_H
#define UNWIND_STEP_H

#include "symbols/object/object.h"
#include "symbols/object/image.h"
#include "unwind/arch.h"
#include "unwind/cfi.h"
#include "unwind/stack_copy.h"

/*
 * What a sample may cost, in memory reads of libunwind (some 6 ns each): the longest FDEs that
 * compilers make (20 KiB of instructions; 450 remembered states) fit in, and the worst sample stays
 * below 1 ms. Rows that were learned before it ran out stay: the next sample gets further.
 */
#define STEP_BUDGET_READS  65536u
#define STEP_COST_NEW	   128u /* a rule that it has not cached */
#define STEP_COST_REMEMBER 120u /* libunwind changes the signal mask four times */

enum step_result {
	STEP_FOUND,	/* @f is the caller */
	STEP_ROOT,	/* the return address is undefined, or 0 */
	STEP_REFUSED,	/* by the gate */
	STEP_BEYOND,	/* a word it needs lies above the dump */
	STEP_BELOW,	/* a word it needs lies below the dump */
	STEP_NEED_REGS, /* a register it needs is unknown */
	STEP_BUDGET,
	STEP_FAILED,
};

struct step_input {
	const struct stack_copy *dump;
	const struct object *object;
	const struct image *image;
	const struct ehframe_fde *fde; /* the one that covers vaddr */
	uint64_t vaddr;		       /* of the look-up pc */
	uint64_t pc_vaddr;	       /* of the pc itself */
	bool once;		       /* this vaddr will hardly be asked for again */
	bool first;		       /* the innermost frame: below sp lies what has been popped */
};

struct step;

int step_new(struct step **out, const struct arch_ops *arch, struct err *e);
void step_free(struct step *s);

/* A new sample: the budget is full again. (Unwound anew, it goes on with what is left.) */
void step_begin(struct step *s);
/* Can libunwind be shown this FDE? Not where vaddrs are too high for our addresses, or far apart.
 */
bool step_reaches(const struct step_input *in);
/* Has the gate let the FDE of @in through? Remembered; costs budget at first sight. */
enum step_result step_gate(struct step *s, const struct step_input *in, bool *signal);
/* After the gate: does the CFI say what is so? What is found where there is a doubt is a guess. */
enum cfi_doubt step_doubt(const struct step *s);
/* Our own reading of the CFI, until the next call here. NULL: unreadable, or no budget for it. */
const struct cfi_rule *step_rule(struct step *s, const struct step_input *in);
/* Replace @f by its caller; its pc is as it stands on the stack. Only behind step_gate(). */
enum step_result step_frame(struct step *s, const struct step_input *in, struct arch_frame *f);

#endif
