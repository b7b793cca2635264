// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The effects of instructions of x86-64 and i386 on the stack pointer, its copies and the saved
 * registers.
 *
 * Any thread. Not capstone: rows need the exact length, the registers that are written and the
 * bytes that are stored, nothing else; a table of 512 letters has that, and is there on each
 * machine.
 */
#include "symbols/elf/internal.h"

#include <string.h>

#define SP   4u
#define FP   5u
#define ALL  0xffffu
#define NONE 0xffu

/* The caller may lose these: rax rcx rdx rsi rdi r8-r11; on i386 the first three. */
#define CALL_CLOBBERS	   0x0fc7u
#define CALL_CLOBBERS_I386 0x0007u

/* Letters: the bytes behind an opcode. '.' nothing, 'm' ModRM, 'M' and imm8, 'Z' and imm32, 'i'
 * imm8, 'w' imm16, 'z' imm32, 'v' imm32 or imm64, 'a' an address, 'e' imm16 and imm8, 'j' rel8, 'J'
 * rel32, 'p' a prefix, 'x' invalid. */
static const char one_byte[257] = "mmmmizxxmmmmizxp"
				  "mmmmizxxmmmmizxx"
				  "mmmmizpxmmmmizpx"
				  "mmmmizpxmmmmizpx"
				  "pppppppppppppppp"
				  "................"
				  "xxpmppppzZiM...."
				  "jjjjjjjjjjjjjjjj"
				  "MZxMmmmmmmmmmmmm"
				  "..........x....."
				  "aaaa....iz......"
				  "iiiiiiiivvvvvvvv"
				  "MMw.ppMZe.w..ix."
				  "mmmmxxx.mmmmmmmm"
				  "jjjjiiiiJJxj...."
				  "p.pp..mm......mm";

static const char two_bytes[257] = "mmmmx.....x.xm.M"
				   "mmmmmmmmmmmmmmmm"
				   "mmmmxxxxmmmmmmmm"
				   "......x.pxpxxxxx"
				   "mmmmmmmmmmmmmmmm"
				   "mmmmmmmmmmmmmmmm"
				   "mmmmmmmmmmmmmmmm"
				   "MMMMmmm.mmmmmmmm"
				   "JJJJJJJJJJJJJJJJ"
				   "mmmmmmmmmmmmmmmm"
				   "...mMmmm...mMmmm"
				   "mmmmmmmmmmMmmmmm"
				   "mmMmMMMm........"
				   "mmmmmmmmmmmmmmmm"
				   "mmmmmmmmmmmmmmmm"
				   "mmmmmmmmmmmmmmmm";

struct x86 {
	const uint8_t *at, *end;
	bool narrow; /* i386; wide: all of a register */
	bool bad, wide, p66, f2, f3, addr32, has_rex, vex, evex;
	uint8_t r, x, b;	 /* high bits of register numbers */
	uint8_t map, op, vector; /* vector: bytes */
	uint8_t other;		 /* register of VEX.vvvv */
	char letter;
	uint8_t mod, reg, rm;	    /* of ModRM; mod 3: rm is a register */
	uint8_t base, index, scale; /* NONE: none */
	bool rip, disp8;
	int64_t disp, imm;
};

static inline uint64_t take(struct x86 *i, unsigned int size)
{
	uint64_t v = 0;

	if ((size_t)(i->end - i->at) < size) {
		i->bad = true;
		return 0;
	}
	if (size == 1)
		v = *i->at;
	else if (size == 4)
		memcpy(&v, i->at, 4);
	else
		memcpy(&v, i->at, size);
	i->at += size;
	return v;
}

static int64_t take_signed(struct x86 *i, unsigned int size)
{
	uint64_t v = take(i, size);

	return size == 8 ? (int64_t)v : (int64_t)(v << (64 - 8 * size)) >> (64 - 8 * size);
}

static void set_rex(struct x86 *i, uint8_t rex)
{
	i->has_rex = true;
	i->wide = rex & 8;
	i->r = rex << 1 & 8;
	i->x = rex << 2 & 8;
	i->b = rex << 3 & 8;
}

/* Read legacy prefixes and REX. Return the first byte of the opcode. */
static uint8_t read_prefixes(struct x86 *i)
{
	for (unsigned int k = 0; k < 15; k++) {
		uint8_t byte = (uint8_t)take(i, 1);

		switch (byte) {
		case 0x66:
			i->p66 = true;
			break;
		case 0x67:
			i->addr32 = true;
			break;
		case 0xf2:
			i->f2 = true;
			break;
		case 0xf3:
			i->f3 = true;
			break;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0x64:
		case 0x65:
		case 0xf0:
			break;
		default:
			if ((byte & 0xf0) != 0x40 || i->narrow)
				return byte;
			set_rex(i, byte);
			/* REX is the last one. */
			return (uint8_t)take(i, 1);
		}
	}
	i->bad = true;
	return 0;
}

static void set_pp(struct x86 *i, uint8_t pp)
{
	i->p66 |= pp == 1;
	i->f3 |= pp == 2;
	i->f2 |= pp == 3;
}

