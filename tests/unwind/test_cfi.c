// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The CFI reader: rows by hand, every row of real files against elfutils'
 * interpreter, and the refusals of the gate. CFI_ALL=1: every ELF file under /usr/lib and /usr/bin,
 * else those of a few seconds. With file names as arguments: report the shares of COMPLEX and
 * refused FDEs in them.
 * Live: takes about a second of CPU time, or more.
 */
#include "tests/unwind/row_at.h"

#include "tests/prelude.h"

#include <elfutils/libdw.h>
#include <ftw.h>
#include <inttypes.h>

#include "symbols/base/base.h"
#include "tests/makers/eh_frame.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/script/script.h"

#define START 0x2000ULL

static struct eh_section section;

/* One FDE of @range bytes behind a usual CIE; the section is indexed into @eh. */
static uint32_t make(struct ehframe *eh, const void *insns, size_t size, uint32_t range)
{
	uint32_t cie, fde;

	section.size = 0;
	cie = eh_cie(&section, false, eh_usual, sizeof(eh_usual));
	fde = eh_fde(&section, cie, START, range, insns, size);
	assert_int_equal(ehframe_init(eh, section.bytes, section.size, EH_VADDR, EM_X86_64), 0);
	return fde;
}

static enum cfi_reason check(const void *insns, size_t size)
{
	struct ehframe eh;
	uint32_t fde = make(&eh, insns, size, 0x100);
	enum cfi_reason reason = cfi_check(&arch_x86_64, &eh, fde, NULL, NULL);

	ehframe_fini(&eh);
	return reason;
}

#define CHECK(...) check((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void assert_row(const struct ehframe *eh, uint32_t fde, uint64_t pc, bool cfa_is_fp,
		       int32_t cfa_off, int32_t fp_off)
{
	struct cfi_row row;

	assert_int_equal(cfi_row_at(&arch_x86_64, eh, fde, pc, &row), CFI_OK);
	assert_int_equal(row.kind, CFI_ROW);
	assert_int_equal(row.cfa_is_fp, cfa_is_fp);
	assert_int_equal(row.cfa_off, cfa_off);
	assert_int_equal(row.ra_where, CFI_AT_CFA);
	assert_int_equal(row.ra_off, -8);
	assert_int_equal(row.fp_where, fp_off ? CFI_AT_CFA : CFI_SAME);
	assert_int_equal(row.fp_off, fp_off);
}

TEST(test_usual_prologue)
{
	static const uint8_t insns[] = {
		0x41, 0x0e, 16,	  0x86, 2,	     /* push %rbp */
		0x43, 0x0d, 6,			     /* mov %rsp,%rbp */
		0x0a, 0x02, 0x20, 0x0c, 7,  8, 0xc6, /* leave */
		0x41, 0x0b,			     /* after ret */
		0x03, 0x80, 0x00, 0x2e, 16,	     /* args_size */
	};
	struct ehframe eh;
	uint32_t fde = make(&eh, insns, sizeof(insns), 0x100);

	assert_row(&eh, fde, START, false, 8, 0);
	assert_row(&eh, fde, START + 1, false, 16, -16);
	assert_row(&eh, fde, START + 3, false, 16, -16);
	assert_row(&eh, fde, START + 4, true, 16, -16);
	assert_row(&eh, fde, START + 0x23, true, 16, -16);
	assert_row(&eh, fde, START + 0x24, false, 8, 0);
	assert_row(&eh, fde, START + 0x25, true, 16, -16);
	assert_row(&eh, fde, START + 0xff, true, 16, -16);
	ehframe_fini(&eh);
}

static uint8_t kind_of(const void *insns, size_t size)
{
	struct ehframe eh;
	struct cfi_row row;
	uint32_t fde = make(&eh, insns, size, 0x100);

	assert_int_equal(cfi_row_at(&arch_x86_64, &eh, fde, START + 0x10, &row), CFI_OK);
	ehframe_fini(&eh);
	return row.kind;
}

