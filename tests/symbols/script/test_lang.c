// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * lang: chains of a made-up CPython 3.11, true and hostile ones; line tables
 * as CPython wrote them; offsets as a process describes itself.
 */
#include "tests/prelude.h"

#include <stdlib.h>

#include "symbols/script/python.c"
#include "tests/makers/copy.h"
#include "tests/makers/cpython.h"

#define TID 4711

struct fixture {
	struct pymake m;
	struct lang_reader *reader;
	struct lang_sample sample;
	struct lang_chain chain;
	uint64_t code[3];
	uint64_t first_frame;
};

#include "tests/symbols/lang_fixture.h"
#include "symbols/base/base.h"

static int setup(void **state)
{
	struct fixture *f = fixture_new();

	pymake_init(&f->m, TID);
	f->code[0] = pymake_code(&f->m, "<module>", "/srv/a.py", 1);
	f->code[1] = pymake_code(&f->m, "Cart.total", "/srv/a.py", 20);
	f->code[2] = pymake_code(&f->m, "leaf", "/srv/b.py", 7);
	f->sample = (struct lang_sample){ .process = 9, .tid = TID };
	put_stack(f, PYMAKE_STACK, 8192);
	*state = f;
	return 0;
}

/* <module> and Cart.total in one C frame of the loop, leaf in another one. */
static void call_all(struct fixture *f)
{
	pymake_loop(&f->m, f->sample.sp + 0x800);
	pymake_call(&f->m, f->code[0], true);
	pymake_call(&f->m, f->code[1], false);
	pymake_loop(&f->m, f->sample.sp + 0x200);
	pymake_call(&f->m, f->code[2], true);
}

/* The C frames of the loop are on the stack of another thread than the sample's. */
static void run_elsewhere(struct fixture *f)
{
	pymake_u64(&f->m, f->m.state + f->m.process.py.ts_current, PYMAKE_BASE + 0x100);
}

static const struct code_text *text(const struct fixture *f, uint32_t frame)
{
	return script_functions_at(f->reader->codes, f->chain.frames[frame].code);
}

static void expect_name(const struct fixture *f, uint32_t frame, const char *name, uint32_t line)
{
	const struct code_text *t = text(f, frame);

	assert_non_null(t);
	assert_int_equal(t->name_size, strlen(name));
	assert_memory_equal(t->name, name, t->name_size);
	assert_int_equal(t->first_line, line);
}

TEST(test_chain, setup, teardown)
{
	struct fixture *f = *state;

	call_all(f);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.nr, 3);
	expect_name(f, 0, "leaf", 7);
	expect_name(f, 1, "Cart.total", 20);
	expect_name(f, 2, "<module>", 1);
	assert_int_equal(f->chain.frames[0].boundary, f->sample.sp + 0x200);
	assert_int_equal(f->chain.frames[1].boundary, 0);
	assert_int_equal(f->chain.frames[2].boundary, f->sample.sp + 0x800);
	assert_int_equal(f->chain.frames[0].instr, 4);
	assert_true(f->chain.settled);
	assert_false(f->chain.broken);
	/* Up to beyond the innermost C frame of the loop. */
	assert_in_range(f->chain.same, f->sample.sp + 0x400, f->sample.sp + f->sample.stack_size);
	assert_int_equal(pyline_of(text(f, 0)->version, text(f, 0)->table, text(f, 0)->table_size,
				   7, 4),
			 8);
}

/* ---- a goroutine that called C ---- */

#define GO_TEXT	  (PYMAKE_BASE + 0x1000) /* asmcgocall() */
#define GO_CALLER (PYMAKE_BASE + 0x2000)
#define GO_G	  (PYMAKE_BASE + 0x3000)
#define GO_STACK  (PYMAKE_BASE + 0x4000)
#define GO_END	  (GO_STACK + 0x1000)

/* C code @at bytes below asmcgocall()'s frame, which keeps depth and goroutine in word @word. */
static void call_c(struct fixture *f, uint32_t at, uint32_t word, uint64_t depth)
{
	uint64_t frame = f->sample.sp + at;

	f->m.process = (struct lang_process){ .kind = LANG_GO,
					      .nr_eval = 1,
					      .eval = { { GO_TEXT, GO_TEXT + 0xae } } };
	pymake_u64(&f->m, frame - 8, GO_TEXT + 0x64);
	pymake_u64(&f->m, frame + 8ULL * word, depth);
	pymake_u64(&f->m, frame + 8ULL * word + 8, GO_G);
	pymake_u64(&f->m, GO_G, GO_STACK);
	pymake_u64(&f->m, GO_G + 8, GO_END);
	pymake_u64(&f->m, GO_END - depth, GO_CALLER);
	*pymake_at(&f->m, GO_CALLER - 5) = 0xe8;
	pymake_u32(&f->m, GO_CALLER - 4, (uint32_t)(GO_TEXT - GO_CALLER));
}

/*
 * Each layout of the frame, also with a frame pointer saved below the return address; the
 * goroutine's stack is read from that to its end.
 */
TEST(test_go_stack, setup, teardown)
{
	struct fixture *f = *state;
	const uint32_t words[] = { 0, 5, 0 };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		memset(f->m.bytes, 0, sizeof(f->m.bytes));
		call_c(f, 0x340, words[i], 0x288);
		if (i == 2) {
			pymake_u64(&f->m, f->sample.sp + 0x340, 0x290);
			pymake_u64(&f->m, GO_END - 0x290, GO_END - 0x100);
		}
		/* An old return address below it. */
		pymake_u64(&f->m, f->sample.sp + 0x40, GO_TEXT + 0x64);
		assert_int_equal(chain(f), LANG_OK);
		assert_int_equal(f->chain.nr, 0);
		assert_int_equal(f->chain.other.from, f->sample.sp + 0x340);
		assert_int_equal(f->chain.other.sp, GO_END - 0x288);
		assert_int_equal(f->chain.other.size, 0x288);
		assert_int_equal(bytes_u64(f->chain.other_bytes), GO_CALLER);
		assert_false(f->chain.broken);
	}
}

/*
 * systemstack(): its frame pointer is kept below the return address to it, or is in the register;
 * the return address into its caller is behind the one saved there, or below.
 */
TEST(test_go_system_stack, setup, teardown)
{
	struct fixture *f = *state;
	const uint64_t fp = GO_END - 0x2a0;

	for (int i = 0; i < 4; i++) {
		/* As by Go 1.21 and later, and before. */
		const uint64_t from = i & 1 ? fp - 0x48 : fp + 8;
		const uint32_t at = i & 2 ? 8 : 0x340;

		memset(f->m.bytes, 0, sizeof(f->m.bytes));
		call_c(f, at, 5, 0x288);
		/* No frame of asmcgocall(). */
		memset(pymake_at(&f->m, f->sample.sp + at), 0, 64);
		pymake_u64(&f->m, GO_END - 0x288, 0);
		pymake_u64(&f->m, from, GO_CALLER);
		pymake_u64(&f->m, fp, GO_END - 0x40);
		f->sample.fp = i & 2 ? fp : 0;
		if (!(i & 2))
			pymake_u64(&f->m, f->sample.sp + at - 16, fp);
		assert_int_equal(chain(f), LANG_OK);
		assert_int_equal(f->chain.other.from, f->sample.sp + at);
		assert_int_equal(f->chain.other.sp, from);
		assert_in_range(f->chain.other.size, 512, 32768);
		assert_int_equal(bytes_u64(f->chain.other_bytes), GO_CALLER);
		/* The call of another function. */
		pymake_u32(&f->m, GO_CALLER - 4, 0x20);
		assert_int_equal(chain(f), LANG_NO_FRAMES);
		assert_int_equal(f->chain.other.size, 0);
	}
}

/*
 * C has called Go on a thread of C: behind the frame of cgocallback(), which returns to goexit(),
 * the stack goes on with C's caller of cgocallback(), behind the frame pointer kept below its
 * return address.
 */
