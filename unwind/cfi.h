/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A strict, bounded reader of call frame instructions (DWARF 5, 6.4.2).
 *
 * It is the gate: an FDE that cfi_check() has not accepted is never shown to
 * libunwind. And it is where rows come from: the rule of a pc in three
 * numbers, or COMPLEX for what only libunwind's interpreter can do.
 *
 * Accepted is what libunwind reads just as we do: known opcodes, register
 * numbers that are registers, states that nest, locations that only grow,
 * expressions without branches, calls or division. All instructions of an FDE
 * are checked, not only those up to a pc. Pure; any thread; no allocation.
 */
#ifndef UNWIND_CFI_H
#define UNWIND_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/object/ehframe.h"
#include "unwind/arch.h"

#define CFI_INSNS_MAX	   (64u << 10) /* bytes of instructions in one FDE or CIE */
#define CFI_EXPRESSION_MAX 256u	       /* bytes */
#define CFI_DEPTH_MAX	   8	       /* remembered states */
/*
 * A function that ends with the return address in a register replaces its own frame
 * (__builtin_eh_return, as in _Unwind_RaiseException): so many bytes of code before, libgcc begins
 * to write other registers' values into its slots, and its CFI says nothing of that.
 */
#define CFI_REWRITE_BEFORE 136u

enum cfi_reason {
	CFI_OK,
	CFI_BAD_RECORD,	 /* FDE or CIE cannot be read */
	CFI_TOO_LONG,	 /* more instructions than any compiler makes */
	CFI_BAD_OPCODE,	 /* unknown, or not known to libunwind */
	CFI_BAD_OPERAND, /* runs off the end, or a number out of range */
	CFI_BAD_REGISTER,
	CFI_BAD_STATE,	  /* remember and restore do not nest */
	CFI_BAD_LOCATION, /* goes backwards */
	CFI_BAD_EXPRESSION,
	CFI_NO_CFA, /* a row without a rule for the CFA */
	CFI_NR_REASONS,
};

enum cfi_kind {
	CFI_ROW,     /* CFA = sp or fp + number, or by the word there; slots below it */
	CFI_END,     /* the return address is undefined: the root */
	CFI_COMPLEX, /* expressions, other registers, signal frames */
};

enum cfi_where {
	CFI_SAME,   /* still in its register */
	CFI_AT_CFA, /* in memory at CFA + offset */
};

struct cfi_row {
	uint8_t kind;	  /* enum cfi_kind; the rest is for CFI_ROW */
	bool cfa_is_fp;	  /* else sp */
	bool cfa_is_word; /* the CFA is not there, but a word above what the word there says */
	uint8_t ra_where, fp_where; /* enum cfi_where */
	uint8_t above;		    /* how far the caller's sp is above the CFA, as CFI has it */
	int32_t cfa_off, ra_off, fp_off; /* of the caller's sp, from there */
};

/*
 * Where a function rewrites its own frame on the way to a landing pad: vaddrs. AArch64's ends in
 * the middle: the call that rewrites may be behind the epilogue.
 */
struct cfi_rewrite {
	uint64_t from;	      /* the frame may be rewritten from here on; 0: never */
	uint64_t late;	      /* from here on even if libgcc's context is not found in the frame */
	uint64_t lands, left; /* [lands, left): leaves for the landing pad; 0: it does not */
	bool by_callee;	      /* a function that it calls writes */
};

enum cfi_doubt {
	CFI_SURE,
	CFI_EARLY,     /* may have been rewritten: libgcc's context in the frame shows it */
	CFI_DOUBTFUL,  /* may have been rewritten, by an unknown function */
	CFI_REWRITING, /* may have been rewritten, by libgcc */
	CFI_LEAVING,   /* the return address is the landing pad; sp is not set yet */
	CFI_LANDING,   /* the return address is the landing pad, not behind a call */
};

/* Return how far the CFI at @vaddr can be believed. */
enum cfi_doubt cfi_doubt(const struct cfi_rewrite *r, uint64_t vaddr);

struct cfi_fde {	/* result of cfi_check() */
	bool signal;	/* a signal trampoline: the frame above was interrupted */
	bool libunwind; /* may be shown to libunwind */
	uint32_t cost;	/* bytes read */
	struct cfi_rewrite rewrite;
	uint32_t nr_remembers; /* states remembered: dear to libunwind */
	uint32_t nr_negates;   /* DW_CFA_AARCH64_negate_ra_state, unknown to libunwind 1.6 */
};

/* A row where it stands. */
struct cfi_rule {
	uint64_t start, end; /* vaddrs that it holds for, to before @end */
	/*
	 * Hash of the instructions that made it, of CIE and FDE: those whose effect
	 * on the registers of a row stands; not what was overwritten, or undone by
	 * restoring, but for that something was. What else is made by these has the
	 * same row, wherever it lies.
	 */
	uint64_t program;
	struct cfi_row row;
	bool sure; /* by cfi_rule_at(): no frame is being rewritten here */
};

static inline bool cfi_covers(const struct cfi_rule *rule, uint64_t pc)
{
	return pc - rule->start < rule->end - rule->start;
}

/* Gets the rules of an FDE in order; the rows of neighbours may be equal. */
struct cfi_sink {
	void (*rule)(void *ctx, const struct cfi_rule *rule);
	void *ctx;
};

/* Check the FDE at @offset, all of it; @sink and @out may be NULL. CFI_OK or why it is refused. */
enum cfi_reason cfi_check(const struct arch_ops *arch, const struct ehframe *eh, uint32_t offset,
			  const struct cfi_sink *sink, struct cfi_fde *out);
/*
 * The row that covers @pc (a vaddr inside the FDE); what comes farther behind it
 * than CFI_REWRITE_BEFORE is not looked at.
 */
enum cfi_reason cfi_row_at(const struct arch_ops *arch, const struct ehframe *eh, uint32_t offset,
			   uint64_t pc, struct cfi_row *out);

/* The same, and where it holds and why; @cost: bytes read. */
enum cfi_reason cfi_rule_at(const struct arch_ops *arch, const struct ehframe *eh, uint32_t offset,
			    uint64_t pc, struct cfi_rule *out, uint32_t *cost);

/* How many states an accepted FDE remembers up to @pc. */
uint32_t cfi_remembers(const struct arch_ops *arch, const struct ehframe *eh, uint32_t offset,
		       uint64_t pc);

/* Where in the section an accepted FDE tells of signed return addresses: at most @room offsets. */
uint32_t cfi_negates(const struct arch_ops *arch, const struct ehframe *eh, uint32_t offset,
		     uint32_t *at, uint32_t room);

/* "unknown opcode", …: static text. */
const char *cfi_reason_name(enum cfi_reason reason);

#endif
