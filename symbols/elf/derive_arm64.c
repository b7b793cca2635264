// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The effects of instructions of AArch64 on the stack pointer, its copies and the saved registers.
 *
 * Any thread. By the encoding groups of the Arm Architecture Reference Manual (DDI 0487, C4.1). A
 * group that is not followed in detail loses the register that its field Rd names.
 */
#include "symbols/elf/internal.h"

#include <assert.h>
#include <string.h>

#define SP   31u /* or zero, by the kind of the operand */
#define FP   29u
#define LINK 30u

/* The caller may lose x0 to x18, and the link register. */
#define CALL_CLOBBERS 0x4007ffffu

static uint32_t bits(uint32_t w, unsigned int from, unsigned int nr)
{
	return w >> from & ((1u << nr) - 1);
}

static int64_t signed_bits(uint32_t w, unsigned int from, unsigned int nr)
{
	return (int64_t)((uint64_t)w << (64 - from - nr)) >> (64 - nr);
}

static uint64_t number(uint64_t v)
{
	return derive_value(DERIVE_NUMBER, (int64_t)v);
}

static void set_sp(struct derive_state *s, uint64_t value)
{
	/* AAPCS64, 6.4.5: nothing below the stack pointer is kept. */
	derive_set_sp(s, SP, 0, value);
}

/* Set a register; number 31 is the one of zero. */
static void set(struct derive_state *s, uint32_t reg, uint64_t value)
{
	if (reg != SP)
		derive_set(s, (uint8_t)reg, value);
}

/* The same for a register or the stack pointer. */
static void set_or_sp(struct derive_state *s, uint32_t reg, uint64_t value)
{
	if (reg == SP)
		set_sp(s, value);
	else
		set(s, reg, value);
}

static uint64_t get(const struct derive_state *s, uint32_t reg)
{
	assert(reg <= SP);
	return reg == SP ? number(0) : s->reg[reg];
}

/* Return the sum or the difference of two facts. */
static uint64_t sum(const struct derive_state *s, uint64_t a, uint64_t b, bool minus)
{
	if (!minus && (derive_kind(b) == DERIVE_OFFSET || derive_kind(a) == DERIVE_OFFSET))
		return derive_target(s, a, b) ?: derive_target(s, b, a);
	if (derive_kind(b) == DERIVE_NUMBER)
		return derive_add(a, minus ? -derive_number(b) : derive_number(b));
	if (minus)
		return 0;
	return derive_kind(a) == DERIVE_NUMBER ? derive_add(b, derive_number(a)) : 0;
}

/* Immediate operands: adr, add, sub, movz and their kin. */
static void apply_immediate(uint32_t w, uint64_t pc, struct derive_state *s)
{
	uint32_t rd = bits(w, 0, 5), rn = bits(w, 5, 5), shift = bits(w, 21, 2) * 16;
	bool wide = w >> 31;
	uint64_t v = 0;

	switch (bits(w, 23, 3)) {
	case 0: /* adr, adrp */
	case 1:
		v = (uint64_t)signed_bits(w, 5, 19) << 2 | bits(w, 29, 2);
		set(s, rd, number(wide ? (pc & ~4095ULL) + (v << 12) : pc + v));
		return;
	case 2: /* add, sub; with flags, to the register of zero: cmp */
		v = (uint64_t)bits(w, 10, 12) << (w >> 22 & 1 ? 12 : 0);
		v = wide ? sum(s, s->reg[rn], number(v), w >> 30 & 1) : 0;
		if (w >> 29 & 1)
			set(s, rd, v);
		else
			set_or_sp(s, rd, v);
		return;
	case 4: /* and, orr, eor; ands */
		if (bits(w, 29, 2) == 3)
			set(s, rd, 0);
		else
			set_or_sp(s, rd, 0);
		return;
	case 5: /* movn, movz, movk */
		v = (uint64_t)bits(w, 5, 16) << shift;
		if (bits(w, 29, 2) == 0)
			v = ~v;
		else if (bits(w, 29, 2) == 3 && derive_kind(get(s, rd)) == DERIVE_NUMBER)
			v |= (uint64_t)derive_number(get(s, rd)) & ~(0xffffULL << shift);
		else if (bits(w, 29, 2) == 3) {
			set(s, rd, 0);
			return;
		}
		set(s, rd, number(wide ? v : (uint32_t)v));
		return;
	}
	set(s, rd, 0);
}