TEST(test_go_callback, setup, teardown)
{
	struct fixture *f = *state;
	const uint64_t callback = PYMAKE_BASE + 0x1800, goexit = PYMAKE_BASE + 0x1c00;
	const uint64_t fp = GO_END - 0x2a0;

	for (int wrong = 0; wrong < 4; wrong++) {
		memset(f->m.bytes, 0, sizeof(f->m.bytes));
		call_c(f, 0x340, 5, 0x288);
		f->m.process.runtime = callback;
		f->m.process.code_type = goexit;
		memset(pymake_at(&f->m, f->sample.sp + 0x340 - 8), 0, 80);
		pymake_u64(&f->m, f->sample.sp + 0x340 - 16, wrong == 1 ? fp + 4 : fp);
		pymake_u64(&f->m, f->sample.sp + 0x340 - 8, callback + 0x70);
		/* Go called C before: then its caller is there. */
		pymake_u64(&f->m, f->sample.sp + 0x340 + 32, wrong == 2 ? GO_CALLER : goexit + 1);
		pymake_u64(&f->m, fp + 8, GO_CALLER);
		pymake_u32(&f->m, GO_CALLER - 4,
			   (uint32_t)(callback + (wrong == 3 ? 16 : 0) - GO_CALLER));
		assert_int_equal(chain(f), wrong ? LANG_NO_FRAMES : LANG_OK);
		if (wrong)
			continue;
		assert_int_equal(f->chain.other.from, f->sample.sp + 0x340 + 40);
		assert_int_equal(f->chain.other.sp, fp + 8);
		assert_in_range(f->chain.other.size, 512, 32768);
		assert_int_equal(bytes_u64(f->chain.other_bytes), GO_CALLER);
	}
}

/* No call of asmcgocall(), no goroutine, a depth beyond its stack: nothing is read for it. */
TEST(test_go_hostile, setup, teardown)
{
	struct fixture *f = *state;

	call_c(f, 0x340, 5, 0x288);
	*pymake_at(&f->m, GO_CALLER - 5) = 0x90;
	assert_int_equal(chain(f), LANG_NO_FRAMES);
	assert_int_equal(f->chain.other.size, 0);
	call_c(f, 0x340, 5, 0x288);
	pymake_u64(&f->m, GO_G + 8, GO_STACK + 0x280);
	assert_int_equal(chain(f), LANG_NO_FRAMES);
	call_c(f, 0x340, 5, 0x288);
	pymake_u64(&f->m, f->sample.sp + 0x340 + 48, 1ULL << 60);
	assert_int_equal(chain(f), LANG_NO_FRAMES);
	/* A call of another function, and a depth beyond the stack, where such a call is. */
	call_c(f, 0x340, 5, 0x288);
	pymake_u32(&f->m, GO_CALLER - 4, (uint32_t)(GO_TEXT + 0x200 - GO_CALLER));
	assert_int_equal(chain(f), LANG_NO_FRAMES);
	call_c(f, 0x340, 5, 0x1288);
	assert_int_equal(chain(f), LANG_NO_FRAMES);
	call_c(f, 0x340, 5, 0x288);
	f->sample.stack_size = 0x340 + 48;
	assert_int_equal(chain(f), LANG_NO_FRAMES);
}

/* The thread has run on: its stack is another one than in the sample. */
TEST(test_go_late, setup, teardown)
{
	struct fixture *f = *state;
	uint8_t *copy = malloc(8192);

	call_c(f, 0x340, 5, 0x288);
	memcpy(copy, f->sample.stack, 8192);
	f->sample.stack = copy;
	pymake_u64(&f->m, f->sample.sp + 0x20, 1);
	assert_int_equal(chain(f), LANG_OK);
	assert_true(f->chain.broken);
	free(copy);
}

/* ---- a stack beyond the kernel's copy ---- */

static uint64_t far_at[LANG_FAR_MAX];

/* A copy of a fresh page, of which the stack goes on in the next ones. */
static void cut_copy(struct fixture *f, uint64_t size, uint64_t wanted)
{
	f->m.process = (struct lang_process){ .kind = LANG_NONE };
	for (uint32_t at = 0; at < 8192; at += 8)
		pymake_u64(&f->m, f->sample.sp + at, at + 1);
	f->sample.stack_size = size;
	memset(far_at, 0, sizeof(far_at));
	far_at[2] = wanted ? f->sample.sp + wanted : 0;
	f->sample.far = far_at;
}

/* It is read from the end of the copy on, beyond the address that is wanted; or near that alone. */
TEST(test_far_stack, setup, teardown)
{
	struct fixture *f = *state;

	cut_copy(f, 0x340, 0x1100);
	assert_int_equal(chain(f), LANG_NO_FRAMES);
	assert_int_equal(f->chain.other.from, 0);
	assert_int_equal(f->chain.other.sp, f->sample.sp + 0x340);
	/* To the end of a page, 8 KiB further. */
	assert_int_equal(f->chain.other.size, 0x4000 - 0x340);
	assert_int_equal(bytes_u64(f->chain.other_bytes), 0x341);
	assert_int_equal(bytes_u64(f->chain.other_bytes + 0x1000), 0x1341);
	/* To the end of the memory. */
	cut_copy(f, 0x340, 0x7f00);
	chain(f);
	assert_int_equal(f->chain.other.size, PYMAKE_SIZE - PYMAKE_STACK - 0x340);
	/* No byte was copied: nothing of the innermost frame was used. */
	cut_copy(f, 0, 0x1100);
	chain(f);
	assert_int_equal(f->chain.other.sp, f->sample.sp);
	assert_int_equal(bytes_u64(f->chain.other_bytes + 0x1000), 0x1001);
	put_stack(f, 0, 8192);
	cut_copy(f, 0x340, LANG_OTHER_MAX + 0x4000);
	pymake_u64(&f->m, far_at[2], 77);
	chain(f);
	assert_int_equal(f->chain.other.sp, far_at[2] - 256);
	assert_int_equal(bytes_u64(f->chain.other_bytes + 256), 77);
}

/* Return the bytes of a part, which has to begin at @sp; *@at: behind the other stack's first one.
 */
static const uint8_t *next_part(const struct fixture *f, uint32_t *at, uint64_t sp, uint64_t size)
{
	struct lang_other_part part;
	const uint8_t *head = f->chain.other_bytes + *at;

	assert_in_range(*at, 0, f->chain.other.size - sizeof(part));
	memcpy(&part, head, sizeof(part));
	assert_int_equal(part.sp, sp);
	assert_int_equal(part.size, size);
	*at += (uint32_t)(sizeof(part) + size);
	return head + sizeof(part);
}

/*
 * Addresses that are far from each other, in any order: a part around each, with few bytes between
 * them one part; no part behind the stack, nor without room.
 */
TEST(test_far_parts, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t sp;
	uint32_t at;

	put_stack(f, 0, 8192);
	sp = f->sample.sp;
	cut_copy(f, 0x340, 0x1100);
	far_at[0] = sp + 0x18000;
	far_at[5] = sp + 0x11000;
	far_at[6] = sp + 0x12000;
	far_at[7] = sp + 0x1f800;
	far_at[15] = sp + 0x100;
	pymake_u64(&f->m, far_at[0], 70);
	pymake_u64(&f->m, far_at[5], 75);
	pymake_u64(&f->m, far_at[7], 77);
	chain(f);
	assert_int_equal(f->chain.other.sp, sp + 0x340);
	at = f->chain.other.size - f->chain.other.rest;
	assert_int_equal(at, 0x4000 - 0x340);
	assert_int_equal(bytes_u64(next_part(f, &at, sp + 0x11000 - 256, 0x2100) + 256), 75);
	assert_int_equal(bytes_u64(next_part(f, &at, sp + 0x18000 - 256, 0x1100) + 256), 70);
	assert_int_equal(bytes_u64(next_part(f, &at, sp + 0x1f800 - 256, 0x900) + 256), 77);
	assert_int_equal(at, f->chain.other.size);
	/* The part that is connected to the copy leaves room for the others. */
	far_at[2] = sp + 0xd100;
	chain(f);
	at = 0x1100;
	assert_int_equal(f->chain.other.sp, sp + 0xd000);
	assert_int_equal(f->chain.other.size - f->chain.other.rest, at);
	next_part(f, &at, sp + 0x11000 - 256, 0x2100);
}