/* Read a VEX, EVEX or XOP prefix that begins with @byte, and the opcode. */
static void read_vex(struct x86 *i, uint8_t byte)
{
	uint8_t a = (uint8_t)take(i, 1), b = 0, c = 0;

	i->vex = true;
	i->r = (uint8_t)~a >> 4 & 8;
	if (byte == 0xc5) {
		i->map = 1;
		b = a & 0x7f;
	} else {
		i->x = (uint8_t)~a >> 3 & 8;
		i->b = (uint8_t)~a >> 2 & 8;
		i->map = a & (byte == 0x62 ? 7 : 31);
		b = (uint8_t)take(i, 1);
	}
	i->wide = byte != 0xc5 && b & 0x80 && !i->narrow;
	i->other = (uint8_t)~b >> 3 & 15;
	set_pp(i, b & 3);
	i->vector = b & 4 ? 32 : 16;
	if (byte == 0x62) {
		i->evex = true;
		c = (uint8_t)take(i, 1);
		i->vector = (uint8_t)(16u << MIN(c >> 5 & 3u, 2u));
	}
	i->op = (uint8_t)take(i, 1);
	if (byte == 0x8f)
		i->letter = i->map == 8 ? 'M' : i->map == 10 ? 'Z' : 'm';
	else if (i->map == 1)
		i->letter = i->op == 0x77 ? '.' : two_bytes[i->op] == 'M' ? 'M' : 'm';
	else
		i->letter = i->map == 3 ? 'M' : 'm';
	if (byte == 0x8f)
		i->map = (uint8_t)(i->map | 32);
	i->bad |= !i->map;
}

/* Read ModRM, SIB and displacement. */
static void read_modrm(struct x86 *i)
{
	uint8_t byte = (uint8_t)take(i, 1), low = byte & 7;

	i->mod = byte >> 6;
	i->reg = (uint8_t)((byte >> 3 & 7) | i->r);
	i->rm = low | i->b;
	i->base = i->index = NONE;
	if (i->mod == 3)
		return;
	i->base = i->rm;
	if (low == 4) {
		uint8_t sib = (uint8_t)take(i, 1);

		low = sib & 7;
		i->base = low | i->b;
		i->index = (uint8_t)((sib >> 3 & 7) | i->x);
		i->scale = (uint8_t)(1u << (sib >> 6));
		if (i->index == SP)
			i->index = NONE;
	} else if (low == 5 && !i->mod) {
		i->rip = !i->narrow;
	}
	if (low == 5 && !i->mod) {
		i->base = NONE;
		i->disp = take_signed(i, 4);
	} else if (i->mod) {
		i->disp8 = i->mod == 1;
		i->disp = take_signed(i, i->mod == 1 ? 1 : 4);
	}
}

static void read_operands(struct x86 *i)
{
	unsigned int z = i->p66 && !i->wide ? 2 : 4;

	if (i->letter == 'm' || i->letter == 'M' || i->letter == 'Z')
		read_modrm(i);
	switch (i->letter) {
	case 'm':
		/* test has a number, its relatives have none */
		if (!i->map && (i->op & 0xfe) == 0xf6 && (i->reg & 7) < 2)
			i->imm = take_signed(i, i->op == 0xf6 ? 1 : z);
		break;
	case 'M':
	case 'i':
	case 'j':
		i->imm = take_signed(i, 1);
		break;
	case 'w':
		i->imm = (int64_t)take(i, 2);
		break;
	case 'J':
		i->imm = take_signed(i, 4);
		break;
	case 'Z':
	case 'z':
		i->imm = take_signed(i, z);
		break;
	case 'v':
		/* without REX.W the upper half becomes 0 */
		i->imm = i->wide && !i->narrow ? take_signed(i, 8) : (int64_t)take(i, z);
		break;
	case 'a':
		take(i, i->addr32 || i->narrow ? 4 : 8);
		break;
	case 'e':
		i->imm = (int64_t)take(i, 3);
		break;
	case 'x':
	case 'p':
		i->bad = true;
		break;
	}
}

/* Return the letter of an opcode of one byte. */
static char letter_of(const struct x86 *i, uint8_t byte)
{
	if (!i->narrow)
		return one_byte[byte];
	if ((byte & 0xf0) == 0x40)
		return '.'; /* inc, dec */
	switch (byte) {
	case 0x27: /* decimal numbers */
	case 0x2f:
	case 0x37:
	case 0x3f:
		return '.';
	case 0xd4:
	case 0xd5:
		return 'i';
	}
	return one_byte[byte];
}

/* Return whether @byte begins a prefix of vectors: on i386 some of these are instructions. */
static bool begins_vex(const struct x86 *i, uint8_t byte)
{
	if (i->at >= i->end)
		return false;
	if (byte == 0x8f)
		return (*i->at & 31) >= 8;
	return (byte == 0xc4 || byte == 0xc5 || byte == 0x62) && (!i->narrow || *i->at >= 0xc0);
}

