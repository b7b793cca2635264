// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * lang: frames and functions of a made-up V8, true and hostile ones.
 */
#include "tests/prelude.h"

#include "tests/symbols/v8make.h"

#define PROCESS 9
#define STACK	1536
#define CODE	(PYMAKE_BASE + 0x800) /* of the sampled function */

struct fixture {
	struct pymake m;
	struct v8make v;
	struct lang_reader *reader;
	struct lang_sample sample;
	struct lang_chain chain;
	uint64_t script;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->reader = calloc(1, sizeof(*f->reader));
	f->reader->memory.read = pymake_read;
	f->reader->memory.ctx = &f->m;
	f->reader->codes = codes_new();
	v8make_init(&f->v, &f->m);
	f->script = v8make_script(&f->v, v8make_string(&f->v, "/srv/a.js"));
	f->sample = (struct lang_sample){ .process = PROCESS, .tid = 7, .pc = CODE + 16 };
	f->sample.sp = PYMAKE_BASE + PYMAKE_SIZE - STACK;
	f->sample.stack = f->m.bytes + PYMAKE_SIZE - STACK;
	f->sample.stack_size = STACK;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	codes_free(f->reader->codes);
	free(f->reader);
	free(f);
	return 0;
}

static enum lang_none chain(struct fixture *f)
{
	if (!lang_chain(f->reader, &f->m.process, &f->sample, &f->chain)) {
		lang_chain_find_thread(f->reader, &f->m.process, PROCESS, f->sample.tid);
		lang_chain(f->reader, &f->m.process, &f->sample, &f->chain);
	}
	return f->chain.none;
}

static uint64_t named(struct fixture *f, const char *name, uint32_t position)
{
	uint64_t scope = v8make_scope(&f->v, 2, v8make_string(&f->v, name), 0, position);

	return v8make_function(&f->v, f->script, scope);
}

static const struct code_text *text_of(const struct fixture *f, uint32_t frame)
{
	assert_in_range(frame + 1, 1, f->chain.nr);
	return codes_at(f->reader->codes, f->chain.frames[frame].code);
}

static void expect_frame(const struct fixture *f, uint32_t frame, const char *name,
			 const char *file, uint64_t fp)
{
	const struct code_text *t = text_of(f, frame);

	assert_non_null(t);
	assert_int_equal(t->language, LANG_NODE);
	assert_int_equal(t->name_size, strlen(name));
	assert_memory_equal(t->name, name, t->name_size);
	assert_int_equal(t->file_size, strlen(file));
	assert_memory_equal(t->file, file, t->file_size);
	assert_int_equal(f->chain.frames[frame].boundary, fp);
}

/* Interpreted, compiled, a builtin: innermost first, with their frame pointers. */
static void test_frames(void **state)
{
	static const char table[] = "\1\2\3";
	struct fixture *f = *state;
	uint64_t outer = v8make_frame(&f->v, named(f, "outer", 100), 0, 0);
	uint64_t map =
		v8make_frame(&f->v, v8make_function(&f->v, 0, v8make_string(&f->v, "map")), 0, 0);
	uint64_t bytecodes = v8make_bytecodes(&f->v, table, 3);
	uint64_t leaf = v8make_frame(&f->v, named(f, "leaf", 200), bytecodes, 12);

	assert_int_equal(chain(f), LANG_NONE_NR);
	assert_int_equal(f->chain.nr, 3);
	expect_frame(f, 0, "leaf", "/srv/a.js", leaf);
	assert_int_equal(f->chain.frames[0].instr, 12);
	assert_int_equal(text_of(f, 0)->first_line, 200);
	assert_int_equal(text_of(f, 0)->table_size, 3);
	assert_memory_equal(text_of(f, 0)->table, table, 3);
	expect_frame(f, 1, "map", "[internal]", map);
	expect_frame(f, 2, "outer", "/srv/a.js", outer);
	assert_int_equal(f->chain.frames[2].instr, LANG_NO_INSTR);
	assert_int_equal(f->chain.same, f->sample.sp + f->sample.stack_size);
	assert_in_range(f->m.nr_calls, 1, LANG_CALLS_MAX);
	/* Known functions: fewer reads, the same frames. */
	f->m.nr_calls = 0;
	assert_int_equal(chain(f), LANG_NONE_NR);
	assert_int_equal(f->m.nr_calls, 3);
	expect_frame(f, 2, "outer", "/srv/a.js", outer);
}

