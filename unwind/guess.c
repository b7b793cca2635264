// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Guess by the frame-pointer chain, or the return address on top of the stack.
 *
 * Runs on sampler threads. Invariant: a frame that is found has a higher sp than
 * the one before, so a walk ends.
 */
#include "unwind/internal.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "symbols/process/process.h"

struct guess {
	enum fp_result result;
	uint64_t pc, sp, fp;
};

static bool read_word(const struct fp_input *in, uint64_t addr, uint64_t *value)
{
	if (in->word == 4)
		return stack_copy_read32(in->copy, addr, value);
	return stack_copy_read(in->copy, addr, value);
}

bool fp_is_code(const struct fp_input *in, uint64_t pc)
{
	const struct mapping *m = pc ? space_find(in->space, pc - 1, in->time_ns) : NULL;

	return m && m->exec;
}

/*
 * Guess the caller by the frame record {saved fp, return address} at fp. The saved value may be a
 * number of a caller that uses the register for other values: libc, of main().
 */
static struct guess guess_chain(const struct fp_input *in, const struct arch_frame *f)
{
	const struct arch_ops *arch = in->arch;
	struct guess g = { .result = FP_NONE };
	uint64_t fp = f->reg[arch->fp], sp = f->reg[arch->sp];

	if (!arch_has(f, arch->fp))
		return g;
	if (!fp && !in->first) {
		g.result = FP_ROOT;
		return g;
	}
	if (fp < sp || fp % in->word)
		return g;
	if (!read_word(in, fp, &g.fp) || !read_word(in, fp + in->word, &g.pc)) {
		/* Far above the stack copy it is not a frame pointer but a number. */
		if (in->copy->full && fp - in->copy->sp < in->copy->size * 2) {
			if (in->copy->wanted)
				*in->copy->wanted = fp;
			g.result = FP_BEYOND;
		}
		return g;
	}
	g.pc &= ~arch->ra_clear;
	g.sp = fp + 2u * in->word;
	if (!g.pc && !g.fp)
		g.result = FP_ROOT;
	else if (fp_is_code(in, g.pc) &&
		 (in->called_from_any || !g.fp || g.fp > fp || (!in->first && g.fp < in->copy->sp)))
		g.result = FP_FOUND;
	return g;
}

/* Guess the caller of a leaf: the return address is on top of the stack, or in its register. */
static struct guess guess_leaf(const struct fp_input *in, const struct arch_frame *f)
{
	const struct arch_ops *arch = in->arch;
	struct guess g = { .result = FP_NONE, .fp = f->reg[arch->fp], .sp = f->reg[arch->sp] };

	if (!in->first || !arch_has(f, arch->fp))
		return g;
	if (arch->ra_in_register) {
		if (!arch_has(f, arch->ra))
			return g;
		g.pc = f->reg[arch->ra] & ~arch->ra_clear;
	} else {
		if (!read_word(in, g.sp, &g.pc))
			return g;
		g.sp += in->word;
	}
	if (fp_is_code(in, g.pc))
		g.result = FP_FOUND;
	return g;
}

/*
 * Guess the caller between the two instructions of a prologue: fp is on top of
 * the stack and in its register.
 */
static struct guess guess_prologue(const struct fp_input *in, const struct arch_frame *f)
{
	const struct arch_ops *arch = in->arch;
	struct guess g = { .result = FP_NONE, .sp = f->reg[arch->sp] + 2u * in->word };

	if (!in->first || arch->ra_in_register || !arch_has(f, arch->fp) ||
	    !read_word(in, f->reg[arch->sp], &g.fp) || g.fp != f->reg[arch->fp] ||
	    !read_word(in, f->reg[arch->sp] + in->word, &g.pc) || !fp_is_code(in, g.pc))
		return g;
	g.result = FP_FOUND;
	return g;
}

enum fp_result fp_step(const struct fp_input *in, struct arch_frame *f)
{
	const struct arch_ops *arch = in->arch;
	struct guess chain = guess_chain(in, f), leaf = guess_leaf(in, f),
		     g = guess_prologue(in, f);
	uint64_t sp = f->reg[arch->sp];

	/*
	 * A leaf without CFI mostly has no frame, and the record at fp is its caller's. The record
	 * is the leaf's if fp is sp or just above, or if the return address is in both the register
	 * and the record.
	 */
	if (g.result != FP_FOUND)
		g = chain;
	if (leaf.result == FP_FOUND && !(in->frames_kept && chain.result == FP_FOUND) &&
	    (chain.result != FP_FOUND || f->reg[arch->fp] >= leaf.sp) &&
	    !(arch->ra_in_register && chain.pc == leaf.pc))
		g = leaf;
	if (g.result != FP_FOUND)
		return g.result;
	/* At the end of all addresses it would begin again at 0. */
	if (g.sp < sp)
		return FP_NONE;
	f->valid = 0;
	arch_set(f, arch->pc, g.pc);
	arch_set(f, arch->sp, g.sp);
	arch_set(f, arch->fp, g.fp);
	/* If the record is the low end of its frame, sp is only known to be higher. */
	if (!arch->record_tells_sp && g.sp != sp)
		f->valid &= ~(1ULL << arch->sp);
	return FP_FOUND;
}

