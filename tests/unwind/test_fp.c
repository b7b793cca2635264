// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Guesses: accepted ones, refused ones, and no read outside the copy.
 */
#include "unwind/internal.h"

#include "tests/prelude.h"
#include "symbols/base/base.h"
#include "symbols/process/process.h"

#define SP   0x7ffe0000ULL
#define CODE 0x400000ULL
#define DATA 0x600000ULL

struct space {
	struct mapping maps[2];
};

static struct space space = {
	.maps = {
		{ .start = CODE, .end = CODE + 0x1000, .exec = true },
		{ .start = DATA, .end = DATA + 0x1000 },
	},
};

/* A fake symbols/maps. */
const struct mapping *space_find(const struct space *s, uint64_t addr, uint64_t time_ns)
{
	for (size_t i = 0; i < ARRAY_SIZE(s->maps); i++)
		if (addr >= s->maps[i].start && addr < s->maps[i].end)
			return &s->maps[i];
	return NULL;
}

static uint64_t words[16];
static struct stack_copy copy = { SP, (const uint8_t *)words, sizeof(words), false, { 0 }, NULL };

static struct arch_frame frame(uint64_t fp)
{
	struct arch_frame f = { .valid = 0 };

	arch_set(&f, arch_x86_64.pc, CODE + 0x10);
	arch_set(&f, arch_x86_64.sp, SP);
	arch_set(&f, arch_x86_64.fp, fp);
	arch_set(&f, 3, 33);
	return f;
}

static enum fp_result step(struct arch_frame *f, bool first, bool frames_kept)
{
	const struct fp_input in = {
		.arch = &arch_x86_64,
		.copy = &copy,
		.space = &space,
		.word = 8,
		.first = first,
		.frames_kept = frames_kept,
	};

	return fp_step(&in, f);
}

static void assert_caller(const struct arch_frame *f, uint64_t pc, uint64_t sp, uint64_t fp)
{
	assert_int_equal(f->reg[arch_x86_64.pc], pc);
	assert_int_equal(f->reg[arch_x86_64.sp], sp);
	assert_int_equal(f->reg[arch_x86_64.fp], fp);
	assert_false(arch_has(f, 3));
}

static int set_up(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		words[i] = DATA;
	copy.full = false;
	return 0;
}

TEST(test_chain, set_up)
{
	struct arch_frame f = frame(SP + 16);

	words[2] = SP + 64;
	words[3] = CODE + 0x20;
	words[8] = 0;
	words[9] = CODE + 0x30;
	assert_int_equal(step(&f, true, false), FP_FOUND);
	assert_caller(&f, CODE + 0x20, SP + 32, SP + 64);
	assert_int_equal(step(&f, false, false), FP_FOUND);
	assert_caller(&f, CODE + 0x30, SP + 80, 0);
	assert_int_equal(step(&f, false, false), FP_ROOT);
}

/* libc, which calls main(), has no frame pointer: main() saved a number. */
TEST(test_caller_without_frame_pointer, set_up)
{
	struct arch_frame f = frame(SP + 16);

	words[2] = SP + 64;
	words[3] = CODE + 0x20;
	words[8] = 2;
	words[9] = CODE + 0x30;
	assert_int_equal(step(&f, false, false), FP_FOUND);
	assert_int_equal(step(&f, false, false), FP_FOUND);
	assert_caller(&f, CODE + 0x30, SP + 80, 2);
	assert_int_equal(step(&f, false, false), FP_NONE);
	/* The register of the innermost function is no proof that there is a record. */
	f = frame(SP + 64);
	assert_int_equal(step(&f, true, false), FP_NONE);
}

TEST(test_root_of_zeros, set_up)
{
	struct arch_frame f = frame(SP + 16);

	words[2] = words[3] = 0;
	assert_int_equal(step(&f, false, false), FP_ROOT);
}