#define KIND(...)                                                                                  \
	kind_of((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

TEST(test_kinds)
{
	assert_int_equal(KIND(0), CFI_ROW);
	assert_int_equal(KIND(0x07, 16), CFI_END);		    /* undefined rip */
	assert_int_equal(KIND(0x07, 16, 0x07, 7), CFI_SWITCH);	    /* and rsp */
	assert_int_equal(KIND(0x0c, 10, 0), CFI_COMPLEX);	    /* CFA = r10 */
	assert_int_equal(KIND(0x0f, 3, 0x76, 0x78, 0x06), CFI_ROW); /* CFA = [rbp - 8] */
	assert_int_equal(KIND(0x10, 6, 2, 0x76, 0), CFI_ROW);	    /* rbp at rbp */
	assert_int_equal(KIND(0x16, 6, 2, 0x76, 0), CFI_COMPLEX);   /* rbp is rbp + 0 */
	assert_int_equal(KIND(0x10, 6, 2, 0x77, 0), CFI_COMPLEX);   /* rbp at rsp */
	assert_int_equal(KIND(0x10, 16, 2, 0x76, 8), CFI_COMPLEX);  /* rip at rbp + 8 */
	assert_int_equal(KIND(0x10, 3, 2, 0x76, 0), CFI_ROW);	    /* rbx: not ours */
	assert_int_equal(KIND(0x09, 16, 5), CFI_COMPLEX);	    /* rip in rdi */
	assert_int_equal(KIND(0x08, 16), CFI_COMPLEX);		    /* rip is rip */
	assert_int_equal(KIND(0x07, 6), CFI_ROW);		    /* rbp undefined */
	assert_int_equal(KIND(0x87, 2), CFI_COMPLEX);		    /* rsp saved */
	assert_int_equal(KIND(0x13, 0x7f, 0x11, 3, 0x7e, 0x2f, 3, 2), CFI_ROW);
}

TEST(test_negative_offsets)
{
	static const uint8_t insns[] = {
		0x12, 6,    0x7e,	/* def_cfa_sf rbp, -2 * -8 */
		0x11, 6,    2,		/* rbp at CFA + 2 * -8 */
		0x41, 0x2f, 6,	  0x03, /* negative: rbp at CFA + 24 */
	};
	struct ehframe eh;
	uint32_t fde = make(&eh, insns, sizeof(insns), 0x100);

	assert_row(&eh, fde, START, true, 16, -16);
	assert_row(&eh, fde, START + 1, true, 16, 24);
	ehframe_fini(&eh);
}

/* A reading counts its bytes: up to the pc, or all. */
TEST(test_costs)
{
	static const uint8_t insns[] = { 0x0a, 0x0b, 0x41, 0x0a, 0x0b, 0x41, 0x0e, 16 };
	uint32_t first, second, all, at;
	struct ehframe eh;
	uint32_t fde = make(&eh, insns, sizeof(insns), 0x100);

	assert_int_equal(cfi_remembers(&arch_x86_64, &eh, fde, START, &first), 1);
	assert_int_equal(cfi_remembers(&arch_x86_64, &eh, fde, START + 1, &second), 2);
	assert_int_equal(cfi_negates(&arch_x86_64, &eh, fde, &at, 1, &all), 0);
	assert_int_equal(second - first, 3);
	assert_true(all >= second + 2);
	ehframe_fini(&eh);
}

TEST(test_refuses)
{
	assert_int_equal(CHECK(0x09, 3, 17), CFI_BAD_REGISTER);
	assert_int_equal(CHECK(0x09, 3, 0xff, 0xff, 0xff, 0xff, 0x0f), CFI_BAD_REGISTER);
	assert_int_equal(CHECK(0x91, 1), CFI_BAD_REGISTER);
	assert_int_equal(CHECK(0xd1), CFI_BAD_REGISTER);
	assert_int_equal(CHECK(0x05, 0x80, 0x80, 0x01, 1), CFI_BAD_REGISTER);
	assert_int_equal(CHECK(0x06, 17), CFI_BAD_REGISTER);
	assert_int_equal(CHECK(0x0d, 17), CFI_BAD_REGISTER);
	assert_int_equal(CHECK(0x0b), CFI_BAD_STATE);
	assert_int_equal(CHECK(0x0a, 0x0b, 0x0b), CFI_BAD_STATE);
	assert_int_equal(CHECK(0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a), CFI_OK);
	assert_int_equal(CHECK(0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a),
			 CFI_BAD_STATE);
	assert_int_equal(CHECK(0x14, 6, 2), CFI_BAD_OPCODE); /* val_offset */
	assert_int_equal(CHECK(0x17), CFI_BAD_OPCODE);
	assert_int_equal(CHECK(0x1d, 0, 0, 0, 0, 0, 0, 0, 0), CFI_BAD_OPCODE);
	assert_int_equal(CHECK(0x2d), CFI_BAD_OPCODE);
	assert_int_equal(CHECK(0x3f), CFI_BAD_OPCODE);
	assert_int_equal(CHECK(0x0e, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01),
			 CFI_BAD_OPERAND);
	assert_int_equal(CHECK(0x0e, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1),
			 CFI_BAD_OPERAND);
	assert_int_equal(CHECK(0, 0, 0, 0, 0, 0, 0, 0x04, 1, 2, 3), CFI_BAD_OPERAND);
	assert_int_equal(CHECK(0x01, 0, 0x08, 0xf0, 0xff), CFI_BAD_LOCATION);
	assert_int_equal(CHECK(0x0f, 1, 0x06, 0x0e, 8), CFI_NO_CFA);
	assert_int_equal(CHECK(0x0f, 1, 0x06, 0x0d, 6), CFI_NO_CFA);
	/* Instructions behind the pc of a sample also count. */
	assert_int_equal(CHECK(0x02, 0xff, 0x09, 3, 99), CFI_BAD_REGISTER);
}

TEST(test_refuses_expressions)
{
	assert_int_equal(CHECK(0x0f, 3, 0x2f, 0xfd, 0xff), CFI_BAD_EXPRESSION); /* skip -3 */
	assert_int_equal(CHECK(0x0f, 3, 0x28, 0x01, 0x00), CFI_BAD_EXPRESSION); /* bra */
	assert_int_equal(CHECK(0x10, 3, 2, 0x1b, 0x00), CFI_BAD_EXPRESSION);	/* div */
	assert_int_equal(CHECK(0x16, 3, 1, 0x53), CFI_BAD_EXPRESSION);		/* reg3 */
	assert_int_equal(CHECK(0x10, 3, 2, 0x90, 3), CFI_BAD_EXPRESSION);	/* regx */
	assert_int_equal(CHECK(0x10, 3, 3, 0x92, 17, 0), CFI_BAD_EXPRESSION);	/* bregx 17 */
	assert_int_equal(CHECK(0x10, 3, 2, 0x81, 0), CFI_BAD_EXPRESSION);	/* breg17 */
	assert_int_equal(CHECK(0x10, 3, 2, 0x94, 3), CFI_BAD_EXPRESSION);	/* deref_size 3 */
	assert_int_equal(CHECK(0x10, 3, 1, 0x9a), CFI_BAD_EXPRESSION);		/* call_ref */
	assert_int_equal(CHECK(0x10, 3, 1, 0x99), CFI_BAD_EXPRESSION);
	assert_int_equal(CHECK(0x10, 3, 1, 0xf1), CFI_BAD_EXPRESSION); /* GNU */
	assert_int_equal(CHECK(0x10, 3, 0), CFI_BAD_EXPRESSION);
	assert_int_equal(CHECK(0x10, 3, 2, 0x0a, 1), CFI_BAD_EXPRESSION); /* operand cut off */
	assert_int_equal(CHECK(0x10, 3, 0x7f, 0x96), CFI_BAD_EXPRESSION); /* beyond the FDE */
	/* The PLT's: rsp + 8 + (((rip & 15) >= 11) << 3). */
	assert_int_equal(CHECK(0x0f, 0x0b, 0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b, 0x2a, 0x33,
			       0x24, 0x22),
			 CFI_OK);
}

TEST(test_limits)
{
	uint8_t *insns = calloc(1, CFI_INSNS_MAX + 64);
	struct cfi_fde info;
	struct ehframe eh;
	uint32_t fde = make(&eh, insns, CFI_INSNS_MAX - 16, 0x100);

	assert_int_equal(cfi_check(&arch_x86_64, &eh, fde, NULL, &info), CFI_OK);
	assert_true(info.libunwind);
	assert_true(info.cost >= CFI_INSNS_MAX - 16);
	ehframe_fini(&eh);
	fde = make(&eh, insns, CFI_INSNS_MAX + 8, 0x100);
	assert_int_equal(cfi_check(&arch_x86_64, &eh, fde, NULL, &info), CFI_TOO_LONG);
	assert_false(info.libunwind);
	ehframe_fini(&eh);
	free(insns);
}

TEST(test_cie_rules)
{
	static const uint8_t remember[] = { 0x0c, 7, 8, 0x90, 1, 0x0a };
	static const uint8_t restore[] = { 0x0c, 7, 8, 0x90, 1, 0xc6 };
	static const uint8_t no_cfa[] = { 0x90, 1 };
	static const uint8_t step[] = { 0x0c, 7, 8, 0x41 };
	static const struct {
		const uint8_t *insns;
		size_t size;
		enum cfi_reason want;
	} cases[] = {
		{ remember, sizeof(remember), CFI_BAD_STATE },
		{ restore, sizeof(restore), CFI_BAD_STATE },
		{ no_cfa, sizeof(no_cfa), CFI_NO_CFA },
		{ step, sizeof(step), CFI_BAD_LOCATION },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ehframe eh;
		uint32_t cie, fde;

		section.size = 0;
		cie = eh_cie(&section, false, cases[i].insns, cases[i].size);
		fde = eh_fde(&section, cie, START, 0x10, "", 0);
		assert_int_equal(ehframe_init(&eh, section.bytes, section.size, EH_VADDR,
					      EM_X86_64),
				 0);
		assert_int_equal(cfi_check(&arch_x86_64, &eh, fde, NULL, NULL), cases[i].want);
		ehframe_fini(&eh);
	}
}

static uint64_t program_at(const void *insns, size_t size, uint64_t pc)
{
	struct ehframe eh;
	struct cfi_rule rule;
	uint32_t fde = make(&eh, insns, size, 0x100), cost;

	assert_int_equal(cfi_rule_at(&arch_x86_64, &eh, fde, pc, &rule, &cost), CFI_OK);
	assert_true(cfi_covers(&rule, pc));
	ehframe_fini(&eh);
	return rule.program;
}

/* The same instructions make the same program wherever they are; another operand, or one more,
 * another. */
TEST(test_programs)
{
	static const uint8_t push[] = { 0x41, 0x0e, 16, 0x86, 2, 0x44, 0x0d, 6 };
	static const uint8_t later[] = {
		0x02, 0x20, 0x0e, 16, 0, 0x86, 2, 0x03, 0x30, 0x00, 0x0d, 6
	};
	static const uint8_t larger[] = { 0x41, 0x0e, 24, 0x86, 2, 0x44, 0x0d, 6 };
	/* rbx is also saved and restored: it is in no row. */
	static const uint8_t other[] = { 0x41, 0x0e, 16, 0x86, 2, 0x83, 3, 0xc3, 0x44, 0x0d, 6 };
	/* Two other frame sizes, before. */
	static const uint8_t overwritten[] = {
		0x0e, 64, 0x0c, 7, 32, 0x86, 2, 0x0e, 16, 0x0c, 7, 8, 0x41, 0x0e, 16,
	};
	uint64_t pushed = program_at(push, sizeof(push), START + 1);

	assert_int_equal(program_at(push, sizeof(push), START + 4), pushed);
	assert_int_equal(program_at(later, sizeof(later), START + 0x20), pushed);
	assert_int_equal(program_at(later, sizeof(later), START + 0x50),
			 program_at(push, sizeof(push), START + 5));
	assert_int_equal(program_at(other, sizeof(other), START + 1), pushed);
	assert_int_equal(program_at(overwritten, sizeof(overwritten), START + 1), pushed);
	assert_int_not_equal(program_at(overwritten, sizeof(overwritten), START), pushed);
	assert_int_not_equal(program_at(push, sizeof(push), START), pushed);
	assert_int_not_equal(program_at(push, sizeof(push), START + 5), pushed);
	assert_int_not_equal(program_at(larger, sizeof(larger), START + 1), pushed);
}

/* Undone rules do not count, however often; a restore does. */
TEST(test_programs_undone)
{
	static const uint8_t epilogues[] = {
		0x41, 0x0e, 16,	  0x86, 2,		     /* push %rbp */
		0x50, 0x0a, 0x41, 0xc6, 0x0e, 8, 0x41, 0x0b, /* pop %rbp; ret */
		0x50, 0x0a, 0x41, 0xc6, 0x0e, 8, 0x41, 0x0b, 0x50, 0x0e, 24,
	};
	const uint64_t in = START + 0x11,
		       out = START + 0x12; /* behind the first pop, behind the ret */
	uint64_t before = program_at(epilogues, sizeof(epilogues), START + 1);
	uint64_t popped = program_at(epilogues, sizeof(epilogues), in + 1);
	uint64_t once = program_at(epilogues, sizeof(epilogues), out + 1);

	assert_int_equal(program_at(epilogues, sizeof(epilogues), START + 0x10), before);
	assert_int_not_equal(popped, before);
	assert_int_not_equal(popped, once);
	assert_int_not_equal(once, before);
	assert_int_equal(program_at(epilogues, sizeof(epilogues), out + 1 + 0x12), once);
	assert_int_equal(program_at(epilogues, sizeof(epilogues), in + 1 + 0x12), popped);
	assert_int_not_equal(program_at(epilogues, sizeof(epilogues), out + 1 + 0x12 + 0x10), once);
}

/* The caller's stack pointer is on the stack: a row for one form of expression, and for no other.
 */
TEST(test_cfa_by_word)
{
	static const struct {
		uint8_t insns[12];
		size_t size;
		bool is_row;
	} cases[] = {
		{ { 0x0f, 6, 0x77, 0xf0, 0x00, 0x06, 0x23, 8 }, 8, true }, /* [rsp + 112] + 8 */
		{ { 0x0f, 5, 0x76, 0x70, 0x06, 0x23, 8 }, 7, true },	   /* [rbp - 16] + 8 */
		{ { 0x0f, 3, 0x76, 0x70, 0x06 }, 5, true },		   /* [rbp - 16] */
		{ { 0x0f, 5, 0x77, 0x10, 0x06, 0x23, 16 }, 7, false },
		{ { 0x0f, 5, 0x77, 0x10, 0x06, 0x11, 8 }, 7, false },
		{ { 0x0f, 5, 0x7a, 0x10, 0x06, 0x23, 8 }, 7, false }, /* by r10 */
		{ { 0x0f, 6, 0x77, 0x10, 0x06, 0x23, 8, 0x96 }, 8, false },
		{ { 0x0f, 4, 0x77, 0x10, 0x23, 8 }, 6, false },
	};
	struct cfi_row row;
	struct ehframe eh;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint32_t fde = make(&eh, cases[i].insns, cases[i].size, 0x10);

		assert_int_equal(cfi_row_at(&arch_x86_64, &eh, fde, START, &row), CFI_OK);
		assert_int_equal(row.kind, cases[i].is_row ? CFI_ROW : CFI_COMPLEX);
		assert_true(!cases[i].is_row || row.cfa_is_word);
		assert_int_equal(row.cfa_is_fp, i == 1 || i == 2);
		assert_int_equal(row.cfa_is_above, i < 2);
		assert_int_equal(row.cfa_off, i == 0 ? 112 : i <= 2 ? -16 : 0);
		ehframe_fini(&eh);
	}
}

/* A rule is sure if the frame is not rewritten in its range, nor shortly behind. */
TEST(test_sure)
{
	/* From START + 0xc0 on the return address is in a register, as __builtin_eh_return leaves
	 * it. */
	static const uint8_t rewrites[] = {
		0x41, 0x0e, 16, 0x60, 0x0e, 24, 0x02, 0x9f, 0x0c, 7, 0, 0x09, 16, 2,
	};
	static const struct {
		uint64_t pc;
		bool sure;
	} cases[] = {
		{ START, true },
		{ START + 1, true },
		{ START + 0x20, true },
		/* The rule holds up to the rewrite: it is the same for the whole range. */
		{ START + 0x21, false },
		{ START + 0xbf, false },
		{ START + 0xc0, false },
	};
	struct cfi_rule rule;
	struct ehframe eh;
	uint32_t fde = make(&eh, rewrites, sizeof(rewrites), 0x100), cost;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(cfi_rule_at(&arch_x86_64, &eh, fde, cases[i].pc, &rule, &cost),
				 CFI_OK);
		if (rule.sure != cases[i].sure)
			fail_msg("at +%#" PRIx64, (uint64_t)(cases[i].pc - START));
	}
	ehframe_fini(&eh);
}

