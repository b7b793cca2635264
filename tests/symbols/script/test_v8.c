// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * lang: frames and functions of a made-up V8, true and hostile ones.
 * Live: takes about a second of CPU time, or more.
 */
#include "tests/prelude.h"

#include "symbols/script/internal.h"
#include "tests/makers/v8.h"

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

#include "tests/symbols/lang_fixture.h"
#include "symbols/base/base.h"

static int setup(void **state)
{
	struct fixture *f = fixture_new();

	v8make_init(&f->v, &f->m);
	f->script = v8make_script(&f->v, v8make_string(&f->v, "/srv/a.js"));
	f->sample = (struct lang_sample){ .process = PROCESS, .tid = 7, .pc = CODE + 16 };
	put_stack(f, PYMAKE_SIZE - STACK, STACK);
	*state = f;
	return 0;
}

static uint64_t named(struct fixture *f, const char *name, uint32_t position)
{
	uint64_t scope = v8make_scope(&f->v, 2, v8make_string(&f->v, name), 0, position);

	return v8make_function(&f->v, f->script, scope);
}

static const struct code_text *text_of(const struct fixture *f, uint32_t frame)
{
	assert_in_range(frame + 1, 1, f->chain.nr);
	return script_functions_at(f->reader->codes, f->chain.frames[frame].code);
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
TEST(test_frames, setup, teardown)
{
	struct v8make_table table = { .size = 0 };
	struct fixture *f = *state;
	uint64_t outer = v8make_frame(&f->v, named(f, "outer", 100), 0, 0);
	uint64_t map =
		v8make_frame(&f->v, v8make_function(&f->v, 0, v8make_string(&f->v, "map")), 0, 0);
	uint64_t bytecodes, leaf;

	v8make_entry(&table, 0, v8make_position(205, -1), true);
	v8make_entry(&table, 12, v8make_position(229, -1), false);
	v8make_entry(&table, 20, v8make_position(231, -1), true);
	bytecodes = v8make_bytecodes(&f->v, table.bytes, table.size);
	leaf = v8make_frame(&f->v, named(f, "leaf", 200), bytecodes, 19);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.nr, 3);
	expect_frame(f, 0, "leaf", "/srv/a.js", leaf);
	assert_int_equal(f->chain.frames[0].instr, 23);
	assert_int_equal(text_of(f, 0)->position, 200);
	assert_int_equal(text_of(f, 0)->first_line, 21);
	expect_frame(f, 1, "map", "[internal]", map);
	expect_frame(f, 2, "outer", "/srv/a.js", outer);
	assert_int_equal(f->chain.frames[2].instr, LANG_NO_INSTR);
	assert_int_equal(f->chain.same, f->sample.sp + f->sample.stack_size);
	assert_in_range(f->m.nr_calls, 1, LANG_CALLS_MAX);
	/* Known functions: fewer reads, the same frames. */
	f->m.nr_calls = 0;
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->m.nr_calls, 4);
	expect_frame(f, 2, "outer", "/srv/a.js", outer);
}

/* A million functions, one after the other: bounded memory and reads; others keep their names. */
TEST(test_million, setup, teardown)
{
	struct fixture *f = *state;
	const uint64_t function = named(f, "many", 100);
	uint64_t shared;
	uint32_t nr_named = 0;

	v8make_frame(&f->v, function, 0, 0);
	memcpy(&shared, pymake_at(&f->m, function + 24), sizeof(shared));
	for (uint32_t i = 0; i < 1000000; i++) {
		enum lang_status none;

		pymake_u32(&f->m, shared - 1 + 52, i + 1);
		f->m.nr_calls = 0;
		none = chain(f);
		nr_named += none == LANG_OK;
		assert_true(none == LANG_OK || none == LANG_NO_ROOM);
		assert_true(f->m.nr_calls <= LANG_CALLS_MAX + 1);
	}
	/* With one text they are one function. */
	assert_int_equal(nr_named, 1000000);
	assert_in_range(script_functions_nr(f->reader->codes), 1, 100);
	assert_true(script_functions_memory(f->reader->codes) <= SCRIPT_FUNCTIONS_MEMORY_MAX);
	f->sample.process++;
	assert_int_equal(chain(f), LANG_OK);
	expect_frame(f, 0, "many", "/srv/a.js", f->v.top + 128);
}

/* Names by assignment, of none, in other encodings, of strings that stand for others. */
TEST(test_names, setup, teardown)
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
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.nr, 5);
	expect_frame(f, 0, "a.b", "[eval]", f->chain.frames[0].boundary);
	expect_frame(f, 1, "(anonymous)", "/srv/a.js", f->chain.frames[1].boundary);
	expect_frame(f, 2, "thin", "/srv/a.js", f->chain.frames[2].boundary);
	expect_frame(f, 3, "caf\xc3\xa9", "/srv/a.js", f->chain.frames[3].boundary);
	expect_frame(f, 4, "\xc3\xa9\xf0\x9f\x98\x80", "/srv/a.js", f->chain.frames[4].boundary);
}

/* Strings that were put together, and not yet made one: names of methods by assignment, paths. */
TEST(test_ropes, setup, teardown)
{
	struct fixture *f = *state;
	struct v8make *v = &f->v;
	uint64_t script = v8make_script(v, v8make_cons(v, v8make_string(v, "/srv/lib"),
						       v8make_string(v, "/b.js")));
	uint64_t dot = v8make_string(v, "."), end = v8make_string(v, "handleRequest"), longer = end;
	uint64_t method = v8make_cons(v, v8make_string(v, "Controller"), v8make_cons(v, dot, end));

	for (uint32_t i = 0; i < 20; i++)
		longer = v8make_cons(v, i % 2 ? v8make_string(v, "abc") : dot, longer);
	v8make_frame(v, v8make_function(v, script, v8make_scope(v, 0, 0, longer, 1)), 0, 0);
	v8make_frame(v, v8make_function(v, script, v8make_scope(v, 0, 0, method, 1)), 0, 0);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.nr, 2);
	expect_frame(f, 0, "Controller.handleRequest", "/srv/lib/b.js",
		     f->chain.frames[0].boundary);
	expect_frame(f, 1, "abc.abc.abc.abc...", "/srv/lib/b.js", f->chain.frames[1].boundary);
	/* The text of a script is read when it is one string. */
	assert_int_equal(text_of(f, 0)->first_line, 1);
	pymake_u64(v->m, script + 8, v8make_cons(v, v8make_source(v), v8make_source(v)) + 1);
	pymake_u64(v->m, script + 64, v8make_smi(77)); /* another script */
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(text_of(f, 0)->first_line, 0);
}

