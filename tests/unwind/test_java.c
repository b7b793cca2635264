// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Frames of HotSpot: bodies, prologues, the interpreter, stubs; the bytes that prove
 * or refutes them; no read outside of the stack copy.
 */
#include "unwind/internal.h"

#include "tests/prelude.h"
#include "symbols/base/base.h"
#include "symbols/script/script.h"
#include "symbols/process/process.h"
#include "symbols/jit/jit.h"

#define SP     0x7ffe0000ULL
#define CODE   0x400000ULL
#define BODY   (CODE + 0x100)
#define INTERP (CODE + 0x400)
#define STUB   (CODE + 0x800)
#define METHOD 0x700010ULL
#define BCODE  0x700100ULL

struct space {
	struct mapping map;
};

static struct space space = { .map = { .start = CODE, .end = CODE + 0x1000, .exec = true } };

/* Replaces the one of symbols/process/maps. */
const struct mapping *space_find(const struct space *s, uint64_t addr, uint64_t time_ns)
{
	return addr >= s->map.start && addr < s->map.end ? &s->map : NULL;
}

static uint64_t words[32];
static struct stack_copy copy = { .sp = SP,
				  .bytes = (const uint8_t *)words,
				  .size = sizeof(words) };
static struct codemap *map;

static int set_up(void **state)
{
	static const struct codemap_code codes[] = {
		{ BODY, 0x100, 12, 4, CODEMAP_FIXED, .java = true, .inlines = true },
		{ INTERP, 0x100, 0, 0, CODEMAP_INTERPRETER, .java = true },
		{ STUB, 0x100, UINT32_MAX, 0, CODEMAP_OTHER, .java = false },
	};

	map = codemap_new(ARRAY_SIZE(codes), 1, 2);
	assert_non_null(map);
	memcpy(map->codes, codes, sizeof(codes));
	*(struct codemap_method *)(uintptr_t)map->methods =
		(struct codemap_method){ METHOD, BCODE, 16 };
	((uint64_t *)(uintptr_t)map->calls)[0] = BODY + 0x1f;
	((uint64_t *)(uintptr_t)map->calls)[1] = BODY + 0x2f;
	memset(words, 0xee, sizeof(words));
	return 0;
}

static int tear_down(void **state)
{
	free(map);
	return 0;
}

static struct arch_frame frame(uint64_t sp, uint64_t fp, uint64_t bcp)
{
	struct arch_frame f = { .valid = 0 };

	arch_set(&f, arch_x86_64.sp, sp);
	arch_set(&f, arch_x86_64.fp, fp);
	arch_set(&f, arch_x86_64.java_bcp, bcp);
	return f;
}

static struct java_caller step_leaf(uint64_t pc, const struct arch_frame *f, bool first, bool leaf)
{
	const struct fp_input in = {
		.arch = &arch_x86_64,
		.copy = &copy,
		.space = &space,
		.word = 8,
		.first = first,
	};
	const struct codemap_code *code = codemap_find(map, pc);

	assert_non_null(code);
	return java_step(&in, map, code, pc, f, leaf);
}

static struct java_caller step(uint64_t pc, const struct arch_frame *f, bool first)
{
	return step_leaf(pc, f, first, false);
}

static void assert_caller(const struct java_caller *c, uint64_t pc, uint64_t sp, uint64_t fp)
{
	assert_true(c->found);
	assert_int_equal(c->pc, pc);
	assert_int_equal(c->sp, sp);
	assert_int_equal(c->fp, fp);
}

TEST(test_find, set_up, tear_down)
{
	assert_null(codemap_find(map, BODY - 1));
	assert_non_null(codemap_find(map, BODY));
	assert_non_null(codemap_find(map, BODY + 0xff));
	assert_null(codemap_find(map, BODY + 0x100));
	assert_null(codemap_find(map, 0));
	assert_null(codemap_find(map, UINT64_MAX));
	assert_non_null(codemap_method(map, METHOD));
	assert_null(codemap_method(map, METHOD + 8));
}