/* vfork(): its first instruction, or the second, takes the return address into a register. */
TEST(test_sure_without_frame)
{
	for (uint8_t after = 1; after <= 8; after += after < 5 ? 4 : 3) {
		const uint8_t insns[] = { 0x40 | after, 0x0e, 0, 0x09, 16, 5, 0x48, 0x0e, 8 };
		struct cfi_rule rule;
		struct ehframe eh;
		uint32_t fde = make(&eh, insns, sizeof(insns), 0x22), cost;

		assert_int_equal(cfi_rule_at(&arch_x86_64, &eh, fde, START + after + 7, &rule,
					     &cost),
				 CFI_OK);
		assert_int_equal(rule.sure, after < 8);
		ehframe_fini(&eh);
	}
}

/*
 * libgcc 14: _Unwind_Resume() has 177 bytes of code between the call that overwrites the saved
 * registers and the row with the return address in a register.
 */
TEST(test_rewrites_early)
{
	/* At START + 0x701 the CFA is by rcx, 3 bytes later the return address is in it. */
	static const uint8_t rewrites[] = {
		0x41, 0x0e, 16, 0x03, 0, 7, 0x0c, 2, 8, 0x43, 0x0c, 7, 0, 0x09, 16, 2,
	};
	static const struct {
		uint64_t at;
		enum cfi_doubt doubt;
	} cases[] = {
		{ START + 0x10, CFI_SURE },
		{ START + 0x704 - 1025, CFI_SURE },
		{ START + 0x704 - 177, CFI_EARLY },
		{ START + 0x704 - 137, CFI_EARLY },
		{ START + 0x704 - 136, CFI_REWRITING },
		{ START + 0x700, CFI_REWRITING },
		{ START + 0x701, CFI_LANDING },
		{ START + 0x704, CFI_LANDING },
	};
	struct cfi_fde info;
	struct cfi_rule rule;
	struct ehframe eh;
	uint32_t fde = make(&eh, rewrites, sizeof(rewrites), 0x800), cost;

	assert_int_equal(cfi_check(&arch_x86_64, &eh, fde, NULL, &info), CFI_OK);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(cfi_doubt(&info.rewrite, cases[i].at), cases[i].doubt);
	/* No row is kept for code that may have rewritten its frame. */
	assert_int_equal(cfi_rule_at(&arch_x86_64, &eh, fde, START + 0x704 - 177, &rule, &cost),
			 CFI_OK);
	assert_false(rule.sure);
	ehframe_fini(&eh);
}

