// SPDX-License-Identifier: GPL-2.0-or-later
/* Unwind rows derived from instructions of AArch64, on any machine; hostile code. */
#include "tests/prelude.h"

#include <string.h>

#include "symbols/elf/internal.h"

#define VADDR 0x10000ULL

enum { FP = 29, LINK = 30, SP = 31, NR_SAVED = 12 };

/* Places in the saved registers of a row. */
enum { X19 = 0, X20 = 1, X29 = 10, X30 = 11 };

struct rows {
	struct {
		uint64_t start, end;
		struct derive_row row;
		bool guessed;
	} v[64];
	size_t nr;
	uint64_t visits;
};

static void take(void *ctx, uint64_t start, uint64_t end, const struct derive_row *row,
		 bool guessed)
{
	struct rows *r = ctx;

	assert_true(start < end && row->cfa != DERIVE_NO_CFA);
	if (r->nr == ARRAY_SIZE(r->v))
		return;
	r->v[r->nr].start = start;
	r->v[r->nr].end = end;
	r->v[r->nr].row = *row;
	r->v[r->nr++].guessed = guessed;
}

static void derive(struct rows *r, const uint32_t *code, size_t size, uint64_t entry)
{
	const uint64_t start = VADDR;
	const struct derive_input in = {
		.visits_max = UINT64_MAX,
		.cpu = &derive_arm64,
		.code = { (const uint8_t *)code, VADDR, size },
		.starts = &start,
		.nr_starts = 1,
		.entry = entry,
	};
	const struct derive_sink sink = { take, r };

	r->nr = 0;
	r->visits = derive_rows(&in, &sink);
}

#define DERIVE(r, code) derive(r, code, sizeof(code), 0)

/* Get the row before instruction @i; one without a CFA where there is none, or only a guess. */
static struct derive_row row_at(const struct rows *r, unsigned int i)
{
	for (size_t k = 0; k < r->nr; k++)
		if (VADDR + 4 * i >= r->v[k].start && VADDR + 4 * i < r->v[k].end &&
		    !r->v[k].guessed)
			return r->v[k].row;
	return (struct derive_row){ .cfa = DERIVE_NO_CFA };
}

/* The CFA is register @reg + @off there, and the return address at CFA + @ra; 0: in x30. */
static void assert_row(const struct rows *r, unsigned int i, int reg, int off, int ra)
{
	struct derive_row row = row_at(r, i);

	assert_int_equal(row.cfa, DERIVE_BY_REG);
	assert_int_equal(row.reg, reg);
	assert_int_equal(row.off, off);
	assert_int_equal(row.saved[X30].where, ra ? DERIVE_AT_CFA : DERIVE_SAME);
	assert_int_equal(row.saved[X30].off, ra);
}

TEST(test_frame)
{
	static const uint32_t code[] = {
		0xa9bd7bfd, /* stp x29, x30, [sp, #-48]! */
		0x910003fd, /* mov x29, sp */
		0xa90153f3, /* stp x19, x20, [sp, #16] */
		0xfd0013e8, /* str d8, [sp, #32] */
		0xaa0003f3, /* mov x19, x0 */
		0xd63f0020, /* blr x1 */
		0xa94153f3, /* ldp x19, x20, [sp, #16] */
		0xa8c37bfd, /* ldp x29, x30, [sp], #48 */
		0xd65f03c0, /* ret */
	};
	struct derive_row row;
	struct rows r;

	DERIVE(&r, code);
	assert_row(&r, 0, SP, 0, 0);
	assert_row(&r, 1, SP, 48, -40);
	assert_row(&r, 6, SP, 48, -40);
	row = row_at(&r, 6);
	assert_int_equal(row.saved[X29].off, -48);
	assert_int_equal(row.saved[X19].where, DERIVE_AT_CFA);
	assert_int_equal(row.saved[X19].off, -32);
	assert_int_equal(row.saved[X20].off, -24);
	assert_row(&r, 8, SP, 0, 0);
	assert_int_equal(row_at(&r, 8).saved[X19].where, DERIVE_SAME);
	assert_int_equal(row_at(&r, 8).saved[X29].where, DERIVE_SAME);
}

/* A frame of more than an immediate; the signature of the return address changes no place. */
TEST(test_large)
{
	static const uint32_t code[] = {
		0xd503233f, /* paciasp */
		0xd282040c, /* mov x12, #0x1020 */
		0xcb2c63ff, /* sub sp, sp, x12 */
		0xf90007fe, /* str x30, [sp, #8] */
		0xd63f0020, /* blr x1 */
		0xf94007fe, /* ldr x30, [sp, #8] */
		0x914007ff, /* add sp, sp, #1, lsl #12 */
		0x910083ff, /* add sp, sp, #32 */
		0xd50323bf, /* autiasp */
		0xd65f03c0, /* ret */
	};
	struct rows r;

	DERIVE(&r, code);
	assert_row(&r, 3, SP, 0x1020, 0);
	assert_row(&r, 4, SP, 0x1020, -0x1018);
	assert_row(&r, 5, SP, 0x1020, -0x1018);
	assert_row(&r, 8, SP, 0, 0);
	assert_row(&r, 9, SP, 0, 0);
}

TEST(test_aligned)
{
	static const uint32_t code[] = {
		0xa9bf7bfd, /* stp x29, x30, [sp, #-16]! */
		0x910003fd, /* mov x29, sp */
		0x910003e9, /* mov x9, sp */
		0x927ae53f, /* and sp, x9, #-64 */
		0xd10203ff, /* sub sp, sp, #128 */
		0xd63f0020, /* blr x1 */
		0x910003bf, /* mov sp, x29 */
		0xa8c17bfd, /* ldp x29, x30, [sp], #16 */
		0xd65f03c0, /* ret */
	};
	struct rows r;

	DERIVE(&r, code);
	assert_row(&r, 3, SP, 16, -8);
	assert_row(&r, 4, FP, 16, -8);
	assert_row(&r, 6, FP, 16, -8);
	assert_row(&r, 8, SP, 0, 0);
}