/* The wrapper of a bundle has thousands of variables. */
TEST(test_many_locals, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t scope = v8make_scope(&f->v, 4500, v8make_string(&f->v, "bundle"), 0, 20);

	v8make_frame(&f->v, v8make_function(&f->v, f->script, scope), 0, 0);
	assert_int_equal(chain(f), LANG_OK);
	expect_frame(f, 0, "bundle", "/srv/a.js", f->chain.frames[0].boundary);
}

static void expect_top(struct fixture *f, uint64_t pc, enum lang_top top, const char *first)
{
	f->sample.pc = pc;
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.top, top);
	expect_frame(f, 0, first, "/srv/a.js", f->chain.frames[0].boundary);
}

/* A frame that is being made: its function is in a register. */
TEST(test_entry, setup, teardown)
{
	static const char looks[] = "\x48\x8b\x59\xf8\xf6\x43\x35\x01\x0f\x85\xf2\x6f\xe4\x1f";
	struct fixture *f = *state;
	uint64_t outer = v8make_frame(&f->v, named(f, "outer", 100), 0, 0);

	f->sample.rdi = named(f, "leaf", 200) + 1;
	memcpy(pymake_at(&f->m, CODE + 20), "\x55\x48\x8b\xec", 4);
	/* Other code goes on to it. */
	expect_top(f, CODE + 16, LANG_TOP_UNKNOWN, "leaf");
	memcpy(pymake_at(&f->m, CODE + 6), looks, 14);
	expect_top(f, CODE + 6, LANG_TOP_FRAMELESS, "leaf");
	expect_frame(f, 0, "leaf", "/srv/a.js", 0);
	expect_frame(f, 1, "outer", "/srv/a.js", outer);
	expect_top(f, CODE + 14, LANG_TOP_FRAMELESS, "leaf");
	expect_top(f, CODE + 15, LANG_TOP_UNKNOWN, "leaf"); /* no instruction begins there */
	expect_top(f, CODE + 20, LANG_TOP_FRAMELESS, "leaf");
	expect_top(f, CODE + 21, LANG_TOP_FRAMELESS, "leaf");
	/* Behind it: in the body. */
	expect_top(f, CODE + 24, LANG_TOP_BODY, "leaf");
	/* A register with anything else is no function. */
	f->sample.rdi = f->script + 1;
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.nr, 1);
}

/* A frame that was left: its function is below the stack. */
TEST(test_leaving, setup, teardown)
{
	static const char ends[] = "\x48\x8b\xe5\x5d\x48\x83\xf9\x02\x7f\x03\xc2\x10\x00"
				   "\x41\x5a\x48\x8d\x24\xcc\x41\x52\xc3\xeb\xe4";
	static const char maglev[] = "\x48\x8b\xe5\x5d\x49\x83\xf8\x02\x0f\x8f\x03\x00\x00\x00\xc2"
				     "\x10"
				     "\x00\x41\x59\x4a\x8d\x24\xc4\x41\x51\xc3\xeb\xe4";
	struct fixture *f = *state;
	uint64_t left = named(f, "left", 300);

	v8make_frame(&f->v, named(f, "outer", 100), 0, 0);
	f->sample.rdi = named(f, "leaf", 200) + 1;
	pymake_u64(&f->m, f->sample.sp - 24, left + 1);
	memcpy(pymake_at(&f->m, CODE + 40), ends, sizeof(ends) - 1);
	expect_top(f, CODE + 40, LANG_TOP_BODY, "leaf");
	for (uint32_t at = 4; at <= 13; at++)
		expect_top(f, CODE + 40 + at, LANG_TOP_FRAMELESS, "left");
	expect_top(f, CODE + 40 + 15, LANG_TOP_UNKNOWN, "leaf"); /* arguments are removed */
	expect_top(f, CODE + 40 + 21, LANG_TOP_UNKNOWN, "leaf");
	expect_top(f, CODE + 40 + 22, LANG_TOP_BODY, "leaf");
	memcpy(pymake_at(&f->m, CODE + 40), maglev, sizeof(maglev) - 1);
	expect_top(f, CODE + 40 + 4, LANG_TOP_FRAMELESS, "left");
	expect_top(f, CODE + 40 + 17, LANG_TOP_FRAMELESS, "left");
	expect_top(f, CODE + 40 + 19, LANG_TOP_UNKNOWN, "leaf");
	expect_top(f, CODE + 40 + 26, LANG_TOP_BODY, "leaf");
	memcpy(pymake_at(&f->m, CODE + 44), "\xc3\x90", 2);
	expect_top(f, CODE + 44, LANG_TOP_FRAMELESS, "left");
	expect_top(f, CODE + 45, LANG_TOP_BODY, "leaf");
	memcpy(pymake_at(&f->m, CODE + 44), "\x90", 1);
	expect_top(f, CODE + 45, LANG_TOP_UNKNOWN, "leaf");
}

/* Memory of another function at the same address: the number of the script differs. */
TEST(test_reused, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t scope = v8make_scope(&f->v, 0, v8make_string(&f->v, "before"), 0, 1);
	uint64_t fp = v8make_frame(&f->v, v8make_function(&f->v, f->script, scope), 0, 0);

	assert_int_equal(chain(f), LANG_OK);
	expect_frame(f, 0, "before", "/srv/a.js", fp);
	pymake_u64(&f->m, scope + 32, v8make_string(&f->v, "after") + 1);
	pymake_u64(&f->m, f->script + 64, v8make_smi(99));
	assert_int_equal(chain(f), LANG_OK);
	expect_frame(f, 0, "after", "/srv/a.js", fp);
}