/* Registers as operands: mov, add, sub and their kin. */
static void apply_register(uint32_t w, struct derive_state *s)
{
	uint32_t rd = bits(w, 0, 5), rn = bits(w, 5, 5), rm = bits(w, 16, 5);
	bool wide = w >> 31, flags = w >> 29 & 1;
	uint64_t v = 0;

	/* Conditional comparisons write no register. */
	if (bits(w, 21, 8) == 0xd2)
		return;
	if ((w & 0xffe0ffe0) == 0xaa0003e0) { /* mov */
		set(s, rd, get(s, rm));
		return;
	}
	/* By an extended register, which is 64 bits wide here, to or from the stack pointer. */
	if (bits(w, 21, 8) == 0x59) {
		if (wide && (bits(w, 13, 3) & 3) == 3 && !bits(w, 10, 3))
			v = sum(s, s->reg[rn], get(s, rm), w >> 30 & 1);
		/* An entry of a table of offsets is extended here. */
		else if (wide && bits(w, 13, 3) == 6 && !bits(w, 10, 3) && !(w >> 30 & 1))
			v = sum(s, s->reg[rn], get(s, rm), false);
		if (flags)
			set(s, rd, v);
		else
			set_or_sp(s, rd, v);
		return;
	}
	if (wide && bits(w, 24, 5) == 0xb && !(w >> 21 & 1) && !bits(w, 10, 6)) /* add, sub */
		v = sum(s, get(s, rn), get(s, rm), w >> 30 & 1);
	set(s, rd, v);
}

/* The address of a load or store of [rn + @offset]; @mode 1: post-indexed, 3: pre-indexed. */
static uint64_t indexed(struct derive_state *s, uint32_t rn, int64_t offset, unsigned int mode)
{
	uint64_t at = s->reg[rn], moved = derive_add(at, offset);

	assert(rn < DERIVE_REGS);
	/* Lower first: the words are above the stack pointer. */
	if (mode == 1 || mode == 3)
		set_or_sp(s, rn, moved);
	return mode == 1 ? at : moved;
}

static void apply_pair(uint32_t w, struct derive_state *s)
{
	uint32_t rt = bits(w, 0, 5), rn = bits(w, 5, 5), rt2 = bits(w, 10, 5), kind = w >> 30;
	uint32_t vector = w >> 26 & 1, size = vector ? 4u << kind : kind & 2 ? 8 : 4;
	uint64_t v, v2, at = s->reg[rn];
	int64_t offset = signed_bits(w, 15, 7) * size;
	unsigned int mode = bits(w, 23, 2);
	bool wide = !vector && size == 8;

	if (mode != 1)
		at = derive_add(at, offset);
	if (w >> 22 & 1) { /* before the stack pointer is raised */
		v = derive_load(s, at);
		v2 = derive_load(s, derive_add(at, 8));
		indexed(s, rn, offset, mode);
		if (!vector) {
			set(s, rt, wide ? v : 0);
			set(s, rt2, wide ? v2 : 0);
		}
		return;
	}
	v = get(s, rt);
	v2 = get(s, rt2);
	indexed(s, rn, offset, mode);
	derive_put(s, at, size, wide ? v : 0);
	derive_put(s, derive_add(at, size), size, wide ? v2 : 0);
}

/* Loads and stores of one register, at @at, of which the address is known or 0. */
static void apply_single(uint32_t w, struct derive_state *s, uint64_t at, uint64_t entry)
{
	uint32_t rt = bits(w, 0, 5), size = 1u << (w >> 30), opc = bits(w, 22, 2);

	if (w >> 26 & 1) { /* of a vector */
		if (!(opc & 1))
			derive_put(s, at, opc & 2 ? 16 : size, 0);
		return;
	}
	if (!opc)
		derive_put(s, at, size, size == 8 ? get(s, rt) : 0);
	else if (size == 8 && opc == 2) /* a prefetch */
		return;
	else
		set(s, rt,
		    entry
			    ?: size == 8 && opc == 1
			       ? derive_load(s, at) ?: derive_value(DERIVE_LOADED, 0)
			       : 0);
}

/* Return the fact about an entry of a table at an address, which a load of [rn, rm] reads. */
static uint64_t entry_of(uint32_t w, const struct derive_state *s)
{
	uint64_t table = s->reg[bits(w, 5, 5)];
	uint32_t size = w >> 30, opc = bits(w, 22, 2);

	if (w >> 26 & 1 || derive_kind(table) != DERIVE_NUMBER || !(w >> 12 & 1))
		return 0;
	if (size == 3 && opc == 1)
		return derive_value(DERIVE_ADDRESS, derive_number(table));
	return size == 2 && opc ? derive_value(DERIVE_OFFSET, derive_number(table)) : 0;
}