TEST(test_signal_is_complex)
{
	struct cfi_fde info;
	struct cfi_row row;
	struct ehframe eh;
	uint32_t cie, fde;

	section.size = 0;
	cie = eh_cie(&section, true, eh_usual, sizeof(eh_usual));
	fde = eh_fde(&section, cie, START, 0x10, "", 0);
	assert_int_equal(ehframe_init(&eh, section.bytes, section.size, EH_VADDR, EM_X86_64), 0);
	assert_int_equal(cfi_check(&arch_x86_64, &eh, fde, NULL, &info), CFI_OK);
	assert_true(info.signal);
	assert_int_equal(cfi_row_at(&arch_x86_64, &eh, fde, START, &row), CFI_OK);
	assert_int_equal(row.kind, CFI_COMPLEX);
	assert_int_equal(cfi_row_at(&arch_x86_64, &eh, fde, START + 0x10, &row), CFI_BAD_RECORD);
	ehframe_fini(&eh);
}

/* The row that each program was seen to make; space for some of them. */
static struct {
	uint64_t program, word;
} made[1 << 16];

/* An architecture and its registers in DWARF (psABI, AADWARF64). */
static const struct machine {
	uint16_t elf;
	const struct arch_ops *arch;
	unsigned int ra, fp, sp;
} machines[] = {
	{ EM_X86_64, &arch_x86_64, 16, 6, 7 },
	{ EM_AARCH64, &arch_aarch64, 30, 29, 31 },
};

