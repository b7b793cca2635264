// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * lang: chains of made-up interpreters of PHP, Ruby, Perl, Lua and R, true and hostile ones.
 */
#include "symbols/script/php.c"
#include "symbols/script/ruby.c"

#include "tests/prelude.h"

#include "symbols/script/internal.h"
#include "tests/makers/cpython.h"

#define TID  4711
#define LOOP 0x400000ULL
/* To look for a thread in the lists of an interpreter. */
#define FIND_CALLS_MAX 600

struct fixture {
	struct pymake m;
	struct lang_reader *reader;
	struct lang_sample sample;
	struct lang_chain chain;
};

#include "tests/symbols/lang_fixture.h"
#include "symbols/base/base.h"

static int setup(void **state)
{
	struct fixture *f = fixture_new();

	f->m.end = PYMAKE_BASE + 4096;
	f->m.frames = PYMAKE_BASE + 0x10000;
	f->sample = (struct lang_sample){ .process = 9, .tid = TID };
	put_stack(f, PYMAKE_STACK, 4096);
	*state = f;
	return 0;
}

static void expect_frame(const struct fixture *f, uint32_t frame, const char *name,
			 const char *file, uint32_t instr, bool boundary)
{
	const struct code_text *t =
		script_functions_at(f->reader->codes, f->chain.frames[frame].code);

	assert_non_null(t);
	assert_int_equal(t->language, f->m.process.kind);
	assert_int_equal(t->name_size, strlen(name));
	assert_memory_equal(t->name, name, t->name_size);
	assert_int_equal(t->file_size, strlen(file));
	assert_memory_equal(t->file, file, t->file_size);
	assert_int_equal(f->chain.frames[frame].instr, instr);
	assert_int_equal(f->chain.frames[frame].boundary != 0, boundary);
}

/* Fill everything behind the interpreter's variables with @step, wild numbers for 0. */
static void spoil(struct fixture *f, uint64_t from, uint64_t step)
{
	for (uint64_t at = from; at + 8 <= PYMAKE_BASE + PYMAKE_SIZE; at += 8)
		pymake_u64(&f->m, at,
			   step ? PYMAKE_BASE + 4096 + (at * step & 0x1fff8) : hash_u64(at));
}

/* Any memory gives an end and a reason, or frames within the bounds. */
static void expect_bounded(struct fixture *f)
{
	static const uint64_t steps[] = { 0, 1, 3, 40, 8 };

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		spoil(f, f->m.process.runtime, steps[i]);
		f->m.nr_calls = 0;
		f->sample.time_ns += LANG_SEARCH_MAX_NS;
		if (chain(f) == LANG_OK)
			assert_in_range(f->chain.nr, 1, LANG_FRAMES_MAX);
		assert_in_range(f->m.nr_calls, 1, 2 * LANG_CALLS_MAX + FIND_CALLS_MAX);
	}
}

/* ---- PHP ---- */

#define PHP_CURRENT 488

static uint64_t php_text(struct fixture *f, const char *text)
{
	uint64_t addr = pymake_take(&f->m, 24 + (uint32_t)strlen(text) + 1);

	pymake_u64(&f->m, addr + 8, hash_u64(addr));
	pymake_u64(&f->m, addr + 16, strlen(text));
	memcpy(pymake_at(&f->m, addr + 24), text, strlen(text));
	return addr;
}

/* @file NULL: a function in C. */
static uint64_t php_function(struct fixture *f, const char *scope, const char *name,
			     const char *file, uint32_t line)
{
	uint64_t func = pymake_take(&f->m, 248), class;

	*pymake_at(&f->m, func) = file ? 2 : 1;
	if (name)
		pymake_u64(&f->m, func + 8, php_text(f, name));
	if (scope) {
		class = pymake_take(&f->m, 64);
		pymake_u64(&f->m, class + 8, php_text(f, scope));
		pymake_u64(&f->m, func + 16, class);
	}
	if (file)
		pymake_u64(&f->m, func + 152, php_text(f, file));
	pymake_u32(&f->m, func + 160, line);
	return func;
}

/* Call @func, at @line; @top: from C. */
static uint64_t php_call(struct fixture *f, uint64_t func, uint32_t line, bool top)
{
	uint64_t frame = f->m.frames, op = pymake_take(&f->m, 32), ops, previous;

	memcpy(&ops, pymake_at(&f->m, func + 88), 8);
	ops = ops ? ops : op;
	memcpy(&previous, pymake_at(&f->m, f->m.process.runtime + PHP_CURRENT), 8);
	f->m.frames += 112;
	pymake_u32(&f->m, op + 24, line);
	pymake_u64(&f->m, frame, op);
	pymake_u64(&f->m, frame + 24, func);
	pymake_u32(&f->m, func + 80, (uint32_t)(op - ops) / 32 + 1);
	pymake_u64(&f->m, func + 88, ops);
	pymake_u32(&f->m, frame + 40, top ? 1U << 17 : 0);
	pymake_u64(&f->m, frame + 48, previous);
	pymake_u64(&f->m, f->m.process.runtime + PHP_CURRENT, frame);
	return frame;
}

static void php_begin(struct fixture *f)
{
	f->m.process.kind = LANG_PHP;
	f->m.process.php = php_version(1)->layout;
	f->m.process.runtime = pymake_take(&f->m, 1024);
}

TEST(test_php, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t leaf;

	php_begin(f);
	php_call(f, php_function(f, NULL, NULL, "/srv/a.php", 1), 41, true);
	php_call(f, php_function(f, NULL, "main", "/srv/a.php", 30), 33, false);
	php_call(f, php_function(f, NULL, "array_map", NULL, 0), 0, false);
	leaf = php_function(f, "Leaf", "leaf", "/srv/b.php", 7);
	php_call(f, leaf, 9, true);
	php_call(f, leaf, 10, false);
	for (int i = 0; i < 2; i++) {
		f->m.nr_calls = 0;
		assert_int_equal(chain(f), LANG_OK);
		assert_int_equal(f->chain.nr, 5);
		expect_frame(f, 0, "Leaf::leaf", "/srv/b.php", 10, false);
		expect_frame(f, 1, "Leaf::leaf", "/srv/b.php", 9, true);
		expect_frame(f, 2, "array_map", "[internal]", LANG_NO_INSTR, false);
		expect_frame(f, 3, "main", "/srv/a.php", 33, false);
		expect_frame(f, 4, "{main}", "/srv/a.php", 41, true);
		assert_true(f->chain.settled);
		assert_int_equal(f->chain.same, f->sample.sp + f->sample.stack_size);
	}
	/* All is known: frames; functions and lines; classes; strings; the stack again. */
	assert_in_range(f->m.nr_calls, 1, 5);
}

/* With threads each one has its globals behind its entry in a slot of a table. */
TEST(test_php_threads, setup, teardown)
{
	struct fixture *f = *state;
	const uint64_t offset = 64;
	uint64_t table, size, entry[2], self[2];

	php_begin(f);
	table = pymake_take(&f->m, 8 + 2 * 8);
	size = pymake_take(&f->m, 4);
	for (uint32_t i = 0; i < 2; i++) {
		entry[i] = pymake_take(&f->m, 1024);
		self[i] = pymake_take(&f->m, 0x2e0);
		pymake_u64(&f->m, self[i] + 16, self[i]);
		pymake_u32(&f->m, self[i] + 0x2d0, TID + i);
		pymake_u64(&f->m, entry[i] + ENTRY_THREAD, self[i]);
		f->m.process.runtime = entry[i] + offset;
		php_call(f, php_function(f, NULL, i ? "other" : "mine", "/srv/a.php", 3), 4, true);
	}
	/* The entry of this thread is the second one of the second slot. */
	pymake_u64(&f->m, entry[1] + ENTRY_NEXT, entry[0]);
	pymake_u64(&f->m, table, table + 8);
	pymake_u64(&f->m, table + 16, entry[1]);
	pymake_u32(&f->m, size, 2);
	f->m.process.runtime = size;
	f->m.process.code_type = table;
	f->m.process.php.current += offset;
	f->m.process.php.stack += offset;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(chain(f), LANG_OK);
		expect_frame(f, 0, "mine", "/srv/a.php", 4, true);
	}
	f->sample.tid = TID + 1;
	assert_int_equal(chain(f), LANG_OK);
	expect_frame(f, 0, "other", "/srv/a.php", 4, true);
	/* It has ended, and another thread has its entry. */
	pymake_u64(&f->m, entry[1] + ENTRY_THREAD, self[0]);
	assert_int_equal(chain(f), LANG_NO_THREAD);
	f->sample.tid = TID + 2;
	f->sample.time_ns += LANG_SEARCH_MAX_NS;
	pymake_u64(&f->m, entry[0] + ENTRY_NEXT, entry[1]); /* without an end */
	pymake_u32(&f->m, self[0] + 0x2d0, TID + 5);
	assert_int_equal(chain(f), LANG_NO_THREAD);
	assert_in_range(f->m.nr_calls, 1, 4 * TS_ENTRIES_MAX);
}

/*
 * A thread among others may have run on: its registers are of the sample. That they fit the
 * innermost frame is proven, in a call that is made and in a function in C as well.
 */
TEST(test_php_run_on, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t entry, self, table, size, op, func, caller, callee;

	php_begin(f);
	table = pymake_take(&f->m, 16);
	size = pymake_take(&f->m, 4);
	entry = f->m.process.runtime;
	self = pymake_take(&f->m, 0x2e0);
	pymake_u64(&f->m, self + 16, self);
	pymake_u32(&f->m, self + 0x2d0, TID);
	pymake_u64(&f->m, entry + ENTRY_THREAD, self);
	func = php_function(f, NULL, "f", "/srv/a.php", 3);
	caller = php_call(f, func, 4, true);
	memcpy(&op, pymake_at(&f->m, caller), 8);
	callee = php_call(f, php_function(f, NULL, "g", "/srv/a.php", 7), 8, false);
	pymake_u64(&f->m, table, table + 8);
	pymake_u64(&f->m, table + 8, entry);
	pymake_u32(&f->m, size, 1);
	f->m.process.runtime = size;
	f->m.process.code_type = table;
	/* As if it were in the caller, and in it with a statement of no function. */
	f->sample.loop[0] = caller;
	f->sample.loop[1] = op;
	assert_int_equal(chain(f), LANG_OK);
	assert_true(f->chain.broken);
	f->sample.loop[0] = callee;
	f->sample.loop[1] = op + 4096;
	assert_int_equal(chain(f), LANG_OK);
	assert_true(f->chain.broken);
	/* The callee has begun: the statement is that of the call. */
	f->sample.loop[1] = op;
	assert_int_equal(chain(f), LANG_OK);
	assert_false(f->chain.broken);
	/* The callee is about to begin. */
	pymake_u64(&f->m, entry + PHP_CURRENT, caller);
	assert_int_equal(chain(f), LANG_OK);
	assert_false(f->chain.broken);
	f->sample.loop[1] = op + 32;
	assert_int_equal(chain(f), LANG_OK);
	assert_true(f->chain.broken);
	/* In a function in C. */
	f->sample.loop[0] = caller;
	f->sample.loop[1] = op;
	php_call(f, php_function(f, NULL, "strlen", NULL, 0), 0, false);
	f->m.process.runtime = size;
	callee = f->m.frames - 112;
	pymake_u64(&f->m, callee + 48, caller);
	pymake_u64(&f->m, entry + PHP_CURRENT, callee);
	assert_int_equal(chain(f), LANG_OK);
	assert_false(f->chain.broken);
	f->sample.loop[1] = op + 32;
	assert_int_equal(chain(f), LANG_OK);
	assert_true(f->chain.broken);
	/* The first thread has none beside it, mostly. */
	f->sample.is_main = true;
	assert_int_equal(chain(f), LANG_OK);
	assert_false(f->chain.broken);
}

/* In the loop the statement is in a register; one of another function is none. */
TEST(test_php_statement, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t func, frame, op;

	php_begin(f);
	func = php_function(f, NULL, "f", "/srv/a.php", 3);
	frame = php_call(f, func, 4, true);
	op = pymake_take(&f->m, 64);
	pymake_u32(&f->m, func + 80, 2);
	pymake_u64(&f->m, func + 88, op);
	pymake_u32(&f->m, op + 32 + 24, 9);
	assert_int_equal(chain(f), LANG_OK);
	expect_frame(f, 0, "f", "/srv/a.php", LANG_NO_INSTR, true);
	f->sample.loop[0] = frame;
	f->sample.loop[1] = op + 32;
	assert_int_equal(chain(f), LANG_OK);
	expect_frame(f, 0, "f", "/srv/a.php", 9, true);
	f->sample.loop[1] = op + 64;
	assert_int_equal(chain(f), LANG_OK);
	expect_frame(f, 0, "f", "/srv/a.php", LANG_NO_INSTR, true);
	f->sample.loop[0] = frame + 8;
	f->sample.loop[1] = op;
	assert_int_equal(chain(f), LANG_OK);
	expect_frame(f, 0, "f", "/srv/a.php", LANG_NO_INSTR, true);
}

