/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows and rules of call frame information, reasons to refuse it.
 */
#ifndef UNWIND_CFI_TYPES_H
#define UNWIND_CFI_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#define CFI_INSNS_MAX	   (64u << 10) /* bytes of instructions in one FDE or CIE */
#define CFI_EXPRESSION_MAX 256u	       /* bytes */
#define CFI_DEPTH_MAX	   8	       /* remembered states */
/*
 * x86-64: a function that ends with the return address in a register replaces the
 * frame it has (__builtin_eh_return, as in _Unwind_RaiseException). From this
 * number of code bytes before, libgcc overwrites the saved registers, which the
 * CFI does not describe.
 */
#define CFI_REWRITE_BEFORE 136u

enum cfi_reason {
	CFI_OK,
	CFI_BAD_RECORD,	 /* unreadable FDE or CIE */
	CFI_TOO_LONG,	 /* more instructions than compilers make */
	CFI_BAD_OPCODE,	 /* unknown, here or to libunwind */
	CFI_BAD_OPERAND, /* runs off the end, or a number out of range */
	CFI_BAD_REGISTER,
	CFI_BAD_STATE,	  /* remember and restore do not nest */
	CFI_BAD_LOCATION, /* goes backwards */
	CFI_BAD_EXPRESSION,
	CFI_NO_CFA, /* row without a rule for the CFA */
	CFI_NR_REASONS,
};

enum cfi_kind {
	CFI_ROW,     /* CFA = sp or fp + number, or from the word there; slots below the CFA */
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
	bool cfa_is_word; /* the CFA is one word above the value of the word at that address */
	uint8_t ra_where, fp_where;	 /* enum cfi_where */
	uint8_t above;			 /* distance of the caller's sp from the CFA of the CFI */
	int32_t cfa_off, ra_off, fp_off; /* from the caller's sp */
};

/*
 * Code that rewrites its frame on the way to a landing pad: vaddrs. On AArch64
 * the landing is in the middle: the call that rewrites the frame may follow the
 * epilogue.
 */
struct cfi_rewrite {
	uint64_t from;	      /* the frame may be rewritten from here on; 0: never */
	uint64_t late;	      /* from here on even if libgcc's context is missing in the frame */
	uint64_t lands, left; /* [lands, left): leaves for the landing pad; 0: it does not */
	bool by_callee;	      /* written by a function that it calls */
};

enum cfi_doubt {
	CFI_SURE,
	CFI_EARLY,     /* may have been rewritten: libgcc's context in the frame shows it */
	CFI_DOUBTFUL,  /* may have been rewritten, by an unknown function */
	CFI_REWRITING, /* may have been rewritten, by libgcc */
	CFI_LEAVING,   /* the return address is the landing pad; sp is not set yet */
	CFI_LANDING,   /* the return address is the landing pad, not behind a call */
};

struct cfi_fde {	/* result of cfi_check() */
	bool signal;	/* a signal trampoline: the frame above was interrupted */
	bool libunwind; /* libunwind may read it */
	uint32_t cost;	/* bytes read */
	struct cfi_rewrite rewrite;
	uint32_t nr_remembers; /* remembered states: expensive in libunwind */
	uint32_t nr_negates;   /* DW_CFA_AARCH64_negate_ra_state, unknown to libunwind 1.6 */
};

/* A row and the code that it is for. */
struct cfi_rule {
	uint64_t start, end; /* vaddrs, up to before @end */
	/*
	 * Hash of the instructions of CIE and FDE that made the row: the last ones for each of its
	 * registers, and whether any rule was restored. Overwritten instructions are left out.
	 * Places with equal programs have equal rows.
	 */
	uint64_t program;
	struct cfi_row row;
	bool sure; /* set by cfi_rule_at(): no frame is rewritten here */
};

static inline bool cfi_covers(const struct cfi_rule *rule, uint64_t pc)
{
	return pc - rule->start < rule->end - rule->start;
}

/* Receives the rules of an FDE in order; neighbours may have equal rows. */
struct cfi_sink {
	void (*rule)(void *ctx, const struct cfi_rule *rule);
	void *ctx;
};

#endif
