// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The gate for DWARF expressions (DWARF 5, 7.7.1): a table of accepted opcodes.
 *
 * Any thread; no state. Invariant: one step per opcode byte, so it ends.
 */
#include "unwind/cfi_expr.h"

#include "symbols/object/ehread.h"

enum { OP_DEREF = 0x06, OP_PLUS_UCONST = 0x23, OP_BREG0 = 0x70, OP_BREG31 = 0x8f };

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

bool cfi_expr_ok(const struct arch_ops *arch, const uint8_t *bytes, size_t size)
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

bool cfi_expr_is_word(const struct arch_ops *arch, const uint8_t *bytes, size_t size, uint64_t *reg,
		      int64_t *off)
{
	struct ehread r = { bytes, bytes + size, false };
	uint64_t breg = ehread_fixed(&r, 1);

	*reg = breg - OP_BREG0;
	*off = ehread_sleb(&r);
	return breg >= OP_BREG0 && breg <= OP_BREG31 && ehread_fixed(&r, 1) == OP_DEREF &&
	       ehread_fixed(&r, 1) == OP_PLUS_UCONST && ehread_uleb(&r) == arch->word && !r.bad &&
	       r.pos == r.end;
}
