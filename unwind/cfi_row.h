/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One run of the instructions of an FDE: its state, and the rows that it makes.
 *
 * Private to cfi.c, which runs the instructions, and cfi_row.c, which makes rows of the state.
 *
 * Any thread; no state.
 */
#ifndef UNWIND_CFI_ROW_H
#define UNWIND_CFI_ROW_H

#include "symbols/object/ehframe.h"
#include "unwind/arch.h"
#include "unwind/cfi_types.h"

/* AArch64: the last instruction of __builtin_eh_return: sp is set. */
#define CFI_LEAVE_BYTES 4

enum cfi_rule_where { RULE_SAME, RULE_AT_CFA, RULE_UNDEFINED, RULE_OTHER };
enum cfa_where { CFA_NONE, CFA_REGISTER, CFA_WORD, CFA_EXPRESSION };

struct cfi_saved {
	uint8_t where;
	int64_t off;
	uint64_t made; /* hash of the instruction that made the rule */
};

/* State of the registers that make a row; other registers are ignored. */
struct cfi_state {
	uint8_t cfa_where, cfa_reg;
	bool restored; /* a rule was restored before */
	int64_t cfa_off;
	uint64_t reg_made, off_made; /* as in struct cfi_saved, for both halves of the CFA */
	struct cfi_saved ra, fp, sp;
};

struct cfi_run {
	const struct arch_ops *arch;
	const struct ehframe *eh;
	const struct ehframe_cie *cie;
	struct ehread r;
	struct cfi_state now, initial, remembered[CFI_DEPTH_MAX];
	unsigned int depth;
	bool in_cie;
	bool bounded, done; /* read up to @until only; @until was reached */
	uint64_t loc, end, until;
	const struct cfi_sink *sink;
	uint64_t wanted; /* the sink wants only the row at this vaddr; 0: all */
	uint32_t nr_remembers;
	uint32_t *negates, nr_negates, room_negates;
	struct cfi_rewrite rewrite;
	uint32_t saved;	      /* caller-saved registers with a slot */
	struct cfi_rule held; /* the first row, until the next one shows the position of the CFA */
	bool holding;
	uint64_t begin;	   /* start of the FDE */
	uint64_t moves_sp; /* start of the last row with the CFA in neither sp nor fp */
	uint64_t *made[2]; /* rules that the current instruction made */
	uint32_t cost;	   /* bytes run */
	enum cfi_reason reason;
};

/* Note the first reason why the FDE is refused. */
static inline void cfi_refuse(struct cfi_run *run, enum cfi_reason reason)
{
	if (run->reason == CFI_OK)
		run->reason = reason;
}

/* The row up to @to is complete: check it and pass it on. */
void cfi_row_finish(struct cfi_run *run, uint64_t to);
/* Pass on the row that was held back. */
void cfi_row_settle(struct cfi_run *run);

#endif