/* Unscaled and register offsets, pre- and post-indexed, atomic operations. */
static void apply_single_indexed(uint32_t w, struct derive_state *s)
{
	uint32_t rn = bits(w, 5, 5), mode = bits(w, 10, 2);
	uint64_t at, stored;

	if (!(w >> 21 & 1)) {
		stored = get(s, bits(w, 0, 5));
		at = s->reg[rn];
		if (mode != 1)
			at = derive_add(at, signed_bits(w, 12, 9));
		/* Loads are before the stack pointer is raised, stores after it was lowered. */
		if (bits(w, 22, 2)) {
			apply_single(w, s, at, 0);
			indexed(s, rn, signed_bits(w, 12, 9), mode);
			return;
		}
		indexed(s, rn, signed_bits(w, 12, 9), mode);
		if (w >> 26 & 1 || w >> 30 != 3)
			apply_single(w, s, at, 0);
		else
			derive_put(s, at, 8, stored);
		return;
	}
	if (mode == 2) {
		apply_single(w, s, 0, entry_of(w, s));
		return;
	}
	/* An atomic operation, or a load by an authenticated address. */
	if (!mode)
		derive_put(s, s->reg[rn], 8, 0);
	else if (w >> 11 & 1)
		set_or_sp(s, rn, 0);
	set(s, bits(w, 0, 5), 0);
}

/* Loads and stores of the elements of vectors. */
static void apply_elements(uint32_t w, struct derive_state *s)
{
	static const uint8_t registers[16] = { 4, 0, 4, 0, 3, 0, 3, 1, 2, 0, 2 };
	uint32_t rn = bits(w, 5, 5), rm = bits(w, 16, 5);
	bool multiple = !(w >> 24 & 1), moves = w >> 23 & 1;
	uint32_t size = registers[bits(w, 12, 4)] * (w >> 30 & 1 ? 16u : 8u);
	uint64_t at = s->reg[rn];

	if (moves)
		set_or_sp(s, rn, multiple && rm == 31 ? derive_add(at, size) : 0);
	if (!(w >> 22 & 1))
		derive_put(s, at, multiple ? size : 32, 0);
}

static void apply_memory(uint32_t w, struct derive_state *s)
{
	switch (bits(w, 27, 3) << 2 | bits(w, 24, 2)) {
	case 0x4: /* exclusive, ordered, compare and swap; elements of vectors */
	case 0x5:
		if (w >> 26 & 1) {
			apply_elements(w, s);
			return;
		}
		break;
	case 0xc: /* literals */
		if (!(w >> 26 & 1))
			set(s, bits(w, 0, 5), 0);
		return;
	case 0x14:
	case 0x15:
		apply_pair(w, s);
		return;
	case 0x1c:
		apply_single_indexed(w, s);
		return;
	case 0x1d:
		apply_single(w, s,
			     derive_add(s->reg[bits(w, 5, 5)],
					(int64_t)bits(w, 10, 12)
						<< ((w >> 26 & 1 && w >> 23 & 1) ? 4 : w >> 30)),
			     0);
		return;
	default: /* copies of memory and tags, which move their addresses */
		derive_put(s, s->reg[bits(w, 5, 5)], 64, 0);
		set_or_sp(s, bits(w, 5, 5), 0);
	}
	derive_put(s, s->reg[bits(w, 5, 5)], 16, 0);
	set(s, bits(w, 0, 5), 0);
	set(s, bits(w, 10, 5), 0);
	set(s, bits(w, 16, 5), 0);
}

/* Vectors and scalars of SIMD and FP: few write a general register. */
static void apply_vector(uint32_t w, struct derive_state *s)
{
	bool converts = (w & 0x5f200000) == 0x1e200000 && !bits(w, 10, 6);
	bool fixed = (w & 0x5f200000) == 0x1e000000;
	bool element = (w & 0xbfe08400) == 0x0e000400;

	if (converts || fixed || element)
		set(s, bits(w, 0, 5), 0);
}

static void apply_sve(uint32_t w, struct derive_state *s)
{
	/* addvl, addpl and their kin add to the stack pointer. */
	if ((w & 0xff20f000) == 0x04205000)
		set_or_sp(s, bits(w, 0, 5), 0);
	else
		set(s, bits(w, 0, 5), 0);
}

static void apply_system(uint32_t w, struct derive_state *s)
{
	if (w >> 21 & 1) /* reads a system register */
		set(s, bits(w, 0, 5), 0);
	if ((w & 0xfffffe1f) == 0xd503201f && bits(w, 5, 4) & 8) /* signs x17 */
		set(s, 17, 0);
}

static void apply(uint32_t w, uint64_t pc, struct derive_state *s)
{
	switch (bits(w, 25, 4)) {
	case 2:
		apply_sve(w, s);
		break;
	case 8:
	case 9:
		apply_immediate(w, pc, s);
		break;
	case 10:
	case 11:
		if ((w & 0xffe0001f) == 0xd4000001) /* a system call */
			set(s, 0, 0);
		else if ((w & 0xffc00000) == 0xd5000000)
			apply_system(w, s);
		break;
	case 5:
	case 13:
		apply_register(w, s);
		break;
	case 7:
	case 15:
		apply_vector(w, s);
		break;
	case 4:
	case 6:
	case 12:
	case 14:
		apply_memory(w, s);
		break;
	}
}

