// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Callers by call frame information: the instructions of an FDE, run strictly (the gate, rows), and
 * libunwind behind the gate.
 *
 * Runs on sampler threads. Invariants: every instruction takes at least one byte of at most
 * CFI_INSNS_MAX, so a run ends, and nothing is read outside the section. libunwind reads nothing
 * but the stack copy of this sample and the .eh_frame of the object of this frame, after the gate
 * has accepted the FDE.
 */
#include "unwind/internal.h"

#include <assert.h>
#include <errno.h>
#include <libunwind.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"

/*
 * A strict, bounded reader of call frame instructions (DWARF 5, 6.4.2).
 *
 * It is the gate: an FDE that cfi_check() has not accepted is never given to
 * libunwind. It also makes the rows: the rule of a pc in three numbers, or
 * COMPLEX where only libunwind's interpreter can do it.
 *
 * Accepted are instructions that libunwind reads in the same way: known opcodes,
 * valid register numbers, states that nest, locations that only grow, expressions
 * without branches, calls or division. All instructions of an FDE are checked.
 * Pure; any thread; no allocation.
 */

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

struct cfi_fde {	/* result of cfi_check() */
	bool signal;	/* a signal trampoline: the frame above was interrupted */
	bool libunwind; /* libunwind may read it */
	uint32_t cost;	/* bytes read */
	struct cfi_rewrite rewrite;
	uint32_t nr_remembers; /* remembered states: expensive in libunwind */
	uint32_t nr_negates;   /* DW_CFA_AARCH64_negate_ra_state, unknown to libunwind 1.6 */
};

/* Receives the rules of an FDE in order; neighbours may have equal rows. */
struct cfi_sink {
	void (*rule)(void *ctx, const struct cfi_rule *rule);
	void *ctx;
};

/*
 * The gate for DWARF expressions (DWARF 5, 7.7.1): a table of accepted opcodes.
 *
 * Any thread; no state. Invariant: one step per opcode byte, so it ends.
 */

enum { OP_DEREF = 0x06, OP_PLUS_UCONST = 0x23, OP_LIT0 = 0x30, OP_BREG0 = 0x70, OP_BREG31 = 0x8f };

/* Operand forms, by opcode; 0: refused. */
enum form { REFUSED, PLAIN, FIXED1, FIXED2, FIXED4, FIXED8, ULEB, SLEB, SIZE, BREG, BREGX };

static const uint8_t forms[256] = {
	[0x03] = FIXED8, /* addr */
	[OP_DEREF] = PLAIN,
	[0x08] = FIXED1,
	[0x09] = FIXED1, /* const1u const1s */
	[0x0a] = FIXED2,
	[0x0b] = FIXED2,
	[0x0c] = FIXED4,
	[0x0d] = FIXED4,
	[0x0e] = FIXED8,
	[0x0f] = FIXED8,
	[0x10] = ULEB,
	[0x11] = SLEB, /* constu consts */
	[0x12] = PLAIN,
	[0x13] = PLAIN,
	[0x14] = PLAIN,	 /* dup drop over */
	[0x15] = FIXED1, /* pick */
	[0x16] = PLAIN,
	[0x17] = PLAIN, /* swap rot */
	[0x19] = PLAIN,
	[0x1a] = PLAIN, /* abs and; 0x1b is div */
	[0x1c] = PLAIN,
	[0x1d] = PLAIN,
	[0x1e] = PLAIN, /* minus mod mul */
	[0x1f] = PLAIN,
	[0x20] = PLAIN,
	[0x21] = PLAIN, /* neg not or */
	[0x22] = PLAIN,
	[OP_PLUS_UCONST] = ULEB, /* plus */
	[0x24 ... 0x27] = PLAIN, /* shl shr shra xor */
	[0x29 ... 0x2e] = PLAIN, /* eq ge gt le lt ne */
	[0x30 ... 0x4f] = PLAIN, /* lit0 .. lit31 */
	[OP_BREG0... OP_BREG31] = BREG,
	[0x92] = BREGX,
	[0x94] = SIZE,	/* deref_size */
	[0x96] = PLAIN, /* nop */
};

/* Step over the operand; false if libunwind must not see it. */
static bool operand_ok(const struct arch_ops *arch, struct ehread *r, uint8_t op)
{
	static const uint8_t sizes[] = { [FIXED1] = 1, [FIXED2] = 2, [FIXED4] = 4, [FIXED8] = 8 };
	uint64_t reg = (uint64_t)op - OP_BREG0, size;

	switch (forms[op]) {
	case PLAIN:
		return true;
	case FIXED1:
	case FIXED2:
	case FIXED4:
	case FIXED8:
		ehread_block(r, sizes[forms[op]]);
		return true;
	case ULEB:
		ehread_uleb(r);
		return true;
	case SLEB:
		ehread_sleb(r);
		return true;
	case SIZE:
		size = ehread_fixed(r, 1);
		return size == 1 || size == 2 || size == 4 || size == 8;
	case BREGX:
		reg = ehread_uleb(r);
		/* fall through */
	case BREG:
		ehread_sleb(r);
		return reg < arch->nr_regs;
	}
	return false;
}

/*
 * Return true for straight-line arithmetic over valid registers: no branches
 * (libunwind does not limit them), no calls, no register names as results, no
 * division (INT64_MIN / -1 traps), no operand beyond the end.
 */
static bool cfi_expr_ok(const struct arch_ops *arch, const uint8_t *bytes, size_t size)
{
	struct ehread r = { bytes, bytes + size, false };

	if (!size)
		return false;
	while (r.pos < r.end) {
		uint8_t op = *r.pos++;

		if (!operand_ok(arch, &r, op) || r.bad)
			return false;
	}
	return true;
}

/* Return true if an accepted expression begins with "register + *@off". */
static bool expr_is_sum(struct ehread *r, uint64_t *reg, int64_t *off)
{
	uint64_t breg = ehread_fixed(r, 1);

	*reg = breg - OP_BREG0;
	*off = ehread_sleb(r);
	return breg >= OP_BREG0 && breg <= OP_BREG31 && !r->bad;
}

/*
 * Return true if an accepted expression is "the word at register + *@off", or "plus one word",
 * *@above. Functions that align their stack and save the caller's sp there use these forms (gcc,
 * OpenSSL).
 */
static bool cfi_expr_is_word(const struct arch_ops *arch, const uint8_t *bytes, size_t size,
			     uint64_t *reg, int64_t *off, bool *above)
{
	struct ehread r = { bytes, bytes + size, false };

	if (!expr_is_sum(&r, reg, off) || ehread_fixed(&r, 1) != OP_DEREF || r.bad)
		return false;
	*above = r.pos != r.end;
	return !*above || (ehread_fixed(&r, 1) == OP_PLUS_UCONST && ehread_uleb(&r) == arch->word &&
			   !r.bad && r.pos == r.end);
}

/*
 * Return whether an accepted expression is that of linkers for the PLT of i386: sp + 4, and 4 more
 * from byte *@pushed of its entries of 16 bytes on.
 */
static bool cfi_expr_is_plt(const uint8_t *bytes, size_t size, int64_t *pushed)
{
	/* breg4 4, breg8 0, lit15, and, lit11, ge, lit2, shl, plus; also with another lit11 */
	static const uint8_t plt[] = { 0x74, 4, 0x78, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x32, 0x24, 0x22 };

	if (size != sizeof(plt) || memcmp(bytes, plt, 6) || memcmp(bytes + 7, plt + 7, 4))
		return false;
	*pushed = bytes[6] - OP_LIT0;
	return *pushed >= 0 && *pushed < 16;
}