TEST(test_chain_refuses, set_up)
{
	static const uint64_t bad_fp[] = { SP - 8,	SP + 4,	     1,
					   SP + 8 * 15, SP + 8 * 16, UINT64_MAX - 7 };
	struct arch_frame f;

	for (size_t i = 0; i < ARRAY_SIZE(bad_fp); i++) {
		f = frame(bad_fp[i]);
		assert_int_equal(step(&f, false, false), FP_NONE);
	}
	words[2] = SP + 64; /* data as return address */
	f = frame(SP + 16);
	assert_int_equal(step(&f, false, false), FP_NONE);
	words[3] = CODE; /* nothing can have called from before the mapping */
	f = frame(SP + 16);
	assert_int_equal(step(&f, false, false), FP_NONE);
	words[3] = CODE + 1;
	words[2] = SP + 16; /* the chain would stand still */
	f = frame(SP + 16);
	assert_int_equal(step(&f, false, false), FP_NONE);
	f = frame(SP + 16);
	f.valid &= ~(1ULL << arch_x86_64.fp);
	assert_int_equal(step(&f, false, false), FP_NONE);
	assert_int_equal(step(&f, true, false), FP_NONE);
}

TEST(test_beyond_the_dump, set_up)
{
	struct arch_frame f = frame(SP + sizeof(words) - 8);

	assert_int_equal(step(&f, false, false), FP_NONE);
	copy.full = true;
	assert_int_equal(step(&f, false, false), FP_BEYOND);
	f = frame(SP + 0x100000000);
	assert_int_equal(step(&f, false, false), FP_NONE);
}

TEST(test_leaf, set_up)
{
	struct arch_frame f = frame(SP + 16);

	words[0] = CODE + 0x40; /* return address on top, fp is the caller's */
	words[2] = SP + 64;
	words[3] = CODE + 0x20;
	assert_int_equal(step(&f, true, false), FP_FOUND);
	assert_caller(&f, CODE + 0x40, SP + 8, SP + 16);
	assert_int_equal(step(&f, false, false), FP_FOUND);
	assert_caller(&f, CODE + 0x20, SP + 32, SP + 64);

	f = frame(12345); /* fp is just a number */
	assert_int_equal(step(&f, true, false), FP_FOUND);
	assert_caller(&f, CODE + 0x40, SP + 8, 12345);

	f = frame(SP + 16); /* frame pointers everywhere: the caller's frame first */
	assert_int_equal(step(&f, true, true), FP_FOUND);
	assert_caller(&f, CODE + 0x20, SP + 32, SP + 64);

	f = frame(12345); /* only frame 0 can be a leaf */
	assert_int_equal(step(&f, false, false), FP_NONE);
}

/* push %rbp is done, mov %rsp,%rbp is not. */
TEST(test_inside_prologue, set_up)
{
	struct arch_frame f = frame(DATA + 8);

	words[0] = DATA + 8;
	words[1] = CODE + 0x50;
	assert_int_equal(step(&f, true, false), FP_FOUND);
	assert_caller(&f, CODE + 0x50, SP + 16, DATA + 8);
	f = frame(DATA + 8); /* only frame 0 */
	assert_int_equal(step(&f, false, false), FP_NONE);
	f = frame(DATA + 16); /* not fp's value: anything */
	assert_int_equal(step(&f, true, false), FP_NONE);
}

/* JIT code keeps a frame pointer; the native code that called it uses the register for anything. */
TEST(test_called_from_any, set_up)
{
	struct arch_frame f = frame(SP + 8);
	struct fp_input in = {
		.arch = &arch_x86_64,
		.copy = &copy,
		.space = &space,
		.word = 8,
		.first = true,
	};

	words[1] = 42;
	words[2] = CODE + 0x50;
	assert_int_equal(fp_step(&in, &f), FP_NONE);
	in.called_from_any = true;
	assert_int_equal(fp_step(&in, &f), FP_FOUND);
	assert_caller(&f, CODE + 0x50, SP + 24, 42);
}

TEST(test_own_record_on_top, set_up)
{
	struct arch_frame f = frame(SP); /* push %rbp; mov %rsp,%rbp */

	words[0] = SP + 64;
	words[1] = CODE + 0x50;
	assert_int_equal(step(&f, true, false), FP_FOUND);
	assert_caller(&f, CODE + 0x50, SP + 16, SP + 64);
}

TEST(test_32_bit, set_up)
{
	uint32_t *half = (uint32_t *)words;
	struct arch_frame f = frame(SP + 8);
	const struct fp_input in = {
		.arch = &arch_x86_64,
		.copy = &copy,
		.space = &space,
		.word = 4,
		.frames_kept = true,
	};

	half[2] = (uint32_t)SP + 20;
	half[3] = CODE + 0x60;
	half[5] = 0;
	half[6] = 0;
	assert_int_equal(fp_step(&in, &f), FP_FOUND);
	assert_caller(&f, CODE + 0x60, SP + 16, SP + 20);
	assert_int_equal(fp_step(&in, &f), FP_ROOT);
}