static void decode(struct x86 *i)
{
	uint8_t byte = read_prefixes(i);

	if (i->narrow) {
		i->bad |= i->addr32; /* addresses of 16 bits */
		i->wide = !i->p66;
	}
	i->base = i->index = i->other = NONE;
	i->vector = 16;
	if (begins_vex(i, byte)) {
		read_vex(i, byte);
	} else if (byte == 0x0f) {
		i->map = 1;
		i->op = (uint8_t)take(i, 1);
		if (i->op == 0x38 || i->op == 0x3a) {
			i->map = i->op == 0x38 ? 2 : 3;
			i->op = (uint8_t)take(i, 1);
		}
		i->letter = i->map == 1 ? two_bytes[i->op] : i->map == 2 ? 'm' : 'M';
	} else {
		i->op = byte;
		i->letter = letter_of(i, byte);
	}
	if (!i->bad)
		read_operands(i);
}

/* Return true if the operands are bytes: 4 to 7 are ah to bh then, if there is no REX. */
static bool has_bytes(const struct x86 *i)
{
	uint8_t op = i->op;

	if (i->has_rex || i->vex || i->map > 1)
		return false;
	if (i->map)
		return (op & 0xf0) == 0x90 || op == 0xb0 || op == 0xc0;
	if (op < 0x40 || (op >= 0x80 && op < 0x8c))
		return !(op & 1);
	return (op >= 0xb0 && op <= 0xb7) || op == 0xc0 || op == 0xc6 || op == 0xd0 || op == 0xd2 ||
	       op == 0xf6 || op == 0xfe;
}

static uint32_t mask_of(const struct x86 *i, uint8_t reg)
{
	return 1u << (has_bytes(i) && reg >= 4 && reg < 8 ? reg & 3 : reg);
}

static uint32_t reg_mask(const struct x86 *i)
{
	return mask_of(i, i->reg);
}

/* Return the register that the ModRM operand is, 0 if it is memory. */
static uint32_t rm_mask(const struct x86 *i)
{
	return i->mod == 3 ? mask_of(i, i->rm) : 0;
}

#define RAX 1u
#define RCX 2u
#define RDX 4u
#define RBX 8u
#define RSI 64u
#define RDI 128u

/*
 * Registers that an opcode changes, as letters: 'r' the ModRM operand, 'g' the other one, 'b' both,
 * 'o' the one in the opcode, 'A', 'C', 'D' rax, rcx, rdx, others as in written_by().
 */
static const char one_byte_writes[257] = "rrggAA..rrggAA.."
					 "rrggAA..rrggAA.."
					 "rrggAA..rrggAA.."
					 "rrggAA.........."
					 "................"
					 "................"
					 "...g.....g.gSSSS"
					 "................"
					 "88.8..bbrrggrg.r"
					 ".xxxxxxxAD.....A"
					 "AA..SSSS..SSLLSS"
					 "oooooooooooooooo"
					 "rr....rr........"
					 "rrrr...A.......A"
					 "CCC.AA......AA.."
					 "......ff......FF";

static const char two_bytes_write[257] = "rTgg.Y.........."
					 "..............r."
					 "rr..........gg.."
					 ".PPP............"
					 "mmmmmmmmmmmmmmmm"
					 "g..............."
					 "................"
					 "........EE....M."
					 "................"
					 "ssssssssssssssss"
					 "..Q.rr.....rrrrg"
					 "ccgrggggg.Brgggg"
					 "bb...g.Woooooooo"
					 ".......g........"
					 "................"
					 "................";

static uint32_t written_by(const struct x86 *i, char letter)
{
	uint8_t sub = i->reg & 7;

	switch (letter) {
	case 'r':
		return rm_mask(i);
	case 'g':
		return reg_mask(i);
	case 'b':
		return reg_mask(i) | rm_mask(i);
	case 'o':
		return mask_of(i, (i->op & 7) | i->b);
	case 'x': /* xchg */
		return RAX | 1u << ((i->op & 7) | i->b);
	case 'A':
		return RAX;
	case 'C':
		return RCX;
	case 'D':
		return RDX;
	case 'S': /* string instructions */
	case 'L': /* lods */
		return RSI | RDI | RCX | (letter == 'L' ? RAX : 0);
	case '8': /* the last one is cmp */
		return sub == 7 ? 0 : rm_mask(i);
	case 'f': /* test, not and neg, mul and div */
		return sub < 2 ? 0 : sub < 4 ? rm_mask(i) : RAX | RDX;
	case 'F': /* inc, dec */
		return sub < 2 ? rm_mask(i) : 0;
	}
	return 0;
}

/* The same of the letters behind 0F; most instructions there have vectors as operands. */
static uint32_t written_behind_0f(const struct x86 *i, char letter)
{
	switch (letter) {
	case 'T': /* xgetbv, rdtscp */
		return RAX | RCX | RDX | rm_mask(i);
	case 'Y': /* syscall */
		return RAX | RCX | 1u << 11;
	case 'P': /* rdtsc, rdmsr, rdpmc */
		return RAX | RDX;
	case 'Q': /* cpuid */
		return RAX | RBX | RCX | RDX;
	case 'W': /* cmpxchg16b, rdrand */
		return RAX | RDX | rm_mask(i);
	case 'c': /* cmpxchg */
		return RAX | rm_mask(i);
	case 'm': /* cmov, but VEX: of masks */
		return i->vex ? 0 : reg_mask(i);
	case 's': /* set, but VEX: of masks */
		return !i->vex ? rm_mask(i) : i->op == 0x93 ? reg_mask(i) : 0;
	case 'E': /* conversions, but without EVEX: vmread */
		return i->evex ? reg_mask(i) : rm_mask(i);
	case 'M': /* movd, but F3: of vectors */
		return i->f3 ? 0 : rm_mask(i);
	case 'B': /* bts and its like, but bt */
		return (i->reg & 7) == 4 ? 0 : rm_mask(i);
	}
	return written_by(i, letter);
}