struct tally {
	const struct machine *machine;
	uint64_t files, rows, complex, ends, differ;
	uint64_t repeated; /* rows by a program that was seen before */
	Dwarf_CFI *oracle;
	const char *path;
	const struct ehframe *eh;
	uint32_t fde;
};

/* Equal instructions make equal rows, in all files. */
static void same_by_program(struct tally *t, const struct cfi_rule *rule)
{
	size_t slot = rule->program % ARRAY_SIZE(made);
	uint64_t word = row_pack(&rule->row);

	if (rule->row.kind == CFI_COMPLEX)
		return;
	if (made[slot].program == rule->program) {
		t->repeated++;
		assert_int_equal(made[slot].word, word);
	}
	made[slot].program = rule->program;
	made[slot].word = word;
}

/* The same rule by a single look-up; or none if the FDE is refused for a later rule. */
static void same_alone(const struct tally *t, const struct cfi_rule *rule)
{
	struct cfi_rule alone;
	uint32_t cost;
	enum cfi_reason reason =
		cfi_rule_at(t->machine->arch, t->eh, t->fde, rule->end - 1, &alone, &cost);

	if (reason != CFI_OK) {
		assert_int_equal(reason, cfi_check(t->machine->arch, t->eh, t->fde, NULL, NULL));
		return;
	}
	assert_int_equal(alone.start, rule->start);
	assert_int_equal(alone.end, rule->end);
	assert_int_equal(alone.program, rule->program);
	assert_memory_equal(&alone.row, &rule->row, sizeof(alone.row));
}