/* Many addresses share the room: none is left out. */
TEST(test_far_many, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t sp;
	uint32_t at;

	put_stack(f, 0, 8192);
	sp = f->sample.sp;
	cut_copy(f, 0x340, 0);
	for (uint64_t i = 0; i < 60; i++) {
		far_at[i] = sp + 0x2000 + i * 0x800;
		pymake_u64(&f->m, far_at[i], i);
	}
	chain(f);
	at = f->chain.other.size - f->chain.other.rest;
	assert_int_equal(bytes_u64(f->chain.other_bytes + 256), 0);
	for (uint64_t i = 1; i < 60; i++) {
		struct lang_other_part part;

		assert_in_range(at, 0, f->chain.other.size - sizeof(part));
		memcpy(&part, f->chain.other_bytes + at, sizeof(part));
		assert_int_equal(part.sp, far_at[i] - 256);
		assert_in_range(part.size, 0x400, 0x700);
		assert_int_equal(bytes_u64(f->chain.other_bytes + at + sizeof(part) + 256), i);
		at += (uint32_t)(sizeof(part) + part.size);
	}
	assert_int_equal(at, f->chain.other.size);
}

/* The bytes below sp are read as well, or alone. */
TEST(test_far_below, setup, teardown)
{
	struct fixture *f = *state;
	uint32_t at;

	for (int with_far = 0; with_far < 2; with_far++) {
		cut_copy(f, 0x340, with_far ? 0x1100 : 0);
		far_at[1] = LANG_FAR_BELOW;
		pymake_u64(&f->m, f->sample.sp - 8, 99);
		chain(f);
		assert_int_equal(f->chain.other.sp, f->sample.sp - 128);
		at = f->chain.other.size - f->chain.other.rest;
		assert_int_equal(at, 128);
		assert_int_equal(bytes_u64(f->chain.other_bytes + 120), 99);
		if (with_far)
			next_part(f, &at, f->sample.sp + 0x340, 0x4000 - 0x340);
		assert_int_equal(at, f->chain.other.size);
	}
}

/* Another stack, below the one that was copied: around the address alone, with all others. */
TEST(test_far_lower, setup, teardown)
{
	struct fixture *f = *state;
	static uint8_t copy[0x340];
	uint32_t at;

	cut_copy(f, 0x340, 0x1100);
	far_at[0] = f->sample.sp - 0x5000;
	far_at[1] = LANG_FAR_BELOW;
	pymake_u64(&f->m, far_at[0], 55);
	pymake_u64(&f->m, f->sample.sp - 8, 99);
	chain(f);
	assert_int_equal(f->chain.other.sp, far_at[0] - 256);
	assert_int_equal(bytes_u64(f->chain.other_bytes + 256), 55);
	at = f->chain.other.size - f->chain.other.rest;
	assert_int_equal(at, 256 + 4096);
	assert_int_equal(bytes_u64(next_part(f, &at, f->sample.sp - 128, 128) + 120), 99);
	next_part(f, &at, f->sample.sp + 0x340, 0x4000 - 0x340);
	assert_int_equal(at, f->chain.other.size);
	/* Alone; it has to be the stack of the sample. */
	cut_copy(f, 0x340, 0);
	far_at[9] = f->sample.sp - 0x5000;
	chain(f);
	assert_int_equal(f->chain.other.sp, far_at[9] - 256);
	memcpy(copy, f->sample.stack, sizeof(copy));
	f->sample.stack = copy;
	pymake_u64(&f->m, f->sample.sp, 3);
	chain(f);
	assert_int_equal(f->chain.other.size, 0);
}

/* It is not wanted, it has ended, it is another one by now, or the address is hostile. */
TEST(test_far_nothing, setup, teardown)
{
	const uint64_t hostile[] = { 2, UINT64_MAX - 7, 1ULL << 63, 1ULL << 48 };
	struct fixture *f = *state;
	uint8_t *copy = malloc(8192);

	cut_copy(f, 0x340, 0);
	chain(f);
	assert_int_equal(f->chain.other.size, 0);
	put_stack(f, PYMAKE_SIZE - 8192, 8192);
	cut_copy(f, 8192, 8192);
	chain(f);
	assert_int_equal(f->chain.other.size, 0);
	cut_copy(f, 0x340, 0);
	for (size_t i = 0; i < ARRAY_SIZE(hostile); i++) {
		far_at[0] = hostile[i];
		chain(f);
		assert_int_equal(f->chain.other.size, 0);
	}
	cut_copy(f, 0x340, 0x1100);
	chain(f);
	assert_int_not_equal(f->chain.other.size, 0);
	memcpy(copy, f->sample.stack, 8192);
	f->sample.stack = copy;
	/* A system call wrote to its end. */
	pymake_u64(&f->m, f->sample.sp + 0x338, 1);
	chain(f);
	assert_int_not_equal(f->chain.other.size, 0);
	/* A short copy is compared by its end alone. */
	f->sample.stack_size = 0x1f8;
	pymake_u64(&f->m, f->sample.sp + 0x1f0, 1);
	chain(f);
	assert_int_equal(f->chain.other.size, 0);
	f->sample.stack_size = 0x340;
	/* The bytes below sp are of the begin of the copy. */
	far_at[1] = LANG_FAR_BELOW;
	chain(f);
	assert_int_not_equal(f->chain.other.size, 0);
	pymake_u64(&f->m, f->sample.sp + 8, 3);
	chain(f);
	assert_int_equal(f->chain.other.size, 0);
	far_at[1] = 0;
	chain(f);
	assert_int_equal(f->chain.other.size, 0);
	free(copy);
}

#define HERE 0x100

/* A copy of a stack, of which the first HERE bytes are there. */
struct parts {
	const uint8_t *whole;
	uint8_t bytes[8192];
	unsigned int nr_copies;
};

static void copy_rest(void *ctx)
{
	struct parts *p = ctx;

	p->nr_copies++;
	memcpy(p->bytes + HERE, p->whole + HERE, sizeof(p->bytes) - HERE);
}

/* C frames of the loop in the rest of the stack: it is copied once, before it is looked at. */
TEST(test_rest_of_stack, setup, teardown)
{
	struct fixture *f = *state;
	struct parts *p = calloc(1, sizeof(*p));
	struct lang_rest rest = { HERE, copy_rest, p };
	uint64_t same;

	call_all(f);
	assert_int_equal(chain(f), LANG_OK);
	same = f->chain.same;
	assert_int_equal(f->sample.stack_size, sizeof(p->bytes));
	p->whole = f->sample.stack;
	memcpy(p->bytes, p->whole, HERE);
	f->sample.stack = p->bytes;
	f->sample.rest = &rest;
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(p->nr_copies, 1);
	assert_int_equal(f->chain.nr, 3);
	assert_int_equal(f->chain.frames[2].boundary, f->sample.sp + 0x800);
	assert_int_equal(f->chain.same, same);
	rest.here = UINT64_MAX;
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(p->nr_copies, 1);
	free(p);
}

/* Known pieces are read ahead: few calls. */
TEST(test_few_calls, setup, teardown)
{
	struct fixture *f = *state;

	call_all(f);
	chain(f);
	f->m.nr_calls = 0;
	assert_int_equal(chain(f), LANG_OK);
	assert_in_range(f->m.nr_calls, 1, 3);
}

TEST(test_own_threads)
{
	assert_int_equal(lang_own_thread("GC Thread#12"), LANG_GC);
	assert_int_equal(lang_own_thread("G1 Conc#0"), LANG_GC);
	assert_int_equal(lang_own_thread("C2 CompilerThre"), LANG_COMPILER);
	assert_int_equal(lang_own_thread("VM Thread"), LANG_VM);
	assert_int_equal(lang_own_thread("C1 Comp..hread0"), LANG_COMPILER);
	assert_int_equal(lang_own_thread("VM Peri..Thread"), LANG_VM);
	assert_int_equal(lang_own_thread("node-V8Worker"), LANG_VM);
	assert_int_equal(lang_own_thread("java"), LANG_NO_FRAMES);
	assert_int_equal(lang_own_thread(""), LANG_NO_FRAMES);
	for (int i = 0; i < LANG_OK; i++)
		assert_string_not_equal(lang_status_name((enum lang_status)i), "?");
}

TEST(test_no_frames, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(chain(f), LANG_NO_FRAMES);
}

TEST(test_unknown_thread, setup, teardown)
{
	struct fixture *f = *state;

	call_all(f);
	run_elsewhere(f);
	f->sample.tid = TID + 1;
	assert_int_equal(chain(f), LANG_NO_THREAD);
}

/* A state that another thread made, as uwsgi's, has the id of that: its C frame shows the thread.
 */
