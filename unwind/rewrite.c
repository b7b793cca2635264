// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libgcc copies the registers of the frame that catches over its own saved ones: the return address
 * by which that frame was left, too. So the word stands twice on the stack, and the second time
 * where a call out of that frame has put it, just below its sp. At last the address of the landing
 * pad is written there.
 *
 * Runs on sampler threads. Invariant: sp only grows, and one pass over the dump is all it takes.
 */
#include "unwind/rewrite.h"

#define FRAME_MAX 8192 /* bytes; _Unwind_RaiseException() of libgcc 12 has 3776 */

/* Is @word, which may be where an exception is caught, in a register? */
static bool is_landing_pad(const struct fp_input *in, const struct arch_frame *from, uint64_t word)
{
	for (unsigned int i = 0; i < in->arch->nr_regs; i++)
		if (frame_has(from, i) && from->reg[i] == word)
			return fp_is_code(in, word);
	return false;
}

static bool is_record(const struct fp_input *in, uint64_t at, uint64_t fp)
{
	uint64_t word, ra;

	return stack_copy_read(in->dump, at, &word) && word == fp &&
	       stack_copy_read(in->dump, at + in->word, &ra) &&
	       fp_is_code(in, ra & ~in->arch->ra_clear);
}

/*
 * The frame pointer is written over before the return address. It was copied from where the
 * function that was called by who catches has saved it, beside its return address; libgcc's own
 * frame has that place's address.
 */
static uint64_t undo_fp(const struct fp_input *in, uint64_t start, uint64_t end, uint64_t fp)
{
	uint64_t found = fp, word;

	for (uint64_t at = start; at < end && stack_copy_read(in->dump, at, &word); at += in->word)
		if (word >= end && (found == fp || word < found) && is_record(in, word, fp))
			found = word;
	return found;
}

void rewrite_undo(const struct fp_input *in, const struct arch_frame *from, struct arch_frame *to)
{
	const struct arch_ops *arch = in->arch;
	uint64_t sp = to->reg[arch->sp], word;
	bool innermost = from->reg[arch->sp] == in->dump->sp;

	if (arch->ra_in_register)
		return;
	for (uint64_t at = sp; stack_copy_read(in->dump, at, &word); at += in->word)
		if (word == to->reg[arch->pc] || (innermost && is_landing_pad(in, from, word))) {
			frame_set(to, arch->sp, at + in->word);
			return;
		}
	if (frame_has(to, arch->fp))
		to->reg[arch->fp] = undo_fp(in, from->reg[arch->sp], sp, to->reg[arch->fp]);
}

/* Find {CFA, return address} of struct _Unwind_Context in [@start, @cfa). 0: there is none. */
static uint64_t find_context(const struct fp_input *in, uint64_t start, uint64_t cfa)
{
	uint64_t word, ra;

	if (cfa - start > FRAME_MAX)
		return 0;
	for (uint64_t at = start; at + in->word < cfa; at += in->word) {
		if (!stack_copy_read(in->dump, at, &word))
			break;
		if (word != cfa || !stack_copy_read(in->dump, at + in->word, &ra))
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

	if (doubt == CFI_LANDING || doubt == CFI_LEAVING || !frame_has(from, arch->sp)) {
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
		frame_set(to, arch->pc, ra);
		to->valid &= ~(1ULL << arch->fp);
	}
	return false;
}