/* Does @ops say "register @reg + @off"? */
static bool is_breg(const Dwarf_Op *ops, size_t nr, unsigned int reg, int64_t off)
{
	if (nr != 1)
		return false;
	if (ops->atom == 0x92)
		return ops->number == reg && (int64_t)ops->number2 == off;
	return ops->atom == 0x70 + reg && (int64_t)ops->number == off;
}

/* Does @ops say "in memory at CFA + @off"? */
static bool is_at_cfa(const Dwarf_Op *ops, size_t nr, int64_t off)
{
	if (!nr || ops[0].atom != 0x9c)
		return false;
	return nr == 1 ? off == 0 : nr == 2 && ops[1].atom == 0x23 && (int64_t)ops[1].number == off;
}

/* The same value in the caller, which is also the ABI's default for a saved register. */
static bool is_same(size_t nr, const Dwarf_Op *ops, const Dwarf_Op *mem)
{
	return nr == 0 && ops != mem;
}

static bool oracle_agrees(const struct machine *m, Dwarf_Frame *frame, const struct cfi_row *row)
{
	Dwarf_Op mem[3], *ops;
	size_t nr;

	if (dwarf_frame_register(frame, (int)m->ra, mem, &ops, &nr))
		return false;
	if (row->kind == CFI_END)
		return nr == 0 && ops == mem;
	/* A resolver's first row is corrected by its second: see cfi.c. */
	if (!(row->above && is_same(nr, ops, mem)) &&
	    !(row->ra_where == CFI_AT_CFA ? is_at_cfa(ops, nr, row->ra_off + row->above)
					  : is_same(nr, ops, mem)))
		return false;
	if (dwarf_frame_cfa(frame, &ops, &nr))
		return false;
	if (row->cfa_is_above && nr == 3 && ops[1].atom == 0x06 && ops[2].atom == 0x23 &&
	    ops[2].number == 8)
		nr = 1;
	else if (row->cfa_is_word && !row->cfa_is_above && nr == 2 && ops[1].atom == 0x06)
		nr = 1;
	else if (row->cfa_is_word)
		return false;
	if (!is_breg(ops, nr, row->cfa_is_fp ? m->fp : m->sp, row->cfa_off - row->above))
		return false;
	if (dwarf_frame_register(frame, (int)m->fp, mem, &ops, &nr))
		return false;
	if (row->fp_where == CFI_AT_CFA)
		return is_at_cfa(ops, nr, row->fp_off + row->above);
	if (row->fp_where == CFI_AT_FP)
		return nr == 2 && ops[0].atom == 0x9c && is_breg(ops + 1, 1, m->fp, row->fp_off);
	return nr == 0;
}