/* The root of a fiber is a function in C without a name. */
TEST(test_php_fiber, setup, teardown)
{
	struct fixture *f = *state;

	php_begin(f);
	php_call(f, php_function(f, NULL, NULL, "/srv/a.php", 1), 41, true);
	php_call(f, php_function(f, NULL, NULL, NULL, 0), 0, true);
	php_call(f, php_function(f, NULL, "in_fiber", "/srv/a.php", 5), 6, true);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.nr, 2);
	expect_frame(f, 0, "in_fiber", "/srv/a.php", 6, true);
	expect_frame(f, 1, "{main}", "/srv/a.php", 41, true);
}

/* A function in C that no loop called, as of a shutdown function, is no separate group. */
TEST(test_php_root_in_c, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t array_map, callback;

	php_begin(f);
	array_map = php_function(f, NULL, "array_map", NULL, 0);
	callback = php_function(f, NULL, "callback", "/srv/a.php", 5);
	php_call(f, array_map, 0, false);
	php_call(f, callback, 6, true);
	for (int fiber = 0; fiber < 2; fiber++) {
		assert_int_equal(chain(f), LANG_OK);
		assert_int_equal(f->chain.nr_here, fiber ? 2 : 0);
		expect_frame(f, 0, "callback", "/srv/a.php", 6, false);
		expect_frame(f, 1, "array_map", "[internal]", LANG_NO_INSTR, true);
		/* The same in a fiber. */
		pymake_u64(&f->m, f->m.process.runtime + PHP_CURRENT, 0);
		php_call(f, callback, 41, true);
		php_call(f, php_function(f, NULL, NULL, NULL, 0), 0, true);
		php_call(f, array_map, 0, false);
		php_call(f, callback, 6, true);
	}
}

/* A name without a hash is distinguished from another by its bytes. */
TEST(test_php_content, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t func, name;

	php_begin(f);
	func = php_function(f, NULL, "old", "/srv/a.php", 3);
	php_call(f, func, 4, true);
	memcpy(&name, pymake_at(&f->m, func + 8), 8);
	pymake_u64(&f->m, name + 8, 0);
	assert_int_equal(chain(f), LANG_OK);
	expect_frame(f, 0, "old", "/srv/a.php", 4, true);
	memcpy(pymake_at(&f->m, name + 24), "new", 3);
	assert_int_equal(chain(f), LANG_OK);
	expect_frame(f, 0, "new", "/srv/a.php", 4, true);
}

/* Another function at the same address is another function. */
TEST(test_php_reused, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t func;

	php_begin(f);
	func = php_function(f, NULL, "old", "/srv/a.php", 3);
	php_call(f, func, 4, true);
	chain(f);
	expect_frame(f, 0, "old", "/srv/a.php", 4, true);
	pymake_u64(&f->m, func + 8, php_text(f, "new"));
	chain(f);
	expect_frame(f, 0, "new", "/srv/a.php", 4, true);
}

TEST(test_php_none, setup, teardown)
{
	struct fixture *f = *state;

	php_begin(f);
	assert_int_equal(chain(f), LANG_NO_FRAMES);
}

TEST(test_php_cycle, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t func, frame;

	php_begin(f);
	func = php_function(f, NULL, "f", "/srv/a.php", 3);
	frame = php_call(f, func, 4, true);
	assert_int_equal(chain(f), LANG_OK);
	assert_false(f->chain.deep);
	/* As of more frames than have room: the innermost ones are kept. */
	pymake_u64(&f->m, frame + 48, frame);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.nr, LANG_INNER);
	assert_true(f->chain.deep);
	expect_frame(f, LANG_INNER - 1, "f", "/srv/a.php", LANG_NO_INSTR, true);
	/* Frames without a function count as steps. */
	pymake_u64(&f->m, frame + 24, 0);
	assert_int_equal(chain(f), LANG_NO_ROOM);
	/* A caller that cannot be read. */
	pymake_u64(&f->m, frame + 48, PYMAKE_BASE + PYMAKE_SIZE + 4096);
	assert_int_equal(chain(f), LANG_BAD_CHAIN);
	assert_int_equal(f->chain.nr, 0);
}

/*
 * Of more frames than have room some in the middle are left out: the outermost ones are found in
 * the first page of their stack, or else by all frames, if these are not too many.
 */
TEST(test_php_deep, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t page, func, main, first, broken = 0;

	php_begin(f);
	main = php_function(f, NULL, NULL, "/srv/main.php", 1);
	first = php_function(f, NULL, "first", "/srv/a.php", 2);
	func = php_function(f, NULL, "f", "/srv/a.php", 3);
	page = PYMAKE_BASE + 0x8000;
	f->m.frames = page + 32;
	for (int i = 0; i < 780; i++) {
		php_call(f, i > 1 ? func : i ? first : main, 4, !i);
		f->m.frames -= 32; /* of 80 bytes each */
		broken = i == 220 ? f->m.frames - 80 : broken;
	}
	for (int i = 0; i < 4; i++) {
		assert_int_equal(chain(f), LANG_OK);
		assert_true(f->chain.deep);
		expect_frame(f, 0, "f", "/srv/a.php", 4, false);
		if (i == 1) /* not at all */
			assert_int_equal(f->chain.nr, LANG_INNER);
		else
			expect_frame(f, f->chain.nr - 1, "{main}", "/srv/main.php", LANG_NO_INSTR,
				     true);
		if (i != 1)
			expect_frame(f, f->chain.nr - 2, "first", "/srv/a.php", LANG_NO_INSTR,
				     false);
		pymake_u64(&f->m, broken + 48, PYMAKE_BASE + PYMAKE_SIZE + 4096);
		pymake_u64(&f->m, f->m.process.runtime + PHP_CURRENT - 16, i ? page : 0);
		/* One that has ended, in the variables of another. */
		if (i == 2)
			pymake_u64(&f->m, page + 32 + 200 * 80 + 64, page + 32 + 100 * 80);
	}
	assert_int_equal(f->chain.nr, LANG_FRAMES_MAX);
}

/* A stack of many functions, as frameworks make them: texts are read over two samples. */
TEST(test_php_many, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t file, class, func;
	char name[16];

	php_begin(f);
	file = php_text(f, "/srv/a.php");
	class = pymake_take(&f->m, 64);
	pymake_u64(&f->m, class + 8, php_text(f, "C"));
	for (int i = 0; i < 180; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		func = php_function(f, NULL, name, NULL, 3);
		*pymake_at(&f->m, func) = 2;
		pymake_u64(&f->m, func + 16, class);
		pymake_u64(&f->m, func + 152, file);
		php_call(f, func, 4, !i);
	}
	assert_true(f->m.end < PYMAKE_BASE + 0x10000);
	chain(f);
	for (int i = 0; i < 3; i++) {
		f->m.nr_calls = 0;
		assert_int_equal(chain(f), LANG_OK);
		assert_int_equal(f->chain.nr, 180);
		assert_false(f->chain.deep);
		expect_frame(f, 0, "C::f179", "/srv/a.php", 4, false);
		expect_frame(f, 179, "C::f0", "/srv/a.php", 4, true);
	}
	assert_in_range(f->m.nr_calls, 1, 8);
}

TEST(test_php_wild, setup, teardown)
{
	struct fixture *f = *state;

	php_begin(f);
	expect_bounded(f);
}

/* ---- Ruby ---- */

#define RUBY_STACK_WORDS 1024U

struct ruby {
	uint64_t thread, ec, cfp;
};

static uint64_t ruby_text(struct fixture *f, const char *text)
{
	uint64_t at = f->m.process.ruby.string_text, v = pymake_take(&f->m, 40), bytes;
	uint32_t size = (uint32_t)strlen(text);

	if (size < 40 - at) {
		pymake_u32(&f->m, v, 5 | (at == 16 ? size << 14 : 0));
		if (at > 16)
			pymake_u64(&f->m, v + 16, size);
		memcpy(pymake_at(&f->m, v + at), text, size);
		return v;
	}
	bytes = pymake_take(&f->m, size);
	pymake_u32(&f->m, v, 5 | 1U << 13);
	pymake_u64(&f->m, v + 16, size);
	pymake_u64(&f->m, v + 24, bytes);
	memcpy(pymake_at(&f->m, bytes), text, size);
	return v;
}

static uint64_t ruby_iseq(struct fixture *f, const char *label, const char *path, uint32_t line)
{
	uint64_t iseq = pymake_take(&f->m, 40), body = pymake_take(&f->m, 160);
	uint64_t array = pymake_take(&f->m, 40);
	const struct ruby_layout *l = &f->m.process.ruby;

	pymake_u32(&f->m, iseq, 0x8701a);
	pymake_u64(&f->m, iseq + l->iseq_body, body);
	pymake_u32(&f->m, array, 7 | 1U << 13);
	pymake_u64(&f->m, array + 16, ruby_text(f, path));
	pymake_u64(&f->m, body + l->body_path, array);
	pymake_u64(&f->m, body + l->body_label, ruby_text(f, label));
	if (l->first_line_size == 8)
		pymake_u64(&f->m, body + l->body_first_line, 2 * line + 1);
	else
		pymake_u32(&f->m, body + l->body_first_line, line);
	return iseq;
}

/* @iseq 0: a method in C. */
static void ruby_call(struct fixture *f, struct ruby *r, uint64_t iseq, uint32_t flags)
{
	const struct ruby_layout *l = &f->m.process.ruby;
	uint64_t ep = pymake_take(&f->m, 8);

	r->cfp -= l->frame_size;
	pymake_u32(&f->m, ep, flags);
	pymake_u64(&f->m, r->cfp + l->frame_iseq, iseq);
	pymake_u64(&f->m, r->cfp + l->frame_ep, ep);
	pymake_u64(&f->m, r->ec + l->ec_cfp, r->cfp);
}

/* The id of a thread is in it, or in its native thread. */
static uint64_t ruby_tid(struct fixture *f, const struct ruby *r)
{
	const struct ruby_layout *l = &f->m.process.ruby;

	if (l->thread_tid != RUBY_ABSENT)
		return r->thread + l->thread_tid;
	return bytes_u64(pymake_at(&f->m, r->thread + l->thread_native)) + l->native_tid;
}

/* A VM of @version with one ractor with one thread, which has its root frame only. */
static void ruby_begin_version(struct fixture *f, struct ruby *r, uint32_t version)
{
	uint64_t vm = pymake_take(&f->m, 64), ractor = pymake_take(&f->m, 1024);
	const struct ruby_layout *l = &ruby_version(version)->layout;

	f->m.process.kind = LANG_RUBY;
	f->m.process.ruby = *l;
	f->m.process.runtime = pymake_take(&f->m, 8);
	r->thread = pymake_take(&f->m, 128);
	r->ec = pymake_take(&f->m, 256);
	pymake_u64(&f->m, r->ec + l->ec_c_stack, f->sample.sp + 4096);
	pymake_u64(&f->m, r->ec + l->ec_c_stack_size, 1 << 20);
	pymake_u64(&f->m, r->ec + l->ec_thread, r->thread);
	r->cfp = f->m.frames + 8 * RUBY_STACK_WORDS;
	pymake_u64(&f->m, f->m.process.runtime, vm);
	pymake_u64(&f->m, vm + l->ractors, ractor + l->ractor_node);
	pymake_u64(&f->m, ractor + l->ractor_node, vm + l->ractors);
	pymake_u64(&f->m, ractor + l->ractor_threads, r->thread + l->thread_node);
	pymake_u64(&f->m, r->thread + l->thread_node, ractor + l->ractor_threads);
	pymake_u64(&f->m, r->thread + l->thread_ec, r->ec);
	pymake_u64(&f->m, r->thread + l->thread_vm, vm);
	if (l->thread_tid == RUBY_ABSENT)
		pymake_u64(&f->m, r->thread + l->thread_native, pymake_take(&f->m, 64));
	pymake_u32(&f->m, ruby_tid(f, r), TID);
	pymake_u64(&f->m, r->ec + l->ec_stack, f->m.frames);
	pymake_u64(&f->m, r->ec + l->ec_stack_words, RUBY_STACK_WORDS);
	ruby_call(f, r, ruby_iseq(f, "<main>", "/srv/a.rb", 1), 0x7999082f);
}

static void ruby_begin(struct fixture *f, struct ruby *r)
{
	ruby_begin_version(f, r, 0x03010200);
}