TEST(test_state_of_another, setup, teardown)
{
	struct fixture *f = *state;

	call_all(f);
	f->sample.tid = TID + 1;
	assert_int_equal(chain(f), LANG_OK);
	expect_name(f, 0, "leaf", 7);
	/* The thread that made it has none of its frames. */
	run_elsewhere(f);
	assert_int_not_equal(chain(f), LANG_OK);
}

/*
 * From 3.13 on a state has no C frame: the innermost frame that ends one is on the C stack of the
 * thread, also of a state that another thread made in one of several interpreters.
 */
TEST(test_state_of_another_without_cframe, setup, teardown)
{
	struct fixture *f = *state;
	struct py_layout *l = &f->m.process.py;
	const uint64_t list = f->m.process.runtime + l->interpreters;
	const uint64_t interp = pymake_take(&f->m, 512), own = pymake_take(&f->m, 1024);
	const uint64_t other = pymake_take(&f->m, 1024), entry = f->sample.sp + 0x200;

	l->cframe_size = l->cframe_current = l->frame_is_entry = 0;
	pymake_u64(&f->m, f->m.state + l->ts_current, 0);
	pymake_u64(&f->m, interp + l->interp_next, bytes_u64(pymake_at(&f->m, list)));
	pymake_u64(&f->m, interp + l->interp_threads, own);
	pymake_u64(&f->m, list, interp);
	/* Both were made by one thread, the one that the sample is not of. */
	pymake_u64(&f->m, own + l->ts_next, other);
	pymake_u64(&f->m, own + l->ts_native_id, TID);
	pymake_u64(&f->m, other + l->ts_native_id, TID);
	*pymake_at(&f->m, entry + l->frame_owner) = 3;
	f->m.state = other;
	f->m.cframe = other + l->ts_current;
	pymake_u64(&f->m, f->m.cframe, entry);
	pymake_call(&f->m, f->code[1], false);
	pymake_call(&f->m, f->code[2], false);
	f->sample.tid = TID + 1;
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.nr, 2);
	expect_name(f, 0, "leaf", 7);
	/* The thread that made both runs no frames of the other one. */
	f->sample.tid = TID;
	f->sample.time_ns += LANG_SEARCH_MAX_NS;
	pymake_u64(&f->m, own + l->ts_current, f->m.frames - PYMAKE_FRAME);
	f->sample.sp += 0x400;
	f->sample.stack += 0x400;
	f->sample.stack_size -= 0x400;
	assert_int_not_equal(chain(f), LANG_OK);
	f->sample.sp -= 0x400;
	f->sample.stack -= 0x400;
	f->sample.stack_size += 0x400;
	/* The C frame of another thread. */
	f->sample.tid = TID + 2;
	f->sample.sp += 0x400;
	f->sample.stack += 0x400;
	f->sample.stack_size -= 0x400;
	f->sample.time_ns += LANG_SEARCH_MAX_NS;
	assert_int_not_equal(chain(f), LANG_OK);
}

/* Search for the thread of the sample, @ns later; return whether that was not too early. */
static bool search(struct fixture *f, uint64_t ns)
{
	bool searched;

	f->sample.time_ns += ns;
	lang_chain(f->reader, &f->m.process, &f->sample, &f->chain);
	f->m.nr_calls = 0;
	searched = lang_chain_find_thread(f->reader, &f->m.process, &f->sample);
	assert_int_equal(f->m.nr_calls > 0, searched);
	return searched;
}

/* A thread that is not found is not looked for at each sample; other processes do not wait. */
TEST(test_search_pauses, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t ns = LANG_SEARCH_NS, slot;

	call_all(f);
	run_elsewhere(f);
	f->sample.tid = TID + 1;
	assert_true(search(f, 1000));
	for (int i = 0; i < 10; i++, ns = MIN(2 * ns, LANG_SEARCH_MAX_NS)) {
		assert_false(search(f, ns - 1));
		assert_true(search(f, 1));
	}
	f->sample.process++;
	assert_true(search(f, 1));
	f->sample.process--;
	assert_false(search(f, 1));
	/* A thread was found: the next one may be new. */
	f->sample.tid = TID;
	assert_true(search(f, LANG_SEARCH_MAX_NS));
	pymake_u64(&f->m, f->m.state + f->m.process.py.ts_current, f->m.cframe);
	assert_int_equal(chain(f), LANG_OK);
	run_elsewhere(f);
	f->sample.tid = TID + 1;
	assert_true(search(f, 1));
	assert_false(search(f, LANG_SEARCH_NS - 1));
	assert_true(search(f, 1));
	assert_false(search(f, 1));
	/* A process with the same slot. */
	slot = hash_u64(f->sample.process) % LANG_SEARCHES;
	do
		f->sample.process++;
	while (hash_u64(f->sample.process) % LANG_SEARCHES != slot);
	assert_true(search(f, 1));
}

/* The state is that of another thread by now. */
TEST(test_state_reused, setup, teardown)
{
	struct fixture *f = *state;

	call_all(f);
	assert_int_equal(chain(f), LANG_OK);
	pymake_u64(&f->m, f->m.state + f->m.process.py.ts_native_id, TID + 7);
	run_elsewhere(f);
	assert_int_equal(chain(f), LANG_NO_THREAD);
}

/* A forked process: its state has the id of the parent's thread, the C library that of its own. */
TEST(test_forked, setup, teardown)
{
	struct fixture *f = *state;
	const struct py_layout *l = &f->m.process.py;
	uint64_t pthread = pymake_take(&f->m, 0x2e0);

	call_all(f);
	pymake_u64(&f->m, pthread + 16, pthread);
	pymake_u32(&f->m, pthread + 0x2d0, TID);
	pymake_u64(&f->m, f->m.state + l->ts_thread_id, pthread);
	pymake_u64(&f->m, f->m.state + l->ts_native_id, TID - 1);
	/* Threads that were made later have their ids. */
	run_elsewhere(f);
	assert_int_equal(chain(f), LANG_NO_THREAD);
	f->sample.is_main = true;
	pymake_u64(&f->m, f->m.state + l->ts_current, f->m.cframe);
	f->sample.time_ns += LANG_SEARCH_NS;
	assert_int_equal(chain(f), LANG_OK);
	expect_name(f, 0, "leaf", 7);
	/* The id is set. */
	pymake_u64(&f->m, f->m.state + l->ts_native_id, TID);
	assert_int_equal(chain(f), LANG_OK);
	/* The state is that of another thread. */
	pymake_u64(&f->m, f->m.state + l->ts_native_id, TID + 7);
	pymake_u32(&f->m, pthread + 0x2d0, TID + 7);
	run_elsewhere(f);
	assert_int_equal(chain(f), LANG_NO_THREAD);
}

/* Use up the part of the table that the process of the sample has. */
static void fill_part(struct fixture *f)
{
	char name[SCRIPT_FUNCTIONS_TEXT_MAX] = "";
	struct code_text text = { .language = LANG_PYTHON, .name = name, .file = "a" };
	struct code_key key = { .process = f->sample.process };

	text.name_size = sizeof(name);
	while (text.name_size) {
		snprintf(name, sizeof(name), "%x", ++text.first_line);
		key.address = text.first_line;
		if (script_functions_add(f->reader->codes, &key, &text) == CODE_NONE)
			text.name_size /= 2;
	}
}

/* A function that does not fit into the table has no name: the others keep theirs. */
TEST(test_full_table, setup, teardown)
{
	struct fixture *f = *state;

	pymake_loop(&f->m, f->sample.sp + 0x800);
	pymake_call(&f->m, f->code[0], true);
	pymake_call(&f->m, f->code[1], false);
	assert_int_equal(chain(f), LANG_OK);
	fill_part(f);
	pymake_call(&f->m, f->code[2], false);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(chain(f), LANG_OK);
		assert_int_equal(f->chain.nr, 3);
		assert_int_equal(f->chain.frames[0].code, CODE_UNNAMED);
		expect_name(f, 1, "Cart.total", 20);
		expect_name(f, 2, "<module>", 1);
	}
}