/* Names by assignment, of none, in other encodings, of strings that stand for others. */
static void test_names(void **state)
{
	struct fixture *f = *state;
	struct v8make *v = &f->v;
	uint64_t empty = v8make_string(v, ""), thin = v8make_object(v, V8MAKE_THIN, 24);
	uint64_t cons = v8make_object(v, V8MAKE_CONS, 32),
		 wide = v8make_object(v, V8MAKE_UTF16, 24);
	uint64_t latin = v8make_string(v, "caf\xe9");

	pymake_u64(v->m, thin + 16, v8make_string(v, "thin") + 1);
	pymake_u64(v->m, cons + 16, thin + 1);
	pymake_u64(v->m, cons + 24, empty + 1);
	pymake_u32(v->m, wide + 12, 3);
	memcpy(pymake_at(v->m, wide + 16), "\xe9\0\x3d\xd8\x00\xde", 6);
	v8make_frame(v, v8make_function(v, f->script, v8make_scope(v, 80, wide, 0, 1)), 0, 0);
	v8make_frame(v, v8make_function(v, f->script, v8make_scope(v, 74, latin, 0, 1)), 0, 0);
	v8make_frame(v, v8make_function(v, f->script, v8make_scope(v, 0, cons, empty, 1)), 0, 0);
	v8make_frame(v, v8make_function(v, f->script, v8make_scope(v, 1, empty, empty, 1)), 0, 0);
	v8make_frame(v,
		     v8make_function(v, v8make_script(v, 0),
				     v8make_scope(v, 1, empty, v8make_string(v, "a.b"), 1)),
		     0, 0);
	assert_int_equal(chain(f), LANG_NONE_NR);
	assert_int_equal(f->chain.nr, 5);
	expect_frame(f, 0, "a.b", "[eval]", f->chain.frames[0].boundary);
	expect_frame(f, 1, "(anonymous)", "/srv/a.js", f->chain.frames[1].boundary);
	expect_frame(f, 2, "thin", "/srv/a.js", f->chain.frames[2].boundary);
	expect_frame(f, 3, "caf\xc3\xa9", "/srv/a.js", f->chain.frames[3].boundary);
	expect_frame(f, 4, "\xc3\xa9\xf0\x9f\x98\x80", "/srv/a.js", f->chain.frames[4].boundary);
}

/* A frame that is being made: its function is in a register. */
static void test_entry(void **state)
{
	struct fixture *f = *state;
	uint64_t outer = v8make_frame(&f->v, named(f, "outer", 100), 0, 0);

	f->sample.rdi = named(f, "leaf", 200) + 1;
	memcpy(pymake_at(&f->m, CODE + 20), "\x55\x48\x8b\xec", 4);
	assert_int_equal(chain(f), LANG_NONE_NR);
	assert_int_equal(f->chain.top, LANG_TOP_UNKNOWN);
	expect_frame(f, 0, "leaf", "/srv/a.js", 0);
	expect_frame(f, 1, "outer", "/srv/a.js", outer);
	/* Behind it: in the body. */
	f->sample.pc = CODE + 24;
	chain(f);
	assert_int_equal(f->chain.top, LANG_TOP_BODY);
	/* Behind the end of the frame, until the return. */
	memcpy(pymake_at(&f->m, CODE + 40), "\x48\x8b\xe5\x5d\xc3", 5);
	f->sample.pc = CODE + 44;
	chain(f);
	assert_int_equal(f->chain.top, LANG_TOP_UNKNOWN);
	f->sample.pc = CODE + 80;
	chain(f);
	assert_int_equal(f->chain.top, LANG_TOP_BODY);
	/* A register with anything else is no function. */
	f->sample.rdi = f->script + 1;
	assert_int_equal(chain(f), LANG_NONE_NR);
	assert_int_equal(f->chain.nr, 1);
}