/* A call of a function of the JVM is certain if the code describes it. */
TEST(test_leaf, set_up, tear_down)
{
	struct arch_frame f = frame(SP, 0, 0);

	words[2] = SP + 160;
	words[3] = BODY + 0x41;
	assert_false(step_leaf(BODY + 0x2f, &f, false, true).guessed);
	assert_true(step_leaf(BODY + 0x2f, &f, false, true).found);
	assert_true(step_leaf(BODY + 0x30, &f, false, true).guessed);
	assert_true(step_leaf(BODY + 0x10, &f, false, true).guessed);
	assert_true(step_leaf(BODY + 0x40, &f, false, true).guessed);
	assert_false(step_leaf(BODY + 0x30, &f, false, false).guessed);
	map->codes[0].inlines = false;
	assert_false(step_leaf(BODY + 0x30, &f, false, true).guessed);
}

/* The innermost method is not known in loops without descriptions. */
TEST(test_blind, set_up, tear_down)
{
	struct arch_frame f = frame(SP, 0, 0);

	words[2] = SP + 160;
	words[3] = BODY + 0x41;
	assert_false(step(BODY + 0x20, &f, true).guessed);
	map->codes[0].blind = true;
	assert_true(step(BODY + 0x20, &f, true).guessed);
	assert_true(step(BODY + 0x20, &f, true).found);
	/* A call in it has a description. */
	assert_false(step(BODY + 0x20, &f, false).guessed);
	map->untried = true;
	assert_true(step(BODY + 0x20, &f, false).guessed);
}

TEST(test_body, set_up, tear_down)
{
	struct arch_frame f = frame(SP, 0, 0);
	struct java_caller c;

	words[2] = SP + 160;
	words[3] = BODY + 0x41;
	c = step(BODY + 0x20, &f, true);
	assert_caller(&c, BODY + 0x41, SP + 32, SP + 160);
	assert_false(c.guessed);
	assert_int_equal(c.method, 0);
	c = step(BODY + 0x20, &f, false);
	assert_caller(&c, BODY + 0x41, SP + 32, SP + 160);
	assert_false(c.guessed);
	/* Code, but not Java's: the innermost frame may have been at its end. */
	words[3] = CODE + 0x10;
	c = step(BODY + 0x20, &f, true);
	assert_true(c.found && c.guessed);
	/* No code at all. */
	words[3] = 0x1234;
	c = step(BODY + 0x20, &f, false);
	assert_false(c.found);
}

/* Other code may have taken the memory since; the state of a frame may be saved elsewhere. */
TEST(test_doubts, set_up, tear_down)
{
	struct arch_frame f = frame(SP, 0, 0);

	words[2] = SP + 160;
	words[3] = BODY + 0x41;
	map->codes[0].deopt = BODY + 0x51;
	assert_false(step(BODY + 0x51, &f, false).guessed);
	assert_true(step(BODY + 0x50, &f, false).guessed);
	map->codes[0].retired = true;
	assert_true(step(BODY + 0x20, &f, true).guessed);
	assert_true(step(BODY + 0x20, &f, false).guessed);
}

/* At the return of recursive code the caller's frame, of the same size, is on top. */
TEST(test_recursive_return, set_up, tear_down)
{
	struct arch_frame f = frame(SP, SP + 160, 0);
	struct java_caller c;

	words[0] = BODY + 0x61;
	words[2] = SP + 160;
	words[3] = BODY + 0x61;
	c = step(BODY + 0x70, &f, true);
	assert_caller(&c, BODY + 0x61, SP + 8, SP + 160);
	assert_true(c.guessed);
	/* A caller has its whole frame. */
	c = step(BODY + 0x70, &f, false);
	assert_caller(&c, BODY + 0x61, SP + 32, SP + 160);
	assert_false(c.guessed);
}

/* At the return, words of the caller's frame may look like a record where layout expects it. */
TEST(test_return_and_old_record, set_up, tear_down)
{
	struct arch_frame f = frame(SP, SP + 160, 0);
	struct java_caller c;

	words[0] = INTERP + 0x61;
	words[2] = SP + 160;
	words[3] = BODY + 0x41;
	c = step(BODY + 0x20, &f, true);
	assert_caller(&c, BODY + 0x41, SP + 32, SP + 160);
	assert_false(c.guessed);
	map->codes[1] =
		(struct codemap_code){ BODY + 0x100, 0x100, 12, 8, CODEMAP_FIXED, .java = true };
	words[0] = BODY + 0x161;
	words[8] = BODY + 0x171;
	c = step(BODY + 0x20, &f, true);
	assert_true(c.found && c.guessed);
	assert_false(step(BODY + 0x20, &f, false).guessed);
}