/*
 * libgcc overwrites its saved registers with the registers of the frame that
 * catches, the return address included. So that word is twice on the stack: the
 * second one was pushed by a call in the frame that catches, just below its sp.
 * Last, libgcc writes the address of the landing pad there.
 *
 * Runs on sampler threads. Invariant: sp only grows, and one pass over the stack
 * copy is enough.
 */

#define FRAME_MAX 8192 /* bytes; _Unwind_RaiseException() of libgcc 12 has 3776 */

/* Return true if @word, maybe the landing pad, is in a register. */
static bool is_landing_pad(const struct fp_input *in, const struct arch_frame *from, uint64_t word)
{
	for (unsigned int i = 0; i < in->arch->nr_regs; i++)
		if (arch_has(from, i) && from->reg[i] == word)
			return fp_is_code(in, word);
	return false;
}

static bool is_record(const struct fp_input *in, uint64_t at, uint64_t fp)
{
	uint64_t word, ra;

	return read_word(in, at, &word) && word == fp && read_word(in, at + in->word, &ra) &&
	       fp_is_code(in, ra & ~in->arch->ra_clear);
}

/*
 * Find the original of an overwritten frame pointer, which is written before the
 * return address. It was copied from the frame record of a function called by the
 * frame that catches; libgcc's frame has the address of that record.
 */
static uint64_t undo_fp(const struct fp_input *in, uint64_t start, uint64_t end, uint64_t fp)
{
	uint64_t found = fp, word;

	for (uint64_t at = start; at < end && read_word(in, at, &word); at += in->word)
		if (word >= end && (found == fp || word < found) && is_record(in, word, fp))
			found = word;
	return found;
}

void landing_pad_undo(const struct fp_input *in, const struct arch_frame *from,
		      struct arch_frame *to)
{
	const struct arch_ops *arch = in->arch;
	uint64_t sp = to->reg[arch->sp], word;
	bool innermost = from->reg[arch->sp] == in->copy->sp;

	assert(in->word == 4 || in->word == 8);
	if (arch->ra_in_register)
		return;
	for (uint64_t at = sp; read_word(in, at, &word); at += in->word)
		if (word == to->reg[arch->pc] || (innermost && is_landing_pad(in, from, word))) {
			arch_set(to, arch->sp, at + in->word);
			return;
		}
	if (arch_has(to, arch->fp))
		to->reg[arch->fp] = undo_fp(in, from->reg[arch->sp], sp, to->reg[arch->fp]);
}

/*
 * x86: libgcc's struct _Unwind_Context has one pointer more than __LIBGCC_DWARF_FRAME_REGS__, each
 * to the slot of a register, by its DWARF number; then the CFA and the return address.
 */
#define CONTEXT_REGS 18u
/*
 * The most bytes of stack of uw_install_context_1(), which copies registers into the frame that has
 * called it, last of all: 32 in libgcc 12, 68 with 32 bits. Functions before it that call others
 * have 236 and more.
 */
#define INSTALL_MAX 96u

struct context {
	uint64_t cfa, ra;
	uint64_t slot, fp_slot; /* of the return address and of the frame pointer */
};

/* No memory of a user is in the last page; the offsets of saved registers, -8 and less, are. */
#define NEGATIVE_BYTES 4096u

static bool is_negative(const struct fp_input *in, uint64_t word)
{
	return (in->word == 4 ? (uint32_t)-word : -word) <= NEGATIVE_BYTES;
}

/* Read the context that has its CFA at @at, none below @least but 0. */
static bool read_context(const struct fp_input *in, uint64_t at, uint64_t least, struct context *c)
{
	uint64_t regs = at - CONTEXT_REGS * (uint64_t)in->word;

	return read_word(in, at, &c->cfa) &&
	       (!c->cfa || (c->cfa >= least && !is_negative(in, c->cfa))) &&
	       read_word(in, at + in->word, &c->ra) && fp_is_code(in, c->ra) &&
	       read_word(in, regs + in->arch->pc * (uint64_t)in->word, &c->slot) &&
	       read_word(in, regs + in->arch->fp * (uint64_t)in->word, &c->fp_slot);
}

/* Contexts in the frame of a function that may be rewritten. */
struct contexts {
	struct context own;    /* of its caller; cfa 0: not found */
	struct context target; /* has led to the return address that is in the frame now */
	struct context fp;     /* has led to the frame pointer that is there now */
	bool chosen;	       /* the latter has a landing pad, not a return address */
	bool begun;	       /* the own one returns into the function itself so far */
	bool many;	       /* several of one kind, or the word that decides was not copied */
};

/* Keep @c as the only one: false if there is another one, or its caller has no usual frame. */
static bool keep_context(const struct fp_input *in, struct context *kept, const struct context *c)
{
	bool alone = (!kept->cfa || kept->cfa == c->cfa) && c->slot == c->cfa - in->word;

	*kept = *c;
	return alone;
}