TEST(test_link_register, set_up)
{
	struct arch_frame f = { .valid = 0 };
	const struct fp_input in = {
		.arch = &arch_aarch64,
		.copy = &copy,
		.space = &space,
		.word = 8,
		.first = true,
	};

	arch_set(&f, 32, CODE + 0x10);
	arch_set(&f, 31, SP);
	arch_set(&f, 29, SP + 16);
	arch_set(&f, 30, 0x00ab000000000000ULL | (CODE + 0x70)); /* signed */
	assert_int_equal(fp_step(&in, &f), FP_FOUND);
	assert_int_equal(f.reg[32], CODE + 0x70);
	assert_int_equal(f.reg[31], SP);
}

static void undo(const struct arch_frame *from, struct arch_frame *to)
{
	const struct fp_input in = {
		.arch = &arch_x86_64, .copy = &copy, .space = &space, .word = 8
	};

	landing_pad_undo(&in, from, to);
}

/* The function that catches an exception, by the copies that libgcc has made so far. */
TEST(test_rewritten_frame, set_up)
{
	struct arch_frame from = frame(0), to = frame(SP + 112);

	arch_set(&to, arch_x86_64.pc, CODE + 0x20);
	undo(&from, &to); /* none yet */
	assert_int_equal(to.reg[arch_x86_64.sp], SP);
	assert_int_equal(to.reg[arch_x86_64.fp], SP + 112);
	arch_set(&to, arch_x86_64.fp,
		 77); /* rbp of the catching function is a number; a callee saved it */
	arch_set(&to, arch_x86_64.sp, SP + 24);
	words[3] = words[5] = words[9] = 77;
	words[4] = words[6] = CODE + 0x30;
	undo(&from, &to);
	assert_int_equal(to.reg[arch_x86_64.fp], 77);
	words[0] = SP + 72; /* no record */
	undo(&from, &to);
	assert_int_equal(to.reg[arch_x86_64.fp], 77);
	words[1] = SP + 40; /* not the one that is there by chance */
	undo(&from, &to);
	assert_int_equal(to.reg[arch_x86_64.fp], SP + 40);
	words[8] = CODE + 0x20; /* the return address is copied; this was its home */
	undo(&from, &to);
	assert_int_equal(to.reg[arch_x86_64.sp], SP + 72);
	arch_set(&to, arch_x86_64.sp, SP);
	words[8] = CODE + 0x80; /* the landing pad is written there, and still in a register */
	undo(&from, &to);
	assert_int_equal(to.reg[arch_x86_64.sp], SP);
	arch_set(&from, 4, CODE + 0x80);
	undo(&from, &to);
	assert_int_equal(to.reg[arch_x86_64.sp], SP + 72);
}

/* libgcc 12 with 64 bits: the frame of a function has two contexts, of 18 pointers, CFA and
 * address. */
#define OWN_CONTEXT    2u
#define TARGET_CONTEXT 24u
#define FRAME_WORDS    48u
#define FRAME_END      (SP + 8 * FRAME_WORDS)
#define CATCHES	       (FRAME_END + 8 * 16) /* the CFA of the frame that catches */

static uint64_t frame_words[FRAME_WORDS + 24];

static void put_context(unsigned int at, uint64_t cfa, uint64_t ra, uint64_t fp_slot)
{
	frame_words[at + 6] = fp_slot;
	frame_words[at + 16] = cfa - 8;
	frame_words[at + 18] = cfa;
	frame_words[at + 19] = ra;
}

static uint64_t *above(uint64_t addr)
{
	return &frame_words[(addr - SP) / 8];
}

/* Both contexts, with a landing pad; below the frame that catches one that has saved 77. */
static void make_contexts(void)
{
	memset(frame_words, 0, sizeof(frame_words));
	put_context(OWN_CONTEXT, FRAME_END, CODE + 0x20, FRAME_END - 16);
	put_context(TARGET_CONTEXT, CATCHES, CODE + 0x80, CATCHES - 16);
	*above(CATCHES - 8) = CODE + 0x30;
	*above(CATCHES - 16) = 77;
}