/* Objects that are moved, or are others: no frame. */
TEST(test_moved, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t scope = v8make_scope(&f->v, 1, v8make_string(&f->v, "leaf"), 0, 200);
	uint64_t function = v8make_function(&f->v, f->script, scope), name, map;

	v8make_frame(&f->v, function, 0, 0);
	pymake_u64(&f->m, function, function + 4096); /* a forwarding address */
	assert_int_equal(chain(f), LANG_NO_FRAMES);
	pymake_u64(&f->m, function, f->v.map[V8MAKE_SCRIPT] + 1);
	assert_int_equal(chain(f), LANG_NO_FRAMES);
	pymake_u64(&f->m, function, f->v.map[V8MAKE_FUNCTION] + 1);
	assert_int_equal(chain(f), LANG_OK);
	/* The collector moves the name: it is read later. */
	pymake_u64(&f->m, f->script + 64, v8make_smi(50));
	name = bytes_u64(pymake_at(&f->m, scope + 48)) - 1;
	map = bytes_u64(pymake_at(&f->m, name));
	pymake_u64(&f->m, name, name + 4096);
	assert_int_equal(chain(f), LANG_BAD_CHAIN);
	pymake_u64(&f->m, name, map);
	assert_int_equal(chain(f), LANG_OK);
	expect_frame(f, 0, "leaf", "/srv/a.js", f->chain.frames[0].boundary);
	pymake_u64(&f->m, function + 24, PYMAKE_BASE + PYMAKE_SIZE + 1);
	assert_int_equal(chain(f), LANG_NO_FRAMES);
}

/* Where compiled code is, and whether other functions are inlined in it. */
TEST(test_compiled, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t function = named(f, "hot", 200), data = v8make_object(&f->v, V8MAKE_OTHER, 96);
	uint64_t code = v8make_compiled(&f->v, function, 13, data, v8make_bytes(&f->v, "", 0));
	const struct lang_compiled *c = f->chain.frames[0].compiled;

	v8make_frame(&f->v, function, 0, 0);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(c->start, 0x12340);
	assert_int_equal(c->size, 0x80);
	assert_false(c->inlined);
	pymake_u64(&f->m, data + 24, v8make_smi(2));
	assert_int_equal(chain(f), LANG_OK);
	assert_true(c->inlined);
	pymake_u32(&f->m, code + 48, 0x17b); /* compiled, but not optimised */
	assert_int_equal(chain(f), LANG_OK);
	assert_false(c->inlined);
	/* 10.2: the code is in the same object. */
	f->m.process.v8.number[V8_CODE_BEGIN] = 0;
	f->m.process.v8.number[V8_CODE_INSIDE] = 128;
	f->m.process.v8.number[V8_CODE_BYTES] = 40;
	pymake_u32(&f->m, code + 40, 0x90);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(c->start, code + 128);
	assert_int_equal(c->size, 0x90);
	/* Another object in its place: nothing is known of its code. */
	pymake_u64(&f->m, code, f->v.map[V8MAKE_BYTES] + 1);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(c->size, 0);
}

/* Expect at byte @at of compiled code: the line, and the names of inlined calls, innermost first.
 */
static void expect_at(const struct fixture *f, uint32_t which, uint32_t at, uint32_t line,
		      const char *names)
{
	const struct lang_compiled *c = &f->chain.frames[0].compiled[which];
	const struct code_text *t = script_functions_at(f->reader->codes, c->code);
	struct v8_inlined call;
	char text[64] = "";
	struct v8_entry e;
	size_t used = 0;

	assert_non_null(t);
	assert_true(t->compiled);
	assert_true(v8table_find(t->table, t->table_size, at, &e));
	assert_int_equal(e.line, line);
	while (v8table_inlined(t->table, t->table_size, e.inlined, &call)) {
		const struct code_text *of = script_functions_at(f->reader->codes, call.code);

		used += (size_t)snprintf(text + used, sizeof(text) - used, "%.*s<%u ",
					 of->name_size, of->name, call.line);
		e.inlined = call.outer;
	}
	assert_string_equal(text, names);
}

/* Positions of instructions: in the function, in a call, in a call in that; another script. */
TEST(test_optimised, setup, teardown)
{
	struct fixture *f = *state;
	struct v8make *v = &f->v;
	uint64_t other = v8make_script(v, v8make_string(v, "/srv/b.js"));
	uint64_t hot = named(f, "hot", 200), warm = named(f, "warm", 300), calls[4] = { 0 };
	uint64_t cold =
		v8make_function(v, other, v8make_scope(v, 1, v8make_string(v, "cold"), 0, 20));
	uint64_t data = v8make_object(v, V8MAKE_OTHER, 96);
	uint64_t literals = v8make_object(v, V8MAKE_OTHER, 64);
	struct v8make_table t = { .size = 0 };

	pymake_u64(v->m, data + 24, v8make_smi(2));
	pymake_u64(v->m, data + 32, literals + 1);
	pymake_u64(v->m, data + 56, v8make_smi(7));
	pymake_u64(v->m, literals + 8, v8make_smi(2));
	pymake_u64(v->m, literals + 16, bytes_u64(pymake_at(v->m, warm + 24)) | 2);
	pymake_u64(v->m, literals + 24, bytes_u64(pymake_at(v->m, cold + 24)));
	/* warm() is called in line 22 of hot(), cold() in line 33 of warm(). */
	calls[0] = (uint64_t)v8make_position(215, -1);
	calls[2] = (uint64_t)v8make_position(325, 0);
	calls[3] = 1;
	pymake_u64(v->m, data + 72, v8make_bytes(v, calls, sizeof(calls)) + 1);
	v8make_entry(&t, 0, v8make_position(205, -1), true);
	v8make_entry(&t, 16, v8make_position(311, 0), false);
	v8make_entry(&t, 32, v8make_position(45, 1), false);
	v8make_entry(&t, 48, v8make_position(219, -1), true);
	v8make_compiled(&f->v, hot, 13, data, v8make_bytes(v, t.bytes, t.size));
	v8make_frame(v, hot, 0, 0);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.nr, 1);
	expect_at(f, 0, 15, 21, "");
	expect_at(f, 0, 16, 32, "warm<22 ");
	expect_at(f, 0, 47, 5, "cold<33 warm<22 ");
	expect_at(f, 0, 48, 22, "");
	/* A call that is in itself: no table. */
	calls[2] = (uint64_t)v8make_position(325, 1);
	pymake_u64(v->m, data + 72, v8make_bytes(v, calls, sizeof(calls)) + 1);
	pymake_u64(v->m, data + 56, v8make_smi(8));
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(script_functions_at(f->reader->codes, f->chain.frames[0].compiled[0].code)
				 ->table_size,
			 8);
	/* An inlined function is none. */
	pymake_u64(v->m, literals + 24, f->script + 1);
	pymake_u64(v->m, data + 56, v8make_smi(9));
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.frames[0].compiled[0].code, CODE_NONE);
	assert_true(f->chain.frames[0].compiled[0].inlined);
}