#define CFI_EXPRESSION_MAX 256u /* bytes */
#define CFI_DEPTH_MAX	   8	/* remembered states */

/*
 * x86-64: a function that ends with the return address in a register replaces the
 * frame it has (__builtin_eh_return, as in _Unwind_RaiseException). From this
 * number of code bytes before, libgcc overwrites the saved registers, which the
 * CFI does not describe.
 */
#define CFI_REWRITE_BEFORE 136u
/*
 * How far before that a called function may have overwritten them: libgcc 12 returns from it 131
 * bytes before, libgcc 14 177, with the loop over a shadow stack. There libgcc's context in the
 * frame shows whether it has.
 */
#define CFI_REWRITE_EARLY 1024u
#define CFI_REWRITE_LEAST 8u /* longer than endbr64 and a pop */

/*
 * Rows of an FDE, made of the state of its registers while its instructions run; frames that their
 * function rewrites. No state but that of the run.
 */

/* AArch64: the last instruction of __builtin_eh_return: sp is set. */
#define CFI_LEAVE_BYTES 4

enum cfi_rule_where { RULE_SAME, RULE_AT_CFA, RULE_AT_FP, RULE_UNDEFINED, RULE_OTHER };

enum cfa_where { CFA_NONE, CFA_REGISTER, CFA_WORD, CFA_PLT, CFA_EXPRESSION };

struct cfi_saved {
	uint8_t where;
	int64_t off;
	uint64_t made; /* hash of the instruction that made the rule */
};

