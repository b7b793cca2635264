/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Find the caller of a frame by its row: most frames are found so.
 *
 * Inline, on the sampler thread. A row uses three registers, so a frame is only
 * these as long as row follows row.
 */
#ifndef UNWIND_APPLY_H
#define UNWIND_APPLY_H

#include "unwind/arch.h"
#include "unwind/stack_copy.h"
#include "unwind/rows.h"
#include "unwind/libunwind.h"

struct row_frame {
	uint64_t pc, sp, fp;
	uint64_t ra; /* return address, if calls leave it in a register */
	bool has_sp, has_fp, has_ra;
};

static inline struct row_frame apply_begin(const struct arch_ops *arch, const struct arch_frame *f)
{
	return (struct row_frame){
		.pc = f->reg[arch->pc],
		.sp = f->reg[arch->sp],
		.fp = f->reg[arch->fp],
		.ra = f->reg[arch->ra],
		.has_sp = arch_has(f, arch->sp),
		.has_fp = arch_has(f, arch->fp),
		.has_ra = arch_has(f, arch->ra),
	};
}

/* Set @f to a caller found by rows; all other registers are unknown. */
static inline void apply_end(const struct row_frame *from, const struct arch_ops *arch,
			     struct arch_frame *f)
{
	f->valid = 0;
	arch_set(f, arch->pc, from->pc);
	arch_set(f, arch->sp, from->sp);
	if (from->has_fp)
		arch_set(f, arch->fp, from->fp);
}

/*
 * Replace @f by its caller according to @row (ROW_SIMPLE). Results other than
 * STEP_FOUND and STEP_ROOT leave @f unchanged. @first: the innermost frame, which
 * may have popped slots below sp.
 */
static inline __attribute__((always_inline)) enum step_result
apply_row(uint64_t row, const struct arch_ops *arch, const struct stack_copy *copy, bool first,
	  struct row_frame *f)
{
	uint64_t cfa = (row_cfa_is_fp(row) ? f->fp : f->sp) + (uint64_t)row_cfa_off(row);
	uint64_t pc = f->ra;

	if (!(row_cfa_is_fp(row) ? f->has_fp : f->has_sp) || (!row_ra_at_cfa(row) && !f->has_ra))
		return STEP_NEED_REGS;
	if (row_cfa_is_word(row)) {
		uint64_t at = cfa;

		if (!stack_copy_read(copy, at, &cfa))
			return step_outside(copy, at);
		cfa += arch->word;
	}
	if (row_ra_at_cfa(row) && !stack_copy_read(copy, cfa + (uint64_t)row_ra_off(row), &pc))
		return step_outside(copy, cfa + (uint64_t)row_ra_off(row));
	if (row_fp_at_cfa(row)) {
		uint64_t slot = cfa + (uint64_t)row_fp_off(row);

		/* In frame 0 a slot below sp has been popped: the register has the value again. */
		if (!stack_copy_read(copy, slot, &f->fp) && (!first || slot >= copy->sp))
			f->has_fp = false;
	}
	f->pc = pc & ~arch->ra_clear;
	f->sp = cfa;
	f->has_sp = true;
	f->has_ra = false;
	return f->pc ? STEP_FOUND : STEP_ROOT;
}

#endif