/* Without the return address anywhere there is no row. */
TEST(test_lost)
{
	static const uint32_t code[] = {
		0xaa0003fe, /* mov x30, x0 */
		0xf94003c0, /* ldr x0, [x30] */
		0xd65f03c0, /* ret */
	};
	static const uint32_t called[] = {
		0xd63f0020, /* blr x1 */
		0xd65f03c0, /* ret */
	};
	struct rows r;

	DERIVE(&r, code);
	assert_row(&r, 0, SP, 0, 0);
	assert_int_equal(row_at(&r, 1).cfa, DERIVE_NO_CFA);
	DERIVE(&r, called);
	assert_int_equal(row_at(&r, 1).cfa, DERIVE_NO_CFA);
}

TEST(test_vectors)
{
	static const uint32_t code[] = {
		0xd10103ff, /* sub sp, sp, #64 */
		0x4c0023e0, /* st1 {v0.16b-v3.16b}, [sp] */
		0xf81f0ffe, /* str x30, [sp, #-16]! */
		0xd63f0020, /* blr x1 */
		0xf84107fe, /* ldr x30, [sp], #16 */
		0x4cdf23e0, /* ld1 {v0.16b-v3.16b}, [sp], #64 */
		0xd65f03c0, /* ret */
	};
	struct rows r;

	DERIVE(&r, code);
	assert_row(&r, 2, SP, 64, 0);
	assert_row(&r, 4, SP, 80, -80);
	assert_row(&r, 6, SP, 0, 0);
}

/* Code that saves x30 behind a call is another function: the call never returns. */
TEST(test_behind_call)
{
	static const uint32_t code[] = {
		0xa9be7bfd, /* stp x29, x30, [sp, #-32]! */
		0xf9000bf3, /* str x19, [sp, #16] */
		0x94040000, /* bl elsewhere */
		0xb4000083, /* cbz x3, ret */
		0xa9bf7bfd, /* stp x29, x30, [sp, #-16]! */
		0x94040000, /* bl elsewhere */
		0xa8c17bfd, /* ldp x29, x30, [sp], #16 */
		0xd65f03c0, /* ret */
	};
	struct rows r;

	DERIVE(&r, code);
	assert_row(&r, 2, SP, 32, -24);
	assert_row(&r, 3, SP, 0, 0);
	assert_row(&r, 5, SP, 16, -8);
	assert_row(&r, 7, SP, 0, 0);
}

/* Two ways with different stack pointers meet: unknown. */
TEST(test_joined)
{
	static const uint32_t code[] = {
		0xb4000040, /* cbz x0, 1f */
		0xd10043ff, /* sub sp, sp, #16 */
		0xd503201f, /* 1: nop */
		0xd65f03c0, /* ret */
	};
	struct rows r;

	DERIVE(&r, code);
	assert_row(&r, 1, SP, 0, 0);
	assert_int_equal(row_at(&r, 2).cfa, DERIVE_NO_CFA);
}

/* A jump by a table of offsets. */
TEST(test_table)
{
	static const uint32_t code[] = {
		0xf81f0ffe, /* str x30, [sp, #-16]! */
		0x90000002, /* adrp x2, 2f */
		0x9100a042, /* add x2, x2, :lo12:2f */
		0xb8a07843, /* ldrsw x3, [x2, x0, lsl #2] */
		0x8b030042, /* add x2, x2, x3 */
		0xd61f0040, /* br x2 */
		0xf84107fe, /* 3: ldr x30, [sp], #16 */
		0xd65f03c0, /* ret */
		0xf90007f3, /* 4: str x19, [sp, #8] */
		0x17fffffd, /* b 3b */
		0xfffffff0, /* 2: .word 3b - 2b */
		0xfffffff8, /* .word 4b - 2b */
	};
	struct rows r;

	DERIVE(&r, code);
	assert_row(&r, 5, SP, 16, -16);
	assert_row(&r, 8, SP, 16, -16);
	assert_row(&r, 6, SP, 16, -16);
	assert_row(&r, 7, SP, 0, 0);
	assert_int_equal(row_at(&r, 9).saved[X19].off, -8);
}

/* The entry of a program has no caller. */
TEST(test_entry)
{
	static const uint32_t code[] = {
		0xd280001d, /* mov x29, #0 */
		0xd280001e, /* mov x30, #0 */
		0x910003e0, /* mov x0, sp */
		0xd63f0020, /* blr x1 */
		0xd4200020, /* brk #1 */
	};
	struct rows r;

	derive(&r, code, sizeof(code), VADDR);
	assert_int_equal(row_at(&r, 0).cfa, DERIVE_END);
	assert_int_equal(row_at(&r, 4).cfa, DERIVE_END);
}

/* Any bytes: bounded, and each row has a CFA. */
TEST(test_hostile_code)
{
	static uint32_t code[1024];
	uint64_t random = 88172645463325252ULL;
	struct rows r;

	for (int round = 0; round < 200; round++) {
		for (size_t i = 0; i < ARRAY_SIZE(code); i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			code[i] = (uint32_t)random;
			/* Often memory and branches near. */
			if (round & 1)
				code[i] = (code[i] & 0x01e07fff) |
					  (i % 3 ? 0xa8000000 : 0x14000000);
		}
		derive(&r, code, sizeof(code) - (size_t)(round & 3), VADDR);
		assert_true(r.visits <= sizeof(code) * 64 + 8192);
	}
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