/* State of the registers that make a row; other registers are ignored. */
struct cfi_state {
	uint8_t cfa_where, cfa_reg;
	bool restored;	/* a rule was restored before */
	bool cfa_above; /* of CFA_WORD: the CFA is one word above that */
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
	bool leaf;	   /* took its return address into a register first of all */
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

#define RAISED_MAX	(1 << 30)
#define EH_RETURN_BYTES 8 /* mov %rcx,%rsp; pop %rcx */

/*
 * AArch64: a call of uw_install_context_1() before the epilogue returns 72 bytes
 * before the epilogue's end in libgcc 12, 88 in libgcc 14, 120 in libgcc 16.
 */
#define EH_CALL_BEFORE 128

#define CALLER_SAVED 0xffffu /* x0 to x15 */

static bool fits(int64_t off)
{
	return off >= INT32_MIN && off <= INT32_MAX;
}

/*
 * AArch64's lazy resolver begins with the return address pushed by the PLT, but
 * glibc's CFI takes sp for the CFA: the return address is above the CFA.
 */
static void raise_cfa(struct cfi_row *row, const struct arch_ops *arch)
{
	if (!arch->ra_in_register || row->ra_where != CFI_AT_CFA || row->ra_off < 0 ||
	    row->ra_off > 64 || row->cfa_off > RAISED_MAX || row->fp_off < -RAISED_MAX)
		return;
	row->above = (uint8_t)(row->ra_off + arch->word);
	row->cfa_off += row->above;
	row->ra_off -= row->above;
	row->fp_off -= row->above;
}

/* Make the row of the current state, if three numbers are enough for it. */
static void make_row(const struct cfi_run *run, struct cfi_row *row)
{
	const struct arch_ops *arch = run->arch;
	const struct cfi_state *s = &run->now;

	memset(row, 0, sizeof(*row));
	row->kind = CFI_COMPLEX;
	if (s->cfa_where == CFA_PLT && s->ra.where == RULE_AT_CFA) {
		row->kind = CFI_PLT;
		row->cfa_off = (int32_t)s->cfa_off;
	}
	if (run->cie->signal && arch->word == 4 && s->cfa_where == CFA_WORD &&
	    s->cfa_reg == arch->sp && !s->cfa_above && fits(s->cfa_off)) {
		row->kind = CFI_SIGNAL;
		row->cfa_off = (int32_t)s->cfa_off;
	}
	if (run->cie->signal)
		return;
	if (s->ra.where == RULE_UNDEFINED) {
		row->kind = s->sp.where == RULE_UNDEFINED ? CFI_SWITCH : CFI_END;
		return;
	}
	if ((s->cfa_where != CFA_REGISTER && s->cfa_where != CFA_WORD) ||
	    (s->cfa_reg != arch->sp && s->cfa_reg != arch->fp) || s->sp.where != RULE_SAME ||
	    s->ra.where == RULE_OTHER || s->ra.where == RULE_AT_FP || s->fp.where > RULE_UNDEFINED)
		return;
	if (s->ra.where == RULE_SAME && !arch->ra_in_register)
		return;
	if (!fits(s->cfa_off) || !fits(s->ra.off) || !fits(s->fp.off))
		return;
	row->kind = CFI_ROW;
	row->cfa_is_fp = s->cfa_reg == arch->fp;
	row->cfa_is_word = s->cfa_where == CFA_WORD;
	row->cfa_is_above = row->cfa_is_word && s->cfa_above;
	row->cfa_off = (int32_t)s->cfa_off;
	row->ra_where = s->ra.where == RULE_AT_CFA ? CFI_AT_CFA : CFI_SAME;
	row->ra_off = (int32_t)s->ra.off;
	row->fp_where = s->fp.where == RULE_AT_CFA	? CFI_AT_CFA
			: s->fp.where == RULE_AT_FP	? CFI_AT_FP
			: s->fp.where == RULE_UNDEFINED ? CFI_LOST
							: CFI_SAME;
	row->fp_off = (int32_t)s->fp.off;
	raise_cfa(row, arch);
}

/*
 * AArch64: note the FDE of a function with __builtin_eh_return. It saves x0 to x3
 * and no other caller-saved register; its epilogue has at least one instruction
 * between "add sp" and the jump, both with the CFA sp + 0.
 */
static void note_eh_data(struct cfi_run *run, uint64_t end)
{
	const struct cfi_state *s = &run->now;
	struct cfi_rewrite *r = &run->rewrite;

	if ((run->saved & CALLER_SAVED) != (1u << run->arch->nr_eh_data) - 1) {
		*r = (struct cfi_rewrite){ .from = 0 };
		return;
	}
	if (!r->from)
		*r = (struct cfi_rewrite){ .from = run->loc, .late = run->loc, .by_callee = true };
	if (!r->lands && s->cfa_reg == run->arch->sp && !s->cfa_off && s->ra.where == RULE_SAME &&
	    end - run->loc > CFI_LEAVE_BYTES) {
		r->lands = run->loc;
		r->left = end;
		r->late = MAX(r->from, r->lands - MIN(r->lands, EH_CALL_BEFORE));
	}
}

/*
 * x86-64: note an FDE with the return address in a register at the end:
 * __builtin_eh_return moves sp by way of a register, then pops the return address
 * into it.
 */
static void note_eh_return(struct cfi_run *run, uint64_t end)
{
	const struct cfi_state *s = &run->now;

	if (run->arch->nr_eh_data) {
		note_eh_data(run, end);
		return;
	}
	if (s->cfa_where == CFA_REGISTER && s->cfa_reg != run->arch->sp &&
	    s->cfa_reg != run->arch->fp)
		run->moves_sp = run->loc;
	/* Not vfork(), which takes it from the stack first: a call that rewrites needs more code.
	 */
	run->leaf |= s->ra.where == RULE_OTHER && !run->moves_sp &&
		     run->loc - run->begin < CFI_REWRITE_LEAST;
	if (s->ra.where != RULE_OTHER || run->rewrite.from || run->cie->signal ||
	    run->arch->ra_in_register || run->leaf)
		return;
	run->rewrite.from = run->rewrite.late =
		MAX(run->loc, CFI_REWRITE_BEFORE + 1) - CFI_REWRITE_BEFORE;
	/* Not longjmp(), for example, which also has its caller's sp in a register. */
	if (run->moves_sp && run->moves_sp < run->loc &&
	    run->loc - run->moves_sp <= EH_RETURN_BYTES) {
		run->rewrite.lands = run->moves_sp;
		run->rewrite.left = UINT64_MAX;
		run->rewrite.from =
			MAX(run->begin, MAX(run->loc, CFI_REWRITE_EARLY + 1) - CFI_REWRITE_EARLY);
	}
}

/* Hash the instructions that determine the current row. */
static uint64_t program_of(const struct cfi_run *run)
{
	const struct cfi_state *s = &run->now;
	const uint64_t parts[] = { s->reg_made, s->off_made, s->ra.made, s->fp.made, s->sp.made };
	uint64_t hash = (uint64_t)(int64_t)run->cie->data_align << 2 |
			(uint64_t)run->cie->signal << 1 | s->restored;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		hash = hash_u64(hash ^ parts[i]) + i;
	return hash;
}

/*
 * AArch64: return true if this may be the row of a lazy resolver's "bti c". Its
 * CFI takes sp for the CFA and the link register for the return address; only the
 * next row shows that both were pushed before.
 */
static bool may_be_raised(const struct cfi_run *run, const struct cfi_rule *rule)
{
	const struct cfi_row *row = &rule->row;

	return run->arch->ra_in_register && rule->start == run->begin && row->kind == CFI_ROW &&
	       row->ra_where == CFI_SAME && !row->cfa_is_fp && !row->cfa_off;
}

/* Pass on the row that was held back. */
static void cfi_row_settle(struct cfi_run *run)
{
	const struct cfi_state *s = &run->now;
	struct cfi_rule *held = &run->held;

	if (!run->holding)
		return;
	assert(run->sink && run->begin <= held->start && held->end <= run->end);
	run->holding = false;
	if (run->loc >= held->end && s->cfa_where == CFA_REGISTER && s->cfa_reg == run->arch->sp &&
	    !s->cfa_off && s->ra.where == RULE_AT_CFA && s->ra.off >= 0 && fits(s->ra.off)) {
		held->row.ra_where = CFI_AT_CFA;
		held->row.ra_off = (int32_t)s->ra.off;
		raise_cfa(&held->row, run->arch);
		held->program = hash_u64(held->program ^ s->ra.made);
	}
	run->sink->rule(run->sink->ctx, held);
}

/* The row up to @to is complete: check it and pass it on. */
static void cfi_row_finish(struct cfi_run *run, uint64_t to)
{
	uint64_t end = MIN(to, run->end);
	struct cfi_rule rule;

	if (run->now.cfa_where == CFA_NONE)
		cfi_refuse(run, CFI_NO_CFA);
	note_eh_return(run, end);
	if (!run->sink || run->reason != CFI_OK || run->loc >= end)
		return;
	cfi_row_settle(run);
	if (run->wanted && (run->wanted < run->loc || run->wanted >= end))
		return;
	make_row(run, &rule.row);
	rule.start = run->loc;
	rule.end = end;
	rule.sure = false;
	rule.program = program_of(run);
	if (may_be_raised(run, &rule)) {
		run->held = rule;
		run->holding = true;
		run->until = MAX(run->until, to);
		return;
	}
	run->sink->rule(run->sink->ctx, &rule);
}

/* DWARF 5, 7.24; the GNU and vendor ones as in binutils' dwarf2.def. */
enum {
	OP_ADVANCE = 0x40,
	OP_OFFSET = 0x80,
	OP_RESTORE = 0xc0,
	OP_HIGH = 0xc0,
	OP_LOW = 0x3f,
	OP_NOP = 0x00,
	OP_SET_LOC,
	OP_ADVANCE1,
	OP_ADVANCE2,
	OP_ADVANCE4,
	OP_OFFSET_EXTENDED,
	OP_RESTORE_EXTENDED,
	OP_UNDEFINED,
	OP_SAME_VALUE,
	OP_REGISTER,
	OP_REMEMBER,
	OP_RESTORE_STATE,
	OP_DEF_CFA,
	OP_DEF_CFA_REGISTER,
	OP_DEF_CFA_OFFSET,
	OP_DEF_CFA_EXPRESSION,
	OP_EXPRESSION,
	OP_OFFSET_EXTENDED_SF,
	OP_DEF_CFA_SF,
	OP_DEF_CFA_OFFSET_SF,
	/* libunwind 1.6 does not know 0x14 and 0x15 (val_offset) and continues after them. */
	OP_VAL_EXPRESSION = 0x16,
	OP_AARCH64_NEGATE_RA_STATE = 0x2d,
	OP_GNU_ARGS_SIZE = 0x2e,
	OP_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

#define OFFSET_MAX (1LL << 40) /* no frame is larger; products cannot overflow */

static uint64_t read_register(struct cfi_run *run)
{
	uint64_t reg = ehread_uleb(&run->r);

	if (reg > run->arch->dwarf_max)
		cfi_refuse(run, CFI_BAD_REGISTER);
	return reg;
}

/* Read an unsigned or signed number, times @factor. */
static inline int64_t read_offset(struct cfi_run *run, bool is_signed, int64_t factor)
{
	int64_t v = is_signed ? ehread_sleb(&run->r) : (int64_t)ehread_uleb(&run->r);

	if (v < -OFFSET_MAX || v > OFFSET_MAX) {
		cfi_refuse(run, CFI_BAD_OPERAND);
		return 0;
	}
	return v * factor;
}

static struct cfi_saved *rule_of(struct cfi_run *run, struct cfi_state *s, uint64_t reg)
{
	if (reg == run->arch->ra)
		return &s->ra;
	if (reg == run->arch->fp)
		return &s->fp;
	return reg == run->arch->sp ? &s->sp : NULL;
}

static void set_rule(struct cfi_run *run, uint64_t reg, uint8_t where, int64_t off)
{
	struct cfi_saved *rule = rule_of(run, &run->now, reg);

	if (!rule) {
		if (run->arch->nr_eh_data && reg < 16 && where == RULE_AT_CFA)
			run->saved |= 1u << reg;
		return;
	}
	rule->where = where;
	rule->off = off;
	run->made[0] = &rule->made;
}

static void restore_rule(struct cfi_run *run, uint64_t reg)
{
	struct cfi_saved *rule = rule_of(run, &run->now, reg);

	if (reg > run->arch->dwarf_max)
		cfi_refuse(run, CFI_BAD_REGISTER);
	/* Readers differ in the rule that is restored before the CIE's end. */
	if (run->in_cie)
		cfi_refuse(run, CFI_BAD_STATE);
	if (rule)
		*rule = *rule_of(run, &run->initial, reg);
	run->now.restored |= rule != NULL;
}

/*
 * Return true if the row up to @to, as nearly all, needs no look: the sink does
 * not want it, and it has the usual form.
 */
static inline bool row_is_dull(const struct cfi_run *run, uint64_t to)
{
	const struct cfi_state *s = &run->now;

	if (run->holding || run->saved)
		return false;
	if (run->sink && (!run->wanted || run->wanted - run->loc < to - run->loc))
		return false;
	return s->cfa_where == CFA_REGISTER && s->ra.where != RULE_OTHER &&
	       (s->cfa_reg == run->arch->sp || s->cfa_reg == run->arch->fp);
}

static inline void advance_to(struct cfi_run *run, uint64_t to)
{
	if (run->in_cie || to < run->loc) {
		cfi_refuse(run, CFI_BAD_LOCATION);
		return;
	}
	if (to > run->loc && !row_is_dull(run, to))
		cfi_row_finish(run, to);
	run->loc = to;
	run->done = run->bounded && to > run->until;
}

static void advance(struct cfi_run *run, uint64_t delta)
{
	advance_to(run, run->loc + delta * run->cie->code_align);
}

static void define_cfa(struct cfi_run *run, bool is_signed)
{
	run->made[0] = &run->now.reg_made;
	run->made[1] = &run->now.off_made;
	run->now.cfa_where = CFA_REGISTER;
	run->now.cfa_reg = (uint8_t)read_register(run);
	run->now.cfa_off = read_offset(run, is_signed, is_signed ? run->cie->data_align : 1);
}

/* Change half of the CFA rule; the CFA must be a register + number. */
static inline void change_cfa(struct cfi_run *run, uint8_t op)
{
	if (run->now.cfa_where != CFA_REGISTER)
		cfi_refuse(run, CFI_NO_CFA);
	run->made[0] = op == OP_DEF_CFA_REGISTER ? &run->now.reg_made : &run->now.off_made;
	if (op == OP_DEF_CFA_REGISTER)
		run->now.cfa_reg = (uint8_t)read_register(run);
	else if (op == OP_DEF_CFA_OFFSET)
		run->now.cfa_off = read_offset(run, false, 1);
	else
		run->now.cfa_off = read_offset(run, true, run->cie->data_align);
}

/* Return the expression's bytes and *@size; NULL: refused. */
static const uint8_t *step_over_expression(struct cfi_run *run, uint64_t *size)
{
	const uint8_t *bytes;

	*size = ehread_uleb(&run->r);
	bytes = ehread_block(&run->r, *size);
	if (bytes && *size <= CFI_EXPRESSION_MAX && cfi_expr_ok(run->arch, bytes, *size))
		return bytes;
	cfi_refuse(run, CFI_BAD_EXPRESSION);
	return NULL;
}

static void define_cfa_by_expression(struct cfi_run *run)
{
	struct cfi_state *s = &run->now;
	uint64_t size, reg;
	const uint8_t *bytes = step_over_expression(run, &size);

	run->made[0] = &s->reg_made;
	run->made[1] = &s->off_made;
	s->cfa_where = CFA_EXPRESSION;
	if (bytes && !run->arch->ra_in_register &&
	    cfi_expr_is_word(run->arch, bytes, size, &reg, &s->cfa_off, &s->cfa_above)) {
		s->cfa_where = CFA_WORD;
		s->cfa_reg = (uint8_t)reg;
	} else if (bytes && run->arch->word == 4 && cfi_expr_is_plt(bytes, size, &s->cfa_off)) {
		s->cfa_where = CFA_PLT;
	}
}

/* @in_memory: the expression is the address of the register, else its value. */
static void save_by_expression(struct cfi_run *run, bool in_memory)
{
	uint64_t reg = read_register(run), base, size;
	const uint8_t *bytes = step_over_expression(run, &size);
	struct ehread r = { bytes, bytes + size, !bytes };
	bool at_fp = false;
	int64_t off = 0;

	if (in_memory && reg == run->arch->fp && bytes)
		at_fp = expr_is_sum(&r, &base, &off) && base == reg && r.pos == r.end;
	set_rule(run, reg, at_fp ? RULE_AT_FP : RULE_OTHER, at_fp ? off : 0);
}

static void remember(struct cfi_run *run)
{
	run->nr_remembers++;
	if (run->in_cie || run->depth == CFI_DEPTH_MAX)
		cfi_refuse(run, CFI_BAD_STATE);
	else
		run->remembered[run->depth++] = run->now;
}

static void restore_state(struct cfi_run *run)
{
	if (!run->depth)
		cfi_refuse(run, CFI_BAD_STATE);
	else
		run->now = run->remembered[--run->depth];
	run->now.restored = true;
}

/*
 * Signatures are always removed, so the state does not matter; but
 * blank_negates() needs the positions.
 */
static void negate(struct cfi_run *run)
{
	if (!run->arch->ra_clear)
		cfi_refuse(run, CFI_BAD_OPCODE);
	if (run->nr_negates < run->room_negates)
		run->negates[run->nr_negates] = (uint32_t)(run->r.pos - 1 - run->eh->bytes);
	run->nr_negates++;
}

static void set_location(struct cfi_run *run)
{
	/* Absolute addresses are meaningless in the addresses that libunwind gets. */
	if ((run->cie->encoding & 0x70) == 0)
		cfi_refuse(run, CFI_BAD_LOCATION);
	advance_to(run, ehframe_read_address(run->eh, &run->r, run->cie->encoding));
}

/*
 * Run instructions that change the location, or save and restore the state: they
 * make no rules. Return true if @op was one.
 */
static bool run_location_op(struct cfi_run *run, uint8_t op)
{
	switch (op) {
	case OP_NOP:
		return true;
	case OP_SET_LOC:
		set_location(run);
		return true;
	case OP_ADVANCE1:
		advance(run, ehread_fixed(&run->r, 1));
		return true;
	case OP_ADVANCE2:
		advance(run, ehread_fixed(&run->r, 2));
		return true;
	case OP_ADVANCE4:
		advance(run, ehread_fixed(&run->r, 4));
		return true;
	case OP_REMEMBER:
		remember(run);
		return true;
	case OP_RESTORE_STATE:
		restore_state(run);
		return true;
	}
	return false;
}

static void run_register(struct cfi_run *run)
{
	uint64_t reg = read_register(run);

	/* libunwind uses the second number as an index without a check. */
	if (ehread_uleb(&run->r) >= run->arch->nr_regs)
		cfi_refuse(run, CFI_BAD_REGISTER);
	set_rule(run, reg, RULE_OTHER, 0);
}

static void run_offset(struct cfi_run *run, bool is_signed, int64_t factor)
{
	uint64_t reg = read_register(run);

	set_rule(run, reg, RULE_AT_CFA, read_offset(run, is_signed, factor));
}

/* Run instructions that make rules. */
static void run_rule_op(struct cfi_run *run, uint8_t op)
{
	switch (op) {
	case OP_DEF_CFA:
	case OP_DEF_CFA_SF:
		define_cfa(run, op == OP_DEF_CFA_SF);
		break;
	case OP_DEF_CFA_REGISTER:
	case OP_DEF_CFA_OFFSET_SF:
		change_cfa(run, op);
		break;
	case OP_DEF_CFA_EXPRESSION:
		define_cfa_by_expression(run);
		break;
	case OP_OFFSET_EXTENDED:
	case OP_OFFSET_EXTENDED_SF:
		run_offset(run, op == OP_OFFSET_EXTENDED_SF, run->cie->data_align);
		break;
	case OP_GNU_NEGATIVE_OFFSET_EXTENDED:
		run_offset(run, false, -run->cie->data_align);
		break;
	case OP_RESTORE_EXTENDED:
		restore_rule(run, ehread_uleb(&run->r));
		break;
	case OP_UNDEFINED:
		set_rule(run, read_register(run), RULE_UNDEFINED, 0);
		break;
	case OP_SAME_VALUE:
		set_rule(run, read_register(run), RULE_SAME, 0);
		break;
	case OP_REGISTER:
		run_register(run);
		break;
	case OP_EXPRESSION:
	case OP_VAL_EXPRESSION:
		save_by_expression(run, op == OP_EXPRESSION);
		break;
	case OP_GNU_ARGS_SIZE:
		read_offset(run, false, 1);
		break;
	case OP_AARCH64_NEGATE_RA_STATE:
		negate(run);
		break;
	default:
		cfi_refuse(run, CFI_BAD_OPCODE);
	}
}

/* Note the instruction [from, to) in the rules that it made. */
static inline void note_maker(struct cfi_run *run, const uint8_t *from, const uint8_t *to)
{
	uint64_t hash = 1;

	for (; from < to; from++)
		hash = (hash ^ *from) * 0x100000001b3ULL;
	for (size_t i = 0; i < ARRAY_SIZE(run->made); i++) {
		if (run->made[i])
			*run->made[i] = hash;
		run->made[i] = NULL;
	}
}

static inline void run_op(struct cfi_run *run, uint8_t op)
{
	uint8_t low = op & OP_LOW;

	switch (op & OP_HIGH) {
	case OP_ADVANCE:
		advance(run, low);
		return;
	case OP_OFFSET:
		if (low > run->arch->dwarf_max)
			cfi_refuse(run, CFI_BAD_REGISTER);
		set_rule(run, low, RULE_AT_CFA, read_offset(run, false, run->cie->data_align));
		return;
	case OP_RESTORE:
		restore_rule(run, low);
		return;
	}
	if (op == OP_DEF_CFA_OFFSET) /* the most frequent one */
		change_cfa(run, op);
	else if (!run_location_op(run, op))
		run_rule_op(run, op);
}

/* Run all instructions in [from, to) of the section. */
static void run_program(struct cfi_run *run, uint32_t from, uint32_t to)
{
	run->r = (struct ehread){ run->eh->bytes + from, run->eh->bytes + to, false };
	if (to - from > CFI_INSNS_MAX)
		cfi_refuse(run, CFI_TOO_LONG);
	while (run->reason == CFI_OK && !run->done && run->r.pos < run->r.end) {
		const uint8_t *at = run->r.pos++;

		run_op(run, *at);
		if (run->r.bad)
			cfi_refuse(run, CFI_BAD_OPERAND);
		if (run->made[0])
			note_maker(run, at, run->r.pos);
	}
	run->cost += (uint32_t)(run->r.pos - (run->eh->bytes + from));
}

/* Run the CIE and the FDE at @offset, as set in @run. */
static void run_record(struct cfi_run *run, uint32_t offset, struct ehframe_record *rec)
{
	if (run->eh->machine != run->arch->machine || ehframe_read(run->eh, offset, rec)) {
		run->reason = CFI_BAD_RECORD;
		return;
	}
	run->cie = &rec->cie;
	run->in_cie = true;
	run_program(run, rec->cie.insns, rec->cie.insns_end);
	run->initial = run->now;
	run->in_cie = false;
	run->loc = run->begin = rec->start;
	run->end = rec->start + rec->size;
	run_program(run, rec->insns, rec->insns_end);
	if (!run->done)
		cfi_row_finish(run, run->end);
	if (run->reason == CFI_OK)
		cfi_row_settle(run);
}

static uint32_t size_of(const struct ehframe_record *rec)
{
	return rec->cie.insns_end - rec->cie.insns + rec->insns_end - rec->insns;
}

/* Return the bytes of instructions in an FDE and its CIE; 0: unreadable. */
static uint32_t cfi_size(const struct ehframe *eh, uint32_t offset)
{
	struct ehframe_record rec;

	return ehframe_read(eh, offset, &rec) ? 0 : size_of(&rec);
}

/* Check a whole FDE, at @offset; @sink and @out may be NULL. CFI_OK or the reason. */
static enum cfi_reason cfi_check(const struct arch_ops *arch, const struct ehframe *eh,
				 uint32_t offset, const struct cfi_sink *sink, struct cfi_fde *out)
{
	struct ehframe_record rec;
	struct cfi_run run = { .arch = arch, .eh = eh, .sink = sink };

	if (out)
		*out = (struct cfi_fde){ .cost = 0 };
	run_record(&run, offset, &rec);
	if (out && run.reason != CFI_BAD_RECORD) {
		out->signal = rec.cie.signal;
		/* libunwind keeps four letters of the augmentation string. */
		out->libunwind = run.reason == CFI_OK && rec.cie.nr_letters <= 4;
		out->cost = size_of(&rec);
		out->rewrite = run.rewrite;
		out->nr_remembers = run.nr_remembers;
		out->nr_negates = run.nr_negates;
	}
	return run.reason;
}

/* Return how far the CFI at @vaddr can be believed. */
static enum cfi_doubt cfi_doubt(const struct cfi_rewrite *r, uint64_t vaddr)
{
	if (!r->from || vaddr < r->from)
		return CFI_SURE;
	if (!r->lands)
		return r->by_callee ? CFI_REWRITING : CFI_DOUBTFUL;
	if (vaddr >= r->lands && vaddr < r->left)
		return r->by_callee && r->left - vaddr > CFI_LEAVE_BYTES ? CFI_LEAVING
									 : CFI_LANDING;
	return vaddr < r->late ? CFI_EARLY : CFI_REWRITING;
}

struct want_rule {
	struct cfi_run *run;
	struct cfi_rule *out;
	bool found;
};

static void take_rule(void *ctx, const struct cfi_rule *rule)
{
	struct want_rule *want = ctx;

	*want->out = *rule;
	want->found = true;
	/* A frame rewritten at this distance does not concern the row. */
	want->run->until = rule->end - 1 + CFI_REWRITE_EARLY;
}

/* Get the row at @pc with its range and program; @cost: bytes read. */
static enum cfi_reason cfi_rule_at(const struct arch_ops *arch, const struct ehframe *eh,
				   uint32_t offset, uint64_t pc, struct cfi_rule *out,
				   uint32_t *cost)
{
	struct cfi_run run = { .arch = arch, .eh = eh, .bounded = true, .wanted = pc, .until = pc };
	struct want_rule want = { .run = &run, .out = out };
	struct cfi_sink sink = { take_rule, &want };
	struct ehframe_record rec;

	run.sink = &sink;
	run_record(&run, offset, &rec);
	*cost = run.cost;
	if (run.reason != CFI_OK)
		return run.reason;
	out->sure = !run.rewrite.from || out->end <= run.rewrite.from;
	return want.found ? CFI_OK : CFI_BAD_RECORD;
}

/* Count the states that an accepted FDE remembers up to @pc; @cost: bytes read. */
static uint32_t cfi_remembers(const struct arch_ops *arch, const struct ehframe *eh,
			      uint32_t offset, uint64_t pc, uint32_t *cost)
{
	struct cfi_run run = { .arch = arch, .eh = eh, .bounded = true, .until = pc };
	struct ehframe_record rec;

	run_record(&run, offset, &rec);
	*cost = run.cost;
	return run.nr_remembers;
}

/*
 * Find DW_CFA_AARCH64_negate_ra_state in an accepted FDE: at most @room section offsets; @cost:
 * bytes read.
 */
static uint32_t cfi_negates(const struct arch_ops *arch, const struct ehframe *eh, uint32_t offset,
			    uint32_t *at, uint32_t room, uint32_t *cost)
{
	struct cfi_run run = { .arch = arch, .eh = eh, .negates = at, .room_negates = room };
	struct ehframe_record rec;

	assert(at || !room);
	run_record(&run, offset, &rec);
	*cost = run.cost;
	return MIN(run.nr_negates, room);
}

/* libunwind behind the gate: its accessors, on the sampler thread that owns the struct step. */

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

/* Exported by libunwind, declared in none of its headers. */
#define search_table UNW_OBJ(dwarf_search_unwind_table)

extern int search_table(unw_addr_space_t as, unw_word_t ip, unw_dyn_info_t *di, unw_proc_info_t *pi,
			int need_unwind_info, void *arg);

#define CANONICAL	   (1ULL << 62)
#define VADDR_BITS	   38
#define VADDR_MAX	   (1ULL << VADDR_BITS)
#define OBJECT_MAX	   (1ULL << (61 - VADDR_BITS))
#define TABLE_ADDR	   (CANONICAL | 1ULL << 61) /* address of the one-entry search table */
#define SPENDERS	   256			    /* a power of two */
#define GATE_SLOTS	   4096			    /* a power of two */
#define NR_REMEMBERS_CHEAP 16			    /* in an FDE: not worth counting up to the pc */
#define NEGATES_MAX	   64	/* in an FDE; compilers make two for each return */
#define CACHE_SIZE	   1024 /* a larger cache does not help: libunwind hashes into 256 */

enum verdict { GATE_UNKNOWN, GATE_OPEN, GATE_OPEN_SIGNAL, GATE_NO_LIBUNWIND, GATE_SHUT };

struct gate_slot {
	struct cfi_rewrite rewrite;
	struct cfi_rule rule; /* most recent one */
	uint16_t nr_remembers;
	uint8_t nr_negates;
	uint8_t verdict;
};

/* The reads of a process in one second. */
struct read_budget {
	uint64_t second;
	uint32_t pid, nr_reads;
};

struct step {
	const struct arch_ops *arch;
	unw_addr_space_t as;	     /* caches rules; NULL: of another CPU */
	unw_addr_space_t as_once;    /* does not: for places that get a row */
	const struct step_input *in; /* of the current frame */
	const struct arch_frame *frame;
	uint64_t ip;		  /* value of the ip register */
	uint64_t base;		  /* canonical address of the object's vaddr 0 */
	uint64_t eh_at, eh_words; /* of its .eh_frame, and the number of addresses with a whole word
				     in it */
	uint64_t table;		  /* the word at TABLE_ADDR */
	uint64_t oob;		  /* the last address read outside the stack copy */
	bool oob_seen, missing;	  /* why a read failed */
	bool finding;		  /* libunwind is searching the FDE */
	bool parsed;		  /* it has read the object's bytes: the rule was not cached */
	uint32_t nr_remembers;	  /* of the current FDE */
	enum cfi_doubt doubt;
	uint8_t nr_negates;	       /* in the current FDE: */
	bool negates_found;	       /* their offsets are known */
	uint32_t negates[NEGATES_MAX]; /* offsets in the section */
	uint32_t budget, begun;	       /* reads left in this sample; at its begin */
	struct read_budget *spender;   /* its process; NULL: no allowance */
	struct read_budget spenders[SPENDERS];
	uint64_t second; /* of sample time, with this number of reads: */
	uint32_t nr_reads;
	uint64_t gate_key[GATE_SLOTS]; /* image_key() << 32 | offset of the FDE */
	struct gate_slot gate[GATE_SLOTS];
};

/*
 * Key for verdicts and rules: an object that was evicted and loaded again may
 * have other bytes, which the gate has not seen. An image that was never
 * published has no serial, but is never evicted.
 */
static uint32_t image_key(const struct step_input *in)
{
	return in->image->serial ? in->image->serial : in->object->id;
}

static uint64_t canonical_base(const struct step_input *in)
{
	return CANONICAL | (uint64_t)image_key(in) << VADDR_BITS;
}

/* Read a word that is partly outside the section: zeros for the bytes outside. */
static uint64_t read_eh(const struct ehframe *eh, uint64_t vaddr)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < sizeof(value); i++) {
		uint64_t at = vaddr + i - eh->vaddr;

		if (at < eh->size)
			value |= (uint64_t)eh->bytes[at] << (8 * i);
	}
	return value;
}