/* In code of YJIT a frame that is being made may have the function of another one. */
static void check_ruby_compiled(struct fixture *f, uint32_t version)
{
	static const struct {
		uint8_t code[8];
		bool settled;
	} codes[] = {
		{ { 0x49, 0x89, 0x45, 0x10 }, false },
		{ { 0x90, 0x49, 0xc7, 0x45, 0x10 }, false },
		{ { 0x49, 0x83, 0xed, 0x40, 0x49, 0x89, 0x45, 0x10 }, true },
		{ { 0x90 }, true },
	};
	struct ruby r;

	ruby_begin_version(f, &r, version);
	f->m.process.version = version;
	ruby_call(f, &r, ruby_iseq(f, "main", "/srv/a.rb", 30), 0x77770025);
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		f->sample.pc = pymake_take(&f->m, 64);
		memcpy(pymake_at(&f->m, f->sample.pc), codes[i].code, sizeof(codes[i].code));
		assert_int_equal(chain(f), LANG_OK);
		assert_int_equal(f->chain.settled, codes[i].settled && version == 0x03010200);
	}
	/* In the file of the loop. */
	f->m.process.eval[0].start = f->sample.pc - 4096;
	assert_int_equal(chain(f), LANG_OK);
	assert_true(f->chain.settled);
}

TEST(test_ruby_compiled, setup, teardown)
{
	check_ruby_compiled(*state, 0x03010200);
}

TEST(test_ruby_compiled_later, setup, teardown)
{
	check_ruby_compiled(*state, 0x03030800);
}

static void check_ruby(struct fixture *f, uint32_t version)
{
	struct ruby r;

	ruby_begin_version(f, &r, version);
	assert_int_equal(chain(f), LANG_NO_FRAMES);
	ruby_call(f, &r, ruby_iseq(f, "<main>", "/srv/a.rb", 1), 0x77770025);
	ruby_call(f, &r, ruby_iseq(f, "main", "/srv/a.rb", 30), 0x11110003);
	ruby_call(f, &r, 0, 0x55550083);
	ruby_call(f, &r, r.thread, 0x66660083); /* a block in C */
	ruby_call(f, &r, ruby_iseq(f, "block in main", "/srv/a/long/path/of/a/file.rb", 33),
		  0x22220021);
	ruby_call(f, &r, ruby_iseq(f, "a method with a name that is long", "/srv/a.rb", 7),
		  0x11110003);
	for (int i = 0; i < 2; i++) {
		f->m.nr_calls = 0;
		assert_int_equal(chain(f), LANG_OK);
		assert_int_equal(f->chain.nr, 4);
		expect_frame(f, 0, "a method with a name that is long", "/srv/a.rb", LANG_NO_INSTR,
			     false);
		expect_frame(f, 1, "block in main", "/srv/a/long/path/of/a/file.rb", LANG_NO_INSTR,
			     true);
		expect_frame(f, 2, "main", "/srv/a.rb", LANG_NO_INSTR, false);
		expect_frame(f, 3, "<main>", "/srv/a.rb", LANG_NO_INSTR, true);
		assert_int_equal(
			script_functions_at(f->reader->codes, f->chain.frames[2].code)->first_line,
			30);
		assert_int_equal(f->chain.same, f->sample.sp + f->sample.stack_size);
	}
	assert_in_range(f->m.nr_calls, 1, 8);
}

/* Each row of the table; an unknown version has none. */
#define RUBY_TEST(name, version)                                                                   \
	TEST(name, setup, teardown)                                                                \
	{                                                                                          \
		check_ruby(*state, version);                                                       \
	}
RUBY_TEST(test_ruby, 0x03010200)
RUBY_TEST(test_ruby_3_2, 0x03020b00)
RUBY_TEST(test_ruby_3_3, 0x03030800)
RUBY_TEST(test_ruby_3_4, 0x03040b00)
RUBY_TEST(test_ruby_4_0, 0x04000500)
RUBY_TEST(test_ruby_4_0_6, 0x04000600)

TEST(test_ruby_versions)
{
	static const uint32_t unknown[] = { 0, 0x02070000, 0x03000000, 0x03050000 };

	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++)
		assert_null(ruby_version(unknown[i]));
	/* A later one may be like the newest. */
	assert_int_equal(ruby_version(0x05000000)->layout.ractor_node, 368);
	assert_int_equal(ruby_version(0x04000500)->layout.ractor_node, 360);
	assert_int_equal(ruby_version(0x0400ff00)->layout.ractor_node, 368);
}

/* A context that belongs to another thread is none of the sample's. */
TEST(test_ruby_untrusted_context, setup, teardown)
{
	struct fixture *f = *state;
	struct ruby r;

	ruby_begin_version(f, &r, 0x03030800);
	ruby_call(f, &r, ruby_iseq(f, "<main>", "/srv/a.rb", 1), 0x77770025);
	assert_int_equal(chain(f), LANG_OK);
	pymake_u64(&f->m, r.ec + f->m.process.ruby.ec_thread, r.thread + 8);
	assert_int_equal(chain(f), LANG_BAD_CHAIN);
}

/* The index of instructions at @at, words from the first one, as Ruby makes it. */
static uint32_t ruby_index(uint8_t *out, const uint32_t *at, uint32_t nr, uint32_t words)
{
	uint32_t size = rubylines_index_size(words), rank = 0;

	memset(out, 0, size);
	for (uint32_t pos = 0; pos < MAX(words, 54U); pos++) {
		uint32_t bit = (pos - 54) % 512;
		uint8_t *block = out + 48 + (pos - 54) / 512 * 80;
		bool begins = rank < nr && at[rank] == pos;
		uint64_t word;

		if (pos >= 54 && !bit)
			memcpy(block, &rank, 4);
		if (pos >= 54 && bit && !(bit % 64)) {
			word = bytes_u64(block + 8) | (uint64_t)(rank - bytes_u32(block))
							      << 9 * (bit / 64 - 1);
			memcpy(block + 8, &word, 8);
		}
		rank += begins;
		if (pos >= 54) {
			word = bytes_u64(block + 16 + bit / 64 * 8) | (uint64_t)begins << bit % 64;
			memcpy(block + 16 + bit / 64 * 8, &word, 8);
		} else if (8 * (pos / 9) < size) {
			word = bytes_u64(out + 8 * (pos / 9)) | (uint64_t)rank << 7 * (pos % 9);
			memcpy(out + 8 * (pos / 9), &word, 8);
		}
	}
	return size;
}

/* Each position of code of any size has the line of the instruction that it is in. */
TEST(test_ruby_lines)
{
	static uint8_t index[4096], table[16384];
	uint32_t at[1400];

	for (uint32_t words = 1; words < 3000; words += words / 7 + 1) {
		uint32_t nr = 0, size;

		for (uint32_t pos = 0; pos < words && nr < ARRAY_SIZE(at); pos += 1 + nr * 7 % 4)
			at[nr++] = pos;
		size = ruby_index(index, at, nr, words);
		rubylines_begin(table, nr, index, size);
		for (uint32_t i = 0; i < nr; i++) {
			uint8_t entry[RUBYLINES_ENTRY] = { (uint8_t)(10 + i), (10 + i) >> 8 };

			rubylines_set(table, i, entry);
		}
		size = rubylines_size(nr, size);
		for (uint32_t pos = 0, i = 0; pos < words; pos++) {
			i += i + 1 < nr && at[i + 1] == pos;
			assert_int_equal(rubyline_of(table, size, pos), 10 + i);
		}
		/* A table that is cut, and wild bytes. */
		for (uint32_t cut = 0; cut < size; cut += 1 + cut / 9)
			rubyline_of(table, cut, words - 1);
		table[size / 2] ^= 0xff;
		for (uint32_t pos = 0; pos < words + 600; pos++)
			rubyline_of(table, size, pos);
	}
	assert_int_equal(rubyline_of(table, 0, 0), 0);
}

/* The line of each frame by its instruction; none beyond the code. */
TEST(test_ruby_instructions, setup, teardown)
{
	static const uint32_t at[] = { 0, 2, 5, 9 };
	struct fixture *f = *state;
	uint64_t iseq, body, entries, index;
	const struct code_text *text;
	uint8_t bytes[64];
	struct ruby r;

	ruby_begin(f, &r);
	iseq = ruby_iseq(f, "<main>", "/srv/a.rb", 1);
	body = bytes_u64(pymake_at(&f->m, iseq + 16));
	entries = pymake_take(&f->m, sizeof(at) / 4 * 12);
	index = pymake_take(&f->m, sizeof(bytes));
	for (uint32_t i = 0; i < ARRAY_SIZE(at); i++)
		pymake_u32(&f->m, entries + 12ULL * i, 20 + i);
	ruby_index(bytes, at, ARRAY_SIZE(at), 12);
	memcpy(pymake_at(&f->m, index), bytes, rubylines_index_size(12));
	pymake_u32(&f->m, body + 4, 12);
	pymake_u64(&f->m, body + 8, 0x10000);
	pymake_u64(&f->m, body + 120, entries);
	pymake_u32(&f->m, body + 136, ARRAY_SIZE(at));
	pymake_u64(&f->m, body + 144, index);
	ruby_call(f, &r, iseq, 0x77770025);
	pymake_u64(&f->m, r.cfp, 0x10000 + 8 * 9);
	ruby_call(f, &r, iseq, 0x11110003);
	pymake_u64(&f->m, r.cfp, 0x10000);
	ruby_call(f, &r, iseq, 0x11110003);
	pymake_u64(&f->m, r.cfp, 0x10000 + 8 * 13);
	assert_int_equal(chain(f), LANG_OK);
	expect_frame(f, 0, "<main>", "/srv/a.rb", LANG_NO_INSTR, false);
	expect_frame(f, 1, "<main>", "/srv/a.rb", 0, false);
	/* The instruction before the next one. */
	expect_frame(f, 2, "<main>", "/srv/a.rb", 8, true);
	text = script_functions_at(f->reader->codes, f->chain.frames[0].code);
	assert_int_equal(rubyline_of(text->table, text->table_size, 0), 20);
	assert_int_equal(rubyline_of(text->table, text->table_size, 8), 22);
	assert_int_equal(rubyline_of(text->table, text->table_size, 9), 23);
	/* The code of another eval() at the same address. */
	pymake_u32(&f->m, body + 136, 2);
	pymake_u32(&f->m, entries, 40);
	assert_int_equal(chain(f), LANG_OK);
	text = script_functions_at(f->reader->codes, f->chain.frames[0].code);
	assert_int_equal(rubyline_of(text->table, text->table_size, 0), 40);
}

TEST(test_ruby_unknown_thread, setup, teardown)
{
	struct fixture *f = *state;
	struct ruby r;

	ruby_begin(f, &r);
	f->sample.tid = TID + 1;
	assert_int_equal(chain(f), LANG_NO_THREAD);
	/* The thread is another one by now. */
	f->sample.tid = TID;
	f->sample.time_ns += LANG_SEARCH_NS;
	assert_int_equal(chain(f), LANG_NO_FRAMES);
	pymake_u32(&f->m, r.thread + 88, TID + 2);
	assert_int_equal(chain(f), LANG_NO_THREAD);
}

/* A forked process: its main thread has the id of the parent's thread. */
TEST(test_ruby_forked, setup, teardown)
{
	struct fixture *f = *state;
	struct ruby r;

	ruby_begin(f, &r);
	ruby_call(f, &r, ruby_iseq(f, "worker", "/srv/a.rb", 1), 0x77770025);
	f->sample.tid = TID + 1;
	/* Threads that were made later have their ids. */
	assert_int_equal(chain(f), LANG_NO_THREAD);
	f->sample.is_main = true;
	f->sample.time_ns += LANG_SEARCH_NS;
	assert_int_equal(chain(f), LANG_OK);
	expect_frame(f, 0, "worker", "/srv/a.rb", LANG_NO_INSTR, true);
	/* The id is set. */
	pymake_u32(&f->m, r.thread + 88, TID + 1);
	assert_int_equal(chain(f), LANG_OK);
	/* A list without a thread. */
	pymake_u64(&f->m, bytes_u64(pymake_at(&f->m, r.thread)),
		   bytes_u64(pymake_at(&f->m, r.thread)));
	pymake_u32(&f->m, r.thread + 88, TID + 2);
	assert_int_equal(chain(f), LANG_NO_THREAD);
}