static void compare_row(void *ctx, const struct cfi_rule *rule)
{
	const uint64_t pcs[] = { rule->start, rule->end - 1 };
	const struct cfi_row *row = &rule->row;
	struct tally *t = ctx;

	t->rows++;
	t->complex += row->kind == CFI_COMPLEX;
	t->ends += row->kind == CFI_END;
	same_by_program(t, rule);
	same_alone(t, rule);
	if (row->kind == CFI_COMPLEX || !t->oracle)
		return;
	for (int i = 0; i < 2; i++) {
		Dwarf_Frame *frame = NULL;

		if (dwarf_cfi_addrframe(t->oracle, pcs[i], &frame) ||
		    !oracle_agrees(t->machine, frame, row)) {
			t->differ++;
			print_message("%s: row of %#" PRIx64 " differs\n", t->path, pcs[i]);
		}
		free(frame);
	}
}

static uint64_t refused[CFI_NR_REASONS];

/* Return the reason as static text: "unknown opcode". */
static const char *reason_name(enum cfi_reason reason)
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

	return names[reason];
}

static void compare_file(const char *path, bool with_oracle, struct tally *total)
{
	struct tally t = { .path = path };
	struct cfi_sink sink = { compare_row, &t };
	struct eh_file f;

	if (!eh_open(&f, path))
		return;
	t.oracle = with_oracle && f.eh.nr_fdes ? dwarf_getcfi_elf(f.elf) : NULL;
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++)
		if (machines[i].elf == f.eh.machine)
			t.machine = &machines[i];
	for (uint32_t i = 0; t.machine && i < f.eh.nr_fdes; i++) {
		struct ehframe_fde fde;
		enum cfi_reason r;

		t.eh = &f.eh;
		assert_true(ehframe_at(&f.eh, i, &fde));
		t.fde = fde.offset;
		r = cfi_check(t.machine->arch, &f.eh, t.fde, &sink, NULL);
		refused[r]++;
		if (r != CFI_OK)
			print_message("%s: FDE of %#" PRIx64 " refused: %s\n", path, fde.start,
				      reason_name(r));
	}
	total->files += f.eh.nr_fdes > 0;
	if (with_oracle && f.eh.nr_fdes) {
		assert_non_null(t.oracle);
		dwarf_cfi_end(t.oracle);
	}
	total->rows += t.rows;
	total->complex += t.complex;
	total->repeated += t.repeated;
	total->differ += t.differ;
	eh_close(&f);
}