static void charge(struct step *s, uint32_t cost)
{
	s->budget -= MIN(s->budget, cost);
}

/*
 * libunwind 1.6 fails at DW_CFA_AARCH64_negate_ra_state. It only says that return
 * addresses are signed, and signatures are removed anyway: let libunwind read
 * no-ops.
 */
static void blank_negates(struct step *s, uint64_t at, uint64_t *word)
{
	uint32_t cost;

	if (!s->negates_found) {
		s->nr_negates = (uint8_t)cfi_negates(s->arch, &s->in->image->eh, s->in->fde->offset,
						     s->negates, NEGATES_MAX, &cost);
		charge(s, cost / 2);
	}
	s->negates_found = true;
	for (unsigned int i = 0; i < s->nr_negates; i++)
		if (s->negates[i] - at < sizeof(*word))
			*word &= ~(0xffULL << (s->negates[i] - at) * 8);
}

/*
 * Read a word of an object's .eh_frame or of the search table. While it searches
 * the FDE, libunwind also follows pointers out of the section (personality,
 * LSDA), and fails if it cannot; the values are not used: zeros.
 */
static bool read_canonical(struct step *s, uint64_t addr, uint64_t *value)
{
	const struct ehframe *eh = &s->in->image->eh;
	uint64_t vaddr = addr - s->base, at = vaddr - eh->vaddr;

	*value = 0;
	if (addr == TABLE_ADDR) {
		*value = s->table;
		return s->finding;
	}
	/* On AArch64 it checks whether this is a signal trampoline: it never is. */
	if (vaddr == s->in->vaddr && !s->finding)
		return true;
	if (at < s->eh_words)
		memcpy(value, eh->bytes + at, sizeof(*value));
	else if (at + (sizeof(*value) - 1) >= eh->size + (sizeof(*value) - 1))
		return s->finding;
	else
		*value = read_eh(eh, vaddr);
	if (s->nr_negates)
		blank_negates(s, at, value);
	return true;
}