/* A new thread on the task of one that has ended, which is not in the list any more. */
TEST(test_ruby_task_reused, setup, teardown)
{
	struct fixture *f = *state;
	struct ruby r;
	uint64_t head, ended, ec;

	ruby_begin(f, &r);
	ruby_call(f, &r, ruby_iseq(f, "ended", "/srv/a.rb", 1), 0x77770025);
	assert_int_equal(chain(f), LANG_OK);
	ended = r.thread;
	ec = r.ec;
	head = bytes_u64(pymake_at(&f->m, ended));
	for (uint32_t at = 0; at < 24; at += 8)
		pymake_u64(&f->m, ec + at, 0);
	r.thread = pymake_take(&f->m, 128);
	r.ec = pymake_take(&f->m, 256);
	memcpy(pymake_at(&f->m, r.thread), pymake_at(&f->m, ended), 128);
	memcpy(pymake_at(&f->m, r.ec), pymake_at(&f->m, ec), 256);
	pymake_u64(&f->m, r.thread + 40, r.ec);
	pymake_u64(&f->m, r.ec + 48, r.thread);
	pymake_u64(&f->m, r.ec, f->m.frames);
	pymake_u64(&f->m, r.ec + 8, RUBY_STACK_WORDS);
	r.cfp = f->m.frames + 8 * RUBY_STACK_WORDS;
	ruby_call(f, &r, ruby_iseq(f, "new", "/srv/a.rb", 1), 0x77770025);
	pymake_u64(&f->m, head, r.thread);
	assert_int_equal(chain(f), LANG_OK);
	expect_frame(f, 0, "new", "/srv/a.rb", LANG_NO_INSTR, true);
	/* Its context was freed. */
	pymake_u64(&f->m, r.thread + 40, 0);
	assert_int_equal(chain(f), LANG_NO_THREAD);
}

/* The C stack is another one while the thread changes to another fiber. */
TEST(test_ruby_fiber, setup, teardown)
{
	struct fixture *f = *state;
	struct ruby r;

	ruby_begin(f, &r);
	ruby_call(f, &r, ruby_iseq(f, "<main>", "/srv/a.rb", 1), 0x77770025);
	pymake_u64(&f->m, r.ec + 144, f->sample.sp + f->sample.stack_size - 8);
	assert_int_equal(chain(f), LANG_OK);
	assert_true(f->chain.rooted);
	pymake_u64(&f->m, r.ec + 144, f->sample.sp + (1 << 20));
	assert_int_equal(chain(f), LANG_OK);
	assert_false(f->chain.rooted);
	pymake_u64(&f->m, r.ec + 144, f->sample.sp + (1 << 20) + 1);
	assert_int_equal(chain(f), LANG_MISMATCH);
	pymake_u64(&f->m, r.ec + 144, f->sample.sp - 8);
	assert_int_equal(chain(f), LANG_MISMATCH);
}

TEST(test_ruby_hostile, setup, teardown)
{
	struct fixture *f = *state;
	struct ruby r;

	ruby_begin(f, &r);
	chain(f);
	/* Frames outside of the stack. */
	pymake_u64(&f->m, r.ec + 16, r.cfp + 4096);
	assert_int_equal(chain(f), LANG_BAD_CHAIN);
	pymake_u64(&f->m, r.ec + 16, r.cfp - 8);
	assert_int_equal(chain(f), LANG_BAD_CHAIN);
	pymake_u64(&f->m, r.ec + 8, UINT64_MAX / 16);
	assert_int_equal(chain(f), LANG_BAD_CHAIN);
	pymake_u64(&f->m, r.ec + 8, RUBY_STACK_WORDS);
	/* Threads in a circle that leaves out the head. */
	f->sample.tid = TID + 1;
	pymake_u64(&f->m, r.thread, r.thread);
	f->m.nr_calls = 0;
	assert_int_equal(chain(f), LANG_NO_THREAD);
	assert_in_range(f->m.nr_calls, 1, 600);
}

TEST(test_ruby_deep, setup, teardown)
{
	struct fixture *f = *state;
	struct ruby r;
	uint64_t iseq;

	ruby_begin(f, &r);
	iseq = ruby_iseq(f, "f", "/srv/a.rb", 3);
	ruby_call(f, &r, ruby_iseq(f, "first", "/srv/a.rb", 1), 0x11110003);
	for (int i = 0; i < 511; i++)
		ruby_call(f, &r, iseq, 0x11110003);
	ruby_call(f, &r, ruby_iseq(f, "leaf", "/srv/a.rb", 7), 0x11110003);
	assert_int_equal(chain(f), LANG_OK);
	assert_true(f->chain.deep);
	assert_int_equal(f->chain.nr, LANG_FRAMES_MAX - 1); /* the root has no function */
	expect_frame(f, 0, "leaf", "/srv/a.rb", LANG_NO_INSTR, false);
	expect_frame(f, LANG_FRAMES_MAX - 3, "f", "/srv/a.rb", LANG_NO_INSTR, false);
	expect_frame(f, LANG_FRAMES_MAX - 2, "first", "/srv/a.rb", LANG_NO_INSTR, false);
}

TEST(test_ruby_wild, setup, teardown)
{
	struct fixture *f = *state;
	struct ruby r;

	ruby_begin(f, &r);
	chain(f); /* its thread is known */
	expect_bounded(f);
}

/* ---- Perl ---- */

struct perl {
	uint64_t interp, stack, contexts;
	uint32_t nr;
};

static uint64_t perl_hek(struct fixture *f, const char *text)
{
	uint64_t hek = pymake_take(&f->m, 8 + (uint32_t)strlen(text) + 1);

	pymake_u32(&f->m, hek, (uint32_t)hash_u64(hek));
	pymake_u32(&f->m, hek + 4, (uint32_t)strlen(text));
	memcpy(pymake_at(&f->m, hek + 8), text, strlen(text));
	return hek;
}

static uint64_t perl_sv(struct fixture *f, uint32_t flags, uint32_t body_size)
{
	uint64_t sv = pymake_take(&f->m, 24);

	pymake_u64(&f->m, sv, pymake_take(&f->m, body_size));
	pymake_u32(&f->m, sv + 12, flags);
	return sv;
}

static uint64_t perl_body(struct fixture *f, uint64_t sv)
{
	uint64_t body;

	memcpy(&body, pymake_at(&f->m, sv), 8);
	return body;
}

static uint64_t perl_file(struct fixture *f, const char *file)
{
	uint64_t addr = pymake_take(&f->m, 256);

	memcpy(pymake_at(&f->m, addr), file, strlen(file));
	return addr;
}

/* @named: without a glob. */
static uint64_t perl_sub(struct fixture *f, const char *package, const char *name, bool named)
{
	uint64_t cv = perl_sv(f, 13, 128), gv = perl_sv(f, 9, 48);
	uint64_t stash = perl_sv(f, 12 | 0x02000000U, 128), body = perl_body(f, cv);

	pymake_u64(&f->m, perl_body(f, stash) + 32, perl_hek(f, package));
	pymake_u64(&f->m, perl_body(f, gv) + 32, perl_hek(f, name));
	pymake_u64(&f->m, perl_body(f, gv) + 40, stash);
	pymake_u64(&f->m, body + 32, named ? stash : 0);
	pymake_u64(&f->m, body + 56, named ? perl_hek(f, name) : gv);
	pymake_u64(&f->m, body + 64, perl_file(f, "/srv/a.pl"));
	pymake_u32(&f->m, body + 92, named ? 0x8000 : 0);
	return cv;
}

static uint64_t perl_cop(struct fixture *f, uint32_t line)
{
	uint64_t cop = pymake_take(&f->m, 96);

	pymake_u32(&f->m, cop + 36, line);
	pymake_u64(&f->m, cop + 48, perl_file(f, "/srv/main.pl"));
	return cop;
}

/* A context of @type; a sub is called at @line of its caller, and from C without @retop. */
static void perl_push(struct fixture *f, struct perl *p, uint8_t type, uint64_t cv, uint32_t line,
		      uint64_t retop)
{
	uint64_t context = p->contexts + 104UL * p->nr;

	*pymake_at(&f->m, context) = type;
	pymake_u64(&f->m, context + 16, perl_cop(f, line));
	pymake_u64(&f->m, context + 48, retop);
	pymake_u64(&f->m, context + 72, cv);
	pymake_u32(&f->m, p->stack + 32, p->nr++);
}

/* Begin a stack of contexts. */
static void perl_stack(struct fixture *f, struct perl *p)
{
	uint64_t previous = p->stack;

	p->stack = pymake_take(&f->m, 64);
	p->contexts = pymake_take(&f->m, 104 * 8);
	p->nr = 0;
	pymake_u64(&f->m, p->stack + 8, p->contexts);
	pymake_u64(&f->m, p->stack + 16, previous);
	pymake_u32(&f->m, p->stack + 32, UINT32_MAX);
	pymake_u64(&f->m, p->interp + 224, p->stack);
}

static void perl_begin(struct fixture *f, struct perl *p)
{
	*p = (struct perl){ .stack = 0 };
	f->m.process.kind = LANG_PERL;
	f->m.process.runtime = pymake_take(&f->m, 8);
	p->interp = pymake_take(&f->m, 4096);
	pymake_u64(&f->m, f->m.process.runtime, p->interp);
	pymake_u64(&f->m, p->interp + 208, perl_cop(f, 9));
	pymake_u64(&f->m, f->sample.sp + 512, p->interp);
	perl_stack(f, p);
}

TEST(test_perl, setup, teardown)
{
	struct fixture *f = *state;
	struct perl p;

	perl_begin(f, &p);
	perl_push(f, &p, 2, 0, 1, 0); /* a block */
	perl_push(f, &p, 9, perl_sub(f, "main", "main", false), 41, 8);
	perl_stack(f, &p);
	perl_push(f, &p, 9, perl_sub(f, "Cart", "total", true), 33, 0);
	perl_push(f, &p, 9, perl_sub(f, "Cart", "leaf", false), 20, 8);
	perl_push(f, &p, 9, 0, 21, 8); /* being popped */
	for (int i = 0; i < 2; i++) {
		f->m.nr_calls = 0;
		assert_int_equal(chain(f), LANG_OK);
		assert_int_equal(f->chain.nr, 4);
		expect_frame(f, 0, "Cart::leaf", "/srv/a.pl", 9, false);
		expect_frame(f, 1, "Cart::total", "/srv/a.pl", 20, true);
		expect_frame(f, 2, "main::main", "/srv/a.pl", 33, false);
		expect_frame(f, 3, "{main}", "/srv/main.pl", 41, true);
		assert_int_equal(f->chain.same, f->sample.sp + f->sample.stack_size);
	}
	assert_in_range(f->m.nr_calls, 1, LANG_CALLS_MAX - 4);
	/* Called by a block, as of sort(), for which C runs a loop. */
	pymake_u64(&f->m, p.contexts + 48, 8);
	assert_int_equal(chain(f), LANG_OK);
	expect_frame(f, 0, "Cart::leaf", "/srv/a.pl", 9, false);
	expect_frame(f, 1, "Cart::total", "/srv/a.pl", 20, true);
}

/* A path that goes on in the next page, and one that ends with the memory. */
/* Code that C calls again and again; a block of sort() has no sub. */
TEST(test_perl_again, setup, teardown)
{
	struct fixture *f = *state;
	struct perl p;

	perl_begin(f, &p);
	perl_push(f, &p, 9, perl_sub(f, "main", "main", false), 41, 8);
	perl_stack(f, &p);
	perl_push(f, &p, 9, perl_sub(f, "Cart", "by_price", false), 33, 0);
	perl_push(f, &p, 2, 0, 1, 0);
	for (uint32_t type = 0; type < 12; type++) {
		pymake_u32(&f->m, p.stack + 44, type);
		assert_int_equal(chain(f), LANG_OK);
		assert_int_equal(f->chain.nr, 3);
		assert_int_equal(f->chain.loops.lack,
				 type == 3 || type == 10 ? LANG_LACK_IDLE : LANG_LACK_NONE);
	}
	pymake_u32(&f->m, p.stack + 32, 0);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.loops.lack, LANG_LACK_BEGUN);
	/* A sub that it has called runs. */
	pymake_u32(&f->m, p.stack + 44, 3);
	perl_push(f, &p, 9, perl_sub(f, "Cart", "price", false), 20, 8);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.nr, 4);
	assert_int_equal(f->chain.loops.lack, LANG_LACK_NONE);
	/* A block: also if C has called the sub, so that it has a loop as well. */
	*pymake_at(&f->m, p.contexts) = 0;
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.nr, 3);
	expect_frame(f, 0, "Cart::price", "/srv/a.pl", 9, true);
	pymake_u64(&f->m, p.contexts + 208 + 48, 0);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.frames[0].boundary, 2);
	assert_int_equal(f->chain.loops.nr, 0);
	pymake_u32(&f->m, p.stack + 32, 0);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.nr, 2);
	assert_int_equal(f->chain.loops.nr, 1);
	assert_int_equal(f->chain.loops.lack, LANG_LACK_IDLE);
	/* Of two that may not run it is not known which one does. */
	perl_stack(f, &p);
	perl_push(f, &p, 9, perl_sub(f, "Cart", "bool", false), 35, 0);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.frames[0].boundary, 2);
	assert_int_equal(f->chain.loops.lack, LANG_LACK_NONE);
}