/* A function of many small ones, all inlined: V8's own limit is 4,600 bytes of bytecodes. */
TEST(test_many_inlined, setup, teardown)
{
	enum { NR = 90 };
	struct fixture *f = *state;
	struct v8make *v = &f->v;
	uint64_t hot = named(f, "hot", 200), calls[2 * NR];
	uint64_t data = v8make_object(v, V8MAKE_OTHER, 96);
	uint64_t literals = v8make_object(v, V8MAKE_OTHER, 16 + 8 * NR);
	struct v8make_table t = { .size = 0 };

	pymake_u64(v->m, data + 24, v8make_smi(NR));
	pymake_u64(v->m, data + 32, literals + 1);
	pymake_u64(v->m, data + 56, v8make_smi(7));
	pymake_u64(v->m, literals + 8, v8make_smi(NR));
	for (uint32_t i = 0; i < NR; i++) {
		char name[8];
		uint64_t small;

		snprintf(name, sizeof(name), "s%u", i);
		small = named(f, name, 300);
		pymake_u64(v->m, literals + 16 + 8ULL * i, bytes_u64(pymake_at(v->m, small + 24)));
		calls[2 * i] = (uint64_t)v8make_position(215, -1);
		calls[2 * i + 1] = i;
	}
	pymake_u64(v->m, data + 72, v8make_bytes(v, calls, sizeof(calls)) + 1);
	v8make_entry(&t, 0, v8make_position(205, -1), true);
	v8make_entry(&t, 16, v8make_position(311, NR - 1), false);
	v8make_compiled(v, hot, 13, data, v8make_bytes(v, t.bytes, t.size));
	v8make_frame(v, hot, 0, 0);
	assert_int_equal(chain(f), LANG_OK);
	expect_at(f, 0, 16, 32, "s89<22 ");
}

/* Code that replaced a running loop is not the function's: its object is found by the pc. */
TEST(test_other_code, setup, teardown)
{
	static const uint32_t places[] = { 8, 24 };
	struct fixture *f = *state;
	struct v8make *v = &f->v;
	uint64_t hot = named(f, "hot", 200), warm = named(f, "warm", 300), calls[2] = { 0 };
	uint64_t data = v8make_object(v, V8MAKE_OTHER, 96);
	uint64_t literals = v8make_object(v, V8MAKE_OTHER, 64), code;
	struct v8make_table t = { .size = 0 };

	pymake_u64(v->m, data + 24, v8make_smi(1));
	pymake_u64(v->m, data + 32, literals + 1);
	pymake_u64(v->m, data + 56, v8make_smi(7));
	pymake_u64(v->m, literals + 8, v8make_smi(1));
	pymake_u64(v->m, literals + 16, bytes_u64(pymake_at(v->m, warm + 24)));
	calls[0] = (uint64_t)v8make_position(215, -1);
	pymake_u64(v->m, data + 72, v8make_bytes(v, calls, sizeof(calls)) + 1);
	v8make_entry(&t, 0, v8make_position(205, -1), true);
	v8make_entry(&t, 16, v8make_position(311, 0), false);
	code = v8make_compiled(v, hot, 13, data, v8make_bytes(v, t.bytes, t.size));
	pymake_u64(v->m, code + (uint64_t)v8make_numbers(v)[V8_CODE_BEGIN], CODE);
	pymake_u64(v->m, hot + (uint64_t)v8make_numbers(v)[V8_FUNCTION_CODE], 0);
	f->sample.fp = v8make_frame(v, hot, 0, 0);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		pymake_u64(v->m, CODE - 24, 0);
		pymake_u64(v->m, CODE - places[i], code + 1);
		memset(f->reader->v8_sites, 0, sizeof(f->reader->v8_sites));
		f->reader->v8_wait = 0;
		assert_int_equal(chain(f), LANG_OK);
		assert_int_equal(f->chain.frames[0].compiled[0].size, 0);
		assert_int_equal(f->chain.frames[0].compiled[2].start, CODE);
		expect_at(f, 2, 16, 32, "warm<22 ");
		/* It is another function's, or its end is before the pc. */
		v8make_data(v, data, V8_DATA_SHARED, v8make_shared(v, warm));
		pymake_u64(v->m, data + 56, v8make_smi(8 + (uint32_t)i));
		assert_int_equal(chain(f), LANG_OK);
		assert_int_equal(f->chain.frames[0].compiled[2].code, CODE_NONE);
		v8make_data(v, data, V8_DATA_SHARED, v8make_shared(v, hot));
		memset(f->reader->v8_sites, 0, sizeof(f->reader->v8_sites));
		pymake_u32(v->m, code + (uint64_t)v8make_numbers(v)[V8_CODE_BYTES], 16);
		assert_int_equal(chain(f), LANG_OK);
		assert_int_equal(f->chain.frames[0].compiled[2].size, 0);
		pymake_u32(v->m, code + (uint64_t)v8make_numbers(v)[V8_CODE_BYTES], 0x80);
		pymake_u64(v->m, CODE - places[i], 0);
	}
}

#define PAGE_END (PYMAKE_BASE + V8_PAGE)

/* Bytes in front of the end of a page, which is not in the memory of cpython.h. */
static uint8_t page_end[48];

static int read_page_end(void *ctx, const struct lang_piece *pieces, uint32_t nr, uint8_t *bytes)
{
	for (uint32_t i = 0; i < nr; i++) {
		uint64_t at = pieces[i].addr - (PAGE_END - sizeof(page_end));

		if (at < sizeof(page_end) && pieces[i].size <= sizeof(page_end) - at)
			memcpy(bytes + pieces[i].at, page_end + at, pieces[i].size);
		else if (pymake_read(ctx, &pieces[i], 1, bytes) != 1)
			return (int)i;
	}
	return (int)nr;
}