/* Read a word that is not in the object's .eh_frame, or differs from the file. */
static __attribute__((noinline)) int access_other(struct step *s, uint64_t addr, unw_word_t *value)
{
	uint64_t word;

	if (addr >> 62 == 1 && read_canonical(s, addr, &word)) {
		s->parsed = true;
		*value = word;
		return 0;
	}
	if (!stack_copy_read(s->in->copy, addr, &word)) {
		s->oob = addr;
		s->oob_seen = true;
		return -UNW_EINVAL;
	}
	*value = word;
	return 0;
}

static int access_mem(unw_addr_space_t as, unw_word_t addr, unw_word_t *value, int write, void *arg)
{
	struct step *s = arg;

	if (write)
		return 0;
	if (!s->budget)
		return -UNW_EUNSPEC;
	s->budget--;
	if (addr - s->eh_at >= s->eh_words || addr == s->base + s->in->vaddr || s->nr_negates)
		return access_other(s, addr, value);
	memcpy(value, s->in->image->eh.bytes + (addr - s->eh_at), sizeof(*value));
	s->parsed = true;
	return 0;
}

static int access_reg(unw_addr_space_t as, unw_regnum_t reg, unw_word_t *value, int write,
		      void *arg)
{
	struct step *s = arg;

	if (write)
		return 0;
	if (reg == s->arch->pc) {
		*value = s->ip;
		return 0;
	}
	if (reg < 0 || reg >= s->arch->nr_regs || !arch_has(s->frame, (unsigned int)reg)) {
		s->missing = true;
		return -UNW_EBADREG;
	}
	*value = s->frame->reg[reg];
	return 0;
}