/* The last operation of a block calls a sub: both are in the loop of the block. */
TEST(test_perl_last_call, setup, teardown)
{
	struct fixture *f = *state;
	struct perl p;

	perl_begin(f, &p);
	perl_push(f, &p, 9, perl_sub(f, "main", "main", false), 41, 8);
	perl_stack(f, &p);
	perl_push(f, &p, 0, 0, 33, 0);
	perl_push(f, &p, 9, perl_sub(f, "Cart", "by_price", false), 20, 0);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.nr, 3);
	assert_int_equal(f->chain.frames[0].boundary, 1);
}

/* The jump buffers of eval {} in code that C calls, and of calls that catch. */
TEST(test_perl_inner, setup, teardown)
{
	struct fixture *f = *state;
	struct perl p;
	uint64_t first, run = f->sample.sp + 400, catching = f->sample.sp + 304, inner;

	perl_begin(f, &p);
	first = p.interp + 768;
	inner = f->sample.sp + 200;
	pymake_u64(&f->m, p.interp + 760, inner);
	pymake_u64(&f->m, inner, catching);
	pymake_u64(&f->m, catching, run);
	pymake_u64(&f->m, run, first);
	perl_push(f, &p, 9, perl_sub(f, "main", "main", false), 41, 8);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.loops.inner[0], 0); /* C has called nothing */
	perl_push(f, &p, 11, 0, 3, 0);
	pymake_u64(&f->m, p.contexts + 104 + 96, run);
	perl_push(f, &p, 9, perl_sub(f, "main", "called", false), 0, 0);
	perl_push(f, &p, 2, 0, 1, 0);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.loops.inner[0], inner);
	assert_int_equal(f->chain.loops.inner[1], run);
	assert_int_equal(f->chain.loops.inner[2], 0);
	assert_int_equal(f->chain.loops.call, 0);
	pymake_u64(&f->m, p.interp + 8, f->sample.sp + 104);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.loops.call, f->sample.sp + 104);
	/* Of another version. */
	pymake_u64(&f->m, p.interp + 760, 0);
	pymake_u64(&f->m, p.interp + 776, inner);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.loops.inner[0], 0);
	pymake_u64(&f->m, run, first + 16);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.loops.inner[0], inner);
	assert_int_equal(f->chain.loops.inner[1], run);
	/* A ring of them, and one that ends elsewhere. */
	pymake_u64(&f->m, run, inner);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.loops.inner[0], 0);
	pymake_u64(&f->m, inner, 7);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.loops.inner[0], 0);
}

TEST(test_perl_page, setup, teardown)
{
	static const char path[] = "/srv/a/long/path.pl";
	struct fixture *f = *state;
	struct perl p;
	uint64_t cv, body, at = PYMAKE_BASE + PYMAKE_SIZE - 4096;

	perl_begin(f, &p);
	cv = perl_sub(f, "main", "f", false);
	perl_push(f, &p, 9, cv, 3, 8);
	memcpy(&body, pymake_at(&f->m, cv), 8);
	for (uint64_t begin = 1; begin < sizeof(path) + 8; begin++) {
		memcpy(pymake_at(&f->m, at - begin), path, sizeof(path));
		pymake_u64(&f->m, body + 64, at - begin);
		assert_int_equal(chain(f), LANG_OK);
		expect_frame(f, 0, "main::f", path, 9, false);
	}
	at = PYMAKE_BASE + PYMAKE_SIZE - sizeof(path);
	memcpy(pymake_at(&f->m, at), path, sizeof(path));
	pymake_u64(&f->m, body + 64, at);
	assert_int_equal(chain(f), LANG_OK);
	expect_frame(f, 0, "main::f", path, 9, false);
}

/* The thread runs another interpreter than the first one, which is known by its stack; or none. */
TEST(test_perl_other, setup, teardown)
{
	struct fixture *f = *state;
	struct perl p;
	uint64_t values;

	perl_begin(f, &p);
	perl_push(f, &p, 9, perl_sub(f, "Cart", "leaf", false), 20, 0);
	values = pymake_take(&f->m, 256);
	pymake_u64(&f->m, p.interp, values + 64);
	pymake_u64(&f->m, p.interp + 24, values);
	pymake_u64(&f->m, p.interp + 32, values + 248);
	pymake_u64(&f->m, f->m.process.runtime, p.interp + 4096);
	f->m.process.eval[0] = (struct lang_range){ LOOP, LOOP + 64 };
	f->m.process.nr_eval = 1;
	/* Its address is an argument of one function only. */
	pymake_u64(&f->m, f->sample.sp + 640, LOOP + 8);
	assert_int_equal(chain(f), LANG_NO_THREAD);
	/* The thread does not run the loop. */
	pymake_u64(&f->m, f->sample.sp + 640, 0);
	pymake_u64(&f->m, f->sample.sp + 768, p.interp);
	assert_int_equal(chain(f), LANG_NO_THREAD);
	pymake_u64(&f->m, f->sample.sp + 640, LOOP + 8);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(chain(f), LANG_OK);
		assert_int_equal(f->chain.nr, 2);
		assert_false(f->chain.broken);
		expect_frame(f, 0, "Cart::leaf", "/srv/a.pl", 9, true);
	}
	/* Two of them: a guess. */
	f->sample.tid++;
	memcpy(pymake_at(&f->m, pymake_take(&f->m, 512)), pymake_at(&f->m, p.interp), 512);
	pymake_u64(&f->m, f->sample.sp + 520, f->m.end - 512);
	pymake_u64(&f->m, f->sample.sp + 528, f->m.end - 512);
	assert_int_equal(chain(f), LANG_OK);
	assert_true(f->chain.broken);
	/* Its values end outside of their stack. */
	pymake_u64(&f->m, p.interp, values + 256);
	pymake_u64(&f->m, f->sample.sp + 528, 0);
	assert_int_equal(chain(f), LANG_NO_THREAD);
}

TEST(test_perl_hostile, setup, teardown)
{
	struct fixture *f = *state;
	struct perl p;
	uint64_t cv;

	perl_begin(f, &p);
	/* No sub. */
	perl_push(f, &p, 9, p.stack, 3, 8);
	assert_int_equal(chain(f), LANG_BAD_CHAIN);
	cv = perl_sub(f, "main", "f", false);
	pymake_u64(&f->m, p.contexts + 72, cv);
	assert_int_equal(chain(f), LANG_OK);
	assert_false(f->chain.deep);
	/* Too many contexts; a stack that is its own caller: with frames, without them. */
	pymake_u32(&f->m, p.stack + 32, 1U << 30);
	assert_int_equal(chain(f), LANG_BAD_CHAIN);
	pymake_u32(&f->m, p.stack + 32, INT32_MAX);
	assert_int_equal(chain(f), LANG_BAD_CHAIN);
	pymake_u32(&f->m, p.stack + 32, 1U << 31);
	assert_int_equal(chain(f), LANG_BAD_CHAIN);
	pymake_u32(&f->m, p.stack + 32, 0);
	pymake_u64(&f->m, p.stack + 16, p.stack);
	assert_int_equal(chain(f), LANG_OK);
	assert_true(f->chain.deep);
	assert_int_equal(f->chain.nr, 32);
	pymake_u32(&f->m, p.stack + 32, UINT32_MAX);
	assert_int_equal(chain(f), LANG_NO_ROOM);
}

/* Of more frames than have room some in the middle are left out. */
TEST(test_perl_deep, setup, teardown)
{
	struct fixture *f = *state;
	struct perl p;
	uint64_t cv, caller, first, cop;

	perl_begin(f, &p);
	cop = perl_cop(f, 30);
	cv = perl_sub(f, "main", "leaf", false);
	caller = perl_sub(f, "main", "f", false);
	first = perl_sub(f, "main", "first", false);
	pymake_u64(&f->m, p.stack + 8, pymake_take(&f->m, 104 * 700));
	p.contexts = bytes_u64(pymake_at(&f->m, p.stack + 8));
	for (int i = 0; i < 700; i++) {
		*pymake_at(&f->m, p.contexts + 104UL * i) = 9;
		pymake_u64(&f->m, p.contexts + 104UL * i + 16, cop);
		pymake_u64(&f->m, p.contexts + 104UL * i + 48, 8);
		pymake_u64(&f->m, p.contexts + 104UL * i + 72, i ? caller : first);
	}
	for (int i = 0; i < 4; i++) {
		static const uint32_t nr[] = { 600, 700, 511, 512 };

		pymake_u32(&f->m, p.stack + 32, nr[i] - 1);
		pymake_u64(&f->m, p.contexts + 104UL * (nr[i] - 1) + 72, cv);
		assert_int_equal(chain(f), LANG_OK);
		assert_int_equal(f->chain.deep, nr[i] > 511);
		assert_int_equal(f->chain.nr, LANG_FRAMES_MAX);
		expect_frame(f, 0, "main::leaf", "/srv/a.pl", 9, false);
		expect_frame(f, LANG_FRAMES_MAX - 3, "main::f", "/srv/a.pl", LANG_NO_INSTR, false);
		expect_frame(f, LANG_FRAMES_MAX - 2, "main::first", "/srv/a.pl", LANG_NO_INSTR,
			     false);
		expect_frame(f, LANG_FRAMES_MAX - 1, "{main}", "/srv/main.pl", LANG_NO_INSTR, true);
		pymake_u64(&f->m, p.contexts + 104UL * (nr[i] - 1) + 72, caller);
	}
}

TEST(test_perl_wild, setup, teardown)
{
	struct fixture *f = *state;
	struct perl p;

	perl_begin(f, &p);
	expect_bounded(f);
}

/* ---- Lua ---- */

static const struct lua_row {
	uint32_t minor, patch;
	struct lua_layout layout;
} lua_rows[] = {
#define LUA_FIELD(name, value)
#define LUA_LAYOUT(major, minor, patch, compared, ...) { minor, patch, { __VA_ARGS__ } },
#include "symbols/script/lua_layouts.inc"
#undef LUA_FIELD
#undef LUA_LAYOUT
};

#define LUA_INSNS    12U
#define LUA_CALL_AT  4U /* the number of the call in each function */
#define LUA_SETJMP   1024U
#define LUA_REGISTER 2U /* that the call is of */

struct lua {
	const struct lua_layout *l;
	uint64_t state, global, ci, slot; /* slot: in the stack, of the next function */
	uint64_t base_ci;
	uint32_t setjmp; /* of the next state */
};

static uint64_t lua_string(struct fixture *f, const struct lua *u, const char *text)
{
	uint64_t addr = pymake_take(&f->m, 64);

	*pymake_at(&f->m, addr + 8) = 4;
	if (u->l->string_short_size == 0xffff)
		pymake_u64(&f->m, addr + u->l->string_size, strlen(text));
	else
		*pymake_at(&f->m, addr + u->l->string_short_size) = (uint8_t)strlen(text);
	memcpy(pymake_at(&f->m, addr + u->l->string_text), text, strlen(text));
	return addr;
}

/*
 * A function that calls the global "NAME" by its instruction LUA_CALL_AT; each instruction is on
 * another line.
 */
static uint64_t lua_proto(struct fixture *f, const struct lua *u, const char *source, uint32_t line,
			  const char *name)
{
	const struct lua_layout *l = u->l;
	uint64_t proto = pymake_take(&f->m, 256), code = pymake_take(&f->m, 4 * LUA_INSNS);
	uint64_t lines = pymake_take(&f->m, 4 * LUA_INSNS), constant = pymake_take(&f->m, 16);
	uint32_t a = LUA_REGISTER << l->op_bits;

	*pymake_at(&f->m, proto + 8) = (uint8_t)l->proto_type;
	pymake_u64(&f->m, proto + l->proto_source, lua_string(f, u, source));
	pymake_u32(&f->m, proto + l->proto_line, line);
	pymake_u64(&f->m, proto + l->proto_code, code);
	pymake_u32(&f->m, proto + l->proto_nr_code, LUA_INSNS);
	pymake_u64(&f->m, proto + l->proto_lines, lines);
	pymake_u32(&f->m, proto + l->proto_nr_lines, LUA_INSNS);
	pymake_u64(&f->m, proto + l->proto_constants, constant);
	pymake_u32(&f->m, proto + l->proto_nr_constants, 1);
	pymake_u64(&f->m, constant, lua_string(f, u, name));
	*pymake_at(&f->m, constant + 8) = 4;
	for (uint32_t i = 0; i < LUA_INSNS; i++) {
		if (l->proto_marks == 0xffff)
			pymake_u32(&f->m, lines + 4UL * i, line + i + 1);
		else
			*pymake_at(&f->m, lines + i) = 1;
		pymake_u32(&f->m, code + 4UL * i, l->op_jump | 131071U << 14);
	}
	pymake_u32(&f->m, code + 4UL * LUA_CALL_AT, l->op_call | a);
	pymake_u32(&f->m, code + 4UL * (LUA_CALL_AT - 1),
		   l->op_getglobal != 0xffff
			   ? l->op_getglobal | a
			   : l->op_gettabup | a | (l->op_bits == 6 ? 256U << l->pos_c : 0));
	return proto;
}