/* Give @function optimised code with one call, of the first of @nr literals. */
static void optimise(struct v8make *v, uint64_t function, uint64_t literals, uint32_t nr)
{
	const uint64_t call[2] = { (uint64_t)v8make_position(215, -1), 0 };
	uint64_t data = v8make_object(v, V8MAKE_OTHER, 96);
	struct v8make_table t = { .size = 0 };

	pymake_u64(v->m, data + 24, v8make_smi(nr));
	pymake_u64(v->m, data + 32, literals + 1);
	pymake_u64(v->m, data + 72, v8make_bytes(v, call, sizeof(call)) + 1);
	v8make_entry(&t, 0, v8make_position(311, 0), true);
	v8make_compiled(v, function, 13, data, v8make_bytes(v, t.bytes, t.size));
}

/* The literals of a function are cut: no table, and no other function goes without one. */
TEST(test_literals_cut, setup, teardown)
{
	struct fixture *f = *state;
	struct v8make *v = &f->v;
	uint64_t warm = bytes_u64(pymake_at(v->m, named(f, "warm", 300) + 24));
	uint64_t hot = named(f, "hot", 200), cut = named(f, "cut", 100);
	uint64_t literals = v8make_object(v, V8MAKE_OTHER, 24);

	f->reader->memory.read = read_page_end;
	pymake_u64(v->m, literals + 16, warm);
	for (uint32_t i = 16; i < sizeof(page_end); i += 8)
		memcpy(page_end + i, &warm, 8);
	optimise(v, hot, literals, 1);
	/* The last one is behind the end of the page. */
	optimise(v, cut, PAGE_END - sizeof(page_end), 5);
	v8make_frame(v, cut, 0, 0);
	v8make_frame(v, hot, 0, 0);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.nr, 2);
	assert_int_equal(f->chain.frames[1].compiled[0].code, CODE_NONE);
	expect_at(f, 0, 0, 32, "warm<22 ");
	/* None can be read. */
	optimise(v, cut, PYMAKE_BASE + PYMAKE_SIZE, 1);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.frames[1].compiled[0].code, CODE_NONE);
	optimise(v, cut, PAGE_END - sizeof(page_end), 4);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_not_equal(f->chain.frames[1].compiled[0].code, CODE_NONE);
}

/* Baseline code: a number of bytes for each bytecode. */
TEST(test_baseline, setup, teardown)
{
	/* LdaZero, Star0, JumpLoop, Wide GetNamedProperty, Return */
	static const uint8_t bytecodes[] = { 12, 0xc4, 0x8a, 1, 0, 0x2d, 1, 0, 2, 0, 3, 0, 0xa9 };
	static const uint8_t map[] = { 0x90, 1, 4, 5, 0x80, 1, 8, 9 };
	struct fixture *f = *state;
	struct v8make *v = &f->v;
	uint64_t hot = named(f, "hot", 200), shared = bytes_u64(pymake_at(v->m, hot + 24)) - 1;
	uint64_t code, object = v8make_object(v, V8MAKE_BYTECODES, 54 + sizeof(bytecodes));
	struct v8make_table t = { .size = 0 };
	struct v8_entry e;

	v8make_entry(&t, 0, v8make_position(205, -1), true);
	v8make_entry(&t, 2, v8make_position(215, -1), true);
	v8make_entry(&t, 4, v8make_position(225, -1), true);
	v8make_entry(&t, 12, v8make_position(235, -1), true);
	memcpy(pymake_at(v->m, object + 54), bytecodes, sizeof(bytecodes));
	pymake_u64(v->m, object + 32, v8make_bytes(v, t.bytes, t.size) + 1);
	pymake_u64(v->m, object + 8, v8make_smi(sizeof(bytecodes)));
	code = v8make_compiled(&f->v, hot, 11, object, v8make_bytes(v, map, sizeof(map)));
	v8make_frame(v, hot, 0, 0);
	assert_int_equal(chain(f), LANG_OK);
	expect_at(f, 0, 144, 21, "");
	expect_at(f, 0, 152, 21, "");
	expect_at(f, 0, 153, 22, "");
	expect_at(f, 0, 280, 22, "");
	expect_at(f, 0, 281, 23, "");
	expect_at(f, 0, 289, 24, "");
	assert_false(v8table_find(
		script_functions_at(f->reader->codes, f->chain.frames[0].compiled[0].code)->table,
		8, 143, &e));
	/* The function has optimised code by now, the frame runs its baseline code still. */
	pymake_u64(v->m, shared + 8, code + 1);
	v8make_compiled(&f->v, hot, 13, v8make_object(v, V8MAKE_OTHER, 96), v8make_bytes(v, "", 0));
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.frames[0].compiled[1].start, 0x12340);
	expect_at(f, 1, 281, 23, "");
	/* The tables do not fit each other: no lines. */
	pymake_u64(v->m, object + 8, v8make_smi(sizeof(bytecodes) - 1));
	pymake_u32(v->m, code + 56, 0x88);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(script_functions_at(f->reader->codes, f->chain.frames[0].compiled[1].code)
				 ->table_size,
			 8);
}

