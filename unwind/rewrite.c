// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libgcc copies the registers of the frame that catches over its own saved ones: the return address by
 * which that frame was left, too. So the word stands twice on the stack, and the second time where a call
 * out of that frame has put it, just below its sp. At last the address of the landing pad is written there.
 *
 * Runs on sampler threads. Invariant: sp only grows, and one pass over the dump is all it takes.
 */
#include "unwind/rewrite.h"

/* Is @word, which may be where an exception is caught, in a register? */
static bool is_landing_pad(const struct fp_input *in, const struct arch_frame *from, uint64_t word)
{
	for (unsigned int i = 0; from && i < in->arch->nr_regs; i++)
		if (frame_has(from, i) && from->reg[i] == word)
			return fp_is_code(in, word);
	return false;
}

/*
 * The frame pointer is written over before the return address: @to may have that of the frame that catches.
 * It was saved by the functions in between, each of which that keeps a frame pointer points to where it did.
 */
static void lower_fp(const struct fp_input *in, struct arch_frame *to)
{
	const struct arch_ops *arch = in->arch;
	uint64_t sp = to->reg[arch->sp], fp = to->reg[arch->fp], at, word, ra;

	if (!frame_has(to, arch->fp))
		return;
	for (at = fp; at >= sp && dump_read(in->dump, at, &word); at -= in->word)
		if (word == fp)
			fp = at;
	/* Not a frame pointer, but what who catches has in that register: who saved it has a record. */
	for (at = sp; fp < sp && dump_read(in->dump, at, &word); at += in->word)
		if (word == fp && dump_read(in->dump, at + in->word, &ra) && fp_is_code(in, ra))
			fp = at;
	frame_set(to, arch->fp, fp);
}

void rewrite_undo(const struct fp_input *in, const struct arch_frame *from, struct arch_frame *to)
{
	const struct arch_ops *arch = in->arch;
	uint64_t word;

	if (arch->ra_in_register)
		return;
	for (uint64_t at = to->reg[arch->sp]; dump_read(in->dump, at, &word); at += in->word)
		if (word == to->reg[arch->pc] || is_landing_pad(in, from, word)) {
			frame_set(to, arch->sp, at + in->word);
			return;
		}
	lower_fp(in, to);
}
