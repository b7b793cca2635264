// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libgcc overwrites its saved registers with the registers of the frame that
 * catches, the return address included. So that word is twice on the stack: the
 * second one was pushed by a call in the frame that catches, just below its sp.
 * Last, libgcc writes the address of the landing pad there.
 *
 * Runs on sampler threads. Invariant: sp only grows, and one pass over the stack
 * copy is enough.
 */
#include "unwind/rewrite.h"

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

	return stack_copy_read(in->copy, at, &word) && word == fp &&
	       stack_copy_read(in->copy, at + in->word, &ra) &&
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

	for (uint64_t at = start; at < end && stack_copy_read(in->copy, at, &word); at += in->word)
		if (word >= end && (found == fp || word < found) && is_record(in, word, fp))
			found = word;
	return found;
}

void rewrite_undo(const struct fp_input *in, const struct arch_frame *from, struct arch_frame *to)
{
	const struct arch_ops *arch = in->arch;
	uint64_t sp = to->reg[arch->sp], word;
	bool innermost = from->reg[arch->sp] == in->copy->sp;

	if (arch->ra_in_register)
		return;
	for (uint64_t at = sp; stack_copy_read(in->copy, at, &word); at += in->word)
		if (word == to->reg[arch->pc] || (innermost && is_landing_pad(in, from, word))) {
			arch_set(to, arch->sp, at + in->word);
			return;
		}
	if (arch_has(to, arch->fp))
		to->reg[arch->fp] = undo_fp(in, from->reg[arch->sp], sp, to->reg[arch->fp]);
}

/* Find {CFA, return address} of struct _Unwind_Context in [@start, @cfa). 0: there is none. */
static uint64_t find_context(const struct fp_input *in, uint64_t start, uint64_t cfa)
{
	uint64_t word, ra;

	if (cfa - start > FRAME_MAX)
		return 0;
	for (uint64_t at = start; at + in->word < cfa; at += in->word) {
		if (!stack_copy_read(in->copy, at, &word))
			break;
		if (word != cfa || !stack_copy_read(in->copy, at + in->word, &ra))
			continue;
		ra &= ~in->arch->ra_clear;
		if (fp_is_code(in, ra))
			return ra;
	}
	return 0;
}

bool rewrite_check(const struct fp_input *in, enum cfi_doubt doubt, const struct arch_frame *from,
		   struct arch_frame *to)
{
	const struct arch_ops *arch = in->arch;
	uint64_t sp = from->reg[arch->sp], cfa = to->reg[arch->sp], ra;

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
	if (doubt != CFI_EARLY) {
		arch_set(to, arch->pc, ra);
		to->valid &= ~(1ULL << arch->fp);
	}
	return false;
}