/* Other code at a used address is another function. */
TEST(test_code_reused, setup, teardown)
{
	struct fixture *f = *state;
	const struct py_layout *l = &f->m.process.py;
	uint32_t before;

	call_all(f);
	chain(f);
	before = f->chain.frames[0].code;
	pymake_u64(&f->m, f->code[2] + l->code_qualname, pymake_text(&f->m, "another"));
	assert_int_equal(chain(f), LANG_OK);
	assert_int_not_equal(f->chain.frames[0].code, before);
	expect_name(f, 0, "another", 7);
	expect_name(f, 1, "Cart.total", 20);
}

/* The longest time after a check in which code of about LANG_YOUNG_NS is not checked again. */
#define UNCHECKED_NS (LANG_YOUNG_NS / LANG_CHECK_SHARE)

/* Old code is checked after 1/200 of its age, until its process has replaced some. */
TEST(test_old_code, setup, teardown)
{
	struct fixture *f = *state;
	const struct py_layout *l = &f->m.process.py;
	uint32_t before;

	call_all(f);
	chain(f);
	f->sample.time_ns = LANG_YOUNG_NS + 1000;
	assert_int_equal(chain(f), LANG_OK);
	before = f->chain.frames[0].code;
	pymake_u64(&f->m, f->code[2] + l->code_qualname, pymake_text(&f->m, "another"));
	f->sample.time_ns += UNCHECKED_NS;
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.frames[0].code, before);
	f->sample.time_ns += UNCHECKED_NS / 100;
	assert_int_equal(chain(f), LANG_OK);
	expect_name(f, 0, "another", 7);
	f->sample.time_ns += LANG_YOUNG_NS;
	assert_int_equal(chain(f), LANG_OK);
	pymake_u64(&f->m, f->code[2] + l->code_qualname, pymake_text(&f->m, "third"));
	assert_int_equal(chain(f), LANG_OK);
	expect_name(f, 0, "third", 7);
}

/* Code that is replaced before it is old is checked at each sample; other code is not for that. */
TEST(test_young_code_reused, setup, teardown)
{
	struct fixture *f = *state;
	const struct py_layout *l = &f->m.process.py;

	call_all(f);
	chain(f);
	pymake_u64(&f->m, f->code[2] + l->code_qualname, pymake_text(&f->m, "another"));
	f->sample.time_ns = LANG_YOUNG_NS / 2;
	chain(f);
	expect_name(f, 0, "another", 7);
	f->sample.time_ns = LANG_YOUNG_NS + 1000;
	chain(f);
	pymake_u64(&f->m, f->code[1] + l->code_qualname, pymake_text(&f->m, "unseen"));
	pymake_u64(&f->m, f->code[2] + l->code_qualname, pymake_text(&f->m, "third"));
	f->sample.time_ns += 1000;
	assert_int_equal(chain(f), LANG_OK);
	expect_name(f, 0, "third", 7);
	expect_name(f, 1, "Cart.total", 20);
}

/* The header of old code is checked at least every LANG_CHECK_MAX_NS. */
TEST(test_very_old_code, setup, teardown)
{
	struct fixture *f = *state;
	const struct py_layout *l = &f->m.process.py;

	call_all(f);
	chain(f);
	f->sample.time_ns = 1000 * LANG_YOUNG_NS;
	chain(f);
	pymake_u64(&f->m, f->code[2] + l->code_qualname, pymake_text(&f->m, "another"));
	f->sample.time_ns += LANG_CHECK_MAX_NS - 1;
	chain(f);
	expect_name(f, 0, "leaf", 7);
	f->sample.time_ns += 1;
	chain(f);
	expect_name(f, 0, "another", 7);
}

/* Give all frames of call_all() this function object. */
static void set_functions(struct fixture *f, uint64_t function)
{
	for (uint64_t at = f->first_frame; at < f->m.frames; at += PYMAKE_FRAME)
		pymake_u64(&f->m, at + f->m.process.py.frame_globals - 8, function);
}

/* Old code is used unchecked for longer while its frames are of the same function object. */
TEST(test_same_function, setup, teardown)
{
	struct fixture *f = *state;
	const struct py_layout *l = &f->m.process.py;

	f->first_frame = f->m.frames;
	call_all(f);
	set_functions(f, 0x10000);
	chain(f);
	f->sample.time_ns = LANG_YOUNG_NS + 1000;
	chain(f);
	pymake_u64(&f->m, f->code[2] + l->code_qualname, pymake_text(&f->m, "another"));
	f->sample.time_ns += LANG_SAME_FACTOR * UNCHECKED_NS;
	assert_int_equal(chain(f), LANG_OK);
	expect_name(f, 0, "leaf", 7);
	set_functions(f, 0x10040);
	assert_int_equal(chain(f), LANG_OK);
	expect_name(f, 0, "another", 7);
}

/* Code of no file is checked at each sample, however old it is; its end does not count. */
TEST(test_made_code, setup, teardown)
{
	struct fixture *f = *state;
	const struct py_layout *l = &f->m.process.py;

	f->code[1] = pymake_code(&f->m, "made", "<string>", 3);
	f->code[2] = pymake_code(&f->m, "frozen", "<frozen os>", 9);
	call_all(f);
	chain(f);
	f->sample.time_ns = 1000 * LANG_YOUNG_NS;
	chain(f);
	f->sample.time_ns += 1;
	pymake_u64(&f->m, f->code[1] + l->code_qualname, pymake_text(&f->m, "again"));
	pymake_u64(&f->m, f->code[2] + l->code_qualname, pymake_text(&f->m, "unseen"));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(chain(f), LANG_OK);
		expect_name(f, 0, "frozen", 9);
		expect_name(f, 1, "again", 3);
	}
}

/* As of compile(source, "", "eval"): no name of a file is a file without a name. */
TEST(test_empty_texts, setup, teardown)
{
	struct fixture *f = *state;
	const struct code_text *t;

	f->code[1] = pymake_code(&f->m, "", "", 3);
	call_all(f);
	assert_int_equal(chain(f), LANG_OK);
	expect_name(f, 1, "(anonymous)", 3);
	t = script_functions_at(f->reader->codes, f->chain.frames[1].code);
	assert_int_equal(t->file_size, 9);
	assert_memory_equal(t->file, "<unknown>", 9);
}

TEST(test_freed_code, setup, teardown)
{
	struct fixture *f = *state;

	call_all(f);
	pymake_u64(&f->m, f->code[1] + 8, 0x1234560);
	assert_int_equal(chain(f), LANG_BAD_CHAIN);
}

TEST(test_cycle, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t first;

	pymake_loop(&f->m, f->sample.sp + 0x200);
	first = pymake_call(&f->m, f->code[0], false);
	pymake_call(&f->m, f->code[1], false);
	assert_int_equal(chain(f), LANG_OK);
	assert_false(f->chain.deep);
	/* As of more frames than have room: the innermost ones are kept. */
	pymake_u64(&f->m, first + f->m.process.py.frame_previous, first);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.nr, LANG_INNER);
	assert_true(f->chain.deep);
	expect_name(f, 0, "Cart.total", 20);
	expect_name(f, LANG_INNER - 1, "<module>", 1);
}

/*
 * Of more frames than have room some in the middle are left out: the outermost ones are found by
 * the chunks of their stack, or else by all frames, if these are not too many.
 */
TEST(test_deep, setup, teardown)
{
	struct fixture *f = *state;
	const struct py_layout *l = &f->m.process.py;
	uint64_t first = pymake_take(&f->m, 32), second = pymake_take(&f->m, 256), at, frame;
	uint64_t broken = 0;

	f->m.frames = PYMAKE_BASE + 0x8000;
	pymake_loop(&f->m, f->sample.sp + 0x200);
	pymake_call(&f->m, f->code[0], false);
	frame = pymake_call(&f->m, f->code[1], false);
	for (int i = 0; i < 560; i++)
		if (pymake_call(&f->m, f->code[2], false) && i == 4)
			broken = f->m.frames - PYMAKE_FRAME;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(chain(f), LANG_OK);
		assert_true(f->chain.deep);
		expect_name(f, 0, "leaf", 7);
		/* First by all, then by chunks, then not at all. */
		assert_in_range(f->chain.nr, i == 1 ? LANG_INNER + 2 : LANG_INNER,
				i ? LANG_INNER + 2 : LANG_FRAMES_MAX);
		if (i == 2) {
			assert_int_equal(f->chain.nr, LANG_INNER);
			break;
		}
		expect_name(f, f->chain.nr - 3, "leaf", 7);
		expect_name(f, f->chain.nr - 2, "Cart.total", 20);
		expect_name(f, f->chain.nr - 1, "<module>", 1);
		pymake_u64(&f->m, broken + l->frame_previous, PYMAKE_BASE + PYMAKE_SIZE);
		at = f->m.state + l->ts_top - 8;
		pymake_u64(&f->m, at, i ? 0 : second);
		pymake_u64(&f->m, second, first);
		pymake_u64(&f->m, second + 24 + l->frame_previous, frame);
		pymake_u64(&f->m, first + 8, 32);
	}
}