/* Memory of another function at the same address: the number of the script differs. */
static void test_reused(void **state)
{
	struct fixture *f = *state;
	uint64_t scope = v8make_scope(&f->v, 0, v8make_string(&f->v, "before"), 0, 1);
	uint64_t fp = v8make_frame(&f->v, v8make_function(&f->v, f->script, scope), 0, 0);

	assert_int_equal(chain(f), LANG_NONE_NR);
	expect_frame(f, 0, "before", "/srv/a.js", fp);
	pymake_u64(&f->m, scope + 32, v8make_string(&f->v, "after") + 1);
	pymake_u64(&f->m, f->script + 64, v8make_smi(99));
	assert_int_equal(chain(f), LANG_NONE_NR);
	expect_frame(f, 0, "after", "/srv/a.js", fp);
}

/* Objects that are moved, or are others: no frame. */
static void test_moved(void **state)
{
	struct fixture *f = *state;
	uint64_t scope = v8make_scope(&f->v, 1, v8make_string(&f->v, "leaf"), 0, 200);
	uint64_t function = v8make_function(&f->v, f->script, scope), name, map;

	v8make_frame(&f->v, function, 0, 0);
	pymake_u64(&f->m, function, function + 4096); /* a forwarding address */
	assert_int_equal(chain(f), LANG_NONE_NO_FRAMES);
	pymake_u64(&f->m, function, f->v.map[V8MAKE_SCRIPT] + 1);
	assert_int_equal(chain(f), LANG_NONE_NO_FRAMES);
	pymake_u64(&f->m, function, f->v.map[V8MAKE_FUNCTION] + 1);
	assert_int_equal(chain(f), LANG_NONE_NR);
	/* The collector moves the name: it is read later. */
	pymake_u64(&f->m, f->script + 64, v8make_smi(50));
	name = lang_memory_u64(pymake_at(&f->m, scope + 48)) - 1;
	map = lang_memory_u64(pymake_at(&f->m, name));
	pymake_u64(&f->m, name, name + 4096);
	assert_int_equal(chain(f), LANG_NONE_BAD_CHAIN);
	pymake_u64(&f->m, name, map);
	assert_int_equal(chain(f), LANG_NONE_NR);
	expect_frame(f, 0, "leaf", "/srv/a.js", f->chain.frames[0].boundary);
	pymake_u64(&f->m, function + 24, PYMAKE_BASE + PYMAKE_SIZE + 1);
	assert_int_equal(chain(f), LANG_NONE_NO_FRAMES);
}

/* Compiled code: where it is, and whether it has other functions inlined. */
static void test_compiled(void **state)
{
	struct fixture *f = *state;
	uint64_t function = named(f, "hot", 200), code = v8make_object(&f->v, V8MAKE_OTHER, 64);
	uint64_t data = v8make_object(&f->v, V8MAKE_OTHER, 64);

	v8make_frame(&f->v, function, 0, 0);
	f->m.process.version = 11U << 24;
	pymake_u64(&f->m, function + 48, code + 1);
	pymake_u64(&f->m, code + 16, data + 1);
	pymake_u64(&f->m, code + 40, 0x12340);
	pymake_u32(&f->m, code + 48, 0x17d);
	pymake_u32(&f->m, code + 56, 0x80);
	assert_int_equal(chain(f), LANG_NONE_NR);
	assert_int_equal(f->chain.frames[0].compiled.start, 0x12340);
	assert_int_equal(f->chain.frames[0].compiled.size, 0x80);
	assert_false(f->chain.frames[0].compiled.inlined);
	pymake_u64(&f->m, data + 24, v8make_smi(2));
	assert_int_equal(chain(f), LANG_NONE_NR);
	assert_true(f->chain.frames[0].compiled.inlined);
	pymake_u32(&f->m, code + 48, 0x17b); /* compiled, but not optimised */
	assert_int_equal(chain(f), LANG_NONE_NR);
	assert_false(f->chain.frames[0].compiled.inlined);
	/* 10.2: the code is in the same object. */
	f->m.process.version = 10U << 24 | 2U << 16;
	pymake_u32(&f->m, code + 40, 0x90);
	assert_int_equal(chain(f), LANG_NONE_NR);
	assert_int_equal(f->chain.frames[0].compiled.start, code + 128);
	assert_int_equal(f->chain.frames[0].compiled.size, 0x90);
	/* A version that was not tried: nothing is known of its code. */
	f->m.process.untried = true;
	assert_int_equal(chain(f), LANG_NONE_NR);
	assert_int_equal(f->chain.frames[0].compiled.size, 0);
}