static int access_fpreg(unw_addr_space_t as, unw_regnum_t reg, unw_fpreg_t *value, int write,
			void *arg)
{
	return -UNW_EBADREG;
}

/* Return the FDE that was found and accepted: a table of one entry leads to it. */
static int find_proc_info(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *pi, int need,
			  void *arg)
{
	struct step *s = arg;
	const struct step_input *in = s->in;
	const struct ehframe *eh = &in->image->eh;
	uint64_t record = eh->vaddr + in->fde->offset;
	struct ehframe_record rec;
	unw_dyn_info_t di;
	int rc;

	if (ip != s->base + in->vaddr || ehframe_read(eh, in->fde->offset, &rec))
		return -UNW_ENOINFO;
	memset(&di, 0, sizeof(di));
	di.format = UNW_INFO_FORMAT_REMOTE_TABLE;
	di.start_ip = s->base + rec.start;
	di.end_ip = di.start_ip + rec.size;
	di.u.rti.segbase = s->base + record;
	di.u.rti.table_data = TABLE_ADDR;
	di.u.rti.table_len = 1;
	/* Addresses that are not relative are vaddrs: libunwind adds load_offset. */
	if (!(rec.cie.encoding & 0x70))
		di.load_offset = s->base;
	/* start relative to the record, and the record itself */
	s->table = (uint32_t)(rec.start - record);
	s->finding = true;
	rc = search_table(as, ip, &di, pi, need, arg);
	s->finding = false;
	return rc;
}