/* Return the general registers that @i changes, but for the ones of pushes and pops. */
static uint32_t written(const struct x86 *i)
{
	uint8_t op = i->op;

	switch (i->map) {
	case 0:
		if (i->narrow && (op & 0xf0) == 0x40)
			return 1u << (op & 7); /* inc, dec */
		return written_by(i, one_byte_writes[i->op]);
	case 1:
		return written_behind_0f(i, two_bytes_write[i->op]);
	case 2:
		if (i->vex && !i->evex && (op >= 0xf2 || (op & 0xf0) == 0xe0))
			return reg_mask(i) | 1u << (i->other & 15);
		return op >= 0xf0 && !i->evex ? reg_mask(i) : 0;
	case 3:
		if (op >= 0x14 && op <= 0x17)
			return rm_mask(i);
		return op == 0xf0 ? reg_mask(i) : op >= 0x60 && op <= 0x63 ? RCX : 0;
	case 5:
	case 6:
		return reg_mask(i) | rm_mask(i);
	}
	return i->map >= 32 ? ALL & ~(1u << SP) : 0; /* XOP: bextr and others */
}

static uint32_t x87_stores(const struct x86 *i)
{
	uint8_t sub = i->reg & 7;

	if (i->op == 0xd9)
		return sub == 6 ? 28 : sub == 2 || sub == 3 || sub == 7 ? 4 : 0;
	if (i->op == 0xdd)
		return sub == 6 ? 108 : sub == 1 || sub == 2 || sub == 3 || sub == 7 ? 8 : 0;
	if (i->op == 0xdb || i->op == 0xdf)
		return (sub >= 1 && sub <= 3) || sub >= 6 ? 10 : 0;
	return 0;
}

static uint32_t stores_one_byte(const struct x86 *i)
{
	uint8_t op = i->op, sub = i->reg & 7;
	uint32_t word = i->narrow ? 4 : 8, size = i->wide ? word : i->p66 ? 2 : 4;

	if (!(op & 1))
		size = 1;
	if (op < 0x40)
		return op < 0x38 && (op & 7) < 2 ? size : 0;
	switch (op) {
	case 0x80:
	case 0x81:
	case 0x83:
		return sub == 7 ? 0 : size;
	case 0x86:
	case 0x87:
	case 0x88:
	case 0x89:
	case 0xc0:
	case 0xc1:
	case 0xc6:
	case 0xc7:
	case 0xd0:
	case 0xd1:
	case 0xd2:
	case 0xd3:
		return size;
	case 0x8c:
		return 2;
	case 0x8f:
		return word;
	case 0xf6:
	case 0xf7:
		return sub == 2 || sub == 3 ? size : 0;
	case 0xfe:
	case 0xff:
		return sub < 2 ? size : 0;
	}
	return x87_stores(i);
}

static uint32_t stores_two_bytes(const struct x86 *i)
{
	uint8_t sub = i->reg & 7;

	if ((i->op & 0xf0) == 0x90)
		return i->vex ? 8 : 1;
	switch (i->op) {
	case 0x11:
		return i->f3 ? 4 : i->f2 ? 8 : i->vector;
	case 0x13:
	case 0x17:
	case 0xd6:
	case 0xc3:
	case 0xc0:
	case 0xc1:
	case 0xb0:
	case 0xb1:
	case 0xa4:
	case 0xa5:
	case 0xab:
	case 0xac:
	case 0xad:
	case 0xb3:
	case 0xbb:
		return 8;
	case 0x29:
	case 0x2b:
		return i->vector;
	case 0x7f:
	case 0xe7:
		return i->vex || i->p66 || i->f3 ? i->vector : 8; /* of MMX */
	case 0x7e:
		return i->f3 ? 0 : i->wide && !i->narrow ? 8 : 4;
	case 0xba:
		return sub == 4 ? 0 : 8;
	case 0xae:
		return sub == 3 ? 4 : sub == 0 ? 512 : sub == 4 || sub == 6 ? 4096 : 0;
	case 0xc7:
		return sub == 1 ? 16 : 4096;
	}
	return 0;
}

/* Return whether @i, with EVEX and behind 0F38, stores: vpmov of parts, compress, scatter. */
static bool stores_evex(const struct x86 *i)
{
	uint8_t op = i->op;

	if (i->f3)
		return op >= 0x10 && op < 0x40 && (op & 15) < 6;
	return op == 0x63 || op == 0x8a || op == 0x8b || (op >= 0xa0 && op <= 0xa3);
}