/* Begin a state, resumed by the one before. */
static void lua_state(struct fixture *f, struct lua *u)
{
	const struct lua_layout *l = u->l;
	uint64_t stack = pymake_take(&f->m, 2048);

	u->state = pymake_take(&f->m, 512);
	u->base_ci = l->ci_previous == 0xffff ? pymake_take(&f->m, 16U * l->ci_size)
					      : u->state + l->state_base_ci;
	u->ci = u->base_ci;
	u->slot = stack + 16;
	*pymake_at(&f->m, u->state + 8) = 8;
	pymake_u64(&f->m, u->state + l->state_global, u->global);
	pymake_u64(&f->m, u->state + l->state_stack, stack);
	pymake_u64(&f->m, u->state + l->state_ci, u->ci);
	pymake_u64(&f->m, u->state + l->state_error, f->sample.sp + u->setjmp);
	pymake_u64(&f->m, f->sample.sp + u->setjmp + 240, u->state);
	if (l->ci_previous == 0xffff)
		pymake_u64(&f->m, u->state + l->state_base_ci, u->base_ci);
	u->setjmp -= 512;
}

/* Call @proto, which is at instruction @at; 0: a function in C. */
static void lua_call(struct fixture *f, struct lua *u, uint64_t proto, uint32_t at, bool fresh)
{
	const struct lua_layout *l = u->l;
	bool array = l->ci_previous == 0xffff;
	uint64_t ci = array ? u->ci + l->ci_size : pymake_take(&f->m, l->ci_size);
	uint64_t closure = pymake_take(&f->m, 64), code, slot;
	uint32_t status = (proto ? l->is_lua : l->is_c) | (fresh ? l->is_fresh : l->is_reentry);

	/* The register of the caller's instruction. */
	slot = fresh ? u->slot + 128 : u->slot + 16 + 16ULL * LUA_REGISTER;
	u->slot = slot;
	pymake_u64(&f->m, slot, closure);
	*pymake_at(&f->m, closure + 8) = 6;
	*pymake_at(&f->m, closure + 10) = !proto;
	pymake_u64(&f->m, closure + l->closure_proto, proto);
	pymake_u64(&f->m, ci + l->ci_function, slot);
	if (l->ci_base != 0xffff)
		pymake_u64(&f->m, ci + l->ci_base, slot + 16);
	if (proto) {
		code = bytes_u64(pymake_at(&f->m, proto + l->proto_code));
		pymake_u64(&f->m, ci + l->ci_pc, code + 4ULL * at + 4);
	}
	if (array)
		pymake_u64(&f->m, u->state + l->state_pc,
			   bytes_u64(pymake_at(&f->m, ci + l->ci_pc)));
	else
		pymake_u64(&f->m, ci + l->ci_previous, u->ci);
	if (l->ci_status != 0xffff)
		*pymake_at(&f->m, ci + l->ci_status) = (uint8_t)status;
	pymake_u64(&f->m, u->state + l->state_ci, ci);
	u->ci = ci;
}

static void lua_begin(struct fixture *f, struct lua *u, const struct lua_row *row)
{
	memset(&f->m, 0, sizeof(f->m));
	f->m.end = PYMAKE_BASE + 4096;
	f->m.process.kind = LANG_LUA;
	f->m.process.lua = row->layout;
	f->m.process.runtime = pymake_take(&f->m, 64);
	f->m.process.eval[0] = (struct lang_range){ LOOP, LOOP + 4096 };
	f->m.process.nr_eval = 1;
	f->sample.pc = LOOP + 600;
	f->sample.process++;
	*u = (struct lua){ .l = &row->layout, .setjmp = LUA_SETJMP };
	u->global = pymake_take(&f->m, 512);
	lua_state(f, u);
	pymake_u64(&f->m, u->global + u->l->global_main, u->state);
}

/* Names by the caller's instruction, lines, and runs of the loop: each version. */
TEST(test_lua, setup, teardown)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(lua_rows); i++) {
		const struct lua_layout *l = &lua_rows[i].layout;
		bool each = !l->is_fresh && !l->is_reentry && l->ci_status != 0xffff;
		struct lua u;
		uint64_t leaf, pc;

		lua_begin(f, &u, &lua_rows[i]);
		leaf = lua_proto(f, &u, "@/srv/a.lua", 20, "none");
		lua_call(f, &u, 0, 0, true);
		lua_call(f, &u, lua_proto(f, &u, "@/srv/a.lua", 0, "outer"), LUA_CALL_AT, true);
		lua_call(f, &u, lua_proto(f, &u, "@/srv/a.lua", 40, "sort"), LUA_CALL_AT, false);
		lua_call(f, &u, 0, 0, true); /* sort(), which calls */
		lua_call(f, &u, lua_proto(f, &u, "@/srv/a.lua", 60, "leaf"), LUA_CALL_AT, true);
		lua_call(f, &u, leaf, 1, false);
		/* In the loop that is in a register. */
		pc = bytes_u64(pymake_at(&f->m, leaf + l->proto_code)) + 4 * 7;
		f->sample.loop[1] = pc;
		for (int round = 0; round < 2; round++) {
			f->m.nr_calls = 0;
			assert_int_equal(chain(f), LANG_OK);
			assert_int_equal(f->chain.nr, 4);
			assert_int_equal(f->chain.broken, false);
			expect_frame(f, 0, "leaf", "/srv/a.lua", l->keeps_pc ? 22 : 27, each);
			expect_frame(f, 1, "<a.lua:60>", "/srv/a.lua", 65, true);
			expect_frame(f, 2, "outer", "/srv/a.lua", 45, each);
			expect_frame(f, 3, "main chunk", "/srv/a.lua", 5, true);
			assert_int_equal(f->chain.same, f->sample.sp + f->sample.stack_size);
		}
		assert_in_range(f->m.nr_calls, 1, LANG_CALLS_MAX - 4);
	}
}

/* A coroutine that runs, the one that resumed it, and one that waits. */
TEST(test_lua_coroutine, setup, teardown)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(lua_rows); i++) {
		struct lua u, outer;
		uint64_t waiting;

		lua_begin(f, &u, &lua_rows[i]);
		lua_call(f, &u, lua_proto(f, &u, "=stdin", 0, "f"), LUA_CALL_AT, true);
		lua_call(f, &u, 0, 0, true); /* resume() */
		outer = u;
		lua_state(f, &u);
		lua_call(f, &u, lua_proto(f, &u, "local x = 1\nreturn x", 7, "g"), LUA_CALL_AT,
			 true);
		for (int round = 0; round < 2; round++) {
			assert_int_equal(chain(f), LANG_OK);
			assert_int_equal(f->chain.nr, 2);
			expect_frame(f, 0, "<local x = 1:7>", "local x = 1",
				     u.l->keeps_pc ? 12 : LANG_NO_INSTR, true);
			expect_frame(f, 1, "main chunk", "stdin", 5, true);
		}
		/* It has yielded: its address is still on the stack. */
		waiting = u.state + u.l->state_error;
		pymake_u64(&f->m, waiting, 0);
		assert_int_equal(chain(f), LANG_OK);
		assert_int_equal(f->chain.nr, 1);
		/* No state runs on this stack. */
		pymake_u64(&f->m, outer.state + u.l->state_error, 0);
		assert_int_equal(chain(f), LANG_NO_THREAD);
		/* Nor does the loop: no state is looked for. */
		f->sample.pc = 0;
		f->m.nr_calls = 0;
		assert_int_equal(chain(f), LANG_NO_FRAMES);
		assert_int_equal(f->m.nr_calls, 0);
	}
}

/* A call that is being made has the parts of an earlier one: it is left out, and the rest is no
 * fact. */
TEST(test_lua_being_made, setup, teardown)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(lua_rows); i++) {
		const struct lua_layout *l = &lua_rows[i].layout;
		uint64_t leaf, middle;
		struct lua u;

		/* Each call of 5.4.0 and 5.4.1 has a loop. */
		if (!l->is_fresh && !l->is_reentry && l->ci_status != 0xffff)
			continue;
		lua_begin(f, &u, &lua_rows[i]);
		leaf = lua_proto(f, &u, "@a.lua", 20, "none");
		middle = lua_proto(f, &u, "@a.lua", 40, "leaf");
		lua_call(f, &u, lua_proto(f, &u, "@a.lua", 0, "f"), LUA_CALL_AT, true);
		lua_call(f, &u, middle, LUA_CALL_AT, false);
		u.slot += 160;
		lua_call(f, &u, leaf, 1, false);
		assert_int_equal(chain(f), LANG_OK);
		assert_int_equal(f->chain.broken, true);
		assert_int_equal(f->chain.nr, 2);
		expect_frame(f, 0, "f", "a.lua", 45, false);
	}
}

/* ---- R ---- */

static const struct r_layout r_rows[] = {
#define R_FIELD(name, value)
#define R_LAYOUT(major, minor, compared, ...) { __VA_ARGS__ },
#include "symbols/script/r_layouts.inc"
#undef R_FIELD
#undef R_LAYOUT
};

enum { R_SYMBOL = 1, R_PAIR = 2, R_CLOSURE = 3, R_CALL = 6, R_BUILTIN = 8, R_CHARS = 9 };

#define R_CONTEXT 480U

struct r {
	const struct r_layout *l;
	uint64_t last; /* context */
};

/* A node with two parts. */
static uint64_t r_node(struct fixture *f, uint8_t type, uint64_t first, uint64_t second)
{
	uint64_t addr = pymake_take(&f->m, 56);

	*pymake_at(&f->m, addr) = type;
	pymake_u64(&f->m, addr + 32, first);
	pymake_u64(&f->m, addr + 40, second);
	return addr;
}

static uint64_t r_symbol(struct fixture *f, const char *text)
{
	uint64_t chars = pymake_take(&f->m, 48 + (uint32_t)strlen(text) + 1);

	*pymake_at(&f->m, chars) = R_CHARS;
	pymake_u64(&f->m, chars + 32, strlen(text));
	memcpy(pymake_at(&f->m, chars + 48), text, strlen(text));
	return r_node(f, R_SYMBOL, chars, 0);
}

/* "LEFT::NAME", as code. */
static uint64_t r_pair(struct fixture *f, const char *left, const char *op, const char *name)
{
	uint64_t last = r_node(f, R_PAIR, r_symbol(f, name), 0);

	return r_node(f, R_CALL, r_symbol(f, op), r_node(f, R_PAIR, r_symbol(f, left), last));
}

/* Begin a context at @at of the stack. */
static void r_put(struct fixture *f, struct r *u, uint64_t addr, uint32_t flag, uint64_t function,
		  uint64_t called)
{
	pymake_u64(&f->m, addr + u->l->next, u->last);
	pymake_u32(&f->m, addr + u->l->flag, flag);
	pymake_u64(&f->m, addr + u->l->function, function);
	pymake_u64(&f->m, addr + u->l->call, r_node(f, R_CALL, called, 0));
	u->last = addr;
	pymake_u64(&f->m, f->m.process.runtime, addr);
}

static uint64_t r_closure(struct fixture *f)
{
	return r_node(f, R_CLOSURE, 0, r_node(f, R_CALL, 0, 0));
}

static void r_begin(struct fixture *f, struct r *u, const struct r_layout *l)
{
	memset(&f->m, 0, sizeof(f->m));
	f->m.end = PYMAKE_BASE + 4096;
	f->m.process.kind = LANG_R;
	f->m.process.r = *l;
	f->m.process.runtime = pymake_take(&f->m, 64);
	f->m.process.code_type = LOOP;
	f->sample.pc = LOOP + 4096;
	f->sample.is_main = true;
	f->sample.process++;
	*u = (struct r){ .l = l };
	/* That of the top level is none of the stack. */
	r_put(f, u, pymake_take(&f->m, R_CONTEXT), 0, 0, 0);
}