static void put_unwind_info(unw_addr_space_t as, unw_proc_info_t *pi, void *arg)
{
}

static int get_dyn_info_list_addr(unw_addr_space_t as, unw_word_t *addr, void *arg)
{
	return -UNW_ENOINFO;
}

static int resume(unw_addr_space_t as, unw_cursor_t *cursor, void *arg)
{
	return -UNW_EINVAL;
}

static int get_proc_name(unw_addr_space_t as, unw_word_t addr, char *name, size_t size,
			 unw_word_t *offset, void *arg)
{
	return -UNW_ENOINFO;
}

int step_new(struct step **out, const struct arch_ops *arch, struct err *e)
{
	static const unw_accessors_t accessors = {
		.find_proc_info = find_proc_info,
		.put_unwind_info = put_unwind_info,
		.get_dyn_info_list_addr = get_dyn_info_list_addr,
		.access_mem = access_mem,
		.access_reg = access_reg,
		.access_fpreg = access_fpreg,
		.resume = resume,
		.get_proc_name = get_proc_name,
	};
	/* libunwind 1.8 copies three functions more than the headers of 1.6 have: none. */
	struct {
		unw_accessors_t known;
		void *none[8];
	} copy = { .known = accessors };
	struct step *s = xcalloc(1, sizeof(*s));

	s->arch = arch;
	*out = s;
	if (arch != arch_native())
		return 0;
	s->as = unw_create_addr_space(&copy.known, 0);
	s->as_once = unw_create_addr_space(&copy.known, 0);
	if (!s->as || !s->as_once) {
		step_free(s);
		*out = NULL;
		return err_set(e, -ENOMEM, "cannot create libunwind address space: out of memory");
	}
	/* GLOBAL means per address space, and this one belongs to one thread. */
	unw_set_caching_policy(s->as, UNW_CACHE_GLOBAL);
	unw_set_cache_size(s->as, CACHE_SIZE, 0);
	unw_set_caching_policy(s->as_once, UNW_CACHE_NONE);
	return 0;
}

void step_free(struct step *s)
{
	if (!s)
		return;
	if (s->as)
		unw_destroy_addr_space(s->as);
	if (s->as_once)
		unw_destroy_addr_space(s->as_once);
	free(s);
}

void step_begin(struct step *s)
{
	s->budget = s->begun = STEP_BUDGET_READS;
	s->spender = NULL;
}

/* Return the spender of @pid in this second; another pid with the same hash is evicted. */
static struct read_budget *read_budget_of(struct step *s, uint32_t pid, uint64_t time_ns)
{
	struct read_budget *p = &s->spenders[hash_u64(pid) & (SPENDERS - 1)];
	uint64_t second = time_ns / 1000000000;

	if (s->second != second) {
		s->second = second;
		s->nr_reads = 0;
	}
	if (p->pid != pid || p->second != second)
		*p = (struct read_budget){ .pid = pid, .second = second };
	return p;
}

void step_begin_of(struct step *s, uint32_t pid, uint64_t time_ns)
{
	struct read_budget *p = read_budget_of(s, pid, time_ns);
	uint32_t left = STEP_PROCESS_READS - MIN(p->nr_reads, STEP_PROCESS_READS);

	assert(!s->spender);
	left = MIN(left, STEP_ALL_READS - MIN(s->nr_reads, STEP_ALL_READS));
	s->budget = s->begun = MAX(MIN(left, STEP_BUDGET_READS), STEP_BUDGET_LEAST);
	s->spender = p;
	assert(s->budget == s->begun && s->budget >= STEP_BUDGET_LEAST);
}

void step_end(struct step *s)
{
	uint32_t nr = s->begun - s->budget;

	assert(s->budget <= s->begun);
	if (!s->spender)
		return;
	s->spender->nr_reads += nr;
	s->nr_reads += nr;
	s->spender = NULL;
}

bool step_spend(struct step *s, uint32_t cost)
{
	bool left = cost <= s->budget;

	assert(s->budget <= s->begun);
	charge(s, cost);
	return left;
}

/* Return true if libunwind can read this FDE: its addresses fit into canonical ones. */
static bool reaches(const struct step *s, const struct step_input *in)
{
	const struct ehframe *eh = &in->image->eh;
	int64_t away = (int64_t)(in->fde->start - (eh->vaddr + in->fde->offset));

	return s->as && image_key(in) < OBJECT_MAX && in->fde->start + in->fde->size < VADDR_MAX &&
	       eh->vaddr + eh->size < VADDR_MAX && away > INT32_MIN &&
	       away < INT32_MAX - (int64_t)in->fde->size;
}

/* Return true if the budget covers a reading of the whole FDE. */
static bool affords(const struct step *s, const struct step_input *in)
{
	return s->budget && cfi_size(&in->image->eh, in->fde->offset) / 2 <= s->budget;
}

static enum verdict judge(struct step *s, const struct step_input *in, struct gate_slot *slot)
{
	struct cfi_fde info;
	enum cfi_reason reason = cfi_check(s->arch, &in->image->eh, in->fde->offset, NULL, &info);

	charge(s, info.cost / 2);
	slot->rewrite = info.rewrite;
	slot->nr_remembers = (uint16_t)MIN(info.nr_remembers, UINT16_MAX);
	slot->nr_negates = (uint8_t)MIN(info.nr_negates, UINT8_MAX);
	if (reason != CFI_OK)
		return GATE_SHUT;
	if (!reaches(s, in))
		return GATE_NO_LIBUNWIND;
	if (!info.libunwind || info.nr_negates > NEGATES_MAX)
		return GATE_SHUT;
	return info.signal ? GATE_OPEN_SIGNAL : GATE_OPEN;
}