/* Take @c, of a frame above. @late: libgcc may have written the landing pad there. */
static void take_context(const struct fp_input *in, const struct context *c,
			 const struct arch_frame *to, bool late, struct contexts *all)
{
	uint64_t cfa = to->reg[in->arch->sp], back, fp;

	if (!read_word(in, c->slot, &back))
		all->many |= c->slot == c->cfa - in->word;
	else if (back == to->reg[in->arch->pc] || (late && back == c->ra))
		all->many |= !keep_context(in, &all->target, c);
	else if (c->fp_slot >= cfa && arch_has(to, in->arch->fp) &&
		 read_word(in, c->fp_slot, &fp) && fp == to->reg[in->arch->fp]) {
		all->many |= !keep_context(in, &all->fp, c);
		all->chosen |= back != c->ra;
	}
}

static struct contexts find_contexts(const struct fp_input *in, const struct arch_frame *from,
				     const struct arch_frame *to, bool late)
{
	const struct arch_ops *arch = in->arch;
	uint64_t cfa = to->reg[arch->sp], at = from->reg[arch->sp];
	struct contexts all = { .begun = false };
	struct context c;

	if (cfa - at > FRAME_MAX)
		return all;
	for (at += CONTEXT_REGS * (uint64_t)in->word; at + in->word < cfa; at += in->word) {
		if (!read_context(in, at, cfa, &c))
			continue;
		all.begun |= (!c.cfa || c.cfa == cfa) && c.ra == from->reg[arch->pc];
		if (c.cfa > cfa)
			take_context(in, &c, to, late, &all);
		else if (c.cfa == cfa && c.slot == cfa - in->word &&
			 (!all.own.cfa || c.ra == to->reg[arch->pc]))
			all.own = c;
	}
	return all;
}

static bool check_by_contexts(const struct fp_input *in, enum cfi_doubt doubt, unsigned int depth,
			      const struct arch_frame *from, struct arch_frame *to)
{
	const struct arch_ops *arch = in->arch;
	struct contexts all = find_contexts(in, from, to, doubt == CFI_REWRITING && depth == 1);
	uint64_t fp = to->reg[arch->fp], pc;

	if (all.begun)
		return true;
	if (!all.own.cfa)
		return doubt == CFI_EARLY && !all.target.cfa && !all.many;
	if (all.own.ra != to->reg[arch->pc]) {
		/* If no context leads there, the own one is of an earlier call. */
		if (all.target.cfa && !all.many)
			to->reg[arch->sp] = all.target.cfa;
		return !all.many;
	}
	if (depth == 1 || !all.fp.cfa || from->reg[arch->sp] - in->copy->sp > INSTALL_MAX)
		return true;
	/* A landing pad may be at the return address: right behind a call that throws. */
	if (depth > 2 || all.many || (!all.chosen && doubt != CFI_REWRITING) ||
	    !read_word(in, all.fp.slot, &pc))
		return false;
	to->valid = 0;
	arch_set(to, arch->pc, pc);
	arch_set(to, arch->sp, all.fp.cfa);
	arch_set(to, arch->fp, fp);
	return true;
}

/* Find {CFA, return address} of struct _Unwind_Context in [@start, @cfa). 0: there is none. */
static uint64_t find_context(const struct fp_input *in, uint64_t start, uint64_t cfa)
{
	uint64_t word, ra;

	if (cfa - start > FRAME_MAX)
		return 0;
	for (uint64_t at = start; at + in->word < cfa; at += in->word) {
		if (!read_word(in, at, &word))
			break;
		if (word != cfa || !read_word(in, at + in->word, &ra))
			continue;
		ra &= ~in->arch->ra_clear;
		if (fp_is_code(in, ra))
			return ra;
	}
	return 0;
}

bool landing_pad_check(const struct fp_input *in, enum cfi_doubt doubt, unsigned int depth,
		       const struct arch_frame *from, struct arch_frame *to)
{
	const struct arch_ops *arch = in->arch;
	uint64_t sp = from->reg[arch->sp], cfa = to->reg[arch->sp], ra;

	if (!arch->nr_eh_data)
		return check_by_contexts(in, doubt, depth, from, to);
	if (doubt == CFI_LANDING || doubt == CFI_LEAVING || !arch_has(from, arch->sp)) {
		if (doubt == CFI_LEAVING)
			to->valid &= ~(1ULL << arch->sp);
		return false;
	}
	ra = find_context(in, sp + 2u * in->word, cfa); /* above the frame record */
	if (!ra)
		return doubt == CFI_EARLY;
	if (ra == to->reg[arch->pc] && undo_fp(in, sp, cfa, to->reg[arch->fp]) == to->reg[arch->fp])
		return true;
	/* The link register is written right after the frame pointer. */
	arch_set(to, arch->pc, ra);
	to->valid &= ~(1ULL << arch->fp);
	return false;
}