/* The function at @depth, with @below bytes of stack of functions that it has called. */
static bool target(enum cfi_doubt doubt, unsigned int depth, uint64_t below, struct arch_frame *to,
		   uint64_t pc)
{
	struct stack_copy of = { SP - below, NULL, sizeof(frame_words) + below, true, { 0 }, NULL };
	static uint8_t bytes[sizeof(frame_words) + 256];
	const struct fp_input in = {
		.arch = &arch_x86_64, .copy = &of, .space = &space, .word = 8
	};
	struct arch_frame from = frame(0);

	memcpy(bytes + below, frame_words, sizeof(frame_words));
	of.bytes = bytes;
	arch_set(&from, arch_x86_64.pc, CODE + 0x50);
	arch_set(to, arch_x86_64.pc, pc);
	arch_set(to, arch_x86_64.sp, FRAME_END);
	return landing_pad_check(&in, doubt, depth, &from, to);
}

/* The contexts have the caller that the frame had, and the frame that catches. */
TEST(test_contexts_of_libgcc, set_up)
{
	struct arch_frame to = frame(5);

	/* None yet: far in front of the call that rewrites, not near the end. */
	memset(frame_words, 0, sizeof(frame_words));
	assert_true(target(CFI_EARLY, 2, 32, &to, CODE + 0x20));
	assert_false(target(CFI_REWRITING, 2, 32, &to, CODE + 0x20));
	/* Being made: it returns to the function itself, with or without its CFA. */
	put_context(OWN_CONTEXT, FRAME_END, CODE + 0x50, 0);
	assert_true(target(CFI_REWRITING, 2, 32, &to, CODE + 0x20));
	frame_words[OWN_CONTEXT + 18] = 0;
	assert_true(target(CFI_REWRITING, 2, 32, &to, CODE + 0x20));
	/* The slots are as they were. */
	make_contexts();
	assert_true(target(CFI_REWRITING, 2, 32, &to, CODE + 0x20));
	assert_int_equal(to.reg[arch_x86_64.sp], FRAME_END);
	/* Of an earlier call: no context leads to this address. */
	assert_true(target(CFI_EARLY, 3, 400, &to, CODE + 0x70));
	assert_int_equal(to.reg[arch_x86_64.sp], FRAME_END);
	/* The return address is overwritten. */
	assert_true(target(CFI_REWRITING, 2, 32, &to, CODE + 0x30));
	assert_int_equal(to.reg[arch_x86_64.pc], CODE + 0x30);
	assert_int_equal(to.reg[arch_x86_64.sp], CATCHES);
	/* Last of all the landing pad is written above it, by the function itself. */
	*above(CATCHES - 8) = CODE + 0x80;
	assert_true(target(CFI_REWRITING, 1, 0, &to, CODE + 0x30));
	assert_int_equal(to.reg[arch_x86_64.sp], CATCHES);
	/* A frame without a usual slot, as that of a signal, and two frames that fit. */
	make_contexts();
	frame_words[TARGET_CONTEXT + 16] = CATCHES - 24;
	*above(CATCHES - 24) = CODE + 0x30;
	assert_false(target(CFI_REWRITING, 2, 32, &to, CODE + 0x30));
	make_contexts();
	put_context(TARGET_CONTEXT + 2, CATCHES + 16, CODE + 0x80, 0);
	*above(CATCHES + 8) = CODE + 0x30;
	assert_false(target(CFI_REWRITING, 2, 32, &to, CODE + 0x30));
	assert_int_equal(to.reg[arch_x86_64.sp], FRAME_END);
	/* Its slot is beyond the stack copy. */
	make_contexts();
	put_context(TARGET_CONTEXT, SP + (1u << 20), CODE + 0x80, 0);
	assert_false(target(CFI_REWRITING, 2, 32, &to, CODE + 0x30));
}