/* A stack has old records: they prove nothing while the code does not remove its frame. */
TEST(test_exits, set_up, tear_down)
{
	struct arch_frame f = frame(SP, SP + 160, 0);
	struct java_caller c;

	words[1] = BODY + 0x161;
	words[2] = SP + 160;
	words[3] = BODY + 0x41;
	words[8] = BODY + 0x171;
	map->codes[1] =
		(struct codemap_code){ BODY + 0x100, 0x100, 12, 7, CODEMAP_FIXED, .java = true };
	assert_true(step(BODY + 0x20, &f, true).guessed);
	map->codes[0].exits = 0xe000d0;
	c = step(BODY + 0x20, &f, true);
	assert_caller(&c, BODY + 0x41, SP + 32, SP + 160);
	assert_false(c.guessed);
	assert_false(step(BODY + 0xcf, &f, true).guessed);
	assert_true(step(BODY + 0xd0, &f, true).guessed);
	assert_true(step(BODY + 0xe1, &f, true).guessed);
	map->codes[0].exits = 0x500010;
	assert_true(step(BODY + 0x2f, &f, true).guessed);
	assert_false(step(BODY + 0x30, &f, true).guessed);
	assert_true(step(BODY + 0x6f, &f, true).guessed);
	assert_false(step(BODY + 0x70, &f, true).guessed);
	/* So do return addresses into recursive code. */
	words[0] = BODY + 0x61;
	c = step(BODY + 0x70, &f, true);
	assert_caller(&c, BODY + 0x41, SP + 32, SP + 160);
	assert_false(c.guessed);
	c = step(BODY + 0x50, &f, true);
	assert_caller(&c, BODY + 0x61, SP + 8, SP + 160);
	assert_true(c.guessed);
}

TEST(test_prologue, set_up, tear_down)
{
	struct arch_frame f = frame(SP, SP + 160, 0);
	struct java_caller c;

	/* At the first instruction: the return address is on top. */
	words[0] = BODY + 0x61;
	words[2] = SP + 160;
	words[3] = BODY + 0x41;
	c = step(BODY + 4, &f, true);
	assert_caller(&c, BODY + 0x61, SP + 8, SP + 160);
	assert_true(c.guessed);
	/* Behind the push of the frame pointer. */
	words[0] = SP + 200;
	words[1] = BODY + 0x61;
	c = step(BODY + 4, &f, true);
	assert_caller(&c, BODY + 0x61, SP + 16, SP + 200);
	/* A caller is never in its prologue. */
	c = step(BODY + 4, &f, false);
	assert_caller(&c, BODY + 0x41, SP + 32, SP + 160);
}

/* The frame is complete, and its code has pushed words below it. */
TEST(test_pushed_words, set_up, tear_down)
{
	struct arch_frame f = frame(SP, 0, 0);
	struct java_caller c;

	for (unsigned int pushed = 1; pushed <= 7; pushed++) {
		memset(words, 0, sizeof(words));
		words[pushed + 2] = SP + 160;
		words[pushed + 3] = BODY + 0x41;
		/* This alone may be an old return address. */
		assert_false(step(BODY + 0x20, &f, true).found);
		words[pushed + 7] = CODE + 0x10;
		c = step(BODY + 0x20, &f, true);
		assert_int_equal(c.found, pushed <= 6);
		/* In the prologue there is no frame yet. */
		assert_false(step(BODY + 4, &f, true).found);
		if (pushed > 6)
			break;
		assert_caller(&c, BODY + 0x41, SP + 8 * pushed + 32, SP + 160);
		/* Of several words some may be an old record. */
		assert_int_equal(c.guessed, pushed > 1);
		/* An old address on top, from which the stack does not go on. */
		words[0] = INTERP + 0x33;
		c = step(BODY + 0x20, &f, true);
		assert_caller(&c, BODY + 0x41, SP + 8 * pushed + 32, SP + 160);
		/* The return address on top: these are the caller's. */
		words[0] = BODY + 0x61;
		words[3] = SP + 64;
		words[4] = BODY + 0x71;
		c = step(BODY + 0x20, &f, true);
		assert_int_equal(c.pc, BODY + 0x61);
		assert_true(c.found && c.guessed);
	}
}