/* The text of a script: of two bytes a character, outside of the heap, in parts, of no form. */
TEST(test_source, setup, teardown)
{
	struct fixture *f = *state;
	struct v8make *v = &f->v;
	uint64_t fp = v8make_frame(v, named(f, "leaf", 20), 0, 0);
	uint64_t wide = v8make_object(v, V8MAKE_UTF16, 64), external;

	pymake_u32(v->m, wide + 12, 20);
	memcpy(pymake_at(v->m, wide + 16), "a\0\r\0\n\0\x28\x20\x29\x20\r\0", 12);
	pymake_u64(v->m, f->script + 8, wide + 1);
	pymake_u64(v->m, f->script + 24, v8make_smi(100)); /* lines before it */
	assert_int_equal(chain(f), LANG_OK);
	expect_frame(f, 0, "leaf", "/srv/a.js", fp);
	assert_int_equal(text_of(f, 0)->first_line, 105);
	external = v8make_object(v, V8MAKE_EXTERNAL, 32);
	pymake_u32(v->m, external + 12, 40);
	pymake_u64(v->m, external + 24, PYMAKE_BASE + PYMAKE_SIZE - 40);
	memcpy(pymake_at(v->m, PYMAKE_BASE + PYMAKE_SIZE - 40), "\r\r\n\n", 4);
	pymake_u64(v->m, f->script + 8, external + 1);
	pymake_u64(v->m, f->script + 64, v8make_smi(77)); /* another script */
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(text_of(f, 0)->first_line, 104);
	/* Larger than a part, and not there to its end. */
	pymake_u32(v->m, external + 12, 40000000);
	pymake_u64(v->m, external + 24, PYMAKE_BASE + 4096);
	pymake_u64(v->m, f->script + 64, v8make_smi(78));
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(text_of(f, 0)->first_line, 0);
	assert_int_equal(text_of(f, 0)->position, 20);
	/* No string. */
	pymake_u64(v->m, f->script + 8, f->script + 1);
	pymake_u64(v->m, f->script + 64, v8make_smi(79));
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(text_of(f, 0)->first_line, 0);
}

/* While the collector moves the text of a script, or it is not there, it is not an empty one. */
TEST(test_source_moved, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t source = bytes_u64(pymake_at(&f->m, f->script + 8)) - 1;
	uint64_t map = bytes_u64(pymake_at(&f->m, source));
	uint64_t fp = v8make_frame(&f->v, named(f, "leaf", 200), 0, 0);

	pymake_u64(&f->m, source, source + 4096); /* a forwarding address */
	assert_int_equal(chain(f), LANG_OK);
	expect_frame(f, 0, "leaf", "/srv/a.js", fp);
	assert_int_equal(text_of(f, 0)->first_line, 0);
	pymake_u64(&f->m, f->script + 8, PYMAKE_BASE + PYMAKE_SIZE + 1);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(text_of(f, 0)->first_line, 0);
	pymake_u64(&f->m, f->script + 8, source + 1);
	pymake_u64(&f->m, source, map);
	assert_int_equal(chain(f), LANG_OK);
	expect_frame(f, 0, "leaf", "/srv/a.js", fp);
	assert_int_equal(text_of(f, 0)->first_line, 21);
	/* An empty text is complete. */
	pymake_u32(&f->m, source + 12, 0);
	pymake_u64(&f->m, f->script + 64, v8make_smi(77));
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(text_of(f, 0)->first_line, 1);
}

/* Frames of many functions leave no room for the text of a script: it is read later. */
TEST(test_source_without_room, setup, teardown)
{
	struct fixture *f = *state;
	struct v8make_table table = { .size = 0 };
	uint64_t leaf = named(f, "leaf", 200), other[240];
	uint64_t scope = v8make_scope(&f->v, 0, v8make_string(&f->v, "other"), 0, 20), bytecodes;
	uint64_t first = f->v.top, small = PYMAKE_SIZE - STACK;

	v8make_entry(&table, 0, v8make_position(205, -1), true);
	bytecodes = v8make_bytecodes(&f->v, table.bytes, table.size);
	for (uint32_t i = 0; i < ARRAY_SIZE(other); i++)
		other[i] = v8make_function(&f->v, f->script, scope);
	for (uint32_t i = 0; i < 400; i++)
		v8make_frame(&f->v, leaf, bytecodes, 0);
	for (uint32_t nr = 100; nr < ARRAY_SIZE(other); nr++) {
		f->sample.process++;
		for (uint32_t i = 1; i < 400; i++)
			pymake_u64(&f->m, first - 128 * i - 16, other[i % nr] + 1);
		put_stack(f, PYMAKE_SIZE - 128 * 403, 128 * 403);
		chain(f);
		/* The outermost frame alone. */
		put_stack(f, (uint32_t)small + STACK - 256 - 64, 256 + 64);
		assert_int_equal(chain(f), LANG_OK);
		assert_int_equal(f->chain.nr, 1);
		assert_int_equal(text_of(f, 0)->first_line, 21);
	}
}

/* The interpreter's registers show the bytecode in hand, where the code at the pc is its own. */
TEST(test_handlers, setup, teardown)
{
	struct fixture *f = *state;
	struct v8make *v = &f->v;
	uint64_t handlers = pymake_take(v->m, 256 * 8), bytecodes, fp;
	struct v8make_table t = { .size = 0 };

	v8make_entry(&t, 0, v8make_position(205, -1), true);
	v8make_entry(&t, 2, v8make_position(215, -1), true);
	bytecodes = v8make_bytecodes(v, t.bytes, t.size);
	fp = v8make_frame(v, named(f, "leaf", 200), bytecodes, 0);
	for (uint32_t i = 0; i < 256; i++)
		pymake_u64(v->m, handlers + 8 * i, CODE + 0x100 * i);
	memcpy(pymake_at(v->m, bytecodes + 54), "\x0c\xc4\x0d\x05", 4);
	f->sample.fp = fp;
	f->sample.r9 = 53 + 2;
	f->sample.r15 = handlers;
	f->sample.pc = CODE + 0x100 * 0x0d + 7;
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.frames[0].instr, 22);
	/* The code for the last bytecode has gone on to this one. */
	f->sample.pc = CODE + 0x100 * 0xc4 + 7;
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.frames[0].instr, 21);
	/* In the code for another one: the frame's byte is an old one. */
	f->sample.pc = CODE + 0x100 * 0x33 + 7;
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.frames[0].instr, LANG_NO_INSTR);
	/* It has called, and so stored its byte. */
	f->sample.fp = fp - 512;
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.frames[0].instr, 21);
}

TEST(test_no_frames, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(chain(f), LANG_NO_FRAMES);
	f->sample.stack_size = 0;
	assert_int_equal(chain(f), LANG_NO_FRAMES);
}

