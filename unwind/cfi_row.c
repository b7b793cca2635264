// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rows of an FDE, made of the state of its registers; frames that their function rewrites.
 *
 * Runs on sampler threads (first sight of an FDE) and in tests.
 */
#include "unwind/cfi_row.h"

#include <assert.h>
#include <string.h>

#include "symbols/base/base.h"

#define RAISED_MAX	(1 << 30)
#define EH_RETURN_BYTES 8 /* mov %rcx,%rsp; pop %rcx */
/*
 * AArch64: a call of uw_install_context_1() before the epilogue returns 72 bytes
 * before the epilogue's end in libgcc 12, 88 in libgcc 14, 120 in libgcc 16.
 */
#define EH_CALL_BEFORE 128
#define CALLER_SAVED   0xffffu /* x0 to x15 */

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
	if (run->cie->signal)
		return;
	if (s->ra.where == RULE_UNDEFINED) {
		row->kind = CFI_END;
		return;
	}
	if ((s->cfa_where != CFA_REGISTER && s->cfa_where != CFA_WORD) ||
	    (s->cfa_reg != arch->sp && s->cfa_reg != arch->fp) || s->sp.where != RULE_SAME ||
	    s->ra.where == RULE_OTHER || s->fp.where > RULE_AT_CFA)
		return;
	if (s->ra.where == RULE_SAME && !arch->ra_in_register)
		return;
	if (!fits(s->cfa_off) || !fits(s->ra.off) || !fits(s->fp.off))
		return;
	row->kind = CFI_ROW;
	row->cfa_is_fp = s->cfa_reg == arch->fp;
	row->cfa_is_word = s->cfa_where == CFA_WORD;
	row->cfa_off = (int32_t)s->cfa_off;
	row->ra_where = s->ra.where == RULE_AT_CFA ? CFI_AT_CFA : CFI_SAME;
	row->ra_off = (int32_t)s->ra.off;
	row->fp_where = s->fp.where == RULE_AT_CFA ? CFI_AT_CFA : CFI_SAME;
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
	if (s->ra.where != RULE_OTHER || run->rewrite.from || run->cie->signal ||
	    run->arch->ra_in_register)
		return;
	run->rewrite.from = MAX(run->loc, CFI_REWRITE_BEFORE + 1) - CFI_REWRITE_BEFORE;
	/* Not longjmp(), for example, which also has its caller's sp in a register. */
	if (run->moves_sp && run->moves_sp < run->loc &&
	    run->loc - run->moves_sp <= EH_RETURN_BYTES) {
		run->rewrite.lands = run->moves_sp;
		run->rewrite.left = UINT64_MAX;
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

void cfi_row_settle(struct cfi_run *run)
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

void cfi_row_finish(struct cfi_run *run, uint64_t to)
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