/*
 * A thread that runs code in another interpreter has a state in each: the frames of the inner one
 * are in front of the others, and it is found as soon as there is one.
 */
TEST(test_interpreters, setup, teardown)
{
	struct fixture *f = *state;
	const struct py_layout *l = &f->m.process.py;
	const uint64_t list = f->m.process.runtime + l->interpreters;
	const uint64_t first = bytes_u64(pymake_at(&f->m, list));
	uint64_t interp = pymake_take(&f->m, 512), other = pymake_take(&f->m, 1024);

	pymake_loop(&f->m, f->sample.sp + 0x800);
	pymake_call(&f->m, f->code[0], true);
	pymake_call(&f->m, f->code[1], false);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.nr, 2);
	pymake_u64(&f->m, interp + l->interp_next, first);
	pymake_u64(&f->m, interp + l->interp_threads, other);
	pymake_u64(&f->m, list, interp);
	/* No state of this thread, then one that runs nothing. */
	pymake_u64(&f->m, other + l->ts_current, other + 336);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.nr, 2);
	pymake_u64(&f->m, other + l->ts_native_id, TID);
	f->m.state = other;
	f->m.cframe = other + 336;
	pymake_loop(&f->m, f->sample.sp + 0x200);
	pymake_call(&f->m, f->code[2], true);
	/* The state of an exec() is new. */
	pymake_u64(&f->m, interp + l->interp_threads, 0);
	assert_int_equal(chain(f), LANG_OK);
	pymake_u64(&f->m, interp + l->interp_threads, other);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(chain(f), LANG_OK);
		assert_int_equal(f->chain.nr, 3);
		expect_name(f, 0, "leaf", 7);
		expect_name(f, 1, "Cart.total", 20);
		expect_name(f, 2, "<module>", 1);
		assert_true(f->chain.frames[0].boundary < f->chain.frames[2].boundary);
	}
	/* The first interpreter's code is inside. */
	pymake_u64(&f->m, other + l->ts_current, f->sample.sp + 0xa00);
	memcpy(pymake_at(&f->m, f->sample.sp + 0xa00), pymake_at(&f->m, f->sample.sp + 0x200),
	       l->cframe_size);
	assert_int_equal(chain(f), LANG_BAD_CHAIN);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.nr, 3);
	expect_name(f, 0, "Cart.total", 20);
	expect_name(f, 2, "leaf", 7);
}

/*
 * A server with an interpreter for each of its applications: a thread has a state in all of them,
 * more than are kept. The one that runs is found, and the next one that does.
 */
TEST(test_many_interpreters, setup, teardown)
{
	enum { MANY = 40 };
	struct fixture *f = *state;
	const struct py_layout *l = &f->m.process.py;
	const uint64_t list = f->m.process.runtime + l->interpreters;
	uint64_t next = bytes_u64(pymake_at(&f->m, list)), states[MANY];

	for (int i = 0; i < MANY; i++) {
		uint64_t interp = pymake_take(&f->m, 512);

		states[i] = pymake_take(&f->m, 512);
		pymake_u64(&f->m, interp + l->interp_next, next);
		pymake_u64(&f->m, interp + l->interp_threads, states[i]);
		pymake_u64(&f->m, states[i] + l->ts_native_id, TID);
		pymake_u64(&f->m, states[i] + l->ts_current, states[i] + 336);
		next = interp;
	}
	pymake_u64(&f->m, list, next);
	f->sample.time_ns += LANG_SEARCH_NS;
	for (int i = 3; i < MANY - 6; i += 10) {
		f->m.state = states[i];
		f->m.cframe = states[i] + 336;
		pymake_loop(&f->m, f->sample.sp + 0x200);
		pymake_call(&f->m, f->code[2], true);
		assert_int_equal(chain(f), LANG_OK);
		assert_int_equal(f->chain.nr, 1);
		pymake_u64(&f->m, states[i] + l->ts_current, states[i] + 336);
		assert_int_equal(chain(f), LANG_NO_FRAMES);
		f->sample.time_ns += LANG_SEARCH_NS;
	}
}

/* Frames that are alone on the heap cost a read each: the innermost ones are kept. */
TEST(test_frames_alone, setup, teardown)
{
	struct fixture *f = *state;

	f->m.process.py.one_frame_each = true;
	pymake_loop(&f->m, f->sample.sp + 0x200);
	for (int i = 0; i < 288; i++)
		pymake_call(&f->m, f->code[1], false);
	pymake_call(&f->m, f->code[2], false);
	/* More is read ahead with each sample. */
	for (int i = 0; i < 30; i++)
		chain(f);
	assert_int_equal(chain(f), LANG_OK);
	assert_true(f->chain.deep);
	assert_in_range(f->chain.nr, LANG_AHEAD, 288);
	expect_name(f, 0, "leaf", 7);
}

/* A page that is unmapped between two reads: true names or none, and all is well when it is back.
 */
TEST(test_unmapped, setup, teardown)
{
	struct fixture *f = *state;
	uint32_t nr_without = 0;

	call_all(f);
	for (uint64_t page = PYMAKE_BASE; page < PYMAKE_BASE + PYMAKE_SIZE; page += 4096)
		for (uint32_t call = 1; call <= 8; call++) {
			/* Nothing is read ahead or known: each call of a first sample. */
			f->sample.process++;
			f->sample.time_ns += LANG_SEARCH_MAX_NS;
			f->m.gone = page;
			f->m.gone_from = call;
			f->m.nr_calls = 0;
			if (chain(f) == LANG_OK)
				expect_name(f, 0, "leaf", 7);
			else
				nr_without++;
			assert_in_range(f->m.nr_calls, 1, 3 * LANG_CALLS_MAX);
			f->m.gone_from = 0;
			f->sample.time_ns += LANG_SEARCH_NS;
			assert_int_equal(chain(f), LANG_OK);
			assert_int_equal(f->chain.nr, 3);
			expect_name(f, 0, "leaf", 7);
			expect_name(f, 1, "Cart.total", 20);
		}
	assert_in_range(nr_without, 8, 8 * PYMAKE_SIZE / 4096 - 1);
}

TEST(test_wild_numbers, setup, teardown)
{
	static const uint64_t wild[] = { 0,
					 1,
					 7,
					 4095,
					 4096,
					 UINT64_MAX,
					 UINT64_MAX - 7,
					 1ULL << 55,
					 1ULL << 63,
					 PYMAKE_BASE + PYMAKE_SIZE - 8,
					 PYMAKE_BASE };
	struct fixture *f = *state;
	struct pymake keep;

	call_all(f);
	chain(f);
	keep = f->m;
	for (uint64_t at = PYMAKE_BASE + 4096; at < f->m.end; at += 8)
		for (size_t i = 0; i < ARRAY_SIZE(wild); i++) {
			pymake_u64(&f->m, at, wild[i]);
			f->m.nr_calls = 0;
			lang_chain(f->reader, &f->m.process, &f->sample, &f->chain);
			assert_in_range(f->m.nr_calls, 0, LANG_CALLS_MAX);
			assert_in_range(f->chain.nr, 0, LANG_FRAMES_MAX);
			lang_chain_find_thread(f->reader, &f->m.process, &f->sample);
			memset(f->reader->searches, 0, sizeof(f->reader->searches));
			f->m = keep;
		}
	assert_int_equal(chain(f), LANG_OK);
	expect_name(f, 0, "leaf", 7);
}

/* In the middle of a call the chain may go through frames that have ended. */
TEST(test_gap, setup, teardown)
{
	struct fixture *f = *state;

	pymake_loop(&f->m, f->sample.sp + 0x200);
	pymake_call(&f->m, f->code[0], true);
	f->m.frames += 64;
	pymake_call(&f->m, f->code[1], false);
	assert_int_equal(chain(f), LANG_OK);
	assert_true(f->chain.broken);
}