static void test_no_frames(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(chain(f), LANG_NONE_NO_FRAMES);
	f->sample.stack_size = 0;
	assert_int_equal(chain(f), LANG_NONE_NO_FRAMES);
}

/* Any memory and any layout that is accepted: an end, and calls and frames within the bounds. */
static void test_wild(void **state)
{
	struct fixture *f = *state;
	struct v8_layout layout = f->m.process.v8;

	for (uint64_t round = 0; round < 300; round++) {
		for (uint64_t at = 0; at + 8 <= PYMAKE_SIZE; at += 8) {
			uint64_t value = hash_u64(at ^ round << 32);

			/* Pointers into the memory, numbers, and noise. */
			if (value % 5 < 3)
				value = PYMAKE_BASE + value % PYMAKE_SIZE / 8 * 8 + value % 5 % 2;
			else if (value % 5 == 3)
				value = v8make_smi((uint32_t)value & 127);
			pymake_u64(&f->m, PYMAKE_BASE + at, value);
		}
		/* Each map has a type that is wanted somewhere. */
		for (uint64_t at = 12; at + 8 <= PYMAKE_STACK; at += 8)
			memcpy(f->m.bytes + at,
			       &layout.number[V8_TYPE_FUNCTION + (at / 8 + round) % 6], 2);
		for (int i = V8_FUNCTION_SHARED; i < V8_SCOPE_LOCALS && round & 1; i++)
			f->m.process.v8.number[i] =
				(int16_t)(8 + hash_u64(round + (uint64_t)i) % 152 / 4 * 4);
		if (v8layout_check(&f->m.process.v8))
			f->m.process.v8 = layout;
		f->m.nr_calls = 0;
		if (chain(f) == LANG_NONE_NR)
			assert_in_range(f->chain.nr, 1, LANG_FRAMES_MAX);
		assert_in_range(f->m.nr_calls, 1, 2 * LANG_CALLS_MAX);
		f->m.process.v8 = layout;
	}
}

static void test_layout(void **state)
{
	struct v8_layout l = v8make_layout();

	assert_null(v8layout_check(&l));
	l.number[V8_SMI_SHIFT] = 0; /* compressed pointers */
	assert_non_null(v8layout_check(&l));
	l = v8make_layout();
	l.number[V8_SHARED_NAME] = -1; /* missing */
	assert_non_null(v8layout_check(&l));
	l = v8make_layout();
	l.number[V8_SHARED_NAME] = 56; /* behind the last word that is read */
	assert_non_null(v8layout_check(&l));
	l = v8make_layout();
	l.number[V8_FP_FUNCTION] = -4096;
	assert_non_null(v8layout_check(&l));
	assert_int_equal(v8layout_number("v8dbg_off_fp_function"), V8_FP_FUNCTION);
	assert_int_equal(v8layout_number("v8dbg_off_fp_functio"), V8_NR);
	assert_int_equal(v8layout_number("off_fp_function"), V8_NR);
	assert_true(v8layout_tried(10, 2) && !v8layout_tried(12, 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_entry, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_moved, setup, teardown),
		cmocka_unit_test_setup_teardown(test_compiled, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wild, setup, teardown),
		cmocka_unit_test(test_layout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