static void apply_call(struct derive_state *s)
{
	for (unsigned int r = 0; r < SP; r++)
		if (CALL_CLOBBERS >> r & 1)
			set(s, r, 0);
	derive_forget_below(s, SP, 0);
}

/* Classify the instructions that do not just go on. */
static void flow_of(uint32_t w, uint64_t pc, struct derive_insn *out)
{
	uint32_t way = bits(w, 21, 4) & 7;

	if ((w & 0x7c000000) == 0x14000000) {
		out->flow = w >> 31 ? DERIVE_CALL : DERIVE_JUMP;
		out->target = pc + (uint64_t)(signed_bits(w, 0, 26) * 4);
	} else if ((w & 0xff000000) == 0x54000000 || (w & 0x7e000000) == 0x34000000) {
		out->flow = DERIVE_BRANCH;
		out->target = pc + (uint64_t)(signed_bits(w, 5, 19) * 4);
	} else if ((w & 0x7e000000) == 0x36000000) {
		out->flow = DERIVE_BRANCH;
		out->target = pc + (uint64_t)(signed_bits(w, 5, 14) * 4);
	} else if ((w & 0xfe000000) == 0xd6000000) {
		out->flow = way == 0		   ? DERIVE_JUMP_TO
			    : way == 1		   ? DERIVE_CALL_TO
			    : way == 2 || way == 4 ? DERIVE_RETURN
						   : DERIVE_BAD;
	} else if ((w & 0xffe0001f) == 0xd4200000 || (w & 0xffe0001f) == 0xd4400000) {
		out->flow = DERIVE_STOP; /* brk, hlt */
	}
}

/* Return the address that adrp and the add behind it compute; 0: these are none. */
static uint64_t address_of(const struct derive_code *code, uint64_t pc, uint32_t w)
{
	uint64_t at = pc - code->vaddr, page;
	uint32_t before;

	if ((w & 0x9f000000) == 0x10000000) /* adr */
		return pc + (uint64_t)(signed_bits(w, 5, 19) * 4 + bits(w, 29, 2));
	if ((w & 0xffc00000) != 0x91000000 || at < 4)
		return 0;
	memcpy(&before, code->bytes + at - 4, 4);
	if ((before & 0x9f000000) != 0x90000000 || bits(before, 0, 5) != bits(w, 5, 5))
		return 0;
	page = (uint64_t)(signed_bits(before, 5, 19) * 4 + bits(before, 29, 2)) << 12;
	return ((pc - 4) & ~4095ULL) + page + bits(w, 10, 12);
}

static void step(const struct derive_code *code, uint64_t pc, struct derive_state *s,
		 struct derive_insn *out)
{
	uint64_t at = pc - code->vaddr;
	uint32_t w, hint;

	*out = (struct derive_insn){ .size = 4, .flow = DERIVE_BAD };
	if (at > code->size || code->size - at < 4)
		return;
	memcpy(&w, code->bytes + at, 4);
	/* Reserved, or of SME. */
	if (!bits(w, 25, 4) || bits(w, 25, 4) == 1 || bits(w, 25, 4) == 3)
		return;
	out->flow = DERIVE_ON;
	flow_of(w, pc, out);
	if (out->flow == DERIVE_BAD)
		return;
	hint = (w & 0xfffff01f) == 0xd503201f ? bits(w, 5, 7) : 128;
	out->padding = !hint;
	/* bti c, bti jc, paciasp, pacibsp */
	out->marks_start = hint == 34 || hint == 38 || hint == 25 || hint == 27;
	if (out->flow == DERIVE_ON)
		out->target = address_of(code, pc, w);
	/* Loads and stores, but of literals. */
	if ((bits(w, 25, 4) & 5) == 4 && bits(w, 27, 3) != 3)
		out->base = (uint8_t)(bits(w, 5, 5) + 1);
	if (!s)
		return;
	if (out->flow == DERIVE_JUMP_TO)
		out->value = get(s, bits(w, 5, 5));
	if (out->flow == DERIVE_CALL || out->flow == DERIVE_CALL_TO)
		apply_call(s);
	else if (out->flow == DERIVE_ON)
		apply(w, pc, s);
}

const struct derive_cpu derive_arm64 = {
	.machine = EM_AARCH64,
	.word = 8,
	.step = step,
	.sp = SP,
	.fp = FP,
	.nr = 32,
	.align = 4,
	.link = LINK,
	.sp_at_entry = 0,
	.sp_dwarf = 31,
	.ra_dwarf = 30,
	.nr_saved = 12,
	.saved = { 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, FP, LINK },
	.saved_dwarf = { 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, FP, LINK },
};