/* The frames of a greenlet that waits do not end in a C frame: the thread is about to leave it. */
TEST(test_waiting, setup, teardown)
{
	struct fixture *f = *state;

	pymake_loop(&f->m, f->sample.sp + 0x200);
	pymake_call(&f->m, f->code[0], false);
	pymake_call(&f->m, f->code[1], false);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.nr, 2);
	assert_true(f->chain.broken);
}

/* The thread has run on: its stack is another. */
TEST(test_ran_on, setup, teardown)
{
	struct fixture *f = *state;
	uint8_t copy[8192];

	call_all(f);
	memcpy(copy, f->sample.stack, sizeof(copy));
	f->sample.stack = copy;
	copy[0x100] ^= 1;
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.same, f->sample.sp + 0x100);
}

/* def f(): of three lines, from compile() of each version. */
TEST(test_lines)
{
	static const uint8_t lnotab[] = { 0, 1, 4, 1, 8, 0xff };
	static const uint8_t ranges[] = { 4, 1, 4, 0x80, 8, 1 };
	static const uint8_t locations[] = { 0x80, 0x00,	   0xd8 | 1,	       0x05,
					     0x05, 0x80 | 15 << 3, 0x80 | 13 << 3 | 3, 0x03 };

	assert_int_equal(pyline_of(8, lnotab, sizeof(lnotab), 10, 0), 11);
	assert_int_equal(pyline_of(9, lnotab, sizeof(lnotab), 10, 5), 12);
	assert_int_equal(pyline_of(8, lnotab, sizeof(lnotab), 10, 100), 11);
	assert_int_equal(pyline_of(10, ranges, sizeof(ranges), 10, 2), 11);
	assert_int_equal(pyline_of(10, ranges, sizeof(ranges), 10, 4), 0);
	assert_int_equal(pyline_of(10, ranges, sizeof(ranges), 10, 12), 12);
	assert_int_equal(pyline_of(10, ranges, sizeof(ranges), 10, 99), 0);
	assert_int_equal(pyline_of(11, locations, sizeof(locations), 10, 0), 10);
	assert_int_equal(pyline_of(11, locations, sizeof(locations), 10, 2), 11);
	assert_int_equal(pyline_of(11, locations, sizeof(locations), 10, 6), 0);
	assert_int_equal(pyline_of(11, locations, sizeof(locations), 10, 8), 10);
	assert_int_equal(pyline_of(11, locations, 0, 10, 0), 0);
	assert_int_equal(pyline_of(11, locations, 1, 1, 100), 0);
}

/* A process chooses the offsets of its code objects: each member is read, wherever it is. */
TEST(test_chosen_offsets, setup, teardown)
{
	struct fixture *f = *state;
	struct py_layout *l = &f->m.process.py;
	uint8_t *const members[] = { &l->code_qualname,	  &l->code_filename, &l->code_table,
				     &l->code_first_line, &l->code_nlocals,  &l->code_stacksize };

	for (size_t far = 0; far < ARRAY_SIZE(members); far++) {
		pymake_init(&f->m, TID);
		for (size_t i = 0; i < ARRAY_SIZE(members); i++)
			*members[i] = (uint8_t)(i == far ? 240 : 32 + 8 * i);
		f->code[0] = pymake_code(&f->m, "total", "/srv/c.py", 3);
		pymake_loop(&f->m, f->sample.sp + 0x200);
		pymake_call(&f->m, f->code[0], true);
		f->sample.process++;
		assert_int_equal(chain(f), LANG_OK);
		expect_name(f, 0, "total", 3);
		assert_int_equal(text(f, 0)->file_size, strlen("/srv/c.py"));
		assert_int_equal(text(f, 0)->table_size, 2);
		/* By the words of its frame. */
		assert_true(f->chain.settled);
	}
}

TEST(test_debug_offsets)
{
	uint64_t words[PY_DEBUG_OFFSETS_WORDS] = { 0 };
	struct py_layout layout = *pylayout_of(0x030d00f0);

	assert_non_null(pylayout_debug(&layout, words));
	memcpy(words, "xdebugpy", 8);
	words[1] = 0x030d01f0;
	words[5] = 640;
	words[23] = 80;
	words[26] = 232;
	words[29] = 8;
	words[31] = 56;
	words[32] = 72;
	words[33] = 70;
	assert_null(pylayout_debug(&layout, words));
	assert_int_equal(layout.interpreters, 640);
	assert_int_equal(layout.ts_current, 80);
	assert_int_equal(layout.ts_top, 240);
	assert_int_equal(layout.frame_size, 72);
	words[23] = 1 << 16;
	assert_non_null(pylayout_debug(&layout, words));
	words[23] = 80;
	words[33] = 200;
	assert_non_null(pylayout_debug(&layout, words));
	words[33] = 70;
	words[2] = 1;
	assert_string_equal(pylayout_debug(&layout, words), "impossible offsets in "
							    "_Py_DebugOffsets");
	/* Free-threaded, as 3.13.5 says of itself: objects begin with 16 bytes more. */
	words[35] = 128;
	words[36] = 136;
	words[37] = 144;
	words[38] = 152;
	words[39] = 84;
	words[43] = 216;
	assert_null(pylayout_debug(&layout, words));
	assert_int_equal(layout.head, 16);
	assert_int_equal(layout.code_filename, 112);
	assert_int_equal(layout.code_first_line, 68);
	assert_int_equal(layout.code_instructions, 216);
	layout = *pylayout_of(0x030e00f0);
	words[1] = 0x030e00f0;
	assert_non_null(pylayout_debug(&layout, words));
	assert_null(pylayout_of(0x03070000));
	assert_null(pylayout_of(0x04000000));
}

/* The first words of _PyRuntime in Debian's 3.13.18, 3.14.10 and 3.15.2. */
static const struct said {
	uint64_t version;
	uint16_t words[61]; /* without the size, which is larger; the fourth one is at 1 */
	uint16_t ts_id, ts_top, localsplus, owner, instructions;
} said[] = {
	{ 0x030d12f0,
	  { 0,	  608, 632, 0,	 7272, 7264, 7344, 7400, 7656, 7640, 7648, 16, 7752, 0,	  7768,
	    7760, 312, 0,   8,	 16,   72,   152,  160,	 232,  32,   80,   8,  0,    56,  72,
	    70,	  208, 112, 120, 128,  136,  68,   52,	 96,   104,  200,  16, 8,    416, 24,
	    88,	  168, 32,  24,	 16,   40,   24,   16,	 48,   32,   40,   24, 16,   32,  16 },
	  160,
	  240,
	  72,
	  70,
	  200 },
	{ 0x030e0af0,
	  { 0,	  784,	808,  0,  7280, 7272, 7344, 7360, 7408, 7688, 7672, 7680, 16, 7784, 0,
	    7800, 7792, 7992, 0,  832,	0,    8,    16,	  72,	152,  160,  232,  32, 88,   8,
	    0,	  56,	80,   74, 64,	0,    216,  112,  120,	128,  136,  68,	  52, 96,   104,
	    208,  0,	16,   8,  416,	24,   88,   168,  40,	32,   16,   40,	  24, 16,   200 },
	  160,
	  240,
	  80,
	  74,
	  208 },
	{ 0x030f02f0,
	  { 0,	  912,	936,  0,   7272, 7264, 7336, 7352, 7400, 7592, 7576, 7584, 16,	7736, 0,
	    7752, 7744, 7944, 0,   888,	 0,    8,    16,   72,	 80,   88,   96,   176, 184,  256,
	    32,	  36,	40,   136, 288,	 0,    88,   8,	   0,	 56,   80,   74,   64,	0,    216,
	    112,  120,	128,  136, 68,	 52,   96,   104,  208,	 0,    16,   8,	   424, 24,   88 },
	  184,
	  264,
	  80,
	  74,
	  208 },
};

