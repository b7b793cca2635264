// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Run the instructions of one FDE, strictly.
 *
 * Runs on sampler threads (first sight of an FDE) and in tests. Invariant:
 * every instruction takes at least one byte of at most CFI_INSNS_MAX, so a
 * run ends; nothing is read outside the section.
 */
#include "unwind/cfi.h"

#include <assert.h>
#include <string.h>

#include "symbols/base/base.h"
#include "unwind/cfi_expr.h"
#include "unwind/cfi_row.h"

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
	    cfi_expr_is_word(run->arch, bytes, size, &reg, &s->cfa_off)) {
		s->cfa_where = CFA_WORD;
		s->cfa_reg = (uint8_t)reg;
	}
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
	uint64_t size;

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
		set_rule(run, read_register(run), RULE_OTHER, 0);
		step_over_expression(run, &size);
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

uint32_t cfi_size(const struct ehframe *eh, uint32_t offset)
{
	struct ehframe_record rec;

	return ehframe_read(eh, offset, &rec) ? 0 : size_of(&rec);
}

enum cfi_reason cfi_check(const struct arch_ops *arch, const struct ehframe *eh, uint32_t offset,
			  const struct cfi_sink *sink, struct cfi_fde *out)
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

enum cfi_doubt cfi_doubt(const struct cfi_rewrite *r, uint64_t vaddr)
{
	if (!r->from || vaddr < r->from)
		return CFI_SURE;
	if (!r->lands)
		return r->by_callee ? CFI_REWRITING : CFI_DOUBTFUL;
	if (vaddr >= r->lands && vaddr < r->left)
		return r->by_callee && r->left - vaddr > CFI_LEAVE_BYTES ? CFI_LEAVING
									 : CFI_LANDING;
	return r->by_callee && vaddr < r->late ? CFI_EARLY : CFI_REWRITING;
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
	want->run->until = rule->end - 1 + CFI_REWRITE_BEFORE;
}

enum cfi_reason cfi_rule_at(const struct arch_ops *arch, const struct ehframe *eh, uint32_t offset,
			    uint64_t pc, struct cfi_rule *out, uint32_t *cost)
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
	out->sure = !run.rewrite.from;
	return want.found ? CFI_OK : CFI_BAD_RECORD;
}

enum cfi_reason cfi_row_at(const struct arch_ops *arch, const struct ehframe *eh, uint32_t offset,
			   uint64_t pc, struct cfi_row *out)
{
	struct cfi_rule rule;
	uint32_t cost;
	enum cfi_reason reason = cfi_rule_at(arch, eh, offset, pc, &rule, &cost);

	if (reason == CFI_OK)
		*out = rule.row;
	return reason;
}

uint32_t cfi_remembers(const struct arch_ops *arch, const struct ehframe *eh, uint32_t offset,
		       uint64_t pc, uint32_t *cost)
{
	struct cfi_run run = { .arch = arch, .eh = eh, .bounded = true, .until = pc };
	struct ehframe_record rec;

	run_record(&run, offset, &rec);
	*cost = run.cost;
	return run.nr_remembers;
}

uint32_t cfi_negates(const struct arch_ops *arch, const struct ehframe *eh, uint32_t offset,
		     uint32_t *at, uint32_t room, uint32_t *cost)
{
	struct cfi_run run = { .arch = arch, .eh = eh, .negates = at, .room_negates = room };
	struct ehframe_record rec;

	run_record(&run, offset, &rec);
	*cost = run.cost;
	return MIN(run.nr_negates, room);
}

const char *cfi_reason_name(enum cfi_reason reason)
{
	static const char *const names[CFI_NR_REASONS] = {
		[CFI_OK] = "accepted",
		[CFI_BAD_RECORD] = "unreadable record",
		[CFI_TOO_LONG] = "too long",
		[CFI_BAD_OPCODE] = "unknown opcode",
		[CFI_BAD_OPERAND] = "operand out of range",
		[CFI_BAD_REGISTER] = "register out of range",
		[CFI_BAD_STATE] = "states do not nest",
		[CFI_BAD_LOCATION] = "location goes backwards",
		[CFI_BAD_EXPRESSION] = "refused expression",
		[CFI_NO_CFA] = "no rule for the CFA",
	};

	return reason < CFI_NR_REASONS ? names[reason] : "?";
}