/* Offsets of saved registers, which libgcc keeps above its contexts, are no CFA. */
TEST(test_offsets_of_libgcc, set_up)
{
	static const uint64_t offsets[] = { -8ULL, -16ULL, -56ULL, -4096ULL };
	struct arch_frame to = frame(5);

	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++) {
		make_contexts();
		put_context(TARGET_CONTEXT + 4, offsets[i], CODE + 0x70, 0);
		assert_true(target(CFI_REWRITING, 2, 32, &to, CODE + 0x20));
		assert_int_equal(to.reg[arch_x86_64.sp], FRAME_END);
		to = frame(77);
		assert_true(target(CFI_EARLY, 2, 32, &to, CODE + 0x20));
		assert_int_equal(to.reg[arch_x86_64.sp], CATCHES);
		to = frame(5);
		assert_true(target(CFI_REWRITING, 2, 32, &to, CODE + 0x30));
		assert_int_equal(to.reg[arch_x86_64.sp], CATCHES);
		/* No context at all yet. */
		memset(frame_words, 0, sizeof(frame_words));
		put_context(TARGET_CONTEXT, offsets[i], CODE + 0x70, 0);
		assert_true(target(CFI_EARLY, 2, 400, &to, CODE + 0x20));
	}
}

/* The frame pointer is overwritten before the return address: the frame that catches is the caller.
 */
TEST(test_frame_pointer_of_libgcc, set_up)
{
	struct arch_frame to = frame(77);

	make_contexts();
	assert_true(target(CFI_EARLY, 2, 32, &to, CODE + 0x20));
	assert_int_equal(to.reg[arch_x86_64.pc], CODE + 0x30);
	assert_int_equal(to.reg[arch_x86_64.sp], CATCHES);
	assert_int_equal(to.reg[arch_x86_64.fp], 77);
	/* Not before the call, and not in a function with a large frame, which only looks for it.
	 */
	to = frame(77);
	assert_true(target(CFI_EARLY, 1, 0, &to, CODE + 0x20));
	assert_int_equal(to.reg[arch_x86_64.pc], CODE + 0x20);
	assert_true(target(CFI_EARLY, 2, 240, &to, CODE + 0x20));
	assert_int_equal(to.reg[arch_x86_64.pc], CODE + 0x20);
	/* A landing pad right behind the call looks as a frame that is searched. */
	*above(CATCHES - 8) = CODE + 0x80;
	assert_false(target(CFI_EARLY, 2, 32, &to, CODE + 0x20));
	assert_int_equal(to.reg[arch_x86_64.pc], CODE + 0x20);
	assert_true(target(CFI_REWRITING, 2, 32, &to, CODE + 0x20));
	assert_int_equal(to.reg[arch_x86_64.pc], CODE + 0x80);
	/* The function that copies calls another one. */
	to = frame(77);
	make_contexts();
	assert_false(target(CFI_REWRITING, 3, 48, &to, CODE + 0x20));
	assert_int_equal(to.reg[arch_x86_64.sp], FRAME_END);
}

/* A record of the last two words, and return addresses in them: no caller begins at address 0. */
TEST(test_end_of_addresses, set_up)
{
	static const struct {
		uint64_t sp, fp;
		bool first;
	} cases[] = {
		{ -16ULL, -16ULL, false }, /* the chain */
		{ -32ULL, -16ULL, false },
		{ -16ULL, -16ULL, true }, /* the prologue */
		{ -8ULL, 1, true },	  /* the leaf */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct stack_copy last = { cases[i].sp,	 (const uint8_t *)words,
					   -cases[i].sp, true,
					   { 0 },	 NULL };
		const struct fp_input in = {
			.arch = &arch_x86_64,
			.copy = &last,
			.space = &space,
			.word = 8,
			.first = cases[i].first,
			.called_from_any = true,
		};
		struct arch_frame f = frame(cases[i].fp);

		f.reg[arch_x86_64.sp] = cases[i].sp;
		words[0] = cases[i].fp == cases[i].sp ? cases[i].fp : CODE + 0x20;
		words[1] = CODE + 0x20;
		words[2] = -8ULL;
		words[3] = CODE + 0x30;
		assert_int_equal(fp_step(&in, &f), FP_NONE);
		assert_int_equal(f.reg[arch_x86_64.sp], cases[i].sp);
	}
}

TEST(test_no_dump, set_up)
{
	struct arch_frame f = frame(SP + 16);
	struct stack_copy none = { SP, NULL, 0, true, { 0 }, NULL };
	const struct fp_input in = {
		.arch = &arch_x86_64,
		.copy = &none,
		.space = &space,
		.word = 8,
		.first = true,
	};

	assert_int_equal(fp_step(&in, &f), FP_NONE);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