/* Return the number of bytes that @i may store at its memory operand. */
static uint32_t stores(const struct x86 *i)
{
	switch (i->map) {
	case 0:
		return stores_one_byte(i);
	case 1:
		return stores_two_bytes(i);
	case 2:
		if (i->op == 0xf1 || i->op >= 0xf5)
			return i->vex ? 0 : 8;
		if (i->evex)
			return stores_evex(i) ? i->vector : 0;
		return i->vex && (i->op == 0x2e || i->op == 0x2f || i->op == 0x8e) ? i->vector : 0;
	case 3:
		if (i->op >= 0x14 && i->op <= 0x17)
			return 8;
		/* Halves of vectors, and vcvtps2ph. */
		return i->vex && ((i->op & 0xd5) == 0x11 || i->op == 0x1d) ? i->vector : 0;
	}
	return i->map > 3 ? 64 : 0;
}

#define RED_ZONE 128

static void set_sp(struct derive_state *s, uint64_t value)
{
	derive_set_sp(s, SP, s->word == 8 ? RED_ZONE : 0, value);
}

/* Return the known part of the address of the memory operand. */
static uint64_t address(const struct x86 *i, const struct derive_state *s, uint64_t next)
{
	if (i->rip)
		return derive_value(DERIVE_NUMBER, (int64_t)(next + (uint64_t)i->disp));
	if (i->index != NONE || i->addr32)
		return 0;
	if (i->base == NONE)
		return derive_value(DERIVE_NUMBER, i->disp);
	return derive_add(s->reg[i->base], i->disp);
}

/* Return the table that the memory operand is an entry of; 0: unknown. */
static uint64_t table_of(const struct x86 *i, const struct derive_state *s, unsigned int scale,
			 enum derive_kind kind)
{
	uint64_t base = i->base == NONE ? derive_value(DERIVE_NUMBER, 0) : s->reg[i->base];

	if (i->mod == 3 || i->index == NONE || i->scale != scale || i->addr32 || i->rip ||
	    derive_kind(base) != DERIVE_NUMBER)
		return 0;
	return derive_value(kind, derive_number(base) + i->disp);
}

/* Store @value at the memory operand, as @i does. */
static void store(const struct x86 *i, struct derive_state *s, uint64_t next, uint64_t value)
{
	uint32_t size = i->mod == 3 ? 0 : stores(i);
	uint64_t at = size ? address(i, s, next) : 0;
	bool full = i->map == 1 && (i->op == 0x11 || i->op == 0x29 || i->op == 0x2b ||
				    i->op == 0x7f || i->op == 0xe7);

	if (!size)
		return;
	/* EVEX has small displacements in units, of most stores of their size. */
	if (i->evex && i->disp8) {
		at = derive_add(at, i->disp * ((int64_t)(full ? size : 1) - 1));
		size = full ? size : 4096;
	}
	derive_put(s, at, size, value);
}

static void push(struct derive_state *s, uint64_t value)
{
	set_sp(s, derive_add(s->reg[SP], -s->word));
	derive_put(s, s->reg[SP], s->word, value);
}

static uint64_t pop(struct derive_state *s)
{
	uint64_t value = derive_load(s, s->reg[SP]);
	uint64_t zero = derive_value(DERIVE_NUMBER, 0);

	set_sp(s, derive_add(s->reg[SP], s->word));
	s->is_root |= s->reg[SP] == derive_value(DERIVE_CFA, 0) && s->reg[FP] == zero;
	return value;
}

static void set(struct derive_state *s, uint8_t reg, uint64_t value)
{
	if (reg == SP)
		set_sp(s, value);
	else
		derive_set(s, reg, value);
}

/* Return the result of add, sub or and of registers and numbers. */
static uint64_t arithmetic(const struct derive_state *s, uint8_t what, uint64_t a, uint64_t b)
{
	uint64_t target = what == 0 ? derive_target(s, a, b) ?: derive_target(s, b, a) : 0;

	if (target)
		return target;
	if (derive_kind(b) == DERIVE_NUMBER && what == 0)
		return derive_add(a, derive_number(b));
	if (derive_kind(b) == DERIVE_NUMBER && what == 5)
		return derive_add(a, -derive_number(b));
	if (what == 0 && derive_kind(a) == DERIVE_NUMBER)
		return derive_add(b, derive_number(a));
	if (what == 0 && derive_kind(a) == DERIVE_AREA && derive_kind(b) == DERIVE_DISTANCE)
		return derive_value(DERIVE_CFA, derive_number(a) + derive_number(b));
	return 0;
}