/* Get the slot of the FDE of @in; an FDE with the same hash is evicted. */
static struct gate_slot *slot_of(struct step *s, const struct step_input *in)
{
	uint64_t key = (uint64_t)image_key(in) << 32 | in->fde->offset;
	size_t at = hash_u64(key) & (GATE_SLOTS - 1);

	if (s->gate_key[at] != key) {
		s->gate_key[at] = key;
		s->gate[at] = (struct gate_slot){ 0 };
	}
	return &s->gate[at];
}

enum step_result step_gate(struct step *s, const struct step_input *in, bool *signal)
{
	struct gate_slot *slot = slot_of(s, in);

	assert(in->vaddr >= in->fde->start);
	if (slot->verdict == GATE_UNKNOWN) {
		if (!affords(s, in))
			return STEP_BUDGET;
		slot->verdict = (uint8_t)judge(s, in, slot);
	}
	s->nr_remembers = slot->nr_remembers;
	s->nr_negates = slot->nr_negates;
	s->negates_found = false;
	s->doubt = cfi_doubt(&slot->rewrite, in->vaddr);
	*signal = slot->verdict == GATE_OPEN_SIGNAL;
	if (slot->verdict == GATE_NO_LIBUNWIND)
		return STEP_NO_LIBUNWIND;
	return slot->verdict == GATE_SHUT ? STEP_REFUSED : STEP_CALLER;
}

enum cfi_doubt step_doubt(const struct step *s)
{
	return s->doubt;
}

enum step_result step_rule(struct step *s, const struct step_input *in,
			   const struct cfi_rule **rule)
{
	struct cfi_rule *last = &slot_of(s, in)->rule;
	enum cfi_reason reason = CFI_OK;
	uint32_t cost;

	assert(in->vaddr >= in->fde->start);
	if (!cfi_covers(last, in->vaddr)) {
		if (!affords(s, in))
			return STEP_BUDGET;
		reason = cfi_rule_at(s->arch, &in->image->eh, in->fde->offset, in->vaddr, last,
				     &cost);
		charge(s, cost / 2);
	}
	if (reason != CFI_OK)
		return STEP_REFUSED;
	*rule = last;
	return STEP_CALLER;
}

static enum step_result why_failed(const struct step *s)
{
	if (!s->budget)
		return STEP_BUDGET;
	if (s->oob_seen)
		return step_outside(s->in->copy, s->oob);
	return s->missing ? STEP_NEED_REGS : STEP_FAILED;
}

/* Read the caller's registers out of the cursor. */
static void read_back(struct step *s, unw_cursor_t *cursor, const struct arch_frame *from,
		      struct arch_frame *to)
{
	to->valid = 0;
	for (unsigned int reg = 0; reg < s->arch->nr_regs; reg++) {
		bool is_pc = reg == s->arch->pc;
		unw_word_t value;

		/* The call that made this frame has overwritten the caller's link register. */
		if (reg == s->arch->ra && s->arch->ra_in_register)
			continue;
		s->oob_seen = false;
		/* libunwind 1.6 takes the return address column for the pc on AArch64. */
		if (unw_get_reg(cursor, is_pc ? UNW_REG_IP : (unw_regnum_t)reg, &value) == 0)
			arch_set(to, reg, value);
		else if (s->oob_seen && s->oob < s->in->copy->sp && s->in->first &&
			 arch_has(from, reg))
			/*
			 * An epilogue has popped it: its slot is below sp, its value is in the
			 * register.
			 */
			arch_set(to, reg, from->reg[reg]);
	}
}

/*
 * libunwind also reports the end when a slot has the address 0: accept only the
 * CFI's end, and a return address of 0 (on AArch64, where libunwind also stops at
 * it).
 */
static enum step_result end_of(struct step *s, const struct step_input *in, unw_cursor_t *cursor)
{
	const struct cfi_rule *rule;
	const struct cfi_row *row;
	unw_word_t cfa;
	uint64_t pc;
	enum step_result result = step_rule(s, in, &rule);

	if (result != STEP_CALLER)
		return result == STEP_BUDGET ? STEP_BUDGET : STEP_FAILED;
	row = &rule->row;
	if (row->kind == CFI_END || row->kind == CFI_SWITCH)
		return STEP_ROOT;
	if (row->kind == CFI_ROW && row->ra_where == CFI_AT_CFA &&
	    unw_get_reg(cursor, (unw_regnum_t)s->arch->sp, &cfa) == 0 &&
	    stack_copy_read(in->copy, cfa + row->above + (uint64_t)(int64_t)row->ra_off, &pc) &&
	    !(pc & ~s->arch->ra_clear))
		return STEP_ROOT;
	return STEP_FAILED;
}

/* Estimate libunwind's cost besides its reads, if it has to read an FDE with @nr states. */
static uint32_t cost_of(uint32_t nr)
{
	return nr * STEP_COST_REMEMBER + STEP_COST_NEW;
}

/* The same of this FDE, up to the pc. Counting them costs budget. */
static uint32_t cost_to_pc(struct step *s, const struct step_input *in)
{
	uint32_t nr = s->nr_remembers, cost;

	if (nr > NR_REMEMBERS_CHEAP) {
		nr = cfi_remembers(s->arch, &in->image->eh, in->fde->offset, in->vaddr, &cost);
		charge(s, cost / 2);
	}
	return cost_of(nr);
}

/* Correct the caller's sp, which may be above the CFA that libunwind takes. False: over budget. */
static bool raise_sp(struct step *s, const struct step_input *in, struct arch_frame *f)
{
	const struct cfi_rule *rule;
	enum step_result result = step_rule(s, in, &rule);

	if (result == STEP_CALLER && rule->row.kind == CFI_ROW)
		f->reg[s->arch->sp] += rule->row.above;
	return result != STEP_BUDGET;
}

enum step_result step_frame(struct step *s, const struct step_input *in, struct arch_frame *f)
{
	const struct ehframe *eh = &in->image->eh;
	struct arch_frame caller;
	unw_cursor_t cursor;
	int rc;

	assert(in->vaddr - in->fde->start < in->fde->size);
	/* Not counted if there is enough for all: most rules are in libunwind's cache. */
	if (cost_of(s->nr_remembers) > s->budget &&
	    (!affords(s, in) || cost_to_pc(s, in) > s->budget))
		return STEP_BUDGET;
	s->in = in;
	s->frame = f;
	s->base = canonical_base(in);
	s->eh_at = s->base + eh->vaddr;
	s->eh_words = eh->size - MIN(eh->size, sizeof(uint64_t) - 1);
	s->oob_seen = s->missing = s->parsed = false;
	s->ip = s->base + in->vaddr;
	if (unw_init_remote(&cursor, in->once ? s->as_once : s->as, s) < 0)
		return why_failed(s);
	s->ip = s->base + in->pc_vaddr;
	rc = unw_step(&cursor);
	if (s->parsed)
		charge(s, cost_to_pc(s, in));
	/* On AArch64 it goes on with the link register where one of its reads failed. */
	if (rc < 0 || s->oob_seen || s->missing)
		return why_failed(s);
	if (rc == 0)
		return end_of(s, in, &cursor);
	read_back(s, &cursor, f, &caller);
	if (!arch_has(&caller, s->arch->pc) || !arch_has(&caller, s->arch->sp))
		return STEP_FAILED;
	if (s->arch->ra_in_register && !raise_sp(s, in, &caller))
		return STEP_BUDGET;
	*f = caller;
	f->reg[s->arch->pc] &= ~s->arch->ra_clear;
	return f->reg[s->arch->pc] ? STEP_CALLER : STEP_ROOT;
}
