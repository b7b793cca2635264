/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwind one frame by libunwind, over a remote address space made of a frame's
 * registers, the stack copy, and one object's .eh_frame.
 *
 * Code addresses given to libunwind are canonical: 1 << 62 | serial of the image
 * << 38 | vaddr. They are the same in every process, so one address space (and
 * its cache of rules) serves all processes of the machine. The look-up pc is
 * given as the current one (the instruction, or the call before a return
 * address), so that steps do not depend on each other and cached rules have one
 * meaning.
 *
 * Threads: one struct step per thread. libunwind takes a lock of its address
 * space and changes the signal mask in each step.
 */
#ifndef UNWIND_LIBUNWIND_STEP_H
#define UNWIND_LIBUNWIND_STEP_H

#include "symbols/object/object.h"
#include "symbols/object/image.h"
#include "unwind/arch.h"
#include "unwind/cfi.h"
#include "unwind/stack_copy.h"

/*
 * The budget of a sample, in memory reads of libunwind (about 6 ns each): enough
 * for the longest FDEs of compilers (20 KiB of instructions; 450 remembered
 * states), and the worst sample takes less than 1 ms. Rows learned before the
 * budget was used up are kept, so the next sample gets further. A reading of proftop itself is not
 * begun if the whole FDE costs more than is left.
 */
#define STEP_BUDGET_READS 65536u
/*
 * What one process, and all together, may read in a second on one CPU, about 4 and 15 % of its
 * time; a sample beyond that has STEP_BUDGET_LEAST. Tables that are expensive on purpose take no
 * more time from the sampler thread. Callers found by rows are free.
 */
#define STEP_PROCESS_READS (4u << 20)
#define STEP_ALL_READS	   (16u << 20)
#define STEP_BUDGET_LEAST  1024u
#define STEP_COST_NEW	   128u /* a rule that is not in libunwind's cache */
#define STEP_COST_REMEMBER 120u /* libunwind changes the signal mask four times */

enum step_result {
	STEP_FOUND,   /* @f is the caller */
	STEP_ROOT,    /* the return address is undefined, or 0 */
	STEP_REFUSED, /* refused by the gate */
	/* accepted by the gate, but of another CPU or at far addresses: libunwind cannot read it */
	STEP_NO_LIBUNWIND,
	STEP_BEYOND,	/* needs a word above the stack copy */
	STEP_GAP,	/* the same, and the copy ended at a page that was never used */
	STEP_BELOW,	/* needs a word below the stack copy */
	STEP_NEED_REGS, /* needs a register that is unknown */
	STEP_BUDGET,
	STEP_FAILED,
};

/* Return the result of a step that needs the word at @addr, outside @copy. */
static inline enum step_result step_outside(const struct stack_copy *copy, uint64_t addr)
{
	if (addr < copy->sp)
		return STEP_BELOW;
	return stack_copy_gap(copy, addr) ? STEP_GAP : STEP_BEYOND;
}

struct step_input {
	const struct stack_copy *copy;
	const struct object *object;
	const struct image *image;
	const struct ehframe_fde *fde; /* covers vaddr */
	uint64_t vaddr;		       /* look-up pc */
	uint64_t pc_vaddr;	       /* pc */
	bool once;		       /* this vaddr is probably not looked up again */
	bool first;		       /* the innermost frame: slots below sp have been popped */
};

struct step;

/* @arch of another CPU: libunwind reads none of its FDEs, STEP_NO_LIBUNWIND. */
int step_new(struct step **out, const struct arch_ops *arch, struct err *e);
void step_free(struct step *s);

/* Begin a sample: fill the budget. A second walk of the sample uses the rest. */
void step_begin(struct step *s);
/* The same within the allowance of process @pid at @time_ns. */
void step_begin_of(struct step *s, uint32_t pid, uint64_t time_ns);
/* End a sample: its reads are charged to the process. */
void step_end(struct step *s);
/* Spend budget on other work; false: there was less. */
bool step_spend(struct step *s, uint32_t cost);
/*
 * Check the FDE of @in by the gate: STEP_FOUND, or the reason that libunwind does not read it.
 * Results are cached; the first check costs budget.
 */
enum step_result step_gate(struct step *s, const struct step_input *in, bool *signal);
/* After step_gate(): return how far the CFI can be believed; callers found in doubt are guesses. */
enum cfi_doubt step_doubt(const struct step *s);
/*
 * Read the rule without libunwind; valid until the next call. Other results than STEP_FOUND:
 * STEP_REFUSED (unreadable), STEP_BUDGET. The last rule of an FDE is cached; others cost budget.
 */
enum step_result step_rule(struct step *s, const struct step_input *in,
			   const struct cfi_rule **rule);
/* Replace @f by its caller; pc as found on the stack. Only if step_gate() says STEP_FOUND. */
enum step_result step_frame(struct step *s, const struct step_input *in, struct arch_frame *f);

#endif