/* Any memory and any layout that is accepted: an end, and calls and frames within the bounds. */
TEST(test_wild, setup, teardown)
{
	struct fixture *f = *state;
	struct v8_layout layout = f->m.process.v8;
	bool nearest;

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
			       &layout.number[V8_TYPE_FUNCTION + (at / 8 + round) % 7], 2);
		for (int i = V8_FUNCTION_SHARED; i < V8_SCOPE_LOCALS && round & 1; i++)
			f->m.process.v8.number[i] =
				(int16_t)(8 + hash_u64(round + (uint64_t)i) % 152 / 4 * 4);
		if (v8layout_complete(&f->m.process.v8, 11U << 24, &nearest))
			f->m.process.v8 = layout;
		f->m.nr_calls = 0;
		if (chain(f) == LANG_OK)
			assert_in_range(f->chain.nr, 1, LANG_FRAMES_MAX);
		assert_in_range(f->m.nr_calls, 1, 2 * LANG_CALLS_MAX);
		f->m.process.v8 = layout;
	}
}

/* Steps that are too large end the table; the code does not go back. */
TEST(test_large_steps)
{
	static const int64_t steps[] = { INT64_MAX, INT64_MIN, INT64_MAX - 1, INT32_MAX, -1 };

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		struct v8make_table t = { .size = 0 };
		struct v8_positions at;

		v8make_number(&t, 9);
		v8make_number(&t, 2);
		v8make_number(&t, steps[i]);
		v8make_number(&t, INT64_MAX);
		v8table_positions(&at, t.bytes, t.size, 0);
		assert_true(v8table_next_position(&at));
		assert_int_equal(at.code, 8);
		assert_int_equal(at.position, 0);
		assert_int_equal(v8table_next_position(&at), steps[i] == -1);
	}
}

/* A table without room for more has no line from its last entry on: not the one before it. */
TEST(test_full_table)
{
	uint8_t bytes[64];
	struct v8_table t = { .bytes = bytes, .room = sizeof(bytes) };
	struct v8_entry e = { .inlined = V8_NOT_INLINED };
	uint32_t nr = 0;

	assert_true(v8table_begin(&t, NULL, 0));
	do {
		e.at = 16 * ++nr;
		e.line = nr;
	} while (v8table_add(&t, &e));
	assert_true(nr > 2 && t.size <= sizeof(bytes));
	assert_true(v8table_find(bytes, t.size, 16 * nr - 1, &e));
	assert_int_equal(e.line, nr - 1);
	assert_true(v8table_find(bytes, t.size, 16 * nr + 1000, &e));
	assert_int_equal(e.line, 0);
}

/* Complete these numbers as for version @major.@minor; NULL: they can be used. */
static const char *complete(struct v8_layout l, uint32_t major, uint32_t minor, bool *nearest)
{
	return v8layout_complete(&l, major << 24 | minor << 16, nearest);
}

TEST(test_layout)
{
	struct v8_layout l = v8make_layout();
	bool nearest;

	assert_null(complete(l, 11, 3, &nearest));
	assert_false(nearest);
	l.number[V8_SMI_SHIFT] = 0; /* compressed pointers */
	assert_non_null(complete(l, 11, 3, &nearest));
	l = v8make_layout();
	l.number[V8_SHARED_NAME] = -1; /* missing */
	assert_non_null(complete(l, 11, 3, &nearest));
	l = v8make_layout();
	l.number[V8_SHARED_NAME] = 56; /* behind the last word that is read */
	assert_non_null(complete(l, 11, 3, &nearest));
	l = v8make_layout();
	l.number[V8_FP_FUNCTION] = -4096;
	assert_non_null(complete(l, 11, 3, &nearest));
}

/* A version without a row has the one below it, or the lowest; its file wins. */
TEST(test_versions)
{
	struct v8_layout l = v8make_layout();
	bool nearest;

	l.number[V8_CODE_DATA] = l.number[V8_POSITION_BITS] = l.number[V8_TYPE_WRAPPER] = -1;
	memset(l.sizes, 0, sizeof(l.sizes));
	assert_null(v8layout_complete(&l, 15U << 24 | 2U << 16, &nearest));
	assert_true(nearest);
	assert_int_equal(l.number[V8_CODE_DATA], 8);
	assert_int_equal(l.number[V8_POSITION_BITS], 2);
	assert_int_equal(l.number[V8_TYPE_WRAPPER], 0);
	assert_int_equal(l.sizes[0], 1); /* Wide */
	l = v8make_layout();
	assert_int_equal(l.sizes[0x2d], 4 | 3 << 4); /* GetNamedProperty */
	l.sizes[0x2d] = 5;
	l.number[V8_CODE_DATA] = 40;
	assert_null(v8layout_complete(&l, 9U << 24, &nearest));
	assert_true(nearest);
	assert_int_equal(l.number[V8_CODE_DATA], 40);
	assert_int_equal(l.sizes[0x2d], 5);
}