/* Calls by symbols, by `::` and `$`, without a name; of built-in functions and loops; inlined. */
TEST(test_r, setup, teardown)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(r_rows); i++) {
		uint64_t sp = f->sample.sp, fib, inlined;
		struct r u;

		r_begin(f, &u, &r_rows[i]);
		fib = r_closure(f);
		r_put(f, &u, sp + 3504, 12, r_closure(f), r_pair(f, "stats", "::", "lm"));
		r_put(f, &u, sp + 3000, 12, r_closure(f), r_pair(f, "self", "$", "run"));
		r_put(f, &u, sp + 2504, 12, r_node(f, R_BUILTIN, 0, 0), r_symbol(f, "eval"));
		r_put(f, &u, sp + 2000, 3, 0, 0);
		r_put(f, &u, sp + 1504, 20, fib, r_symbol(f, "fib"));
		for (int n = 0; n < 2; n++) {
			inlined = pymake_take(&f->m, R_CONTEXT);
			pymake_u64(&f->m, inlined + u.l->place, sp + 1104);
			r_put(f, &u, inlined, 12, fib, r_symbol(f, n ? "FUN" : "fib"));
		}
		r_put(f, &u, sp + 200, 12, r_closure(f), r_node(f, R_CALL, fib, 0));
		for (int round = 0; round < 2; round++) {
			f->m.nr_calls = 0;
			assert_int_equal(chain(f), LANG_OK);
			assert_int_equal(f->chain.nr, 6);
			assert_int_equal(f->chain.broken, false);
			expect_frame(f, 0, "<anonymous>", "?", LANG_NO_INSTR, true);
			expect_frame(f, 1, "FUN", "?", LANG_NO_INSTR, false);
			expect_frame(f, 2, "fib", "?", LANG_NO_INSTR, true);
			expect_frame(f, 3, "fib", "?", LANG_NO_INSTR, true);
			expect_frame(f, 4, "self$run", "?", LANG_NO_INSTR, true);
			expect_frame(f, 5, "stats::lm", "?", LANG_NO_INSTR, true);
			assert_int_equal(f->chain.frames[0].boundary, sp + 200);
			assert_int_equal(f->chain.frames[2].boundary, sp + 1104);
			assert_int_equal(f->chain.frames[3].boundary, sp + 1504);
		}
		assert_in_range(f->m.nr_calls, 1, 6);
		/* While a context is made, nothing is a fact. */
		f->sample.pc = LOOP + 100;
		assert_int_equal(chain(f), LANG_OK);
		assert_int_equal(f->chain.broken, true);
	}
}

/* Chains without an end, parts of other types, another thread. */
TEST(test_r_hostile, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t sp = f->sample.sp;
	struct r u;

	r_begin(f, &u, &r_rows[0]);
	assert_int_equal(chain(f), LANG_NO_FRAMES);
	r_put(f, &u, sp + 1000, 12, r_closure(f), r_symbol(f, "f"));
	f->sample.is_main = false;
	assert_int_equal(chain(f), LANG_NO_FRAMES);
	f->sample.is_main = true;
	/* A cycle on the stack, then one of contexts that are inlined. */
	pymake_u64(&f->m, sp + 1000 + u.l->next, sp + 1000);
	assert_int_equal(chain(f), LANG_BAD_CHAIN);
	u.last = pymake_take(&f->m, R_CONTEXT);
	r_put(f, &u, u.last, 12, r_closure(f), r_symbol(f, "f"));
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.nr, LANG_FRAMES_MAX);
	assert_int_equal(f->chain.deep, true);
	/* The callee is no call. */
	pymake_u64(&f->m, u.last + u.l->call, r_closure(f));
	assert_int_equal(chain(f), LANG_BAD_CHAIN);
	pymake_u64(&f->m, u.last + u.l->function, 3);
	assert_int_equal(chain(f), LANG_BAD_CHAIN);
	expect_bounded(f);
}

/* ---- LuaJIT ---- */

static const struct luajit_layout luajit_rows[] = {
#define LUAJIT_FIELD(name, value)
#define LUAJIT_LAYOUT(release, compared, ...) { __VA_ARGS__ },
#include "symbols/script/luajit_layouts.inc"
#undef LUAJIT_FIELD
#undef LUAJIT_LAYOUT
};

#define JIT_INSNS   12U
#define JIT_CALL_AT 4U
#define JIT_A	    3U /* the register of the call */
#define JIT_FRAME   256U

struct luajit {
	const struct luajit_layout *l;
	uint64_t state, global, stack, base, c_frame;
};

/* A function that calls the global @name by its instruction JIT_CALL_AT; each is on another line.
 */
static uint64_t luajit_function(struct fixture *f, const struct luajit *u, uint32_t line,
				const char *name)
{
	const struct luajit_layout *l = u->l;
	uint64_t proto = pymake_take(&f->m, l->proto_size + 4 * JIT_INSNS);
	uint64_t function = pymake_take(&f->m, 64), lines = pymake_take(&f->m, 64);
	uint64_t source = pymake_take(&f->m, 64), text = pymake_take(&f->m, 64);
	uint64_t constants = pymake_take(&f->m, 64) + 32, code = proto + l->proto_size;

	*pymake_at(&f->m, source + 9) = *pymake_at(&f->m, text + 9) = 4;
	pymake_u32(&f->m, source + l->string_length, 6);
	memcpy(pymake_at(&f->m, source + l->string_text), "@a.lua", 6);
	pymake_u32(&f->m, text + l->string_length, (uint32_t)strlen(name));
	memcpy(pymake_at(&f->m, text + l->string_text), name, strlen(name));
	pymake_u64(&f->m, constants - 8, text);
	*pymake_at(&f->m, proto + 9) = 7;
	pymake_u32(&f->m, proto + l->proto_nr_code, JIT_INSNS);
	pymake_u64(&f->m, proto + l->proto_constants, constants);
	pymake_u64(&f->m, proto + l->proto_source, source);
	pymake_u32(&f->m, proto + l->proto_line, line);
	pymake_u64(&f->m, proto + l->proto_lines, lines);
	for (uint32_t i = 1; i < JIT_INSNS; i++)
		*pymake_at(&f->m, lines + i - 1) = (uint8_t)i;
	pymake_u32(&f->m, code + 4UL * (JIT_CALL_AT - 1), l->op_getglobal | JIT_A << 8);
	pymake_u32(&f->m, code + 4UL * JIT_CALL_AT, l->op_call | JIT_A << 8);
	*pymake_at(&f->m, function + 9) = 8;
	pymake_u64(&f->m, function + l->function_pc, code);
	return function;
}

static uint64_t luajit_pc(struct fixture *f, const struct luajit *u, uint64_t function,
			  uint32_t insn)
{
	return bytes_u64(pymake_at(&f->m, function + u->l->function_pc)) + 4ULL * insn + 4;
}

/* Put the frame of @function at @base, with this link. */
static void luajit_put(struct fixture *f, struct luajit *u, uint64_t base, uint64_t function,
		       uint64_t link)
{
	pymake_u64(&f->m, base - 16, function | (uint64_t)-9 << 47);
	pymake_u64(&f->m, base - 8, link);
	u->base = base;
}

/* Begin a state with @function, in the C frame at @at of the stack. */
static void luajit_state(struct fixture *f, struct luajit *u, uint32_t at, uint64_t function)
{
	const struct luajit_layout *l = u->l;

	u->state = pymake_take(&f->m, 128);
	u->stack = pymake_take(&f->m, 2048);
	u->c_frame = f->sample.sp + at;
	*pymake_at(&f->m, u->state + 9) = 6;
	pymake_u64(&f->m, u->state + l->state_global, u->global);
	pymake_u64(&f->m, u->state + l->state_stack, u->stack);
	pymake_u32(&f->m, u->state + l->state_stack_size, 256);
	pymake_u64(&f->m, u->state + l->state_frame, u->c_frame | 1);
	pymake_u64(&f->m, u->c_frame + l->frame_state, u->state);
	luajit_put(f, u, u->stack + 48, function, 32 | 5);
	pymake_u64(&f->m, u->state + l->state_base, u->base);
}

static void luajit_begin(struct fixture *f, struct luajit *u, const struct luajit_layout *l)
{
	memset(&f->m, 0, sizeof(f->m));
	f->m.end = PYMAKE_BASE + 4096;
	f->m.process.kind = LANG_LUAJIT;
	f->m.process.luajit = *l;
	f->m.process.runtime = pymake_take(&f->m, 64);
	f->m.process.eval[0] = (struct lang_range){ LOOP, LOOP + 4096 };
	f->m.process.nr_eval = 1;
	f->sample.process++;
	*u = (struct luajit){ .l = l };
	u->global = pymake_take(&f->m, 512);
	pymake_u32(&f->m, u->global + l->global_vm, UINT32_MAX);
}

/* Call @function by instruction JIT_CALL_AT of @caller. */
static void luajit_call(struct fixture *f, struct luajit *u, uint64_t caller, uint64_t function)
{
	luajit_put(f, u, u->base + 8 * (2 + JIT_A), function, luajit_pc(f, u, caller, JIT_CALL_AT));
}

/* The interpreter has its frame and instruction in registers, or in memory below calls of C. */
TEST(test_luajit, setup, teardown)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(luajit_rows); i++) {
		const uint64_t sp = f->sample.sp;
		uint64_t main, leaf, code;
		struct luajit u;

		luajit_begin(f, &u, &luajit_rows[i]);
		main = luajit_function(f, &u, 0, "leaf");
		leaf = luajit_function(f, &u, 20, "none");
		luajit_state(f, &u, 0, main);
		pymake_u64(&f->m, u.global + u.l->global_main, u.state);
		luajit_call(f, &u, main, leaf);
		f->sample.pc = LOOP + 600;
		f->sample.loop[0] = u.base;
		f->sample.loop[1] = luajit_pc(f, &u, leaf, 6);
		for (int round = 0; round < 2; round++) {
			assert_int_equal(chain(f), LANG_OK);
			assert_int_equal(f->chain.nr, 2);
			assert_int_equal(f->chain.broken, false);
			expect_frame(f, 0, "leaf", "a.lua", 26, false);
			expect_frame(f, 1, "main chunk", "a.lua", 4, true);
			assert_int_equal(f->chain.frames[1].boundary, u.c_frame);
		}
		/* The call ends: its caller's instruction. */
		f->sample.loop[1] = luajit_pc(f, &u, main, JIT_CALL_AT);
		assert_int_equal(chain(f), LANG_OK);
		assert_int_equal(f->chain.broken, true);
		/* The stack pointer is that of another frame. */
		f->sample.loop[1] = luajit_pc(f, &u, leaf, 6);
		pymake_u64(&f->m, u.state + u.l->state_frame, sp + 64);
		pymake_u64(&f->m, sp + 64 + u.l->frame_state, u.state);
		assert_int_equal(chain(f), LANG_OK);
		assert_int_equal(f->chain.broken, true);
		/* In C: the base is in memory, if the code stored it. */
		code = pymake_take(&f->m, 128);
		f->m.process.eval[0] = (struct lang_range){ code, code + 128 };
		f->sample.pc = 0;
		pymake_u64(&f->m, sp + 64 - 8, code + 100);
		pymake_u64(&f->m, u.state + u.l->state_base, u.base);
		pymake_u64(&f->m, sp + 64 + u.l->frame_pc, luajit_pc(f, &u, leaf, 3));
		assert_int_equal(chain(f), LANG_OK);
		assert_int_equal(f->chain.broken, true);
		memcpy(pymake_at(&f->m, code + 80), "\x48\x89\x55\x20", 4);
		assert_int_equal(chain(f), LANG_OK);
		assert_int_equal(f->chain.broken, false);
		expect_frame(f, 0, "leaf", "a.lua", 23, false);
		memcpy(pymake_at(&f->m, code + 90), "\x48\x89\xd5", 3);
		assert_int_equal(chain(f), LANG_OK);
		assert_int_equal(f->chain.broken, true);
		/* Compiled code began in the main chunk. */
		pymake_u32(&f->m, u.global + u.l->global_vm, 1);
		pymake_u64(&f->m, u.global + u.l->global_base, u.stack + 48);
		assert_int_equal(chain(f), LANG_OK);
		assert_int_equal(f->chain.nr, 1);
		assert_int_equal(f->chain.broken, true);
		expect_frame(f, 0, "main chunk", "a.lua", LANG_NO_INSTR, true);
		assert_in_range(f->m.nr_calls, 1, LANG_CALLS_MAX - 4);
	}
}