/* An interpreter frame at words[@at], called from @pc. */
static void put_interpreted(unsigned int at, uint64_t pc, uint64_t bcp)
{
	words[at] = SP + 240;
	words[at + 1] = pc;
	words[at - 1] = SP + 8 * (at + 4); /* the caller's sp: arguments are between */
	words[at - 3] = METHOD;
	words[at - 8] = bcp;
}

TEST(test_interpreter, set_up, tear_down)
{
	struct arch_frame f = frame(SP, SP + 80, BCODE + 3);
	struct java_caller c;

	put_interpreted(10, INTERP + 0x33, 0);
	c = step(INTERP + 0x20, &f, true);
	assert_caller(&c, INTERP + 0x33, SP + 112, SP + 240);
	assert_int_equal(c.method, METHOD);
	assert_false(c.guessed);
	/* At entry and exit the register holds other things: the method is not certain. */
	f = frame(SP, SP + 80, 77);
	c = step(INTERP + 0x20, &f, true);
	assert_true(c.found && c.guessed);
	assert_int_equal(c.method, 0);
	/* A caller has it in its slot. */
	c = step(INTERP + 0x20, &f, false);
	assert_true(c.guessed);
	assert_int_equal(c.method, METHOD);
	put_interpreted(10, INTERP + 0x33, BCODE + 15);
	c = step(INTERP + 0x20, &f, false);
	assert_false(c.guessed);
	/* While it calls another method, which is entered with the sp of its sender. */
	f = frame(SP, SP + 80, SP + 16);
	words[8] = SP + 16;
	c = step(INTERP + 0x20, &f, true);
	assert_false(c.guessed);
	assert_int_equal(c.method, METHOD);
	words[8] = SP + 24;
	c = step(INTERP + 0x20, &f, true);
	assert_true(c.guessed);
	assert_int_equal(c.method, 0);
	/* A native method has no bytecodes. */
	((struct codemap_method *)(uintptr_t)map->methods)->size = 0;
	assert_true(step(INTERP + 0x20, &f, false).guessed);
	words[2] = 0;
	assert_false(step(INTERP + 0x20, &f, false).guessed);
	/* Methods not read yet are guesses. */
	words[7] = METHOD + 64;
	c = step(INTERP + 0x20, &f, false);
	assert_true(c.found && c.guessed);
	assert_int_equal(c.method, METHOD + 64);
}

TEST(test_interpreter_refuses, set_up, tear_down)
{
	static const uint64_t bad_fp[] = { SP - 8, 0, SP + sizeof(words), UINT64_MAX - 7 };
	struct arch_frame f;

	for (size_t i = 0; i < ARRAY_SIZE(bad_fp); i++) {
		f = frame(SP, bad_fp[i], BCODE);
		assert_false(step(INTERP + 8, &f, true).found);
	}
	f = frame(SP, SP + 80, BCODE);
	put_interpreted(10, INTERP + 0x33, BCODE);
	words[9] = SP + 80; /* the stack does not grow */
	assert_false(step(INTERP + 8, &f, true).found);
	put_interpreted(10, 0x10, BCODE);
	assert_false(step(INTERP + 8, &f, true).found);
	put_interpreted(10, INTERP + 0x33, BCODE);
	words[7] = METHOD + 1;
	assert_false(step(INTERP + 8, &f, true).found);
	f = frame(SP, SP + 80, BCODE);
	f.valid &= ~(1ULL << arch_x86_64.fp);
	assert_false(step(INTERP + 8, &f, false).found);
}

TEST(test_stub, set_up, tear_down)
{
	struct arch_frame f = frame(SP, SP + 48, 0);
	struct java_caller c;

	words[6] = SP + 200;
	words[7] = CODE + 0x10;
	map->call_return = STUB + 9;
	c = step(STUB + 8, &f, false);
	assert_caller(&c, CODE + 0x10, SP + 64, SP + 200);
	assert_false(c.guessed);
	/* Other stubs call nothing, or have other frames. */
	c = step(STUB + 9, &f, false);
	assert_true(c.found && c.guessed);
	/* The innermost one may have no frame: not decided here. */
	assert_false(step(STUB + 8, &f, true).found);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