/* Fields are known by their class and name, whatever type the version gives them. */
TEST(test_symbols)
{
	static const struct {
		const char *name;
		enum v8_number number;
	} names[] = {
		{ "v8dbg_off_fp_function", V8_FP_FUNCTION },
		{ "v8dbg_off_fp_functio", V8_NR },
		{ "v8dbg_off_fp_function_", V8_NR },
		{ "off_fp_function", V8_NR },
		{ "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Object", V8_SHARED_NAME },
		{ "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_",
		  V8_SHARED_NAME },
		{ "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_",
		  V8_SHARED_NAME },
		{ "v8dbg_class_SharedFunctionInfo__script_or_debug_info__HeapObject",
		  V8_SHARED_SCRIPT },
		{ "v8dbg_class_SharedFunctionInfo__script__Tagged_HeapObject_", V8_SHARED_SCRIPT },
		{ "v8dbg_class_SharedFunctionInfo__raw_script__Tagged_Object_", V8_SHARED_SCRIPT },
		{ "v8dbg_class_Code__instruction_start__Address", V8_CODE_BEGIN },
		{ "v8dbg_class_Code__instruction_start__uintptr_t", V8_CODE_INSIDE },
		{ "v8dbg_class_CodeWrapper__instruction_start__Address", V8_NR },
		{ "v8dbg_class_JSFunction__code__Tagged_Code_", V8_FUNCTION_CODE },
		{ "v8dbg_DeoptimizationDataSharedFunctionInfoIndex", V8_DATA_SHARED },
		{ "v8dbg_DeoptimizationDataWrappedSharedFunctionInfoIndex", V8_DATA_SHARED },
		{ "v8dbg_type_ScriptContextTable__SCRIPT_CONTEXT_TABLE_TYPE", V8_NR },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (v8layout_number(names[i].name) != names[i].number)
			fail_msg("%s: %d", names[i].name, v8layout_number(names[i].name));
}

/* ---- a version with a table of handles, wrappers and trusted arrays ---- */

static int setup_14(void **state)
{
	struct fixture *f;

	setup(state);
	f = *state;
	v8make_init_as(&f->v, &f->m, v8make_layout_14());
	f->script = v8make_script(&f->v, v8make_string(&f->v, "/srv/a.js"));
	/* The root register, and the address that it is near. */
	f->sample.r13 = PYMAKE_BASE + 0x16000;
	pymake_u64(&f->m, f->sample.r13 + 488, V8MAKE_HANDLES);
	put_stack(f, PYMAKE_SIZE - STACK, STACK);
	return 0;
}

/* Interpreted: the name and the place are elsewhere in a scope, steps are packed in the table. */
TEST(test_frames_14, setup_14, teardown)
{
	struct v8make_table table = { .bits = 2 };
	struct fixture *f = *state;
	uint64_t outer = v8make_frame(&f->v, named(f, "outer", 100), 0, 0), leaf;

	v8make_entry(&table, 0, v8make_position(205, -1), true);
	v8make_entry(&table, 12, v8make_position(229, -1), false);
	v8make_entry(&table, 20, v8make_position(231, -1), true);
	leaf = v8make_frame(&f->v, named(f, "leaf", 200),
			    v8make_bytecodes(&f->v, table.bytes, table.size), 19);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.nr, 2);
	expect_frame(f, 0, "leaf", "/srv/a.js", leaf);
	assert_int_equal(f->chain.frames[0].instr, 23);
	assert_int_equal(text_of(f, 0)->first_line, 21);
	expect_frame(f, 1, "outer", "/srv/a.js", outer);
}

/* Give @function of 14.6 optimised code, into which @inlined is inlined in line 22. */
static uint64_t optimise_14(struct v8make *v, uint64_t function, uint64_t inlined)
{
	const uint64_t call[2] = { (uint64_t)v8make_position(215, -1), 0 };
	uint64_t data = v8make_object(v, V8MAKE_OTHER, 96);
	uint64_t literals = v8make_object(v, V8MAKE_OTHER, 32);
	struct v8make_table t = { .bits = 2 };

	v8make_data(v, data, V8_DATA_INLINED, v8make_smi(1));
	v8make_data(v, data, V8_DATA_LITERALS, literals + 1);
	v8make_data(v, data, V8_DATA_POSITIONS, v8make_bytes(v, call, sizeof(call)) + 1);
	pymake_u64(v->m, literals + 16, v8make_shared(v, inlined));
	v8make_entry(&t, 0, v8make_position(205, -1), true);
	v8make_entry(&t, 16, v8make_position(311, 0), false);
	v8make_compiled(v, function, 13, data, v8make_bytes(v, t.bytes, t.size));
	return data;
}

/* The code of a function is in a table of handles; the code has its function in a wrapper. */
TEST(test_optimised_14, setup_14, teardown)
{
	struct fixture *f = *state;
	struct v8make *v = &f->v;
	uint64_t hot = named(f, "hot", 200), warm = named(f, "warm", 300), data, root;

	data = optimise_14(v, hot, warm);
	v8make_frame(v, hot, 0, 0);
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.frames[0].compiled[0].start, 0x12340);
	assert_int_equal(f->chain.frames[0].compiled[0].size, 0x80);
	expect_at(f, 0, 15, 21, "");
	expect_at(f, 0, 16, 32, "warm<22 ");
	/* In code of C++ the root register has other values: the table of the thread is known. */
	root = f->sample.r13;
	f->sample.r13 = PYMAKE_BASE + 0x300;
	assert_int_equal(chain(f), LANG_OK);
	expect_at(f, 0, 16, 32, "warm<22 ");
	/* Not of another thread. */
	f->sample.tid++;
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.frames[0].compiled[0].size, 0);
	f->sample.r13 = root;
	assert_int_equal(chain(f), LANG_OK);
	expect_at(f, 0, 16, 32, "warm<22 ");
	/* Code of another function: its tables are not read. */
	v8make_data(v, data, V8_DATA_OPTIMISATION, v8make_smi(9));
	pymake_u64(v->m, bytes_u64(pymake_at(v->m, data + 16 + 8 * 7)) - 1 + 8,
		   v8make_shared(v, warm));
	assert_int_equal(chain(f), LANG_OK);
	assert_int_equal(f->chain.frames[0].compiled[0].code, CODE_NONE);
}

/* The functions of a version without a row are proven by parts that fit each other, or refused. */
TEST(test_proof, setup_14, teardown)
{
	struct fixture *f = *state;
	struct v8_layout right = f->m.process.v8;

	f->m.process.untried = true;
	for (uint32_t i = 0; i < 8; i++) {
		v8make_frame(&f->v, named(f, "right", 100 + i), 0, 0);
		assert_int_equal(chain(f), LANG_OK);
		assert_int_equal(f->chain.proven, i == 7);
	}
	/* The place of a function is elsewhere. */
	f->sample.process++;
	f->m.process.v8.number[V8_SCOPE_POSITION] = 0;
	assert_int_equal(chain(f), LANG_VERSION);
	/* So are steps in a table, which then goes on behind the bytecodes. */
	f->sample.process++;
	f->m.process.v8 = right;
	f->m.process.v8.number[V8_POSITION_BITS] = 0;
	for (uint32_t i = 0; i < 8; i++) {
		struct v8make_table table = { .bits = 2 };

		for (uint32_t at = 0; at < 60; at += 3)
			v8make_entry(&table, at, v8make_position(105 + i + at, -1), true);
		v8make_frame(&f->v, named(f, "wrong", 100 + i),
			     v8make_bytecodes(&f->v, table.bytes, table.size), 9);
	}
	put_stack(f, PYMAKE_SIZE - STACK - 512, STACK + 512);
	chain(f);
	assert_false(f->chain.proven);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