/* Apply mov and lea. False: it is none of these. */
static bool apply_move(const struct x86 *i, struct derive_state *s, uint64_t next)
{
	switch (i->op) {
	case 0x89:
		if (i->wide && i->mod == 3)
			set(s, i->rm, s->reg[i->reg]);
		else if (i->wide)
			store(i, s, next, s->reg[i->reg]);
		return i->wide;
	case 0x8b:
		if (i->wide && i->mod == 3)
			set(s, i->reg, s->reg[i->rm]);
		else if (i->wide)
			set(s, i->reg,
			    derive_load(s, address(i, s, next))
				    ?: table_of(i, s, s->word, DERIVE_ADDRESS)
				    ?: derive_value(DERIVE_LOADED, 0));
		return i->wide;
	case 0x63:
		if (i->narrow) /* arpl */
			return false;
		set(s, i->reg, i->wide ? table_of(i, s, 4, DERIVE_OFFSET) : 0);
		return true;
	case 0x8d:
		/* The sum of an offset and its table, or an address. */
		if (i->wide && i->index != NONE && i->base != NONE && i->scale == 1 && !i->disp)
			set(s, i->reg, arithmetic(s, 0, s->reg[i->base], s->reg[i->index]));
		else
			set(s, i->reg, i->wide && i->mod != 3 ? address(i, s, next) : 0);
		return true;
	case 0xc7:
		if (i->mod == 3)
			set(s, i->rm,
			    derive_value(DERIVE_NUMBER,
					 i->wide ? i->imm : (int64_t)(uint32_t)i->imm));
		return i->mod == 3;
	}
	if (i->op >= 0xb8 && i->op <= 0xbf)
		set(s, (i->op & 7) | i->b, derive_value(DERIVE_NUMBER, i->imm));
	return i->op >= 0xb8 && i->op <= 0xbf;
}

/*
 * Set @to to @value, its difference from @from. The stack pointer is at an area then, and the other
 * register has the distance, which functions of qhasm (libsodium) keep in a word there.
 */
static void set_difference(struct derive_state *s, uint8_t to, uint8_t from, uint64_t value)
{
	uint64_t sp = s->reg[SP];

	set(s, to, value);
	if (to == SP && from != SP && !value && derive_kind(sp) == DERIVE_CFA)
		set(s, from, derive_value(DERIVE_DISTANCE, derive_number(sp)));
}

/* Exchange two registers. The stack pointer may go to an area of which nothing is known. */
static void swap(struct derive_state *s, uint8_t a, uint8_t b)
{
	const uint8_t other = a == SP ? b : a;
	const bool moves = a == SP || b == SP;
	const uint64_t value = s->reg[moves ? SP : b], to = s->reg[other];

	if (a == b)
		return;
	if (moves)
		set_sp(s, to);
	else
		set(s, b, to);
	set(s, other, moves && derive_kind(value) != DERIVE_CFA ? 0 : value);
}

/* Apply add, sub, and, xor, xchg of registers. False: it is none of these. */
static bool apply_sum(const struct x86 *i, struct derive_state *s)
{
	bool to_rm = !(i->op & 2);
	uint8_t what = i->reg & 7, to = to_rm ? i->rm : i->reg, from = to_rm ? i->reg : i->rm;
	uint64_t value;

	if ((i->op & 0xf8) == 0x90 && i->wide && !i->f3) { /* xchg of rax, nop */
		swap(s, 0, (i->op & 7) | i->b);
		return true;
	}
	if (i->mod != 3)
		return false;
	switch (i->op) {
	case 0x81:
	case 0x83:
		value = arithmetic(s, what, s->reg[i->rm], derive_value(DERIVE_NUMBER, i->imm));
		if (i->wide && what != 7)
			set(s, i->rm, value);
		return i->wide && what != 7;
	case 0x01:
	case 0x29:
	case 0x03:
	case 0x2b:
		value = arithmetic(s, i->op & 0x28 ? 5 : 0, s->reg[to], s->reg[from]);
		if (i->wide && i->op & 0x28)
			set_difference(s, to, from, value);
		else if (i->wide)
			set(s, to, value);
		return i->wide;
	case 0x31:
	case 0x33:
		if (i->reg != i->rm || i->reg == SP)
			return false;
		set(s, i->reg, derive_value(DERIVE_NUMBER, 0));
		return true;
	case 0x87:
		if (i->wide)
			swap(s, i->reg, i->rm);
		return i->wide;
	}
	return false;
}

/* Apply pushes, pops, enter, leave. False: it is none of these. */
static bool apply_stack(const struct x86 *i, struct derive_state *s, uint64_t next)
{
	bool one = !i->map, fs = i->map == 1 && !i->vex;

	if ((one && i->op >= 0x50 && i->op <= 0x57)) {
		push(s, s->reg[(i->op & 7) | i->b]);
	} else if (one && i->op >= 0x58 && i->op <= 0x5f) {
		uint64_t value = pop(s);

		set(s, (i->op & 7) | i->b, value);
	} else if (one && (i->op == 0x68 || i->op == 0x6a || i->op == 0x9c ||
			   (i->op == 0xff && (i->reg & 7) == 6))) {
		push(s, 0);
	} else if (fs && (i->op == 0xa0 || i->op == 0xa8)) {
		push(s, 0);
	} else if ((one && i->op == 0x9d) || (fs && (i->op == 0xa1 || i->op == 0xa9))) {
		pop(s);
	} else if (one && i->op == 0x8f) {
		uint64_t value = pop(s);

		if (i->mod == 3)
			set(s, i->rm, value);
		else
			store(i, s, next, value);
	} else if (one && i->op == 0xc9) {
		set_sp(s, s->reg[FP]);
		set(s, FP, pop(s));
	} else if (one &&
		   i->op == 0xc8) { /* enter: imm16 of space, frame pointers for nested functions */
		push(s, s->reg[FP]);
		set(s, FP, s->reg[SP]);
		set_sp(s, i->imm >> 16 ? 0 : derive_add(s->reg[SP], -i->imm));
	} else {
		return false;
	}
	/* A push of 16 bits. */
	if (i->p66)
		set_sp(s, 0);
	return true;
}