TEST(test_debug_offsets_by_version)
{
	/* The last one also as a later version, which says of itself where its fields are. */
	for (size_t n = 0; n <= ARRAY_SIZE(said); n++) {
		const size_t i = MIN(n, ARRAY_SIZE(said) - 1);
		const uint64_t version = said[i].version + ((uint64_t)(n - i) << 16);
		uint64_t words[PY_DEBUG_OFFSETS_WORDS] = { 0 };
		struct py_layout layout = *pylayout_of((uint32_t)version);

		layout.minor = (uint8_t)(version >> 16);
		memcpy(words, "xdebugpy", 8);
		words[1] = version;
		for (size_t k = 0; k < ARRAY_SIZE(said[i].words); k++)
			words[3 + k] = said[i].words[k];
		assert_null(pylayout_debug(&layout, words));
		assert_int_equal(layout.ts_next, 8);
		assert_int_equal(layout.ts_current, 72);
		assert_int_equal(layout.ts_native_id, said[i].ts_id);
		assert_int_equal(layout.ts_top, said[i].ts_top);
		assert_int_equal(layout.frame_previous, 8);
		assert_int_equal(layout.frame_code, 0);
		assert_int_equal(layout.frame_instr, 56);
		assert_int_equal(layout.frame_size, said[i].localsplus);
		assert_int_equal(layout.frame_owner, said[i].owner);
		assert_int_equal(layout.code_filename, 112);
		assert_int_equal(layout.code_qualname, 128);
		assert_int_equal(layout.code_instructions, said[i].instructions);
	}
}

/* ---- the moment of a sample, as the kernel copied it ---- */

static struct copy_maker copy;

static bool read_made(void *ctx, uint64_t addr, void *out, size_t size)
{
	struct pymake *m = ctx;

	if (addr < PYMAKE_BASE || addr - PYMAKE_BASE > PYMAKE_SIZE - size)
		return false;
	memcpy(out, pymake_at(m, addr), size);
	return true;
}

/* Read the frames once from the process, and copy them by its plan at the next sample. */
static struct lang_moment copy_moment(struct fixture *f)
{
	assert_int_equal(chain(f), LANG_OK);
	assert_true(f->chain.planned);
	copy = (struct copy_maker){ .read = read_made, .ctx = &f->m, .frames_max = 96 };
	return copy_make(&copy, &f->chain.plan);
}

/* Read the frames of a sample from its moment. Return the calls that read the process. */
static uint32_t read_moment(struct fixture *f, struct lang_moment moment)
{
	f->m.nr_calls = 0;
	f->sample.time_ns += 1000;
	f->reader->memory.moment = moment;
	assert_true(lang_chain(f->reader, &f->m.process, &f->sample, &f->chain));
	f->reader->memory.moment.bytes = NULL;
	return f->m.nr_calls;
}

/* The thread has run on: the frames are those of the sample, of functions that are known. */
TEST(test_moment, setup, teardown)
{
	struct fixture *f = *state;
	struct lang_moment moment;

	call_all(f);
	moment = copy_moment(f);
	run_elsewhere(f);
	/* Of young code, heads and hashes. */
	assert_int_equal(read_moment(f, moment), 1);
	assert_false(f->reader->memory.missed);
	assert_int_equal(f->chain.none, LANG_OK);
	assert_int_equal(f->chain.nr, 3);
	expect_name(f, 0, "leaf", 7);
	expect_name(f, 2, "<module>", 1);
	assert_int_equal(f->chain.frames[0].boundary, f->sample.sp + 0x200);
	assert_int_equal(f->chain.frames[0].instr, 4);
	assert_true(f->chain.settled);
	assert_int_equal(f->chain.same, f->sample.sp + f->sample.stack_size);
	/* Nothing is read of old functions. */
	f->sample.time_ns += 100 * LANG_YOUNG_NS;
	pymake_u64(&f->m, f->m.state + f->m.process.py.ts_current, f->m.cframe);
	moment = copy_moment(f);
	assert_int_equal(read_moment(f, moment), 0);
	assert_int_equal(f->chain.nr, 3);
}

/* A frame, or the state, that is not in it, or could not be read, is missed: nothing else is read.
 */
TEST(test_moment_lacks, setup, teardown)
{
	struct fixture *f = *state;
	struct lang_moment moment;
	uint32_t states;

	call_all(f);
	moment = copy_moment(f);
	/* Behind the last frame are two pieces without bytes. */
	for (uint32_t size = 0; size < moment.size - 2 * sizeof(struct lang_moment_piece);
	     size += 8) {
		read_moment(f, (struct lang_moment){ moment.bytes, size, 0 });
		assert_true(f->reader->memory.missed);
		assert_int_equal(f->chain.none, LANG_NO_READER);
	}
	states = 0;
	for (uint32_t at = 0; at < moment.size;) {
		struct lang_moment_piece *p = (void *)(copy.bytes + at);

		at += (uint32_t)sizeof(*p) + ((p->size + 7) & ~7U);
		if (p->error || !p->size)
			continue;
		p->error = -14;
		read_moment(f, moment);
		p->error = 0;
		states += f->reader->memory.missed;
	}
	/* The state, its word, three frames: the C frame is on the stack. */
	assert_int_equal(states, 5);
	read_moment(f, moment);
	assert_false(f->reader->memory.missed);
}

/* A function that is new is missed, and that is said; one of no file may have been freed since. */
TEST(test_moment_new_code, setup, teardown)
{
	struct fixture *f = *state;
	const uint64_t made = pymake_code(&f->m, "once", "<string>", 3);
	struct lang_moment moment;

	call_all(f);
	assert_int_equal(chain(f), LANG_OK);
	copy = (struct copy_maker){ .read = read_made, .ctx = &f->m, .frames_max = 96 };
	pymake_call(&f->m, made, false);
	moment = copy_make(&copy, &f->chain.plan);
	read_moment(f, moment);
	assert_true(f->reader->memory.missed);
	assert_true(f->reader->memory.missed_code);
	/* It is known now. */
	moment = copy_moment(f);
	read_moment(f, moment);
	assert_true(f->reader->memory.missed);
	assert_false(f->reader->memory.missed_code);
}

/*
 * With its head and its name's hash of that moment a function of no file is certain, whatever is
 * there by now; with other ones it is new.
 */
TEST(test_moment_made, setup, teardown)
{
	struct fixture *f = *state;
	const uint64_t made = pymake_code(&f->m, "once", "<string>", 3);
	const uint32_t line_at = f->m.process.py.code_first_line;
	struct lang_moment moment;

	call_all(f);
	pymake_call(&f->m, made, false);
	assert_int_equal(chain(f), LANG_OK);
	copy = (struct copy_maker){
		.read = read_made, .ctx = &f->m, .frames_max = 96, .heads = true
	};
	moment = copy_make(&copy, &f->chain.plan);
	/* It was freed, and another one is there. */
	pymake_u32(&f->m, made + line_at, 8);
	assert_int_equal(read_moment(f, moment), 0);
	assert_false(f->reader->memory.missed);
	assert_int_equal(f->chain.nr, 4);
	expect_name(f, 0, "once", 3);
	moment = copy_make(&copy, &f->chain.plan);
	pymake_u32(&f->m, made + line_at, 3);
	read_moment(f, moment);
	assert_true(f->reader->memory.missed);
	assert_true(f->reader->memory.missed_code);
	/* Without them it may have been freed. */
	copy.heads = false;
	moment = copy_make(&copy, &f->chain.plan);
	read_moment(f, moment);
	assert_true(f->reader->memory.missed);
	assert_false(f->reader->memory.missed_code);
}

/* Other code is at the address of one that was known, by now: it is new. */
TEST(test_moment_replaced, setup, teardown)
{
	struct fixture *f = *state;
	struct lang_moment moment;

	call_all(f);
	moment = copy_moment(f);
	pymake_u32(&f->m, f->code[2] + f->m.process.py.code_first_line, 8);
	read_moment(f, moment);
	assert_true(f->reader->memory.missed_code);
}

/* The copy has other bytes than pieces. */
TEST(test_moment_hostile, setup, teardown)
{
	struct fixture *f = *state;
	struct lang_moment moment;
	uint64_t random = 88172645463325252ULL;

	call_all(f);
	moment = copy_moment(f);
	for (int i = 0; i < 20000; i++) {
		uint32_t at;
		uint8_t was;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		at = (uint32_t)(random % moment.size);
		was = copy.bytes[at];
		copy.bytes[at] = (uint8_t)(random >> 32);
		read_moment(f, moment);
		copy.bytes[at] = was;
	}
	read_moment(f, moment);
	assert_int_equal(f->chain.none, LANG_OK);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