/* A coroutine that C resumed: the state of the last sample has a C frame too. */
TEST(test_luajit_coroutine, setup, teardown)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(luajit_rows); i++) {
		uint64_t main, function;
		struct luajit u, outer;

		luajit_begin(f, &u, &luajit_rows[i]);
		main = luajit_function(f, &u, 0, "none");
		function = luajit_function(f, &u, 30, "none");
		luajit_state(f, &u, JIT_FRAME, main);
		pymake_u64(&f->m, u.global + u.l->global_main, u.state);
		outer = u;
		pymake_u64(&f->m, outer.c_frame + u.l->frame_pc, luajit_pc(f, &u, main, 2));
		/* main alone first: it is the state that is tried then. */
		f->sample.pc = 0;
		assert_int_equal(chain(f), LANG_OK);
		assert_int_equal(f->chain.nr, 1);
		luajit_state(f, &u, 0, function);
		f->sample.pc = LOOP + 600;
		f->sample.loop[0] = u.base;
		f->sample.loop[1] = luajit_pc(f, &u, function, 5);
		for (int round = 0; round < 2; round++) {
			assert_int_equal(chain(f), LANG_OK);
			assert_int_equal(f->chain.nr, 2);
			assert_int_equal(f->chain.broken, false);
			expect_frame(f, 0, "<a.lua:30>", "a.lua", 35, true);
			expect_frame(f, 1, "main chunk", "a.lua", 2, true);
			assert_int_equal(f->chain.frames[0].boundary, u.c_frame);
			assert_int_equal(f->chain.frames[1].boundary, outer.c_frame);
		}
	}
}

TEST(test_lua_wild, setup, teardown)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(lua_rows); i++) {
		struct lua u;

		lua_begin(f, &u, &lua_rows[i]);
		for (uint64_t step = 0; step < 50; step++) {
			/* Wild, but for the state that runs. */
			spoil(f, f->m.process.runtime, step);
			*pymake_at(&f->m, u.state + 8) = 8;
			pymake_u64(&f->m, u.state + u.l->state_error, f->sample.sp + LUA_SETJMP);
			pymake_u64(&f->m, f->sample.sp + LUA_SETJMP + 240, u.state);
			f->m.nr_calls = 0;
			if (chain(f) == LANG_OK)
				assert_in_range(f->chain.nr, 1, LANG_FRAMES_MAX);
			assert_in_range(f->m.nr_calls, 1, 2 * LANG_CALLS_MAX);
		}
	}
}

/* ---- BEAM ---- */

enum { BEAM_HEAP = 0xc000, BEAM_END = 0xd000, BEAM_SCHEDULER = 0xe000, BEAM_REGISTERS = 0x18400 };

struct beam {
	uint64_t process, modules, function[2],
		exit; /* exit: return address to the end of a process */
};

static uint64_t beam_atom(struct fixture *f, uint64_t segment, uint32_t index, const char *text)
{
	uint32_t size = (uint32_t)strlen(text);
	uint64_t atom = pymake_take(&f->m, 40), chars = pymake_take(&f->m, size + 1);

	memcpy(pymake_at(&f->m, chars), text, size);
	pymake_u32(&f->m, atom + 24, size);
	pymake_u64(&f->m, atom + 32, chars);
	pymake_u64(&f->m, segment + 8UL * index, atom);
	return (uint64_t)index << 6 | 0x0b;
}

static void beam_word(struct fixture *f, uint64_t at, uint64_t value)
{
	pymake_u64(&f->m, PYMAKE_BASE + at, value);
}

/* A module of Elixir with two functions, and a process with a call of each on its stack. */
static void beam_begin(struct fixture *f, struct beam *b)
{
	struct lang_process *p = &f->m.process;
	uint64_t segment, module, atoms[3];

	memset(&f->m, 0, sizeof(f->m));
	f->m.end = PYMAKE_BASE + 4096;
	p->kind = LANG_BEAM;
	p->beam.atoms = pymake_take(&f->m, 8);
	p->beam.functions = 96;
	p->runtime = pymake_take(&f->m, 96);
	segment = pymake_take(&f->m, 64);
	pymake_u64(&f->m, p->beam.atoms, segment);
	atoms[0] = beam_atom(f, segment, 0, "Elixir.Enum");
	atoms[1] = beam_atom(f, segment, 1, "map");
	atoms[2] = beam_atom(f, segment, 2, "-sum/1-fun-0-");
	b->process = pymake_take(&f->m, 1024);
	b->modules = pymake_take(&f->m, 16);
	module = pymake_take(&f->m, 1024);
	p->code_type = module;
	b->exit = module - 64;
	pymake_u64(&f->m, module, 2);
	for (uint32_t i = 0; i < 2; i++) {
		b->function[i] = module + 256 + 256 * i;
		pymake_u64(&f->m, module + 96 + 8 * i, b->function[i]);
		pymake_u64(&f->m, b->function[i] + 16, atoms[0]);
		pymake_u64(&f->m, b->function[i] + 24, atoms[1 + i]);
		pymake_u64(&f->m, b->function[i] + 32, 2 - i);
	}
	pymake_u64(&f->m, module + 112, module + 768);
	pymake_u64(&f->m, b->modules, module);
	pymake_u64(&f->m, b->modules + 8, module + 800);
	pymake_u64(&f->m, p->runtime + 32, b->modules);
	pymake_u64(&f->m, p->runtime + 40, 1);
	pymake_u64(&f->m, b->process + 80, PYMAKE_BASE + BEAM_HEAP + 64);
	pymake_u64(&f->m, b->process + 88, PYMAKE_BASE + BEAM_END - 64);
	pymake_u64(&f->m, b->process + 128, PYMAKE_BASE + BEAM_HEAP);
	pymake_u64(&f->m, b->process + 136, PYMAKE_BASE + BEAM_END);
	pymake_u64(&f->m, b->process + 512, PYMAKE_BASE + BEAM_SCHEDULER);
	beam_word(f, BEAM_SCHEDULER, PYMAKE_BASE + BEAM_REGISTERS);
	beam_word(f, BEAM_SCHEDULER + 72, b->process);
	/* Atoms and a list between the return addresses. */
	for (uint64_t at = BEAM_END - 64; at < BEAM_END; at += 8)
		beam_word(f, at, 0x3b);
	beam_word(f, BEAM_END - 48, b->function[1] + 100);
	beam_word(f, BEAM_END - 40, PYMAKE_BASE + BEAM_HEAP + 17);
	beam_word(f, BEAM_END - 24, b->function[0] + 200);
	beam_word(f, BEAM_END - 8, b->exit);
	f->sample.process++;
	f->sample.r13 = b->process;
	f->sample.fp = 0;
}

static void beam_expect(struct fixture *f, uint32_t nr, bool broken)
{
	/* The first sample finds the thread. */
	if (chain(f) != LANG_OK)
		assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.nr, nr);
	assert_int_equal(f->chain.broken, broken);
	expect_frame(f, nr - 1, "Enum.map/2", "?", LANG_NO_INSTR, true);
	expect_frame(f, nr - 2, "Enum.-sum/1-fun-0-/1", "?", LANG_NO_INSTR, false);
}

/* In compiled code, on the stack of the process. */
TEST(test_beam, setup, teardown)
{
	struct fixture *f = *state;
	struct beam b;

	beam_begin(f, &b);
	put_stack(f, BEAM_END - 64, 512);
	f->sample.pc = b.function[1] + 120;
	beam_expect(f, 3, false);
	assert_int_equal(f->chain.frames[2].boundary, f->sample.sp + 1);
	f->m.nr_calls = 0;
	beam_expect(f, 3, false);
	assert_in_range(f->m.nr_calls, 1, 4);
	/* A frame of 32 bytes is made: the words in it are of an earlier one. */
	memcpy(pymake_at(&f->m, f->sample.pc - 10), "\x48\x83\xec\x20", 4);
	beam_expect(f, 3, true);
	memcpy(pymake_at(&f->m, f->sample.pc - 10), "\x48\x83\xec\x10", 4);
	beam_expect(f, 3, false);
	/* Shared code that was called, with an odd return address, or was not. */
	f->sample.pc = b.exit + 8;
	beam_word(f, BEAM_END - 64, b.function[0] + 99);
	beam_expect(f, 3, false);
	beam_word(f, BEAM_END - 64, 0x3b);
	beam_expect(f, 2, false);
	/* A jump to it behind the last function, which was called. */
	f->sample.pc = b.function[1] + 200;
	memcpy(pymake_at(&f->m, b.function[0] + 94), "\xe8\x00\x00\x00\x00", 5);
	pymake_u32(&f->m, b.function[0] + 95, (uint32_t)(f->sample.pc - b.function[0] - 99));
	beam_word(f, BEAM_END - 64, b.function[0] + 99);
	beam_expect(f, 3, false);
	expect_frame(f, 0, "Enum.map/2", "?", LANG_NO_INSTR, false);
	beam_word(f, BEAM_END - 64, 0x3b);
	f->sample.pc = b.exit + 8;
	/* A word that is no return address, and a stack without its end. */
	beam_word(f, BEAM_END - 32, 0x7f1234567890);
	beam_expect(f, 2, true);
	beam_word(f, BEAM_END - 32, 0x3b);
	beam_word(f, BEAM_END - 8, b.function[0] + 200);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.broken, true);
}

/* In C code, on the stack of the scheduler: the stack of the process is in it, or in a register. */
TEST(test_beam_c, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t called;
	struct beam b;

	beam_begin(f, &b);
	put_stack(f, PYMAKE_STACK, 4096);
	f->sample.pc = LOOP;
	called = b.function[1] + 140;
	beam_word(f, BEAM_REGISTERS - 8, called);
	memcpy(pymake_at(&f->m, called), "\x90\x49\x8b\x65\x58", 5);
	beam_expect(f, 3, false);
	assert_int_equal(f->chain.frames[2].boundary, PYMAKE_BASE + BEAM_REGISTERS);
	assert_true(f->chain.same >= PYMAKE_BASE + BEAM_REGISTERS);
	/* In rbp; then saved beside rbx, among other words into the heap. */
	memcpy(pymake_at(&f->m, called), "\x48\x89\xec", 4);
	memset(pymake_at(&f->m, called + 3), 0x90, 8);
	f->sample.fp = PYMAKE_BASE + BEAM_END - 64;
	beam_expect(f, 3, false);
	f->sample.fp = PYMAKE_BASE + BEAM_HEAP + 128;
	for (uint64_t i = 0; i < 3; i++)
		beam_word(f, BEAM_REGISTERS - 16 - 8 * i, PYMAKE_BASE + BEAM_END - 16 - 8 * i);
	beam_word(f, BEAM_REGISTERS - 40, PYMAKE_BASE + BEAM_END - 64);
	beam_word(f, BEAM_REGISTERS - 48, PYMAKE_BASE + BEAM_REGISTERS + 128);
	beam_expect(f, 3, false);
	beam_word(f, BEAM_REGISTERS - 48, 1);
	chain(f);
	assert_int_equal(f->chain.broken, true);
	/* The scheduler looks for a process. */
	beam_word(f, BEAM_REGISTERS - 8, b.exit + 16);
	assert_int_equal(chain(f), LANG_VM);
	beam_word(f, BEAM_SCHEDULER + 72, 0);
	assert_int_equal(chain(f), LANG_VM);
}

/* A recursion with more frames than are read: the outermost frames are there as well. */
TEST(test_beam_deep, setup, teardown)
{
	struct fixture *f = *state;
	const uint64_t low = BEAM_END - 64 - 8 * 600;
	struct beam b;

	beam_begin(f, &b);
	pymake_u64(&f->m, b.process + 128, PYMAKE_BASE + BEAM_HEAP - 8192);
	for (uint64_t at = low; at < BEAM_END - 64; at += 8)
		beam_word(f, at, b.function[1] + 100);
	put_stack(f, (uint32_t)low, 512);
	f->sample.pc = b.function[1] + 120;
	beam_expect(f, 511, false);
	assert_true(f->chain.deep);
	/* Without a function on both sides: up to the gap. */
	for (uint64_t at = BEAM_END - 8 * 100; at < BEAM_END - 8; at += 8)
		beam_word(f, at, b.function[0] + 200);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.nr, 512 - 96);
	expect_frame(f, f->chain.nr - 1, "Enum.-sum/1-fun-0-/1", "?", LANG_NO_INSTR, true);
}

TEST(test_beam_hostile, setup, teardown)
{
	struct fixture *f = *state;
	struct beam b;

	beam_begin(f, &b);
	put_stack(f, BEAM_END - 64, 512);
	f->sample.pc = b.function[1] + 120;
	beam_expect(f, 3, false);
	/* A table of modules that is too long, elsewhere, or in no order. */
	pymake_u64(&f->m, f->m.process.runtime + 40, UINT64_MAX);
	f->sample.pc++;
	assert_int_equal(chain(f), LANG_BAD_CHAIN);
	pymake_u64(&f->m, f->m.process.runtime + 40, 8000);
	chain(f);
	expect_bounded(f);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