/* Apply movzx of 16 bits. False: it is another instruction. */
static bool apply_short(const struct x86 *i, struct derive_state *s)
{
	if (i->map != 1 || i->op != 0xb7 || i->vex || i->p66)
		return false;
	set(s, i->reg, table_of(i, s, 2, DERIVE_SHORT));
	return true;
}

static void apply(const struct x86 *i, struct derive_state *s, uint64_t next)
{
	uint32_t mask;

	if (apply_short(i, s) || apply_stack(i, s, next) ||
	    (!i->map && (apply_move(i, s, next) || apply_sum(i, s))))
		return;
	if (i->letter == 'm' || i->letter == 'M' || i->letter == 'Z')
		store(i, s, next, 0);
	mask = written(i);
	for (unsigned int r = 0; mask; r++, mask >>= 1)
		if (mask & 1)
			set(s, (uint8_t)r, 0);
}

static void apply_call(const struct x86 *i, struct derive_state *s)
{
	uint32_t lost = i->narrow ? CALL_CLOBBERS_I386 : CALL_CLOBBERS;

	for (unsigned int r = 0; r < 16; r++)
		if (lost >> r & 1)
			set(s, (uint8_t)r, 0);
	derive_forget_below(s, SP, 0);
}

#define THUNK_NEAR 32u /* bytes from the call in a thunk to its end, at most */

/* Classify the instructions that do not just go on. */
static enum derive_flow flow_of(const struct x86 *i)
{
	if (i->map == 1 && !i->vex) {
		if ((i->op & 0xf0) == 0x80)
			return DERIVE_BRANCH;
		return i->op == 0x0b || i->op == 0xff || i->op == 0xb9 ? DERIVE_STOP : DERIVE_ON;
	}
	if (i->map)
		return DERIVE_ON;
	if ((i->op & 0xf0) == 0x70 || (i->op & 0xfc) == 0xe0)
		return DERIVE_BRANCH;
	switch (i->op) {
	case 0xe8:
		return DERIVE_CALL;
	case 0xe9:
	case 0xeb:
		return DERIVE_JUMP;
	case 0xc2:
	case 0xc3:
	case 0xca:
	case 0xcb:
	case 0xcf:
		return DERIVE_RETURN;
	case 0xcc:
	case 0xf4:
		return DERIVE_STOP;
	case 0xff:
		switch (i->reg & 7) {
		case 2:
		case 3:
			return DERIVE_CALL_TO;
		case 4:
		case 5:
			return DERIVE_JUMP_TO;
		case 7:
			return DERIVE_BAD;
		}
	}
	return DERIVE_ON;
}

/* Return the table that @i has read an offset of; 0: none. */
static uint64_t table_read(const struct x86 *i, const struct derive_state *s)
{
	bool reads = !i->vex && (i->map ? i->map == 1 && i->op == 0xb7 : i->op == 0x63);
	enum derive_kind kind = reads ? derive_kind(s->reg[i->reg]) : DERIVE_UNKNOWN;

	return kind == DERIVE_OFFSET || kind == DERIVE_SHORT
		       ? (uint64_t)derive_number(s->reg[i->reg])
		       : 0;
}

/*
 * Return whether the code behind @i is of no function: "mov %rax, …" or a saved register moved, as
 * in a landing pad, which has the exception in rax; or a jump.
 */
static bool moves_early(const struct x86 *i)
{
	const unsigned int from = 1u << 0 | 1u << 3 | 1u << 5 |
				  0xf000; /* rax, rbx, rbp, r12 to r15 */
	const uint8_t *at = i->at;

	if (i->end - at < 3)
		return false;
	return at[0] == 0xe9 || at[0] == 0xeb ||
	       ((at[0] & 0xfa) == 0x48 && at[1] == 0x89 && at[2] >= 0xc0 &&
		from >> ((at[2] >> 3 & 7) | (at[0] & 4) << 1) & 1);
}

/* Return the kind of thunk of which the call at @at leads to @to, over a loop that never runs. */
static enum derive_thunk thunk_at(const struct derive_code *code, uint64_t at, uint64_t to,
				  unsigned int word)
{
	static const uint8_t wide[] = { 0x48, 0x8d, 0x64, 0x24, 8, 0xc3 };
	static const uint8_t narrow[] = { 0x8d, 0x64, 0x24, 4, 0xc3 };
	const size_t lea = word == 8 ? sizeof(wide) : sizeof(narrow), rex = word == 8;
	uint64_t off = to - code->vaddr;
	const uint8_t *p;

	if (to <= at || to - at > THUNK_NEAR || off >= code->size)
		return DERIVE_NO_THUNK;
	p = code->bytes + off;
	/* lea 8(%rsp),%rsp; ret; or mov %REG,(%rsp); ret */
	if (code->size - off >= lea && !memcmp(p, word == 8 ? wide : narrow, lea))
		return DERIVE_THUNK_RETURN;
	if (code->size - off < rex + 4 || (rex && (p[0] & 0xfb) != 0x48))
		return DERIVE_NO_THUNK;
	p += rex;
	return p[0] == 0x89 && (p[1] & 0xc7) == 4 && p[2] == 0x24 && p[3] == 0xc3
		       ? DERIVE_THUNK_JUMP
		       : DERIVE_NO_THUNK;
}