TEST(test_against_elfutils)
{
	static const char *const files[] = {
		"/lib/x86_64-linux-gnu/libc.so.6",
		"/lib/x86_64-linux-gnu/libstdc++.so.6",
		"/lib64/ld-linux-x86-64.so.2",
		"/lib/aarch64-linux-gnu/libc.so.6",
		"/lib/aarch64-linux-gnu/libstdc++.so.6",
		"/lib/ld-linux-aarch64.so.1",
		"/usr/bin/python3",
		"/usr/bin/make",
		"/proc/self/exe",
	};
	struct tally total = { .rows = 0 };

	memset(refused, 0, sizeof(refused));
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		compare_file(files[i], true, &total);
	assert_int_equal(total.differ, 0);
	assert_true(refused[CFI_OK] > 1000);
	for (int r = CFI_OK + 1; r < CFI_NR_REASONS; r++)
		assert_int_equal(refused[r], 0);
}

#define ROWS_A_RUN 1500000u /* unless CFI_ALL is set */

static struct tally system_wide;

static int visit(const char *path, const struct stat *st, int type, struct FTW *at)
{
	if (type == FTW_F && S_ISREG(st->st_mode) && st->st_size > 4096)
		compare_file(path, true, &system_wide);
	return system_wide.rows > ROWS_A_RUN && !getenv("CFI_ALL");
}

/* Installed files: no row differs, and next to nothing is refused. */
TEST(test_system)
{
	uint64_t all = 0;

	memset(refused, 0, sizeof(refused));
	if (!nftw("/usr/bin", visit, 16, FTW_PHYS))
		nftw("/usr/lib", visit, 16, FTW_PHYS);
	for (int r = 0; r < CFI_NR_REASONS; r++)
		all += refused[r];
	print_message("%" PRIu64 " files, %" PRIu64 " FDEs (%" PRIu64 " refused), %" PRIu64
		      " rows (%" PRIu64 " complex), %" PRIu64 " differ\n",
		      system_wide.files, all, all - refused[CFI_OK], system_wide.rows,
		      system_wide.complex, system_wide.differ);
	assert_int_equal(system_wide.differ, 0);
	assert_true(system_wide.rows > all);
	assert_true(system_wide.complex <= system_wide.rows / 20);
	assert_true(system_wide.repeated > system_wide.rows / 2);
	assert_true((all - refused[CFI_OK]) * 1000 <= all);
}

static uint64_t random_next(uint64_t *seed)
{
	*seed += 0x9e3779b97f4a7c15ULL;
	return hash_u64(*seed);
}

static void count_row(void *ctx, const struct cfi_rule *rule)
{
	assert_true(rule->start < rule->end && rule->start >= START && rule->end <= START + 0x100);
	assert_in_range(rule->row.kind, CFI_ROW, CFI_COMPLEX);
	++*(uint64_t *)ctx;
}

/* Bytes that a generator made: never a crash, rows in order, and accepted ones exist. */
TEST(test_random_programs)
{
	static const uint8_t likely[] = { 0x41, 0x0e, 0x0c, 7,	  6,	8, 0x86,
					  2,	0x0a, 0x0b, 0x10, 0x0f, 3 };
	uint64_t seed = 1, rows = 0, accepted = 0;
	struct cfi_sink sink = { count_row, &rows };

	for (int n = 0; n < 20000; n++) {
		uint8_t insns[48];
		struct ehframe eh;
		uint32_t fde;

		for (size_t i = 0; i < sizeof(insns); i++) {
			uint64_t r = random_next(&seed);

			insns[i] = r & 0x300 ? likely[r % sizeof(likely)] : (uint8_t)r;
		}
		fde = make(&eh, insns, 1 + (size_t)n % sizeof(insns), 0x100);
		accepted += cfi_check(&arch_x86_64, &eh, fde, &sink, NULL) == CFI_OK;
		ehframe_fini(&eh);
	}
	assert_true(accepted > 100);
	assert_true(rows > accepted);
}

static int report(int argc, char **argv)
{
	struct tally total = { .rows = 0 };
	uint64_t fdes = 0;

	for (int i = 1; i < argc; i++)
		compare_file(argv[i], getenv("ORACLE") != NULL, &total);
	for (int r = 0; r < CFI_NR_REASONS; r++) {
		fdes += refused[r];
		printf("%10" PRIu64 "  %s\n", refused[r], reason_name(r));
	}
	printf("%10" PRIu64 "  FDEs\n%10" PRIu64 "  rows\n%10" PRIu64 "  complex rows\n"
	       "%10" PRIu64 "  rows that differ\n",
	       fdes, total.rows, total.complex, total.differ);
	return total.differ != 0;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return report(argc, argv);
	return run_unit_tests(NULL, NULL);
}