/* Find out whether the call at @pc is one of a thunk. */
static void find_thunk(const struct derive_code *code, uint64_t pc, unsigned int word,
		       struct derive_insn *out)
{
	uint64_t off = out->target - code->vaddr;
	const uint8_t *to;

	out->thunk = (uint8_t)thunk_at(code, pc, out->target, word);
	if (out->thunk) {
		out->flow = DERIVE_JUMP;
		return;
	}
	/* jmp 2f; 1: call of a thunk; 2: call 1b */
	if (out->target >= pc || off < 2 || off >= code->size || code->size - off < 5)
		return;
	to = code->bytes + off;
	if (to[-2] != 0xeb || out->target + to[-1] != pc || to[0] != 0xe8 ||
	    thunk_at(code, out->target, out->target + 5 + bytes_u32(to + 1), word) !=
		    DERIVE_THUNK_JUMP)
		return;
	out->flow = DERIVE_BRANCH;
	out->thunk = DERIVE_THUNK_CALL;
}

static void step_in(const struct derive_code *code, uint64_t pc, struct derive_state *s,
		    struct derive_insn *out, bool narrow)
{
	uint64_t at = pc - code->vaddr, next;
	struct x86 i = { .at = code->bytes + MIN(at, code->size), .narrow = narrow };
	const uint8_t *begin = i.at;

	i.end = begin + MIN(15u, code->size - MIN(at, code->size));
	decode(&i);
	*out = (struct derive_insn){ .size = (uint8_t)(i.at - begin), .flow = DERIVE_BAD };
	if (i.bad)
		return;
	next = pc + out->size;
	out->flow = (uint8_t)flow_of(&i);
	out->padding = (!i.map && (i.op == 0xcc || (i.op == 0x90 && !i.b))) ||
		       (i.map == 1 && i.op == 0x1f && !i.vex);
	/* Landing pads of exceptions and labels have it as well, by chance aligned. */
	out->marks_start = pc % 16 == 0 && i.map == 1 && i.op == 0x1e && i.f3 && i.mod == 3 &&
			   i.rm == 2 && (i.reg & 7) == 7 && !moves_early(&i);
	out->base = i.base != NONE && !out->padding ? i.base + 1 : 0;
	if (i.letter == 'j' || i.letter == 'J')
		out->target = next + (uint64_t)i.imm;
	else if (!i.map && i.op == 0x8d && i.rip)
		out->target = next + (uint64_t)i.disp;
	if (out->flow == DERIVE_CALL)
		find_thunk(code, pc, narrow ? 4 : 8, out);
	if (!s)
		return;
	if (out->flow == DERIVE_JUMP_TO && (i.reg & 7) == 4)
		out->value = i.mod == 3 ? s->reg[i.rm]
					: table_of(&i, s, s->word, DERIVE_ADDRESS)
						  ?: derive_value(DERIVE_LOADED, 0);
	if (out->flow == DERIVE_CALL && out->target == next)
		push(s, derive_value(DERIVE_NUMBER, (int64_t)next));
	else if (out->flow == DERIVE_CALL || out->flow == DERIVE_CALL_TO || out->thunk)
		apply_call(&i, s);
	else
		apply(&i, s, next);
	out->table = table_read(&i, s);
}

static void step(const struct derive_code *code, uint64_t pc, struct derive_state *s,
		 struct derive_insn *out)
{
	step_in(code, pc, s, out, false);
}

static void step_i386(const struct derive_code *code, uint64_t pc, struct derive_state *s,
		      struct derive_insn *out)
{
	step_in(code, pc, s, out, true);
}

static const uint8_t dwarf[] = { 0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15 };

/* Prefixes, 0F, nop, int3. */
static const uint32_t pads[8] = { 0x8000, 0x40404040, 0xffff, 0xf0, 0x10000, 0, 0x1000, 0xd0000 };

const struct derive_cpu derive_x86 = {
	.machine = EM_X86_64,
	.word = 8,
	.step = step,
	.sp = SP,
	.fp = FP,
	.nr = 16,
	.align = 1,
	.link = DERIVE_ON_STACK,
	.sp_at_entry = -8,
	.sp_dwarf = 7,
	.ra_dwarf = 16,
	.nr_saved = 6,
	.saved = { 3, 5, 12, 13, 14, 15 },
	.saved_dwarf = { 3, 6, 12, 13, 14, 15 },
	.dwarf = dwarf,
	.pads = pads,
};

const struct derive_cpu derive_i386 = {
	.machine = EM_386,
	.word = 4,
	.step = step_i386,
	.sp = SP,
	.fp = FP,
	.nr = 8,
	.align = 1,
	.link = DERIVE_ON_STACK,
	.sp_at_entry = -4,
	.sp_dwarf = 4,
	.ra_dwarf = 8,
	.nr_saved = 4,
	.saved = { 3, 5, 6, 7 },
	.saved_dwarf = { 3, 5, 6, 7 },
	.pads = pads,
};
