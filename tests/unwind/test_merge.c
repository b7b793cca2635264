// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * merge: groups of language frames at their C frames, certain only if all fits.
 */
#include "tests/prelude.h"

#include <stdlib.h>

#include "symbols/script/internal.h"
#include "unwind/unwind.h"
#include "symbols/image/image.h"
#include "symbols/process/process.h"

#define LOOP 0x500000ULL
#define SP   0x7ff000ULL

static const struct lang_process python = { .kind = LANG_PYTHON,
					    .eval = { { LOOP, LOOP + 0x10000 } },
					    .nr_eval = 1 };

static const struct lang_process *interpreter = &python;

static union {
	struct lang_slot slot;
	uint8_t bytes[sizeof(struct lang_slot) + 32 * sizeof(struct lang_frame)];
} u;
static struct unwind_result native;
static struct interleave_result out;

/* "n": a native frame, "l": one of the loop; each of 0x100 bytes. */
static void make_native(const char *frames)
{
	memset(&native, 0, sizeof(native));
	for (; frames[native.nr]; native.nr++) {
		native.ip[native.nr] = frames[native.nr] == 'l' ? LOOP + 0x800 : 0x700000;
		native.sp[native.nr] = SP + 0x100ULL * native.nr;
	}
}

/* Frames, innermost first; a number is the native frame in which the group ends, '.': none yet. */
static void make_slot(const char *frames)
{
	memset(&u, 0, sizeof(u));
	u.slot.checked = u.slot.settled = 1;
	u.slot.same = SP + 0x1000;
	for (; frames[u.slot.nr]; u.slot.nr++)
		u.slot.frames[u.slot.nr].boundary =
			frames[u.slot.nr] == '.' ? 0
			: frames[u.slot.nr] == '?'
				? 1
				: SP + 0x100ULL * (uint64_t)(frames[u.slot.nr] - '0') + 8;
}

/* Compare the merged frames: digits are native ones, letters frames of the language. */
static void expect(const char *frames, enum interleave_verdict verdict)
{
	char text[64] = "";

	interleave_stacks(interpreter, &native, &u.slot, &out);
	for (uint32_t i = 0; i < out.nr; i++)
		text[i] = (char)((out.frame[i] & INTERLEAVE_LANG ? 'a' : '0') +
				 (out.frame[i] & ~INTERLEAVE_LANG));
	assert_string_equal(text, frames);
	assert_int_equal(out.verdict, verdict);
}

TEST(test_exact)
{
	make_native("nlnln");
	make_slot(".1.3");
	expect("01ab23cd4", INTERLEAVE_CERTAIN);
	make_slot(".?.?");
	expect("01ab23cd4", INTERLEAVE_CERTAIN);
}

TEST(test_checks)
{
	make_native("nlnln");
	make_slot("13");
	u.slot.checked = 0;
	expect("01a23b4", INTERLEAVE_GUESSED);
	make_slot("13");
	u.slot.same = SP + 0x1ff;
	expect("01a23b4", INTERLEAVE_GUESSED);
	make_slot("13");
	make_slot("?3");
	native.nr_guessed = 1;
	expect("01a23b4", INTERLEAVE_GUESSED);
	native.nr_guessed = 0;
	make_slot("13");
	native.stop = UNWIND_TRUNCATED;
	expect("01a23b4", INTERLEAVE_GUESSED);
}

/* The innermost C frame of the loop has only begun: certain if the stack of frames says so. */
TEST(test_entering)
{
	make_native("ln");
	native.ip[0] = LOOP + 8;
	make_slot("0");
	expect("0a1", INTERLEAVE_CERTAIN);
	u.slot.settled = 0;
	expect("0a1", INTERLEAVE_GUESSED);
}

/* Of R the C frames are the ones that groups end in; others of its functions may be about to call.
 */
TEST(test_r)
{
	static const struct lang_process r = { .kind = LANG_R,
					       .eval = { { LOOP, LOOP + 0x10000 } },
					       .nr_eval = 1 };

	interpreter = &r;
	make_native("lnlnln");
	make_slot(".134");
	expect("01ab23c4d5", INTERLEAVE_CERTAIN);
	native.stop = UNWIND_TRUNCATED;
	make_slot("39");
	expect("0123a45b", INTERLEAVE_CERTAIN);
	native.stop = UNWIND_COMPLETE;
	expect("0123a45", INTERLEAVE_GUESSED);
	make_slot("?3");
	expect("0123b45", INTERLEAVE_GUESSED);
	interpreter = &python;
}

/* One group is missing, or one is too many: the other groups are aligned. */
#define MAIN 0x600000ULL

static const struct lang_process perl = {
	.kind = LANG_PERL,
	.eval = { { LOOP, LOOP + 0x10000 }, { MAIN + 0x1000, MAIN + 0x2000 } },
	.nr_eval = 2,
	.main = { { MAIN, MAIN + 0x1000 },
		  { MAIN + 0x1000, MAIN + 0x2000 },
		  [LANG_MAIN_EVAL] = { MAIN + 0x2000, MAIN + 0x3000 } },
	.nr_main = LANG_MAIN_MAX
};

/* The last frame of a chain of Perl is the main program: not of C code that calls subs. */
TEST(test_embedded)
{
	interpreter = &perl;
	make_native("lnn");
	make_slot(".??"); /* a sub that was called by one that C code called */
	expect("0ab12", INTERLEAVE_CERTAIN);
	make_native("nlnlnn");
	make_slot("?.??");
	expect("01a23bc45", INTERLEAVE_CERTAIN);
	/* perl_run() is there, and the loop of the innermost sub is about to begin. */
	make_native("nlnn");
	native.ip[2] = MAIN + 8;
	make_slot(".??");
	expect("01c23", INTERLEAVE_GUESSED);
	/* A script. */
	make_native("lnlnn");
	native.ip[3] = MAIN + 8;
	make_slot("?.?");
	expect("0a12bc34", INTERLEAVE_CERTAIN);
	/* A BEGIN block: the main program is in perl_parse(). */
	make_native("lnln");
	native.ip[2] = MAIN + 0x1008;
	make_slot("??");
	expect("0a12b3", INTERLEAVE_CERTAIN);
	/* The block of a sort has a loop, and no frame. */
	make_native("nlnlnn");
	make_slot(".??");
	expect("0123ab45", INTERLEAVE_GUESSED);
	/* perl_eval_pv() runs code that calls a sub. */
	make_native("lnn");
	make_slot(".?");
	expect("0ab12", INTERLEAVE_CERTAIN);
	/* No sub is called. */
	make_native("nn");
	make_slot("?");
	expect("", INTERLEAVE_NONE);
	interpreter = &python;
}

/* Code that C calls again and again does not run between two calls; a sub has its context first. */
TEST(test_lack)
{
	interpreter = &perl;
	for (uint8_t lack = LANG_LACK_NONE; lack <= LANG_LACK_BEGUN; lack++) {
		make_native("nnlnn");
		native.ip[3] = MAIN + 8;
		make_slot("??");
		u.slot.loops.lack = lack;
		expect(lack == LANG_LACK_BEGUN ? "a012b34" : "012b34",
		       lack ? INTERLEAVE_CERTAIN : INTERLEAVE_GUESSED);
		/* It runs: a C frame for each. */
		make_native("nlnlnn");
		native.ip[4] = MAIN + 8;
		expect("01a23b45", INTERLEAVE_CERTAIN);
		/* The rest of the stack is not known, or is a guess. */
		make_native("nnlnn");
		native.ip[3] = MAIN + 8;
		native.nr_guessed = 1;
		expect(lack == LANG_LACK_BEGUN ? "a012b34" : "012b34", INTERLEAVE_GUESSED);
		native.nr_guessed = 0;
		native.stop = UNWIND_TRUNCATED;
		expect("012a34b", INTERLEAVE_GUESSED);
	}
	interpreter = &python;
}

/* C frames of the loop that run no frame, as for the block of a sort. */
TEST(test_loops)
{
	interpreter = &perl;
	make_native("nlnnlnn");
	native.ip[5] = MAIN + 8;
	make_slot(".?");
	expect("01234ab56", INTERLEAVE_GUESSED);
	u.slot.loops.nr = 1;
	expect("01234ab56", INTERLEAVE_CERTAIN);
	make_native("nnnlnn");
	native.ip[4] = MAIN + 8;
	expect("0123ab45", INTERLEAVE_GUESSED);
	u.slot.loops.lack = LANG_LACK_IDLE;
	expect("0123ab45", INTERLEAVE_CERTAIN);
	make_native("nlnlnlnn");
	native.ip[6] = MAIN + 8;
	make_slot("??");
	expect("0123a45b67", INTERLEAVE_GUESSED);
	u.slot.frames[0].boundary = 2;
	expect("01a2345b67", INTERLEAVE_CERTAIN);
	/* More of them than can be. */
	u.slot.loops.nr = UINT8_MAX;
	for (uint32_t i = 0; i < 2; i++)
		u.slot.frames[i].boundary = LANG_LOOPS_MAX;
	expect("012345b67", INTERLEAVE_GUESSED);
	interpreter = &python;
}

/* The loop of an eval {} goes on with the frames of the next one. */
TEST(test_inner)
{
	interpreter = &perl;
	make_native("nlnlnn");
	native.ip[4] = MAIN + 8;
	make_slot(".?");
	expect("0123ab45", INTERLEAVE_GUESSED);
	u.slot.loops.inner[0] = native.sp[2];
	expect("0123ab45", INTERLEAVE_CERTAIN);
	u.slot.loops.inner[1] = native.sp[4] + 8; /* that of perl_run() */
	expect("0123ab45", INTERLEAVE_CERTAIN);
	u.slot.loops.inner[0] = native.sp[3];
	expect("0123ab45", INTERLEAVE_GUESSED);
	interpreter = &python;
}

/* The operation by which C calls a sub is on its stack, and the loop has run no sub yet. */
TEST(test_call)
{
	interpreter = &perl;
	make_native("nlnlnn");
	native.ip[4] = MAIN + 8;
	make_slot(".?");
	u.slot.loops.call = native.sp[2];
	expect("0123ab45", INTERLEAVE_CERTAIN);
	u.slot.loops.call = native.sp[3];
	expect("0123ab45", INTERLEAVE_GUESSED);
	u.slot.loops.call = native.sp[2] - 8;
	expect("0123ab45", INTERLEAVE_GUESSED);
	make_slot("??");
	u.slot.loops.call = native.sp[2];
	expect("01a23b45", INTERLEAVE_CERTAIN);
	interpreter = &python;
}

/* Of a stack without its root, the program says whether Perl is embedded. */
TEST(test_embedded_without_root)
{
	struct lang_process script = perl;

	script.program = true;
	make_slot(".??");
	for (int i = 0; i < 3; i++) {
		make_native("lnn");
		native.stop = i ? UNWIND_TRUNCATED : UNWIND_COMPLETE;
		native.nr_guessed = i != 1;
		interpreter = &perl;
		expect("0ab12", INTERLEAVE_GUESSED);
		interpreter = &script;
		expect(i ? "0ab12c" : "0c12", INTERLEAVE_GUESSED);
	}
	/* The loop is not reached. */
	make_native("nn");
	native.stop = UNWIND_GAP;
	interpreter = &perl;
	expect("01ab", INTERLEAVE_GUESSED);
	interpreter = &python;
}

/* A sub that is about to begin has no frame; perl_eval_pv() runs code outside of subs. */
TEST(test_embedded_alone)
{
	interpreter = &perl;
	make_slot("?");
	make_native("lnn");
	expect("", INTERLEAVE_NONE);
	native.ip[1] = MAIN + 0x2008;
	expect("0a12", INTERLEAVE_CERTAIN);
	native.ip[1] = MAIN + 8;
	expect("0a12", INTERLEAVE_CERTAIN);
	/* A sub that calls perl_eval_pv(), which has a loop and no frame. */
	make_native("lnln");
	native.ip[1] = MAIN + 0x2008;
	make_slot("??");
	expect("012a3", INTERLEAVE_CERTAIN);
	interpreter = &python;
}

TEST(test_mismatch)
{
	make_native("nlnlnln");
	make_slot("35");
	expect("0123a45b6", INTERLEAVE_GUESSED);
	make_slot("??");
	expect("01a23b456", INTERLEAVE_GUESSED);
	make_native("nln");
	make_slot("91");
	expect("01b2", INTERLEAVE_GUESSED);
	make_slot("99");
	expect("", INTERLEAVE_NONE);
	make_native("nnn");
	make_slot("1");
	expect("", INTERLEAVE_NONE);
}

/*
 * The innermost C frame of the loop is about to make its first frame, or has removed it: without
 * addresses, as before Python 3.11, the outermost one may as well be of a greenlet that waits.
 */
TEST(test_without_frame)
{
	make_native("lnlnln");
	make_slot("24");
	expect("012a34b5", INTERLEAVE_CERTAIN);
	make_slot("??");
	expect("0a12b345", INTERLEAVE_GUESSED);
	native.ip[0] = LOOP + 8;
	expect("012a34b5", INTERLEAVE_GUESSED);
	make_slot("4");
	expect("01234a5", INTERLEAVE_GUESSED);
	make_slot("14");
	expect("01234b5", INTERLEAVE_GUESSED);
}

/*
 * The native stack is cut: the other frames of the language are kept. Certain where their
 * addresses are beyond the copy.
 */
TEST(test_cut)
{
	make_native("nln");
	native.stop = UNWIND_TRUNCATED;
	make_slot("1.8");
	expect("01a2bc", INTERLEAVE_CERTAIN);
	make_slot("1.?");
	expect("01a2bc", INTERLEAVE_GUESSED);
	make_slot("?.8");
	expect("01a2bc", INTERLEAVE_GUESSED);
	native.stop = UNWIND_NO_CFI;
	make_slot("1.8");
	expect("01a2bc", INTERLEAVE_CERTAIN);
	native.stop = UNWIND_BAD_FRAME;
	expect("01a2bc", INTERLEAVE_GUESSED);
}

/*
 * The outermost frames of the language were not read: callers beyond them are left out. The
 * innermost C frame may have no group.
 */
TEST(test_deep)
{
	make_native("nlnlnln");
	make_slot(".1..");
	u.slot.deep = 1;
	expect("01ab23cd", INTERLEAVE_GUESSED);
	assert_int_equal(out.doubts, INTERLEAVE_CUT);
	make_native("lnlnln");
	make_slot("2.");
	u.slot.deep = 1;
	expect("012a34b", INTERLEAVE_GUESSED);
	make_slot("0.");
	u.slot.deep = 1;
	expect("0a12b", INTERLEAVE_GUESSED);
	assert_int_equal(out.doubts, INTERLEAVE_CUT);
	/* A group that is not in its C frame; the last one has no address. */
	make_native("nlnlnln");
	make_slot(".9.3..");
	u.slot.deep = 1;
	expect("0123cdef", INTERLEAVE_GUESSED);
	/* An innermost C frame that has only begun, before it has a frame. */
	make_native("lnlnln");
	native.ip[0] = LOOP + 8;
	make_slot("..");
	u.slot.deep = 1;
	u.slot.settled = 0;
	expect("012ab", INTERLEAVE_GUESSED);
	/* A C frame for each, and the native stack is cut also. */
	make_native("nlnl");
	native.stop = UNWIND_DEPTH;
	make_slot("135");
	u.slot.deep = 1;
	expect("01a23bc", INTERLEAVE_GUESSED);
	/* A whole native stack with fewer C frames: there is no root to count them from. */
	make_native("nln");
	make_slot("???");
	u.slot.deep = 1;
	expect("01abc", INTERLEAVE_GUESSED);
}

/* Guessed callers of compiled code, in which no group ends: the chain is kept. */
TEST(test_guessed_callers)
{
	make_native("nnlnl");
	make_slot(".7.9");
	u.slot.pid = 7;
	u.slot.tid = 8;
	expect("", INTERLEAVE_NONE);
	native.nr_guessed = 3;
	native.guessed_by = 1;
	expect("01abcd", INTERLEAVE_CERTAIN);
	u.slot.same = u.slot.frames[1].boundary;
	expect("01abcd", INTERLEAVE_GUESSED);
	assert_int_equal(out.doubts, INTERLEAVE_CUT);
	/* They may be right. */
	make_slot(".2.?");
	expect("012ab34cd", INTERLEAVE_GUESSED);
	make_native("nnlnln");
	native.nr_guessed = 1;
	make_slot(".2.4");
	expect("012ab34cd5", INTERLEAVE_CERTAIN);
}

/*
 * Code that the JIT of Python made keeps the frame pointer of the loop that calls it: the guess
 * leaves the loop out, and the group is between its two frames. The line is not known there.
 */
TEST(test_compiled_code)
{
	make_native("nnlnn");
	native.nr_guessed = 1;
	make_slot(".0.2");
	expect("0ab12cd34", INTERLEAVE_CERTAIN);
	assert_int_equal(lang_place_instr(out.place[1]), LANG_NO_INSTR);
	assert_int_equal(lang_place_instr(out.place[2]), 0);
	/* In a function that such code calls. */
	native.guessed_by = 1;
	make_slot(".1.2");
	expect("01ab2cd34", INTERLEAVE_CERTAIN);
	assert_int_equal(lang_place_instr(out.place[2]), 0);
	/* The next such code ends the native stack. */
	native.stop = UNWIND_NO_CFI;
	make_slot(".1.29");
	expect("01ab2cd34e", INTERLEAVE_CERTAIN);
	/* A guess that leads to a frame of the loop without a group, two groups in one frame. */
	native.stop = UNWIND_COMPLETE;
	make_slot(".1");
	expect("01ab", INTERLEAVE_CERTAIN);
	make_slot("1.12");
	expect("012d34", INTERLEAVE_GUESSED);
	make_native("nnnn");
	native.nr_guessed = 1;
	make_slot("12");
	native.sp[0] += 0x300;
	expect("01a2b3", INTERLEAVE_CERTAIN);
	make_slot("21");
	native.guessed_by = 3;
	expect("0123ab", INTERLEAVE_GUESSED);
	/* The loop is about to leave its frame, which compiled code called. */
	make_native("nln");
	native.stop = UNWIND_NO_CFI;
	make_slot("4");
	expect("012a", INTERLEAVE_GUESSED);
}

/*
 * Code that the JIT of Ruby made leads to its loop by a guess, which as many groups as loops prove:
 * without the line, and as long as the innermost frame has its function.
 */
TEST(test_compiled_ruby)
{
	make_native("nnln");
	native.nr_guessed = native.nr_loop_guessed = 1;
	make_slot("?");
	expect("012a3", INTERLEAVE_CERTAIN);
	assert_int_equal(lang_place_instr(out.place[3]), LANG_NO_INSTR);
	u.slot.settled = 0;
	expect("012a3", INTERLEAVE_GUESSED);
	assert_int_equal(out.doubts, INTERLEAVE_ENTERING);
	/* A function that it calls has stored the line. */
	native.guessed_by = 1;
	expect("012a3", INTERLEAVE_CERTAIN);
	assert_int_equal(lang_place_instr(out.place[3]), 0);
	native.nr_guessed = 2;
	expect("012a3", INTERLEAVE_GUESSED);
}

/* A native stack that ends before the loop: a guess, and only with the chain of the thread. */
TEST(test_before_loop)
{
	struct lang_process php = python;

	make_native("nn");
	make_slot(".1.3");
	u.slot.pid = 7;
	u.slot.tid = 8;
	expect("", INTERLEAVE_NONE);
	native.stop = UNWIND_NO_CFI;
	expect("01abcd", INTERLEAVE_CERTAIN);
	make_slot(".?.?");
	u.slot.pid = 7;
	u.slot.tid = 8;
	expect("01abcd", INTERLEAVE_GUESSED);
	assert_int_equal(out.doubts, INTERLEAVE_CUT);
	php.kind = LANG_PHP;
	interleave_stacks(&php, &native, &u.slot, &out);
	assert_int_equal(out.verdict, INTERLEAVE_NONE);
	u.slot.tid = u.slot.pid;
	interleave_stacks(&php, &native, &u.slot, &out);
	assert_int_equal(out.verdict, INTERLEAVE_GUESSED);
	assert_int_equal(out.nr, 6);
}

/* The native stack is a fiber's and ends with it; the other frames are of its resumers. */
TEST(test_fiber)
{
	make_native("nln");
	native.stop = UNWIND_NO_CFI;
	make_slot(".?.?");
	u.slot.nr_here = 2;
	expect("01ab2cd", INTERLEAVE_CERTAIN);
	make_native("nlnln");
	native.stop = UNWIND_NO_CFI;
	expect("01ab23cd4", INTERLEAVE_GUESSED);
	/* It was started by hand, and the chain goes on to the loop of the thread (Coro of Perl).
	 */
	make_native("nln");
	native.fiber = true;
	make_slot("??");
	expect("01a2b", INTERLEAVE_GUESSED);
}

/*
 * A greenlet runs on the stack of the thread, on top of frames of ones that wait: its chain ends
 * before theirs, and these are not its callers.
 */
TEST(test_greenlet)
{
	make_native("nlnlnlnnln");
	make_slot(".1.3");
	expect("01ab23cd4", INTERLEAVE_CERTAIN);
	assert_true(out.whole);
	/* The rest of the native stack says nothing. */
	native.stop = UNWIND_BAD_FRAME;
	native.nr_guessed = 2;
	native.guessed_by = 4;
	expect("01ab23cd4", INTERLEAVE_CERTAIN);
	native.guessed_by = 3;
	expect("01ab23cd456789", INTERLEAVE_GUESSED);
	assert_false(out.whole);
	/* The stack has changed since; an address that is not known, or not in its C frame. */
	make_native("nlnlnlnnln");
	make_slot(".1.3");
	u.slot.same = SP + 0x200;
	expect("01ab23cd4", INTERLEAVE_CERTAIN);
	u.slot.same = SP + 0x1ff;
	expect("01ab23cd4", INTERLEAVE_GUESSED);
	assert_false(out.whole);
	make_slot(".1.?");
	expect("01ab23456789", INTERLEAVE_GUESSED);
	make_slot("14");
	expect("01a23456789", INTERLEAVE_GUESSED);
	/* The innermost C frame has only begun. */
	make_native("lnlnln");
	make_slot("2");
	expect("012a3", INTERLEAVE_CERTAIN);
	/* Outer frames of the language were not read. */
	make_slot("0");
	u.slot.deep = 1;
	expect("0a", INTERLEAVE_GUESSED);
	/* The native stack ends with it. */
	make_native("nlnlnn");
	native.stop = UNWIND_NO_MAP;
	make_slot(".1.3");
	expect("01ab23cd45", INTERLEAVE_CERTAIN);
	assert_false(out.whole);
	make_slot(".1.?");
	expect("01ab23cd45", INTERLEAVE_GUESSED);
}

/* ---- V8 ---- */

static const struct lang_process v8 = { .kind = LANG_NODE };

/* "n": native, "c": compiled code, "b": a builtin; of JavaScript each, "B": of another frame. */
static void make_v8(const char *frames)
{
	memset(&native, 0, sizeof(native));
	for (; frames[native.nr]; native.nr++) {
		native.ip[native.nr] = 0x700000;
		native.sp[native.nr] = SP + 0x100ULL * native.nr;
		if (frames[native.nr] != 'n')
			native.v8[native.nr_v8++] = (struct unwind_v8){
				.fp = native.sp[native.nr] + 0x80,
				.frame = native.nr,
				.compiled = frames[native.nr] == 'c',
				.javascript = frames[native.nr] != 'B',
			};
	}
}

static const struct lang_compiled own = { .start = 0x700000, .size = 16, .code = CODE_NONE };
static struct script_functions *codes;

/* Frames of JavaScript: a digit is the native frame it belongs to, '.': none yet. */
static void make_v8_slot(const char *frames)
{
	memset(&u, 0, sizeof(u));
	u.slot.checked = 1;
	u.slot.top = LANG_TOP_BODY;
	u.slot.same = SP + 0x1000;
	for (; frames[u.slot.nr]; u.slot.nr++) {
		u.slot.frames[u.slot.nr].code = u.slot.nr;
		u.slot.frames[u.slot.nr].compiled[0] = own;
		u.slot.frames[u.slot.nr].boundary =
			frames[u.slot.nr] == '.'
				? 0
				: SP + 0x80 + 0x100ULL * (uint64_t)(frames[u.slot.nr] - '0');
	}
}

static void expect_v8(const char *frames, enum interleave_verdict verdict)
{
	char text[64] = "";

	interleave_v8(&v8, codes, &native, &u.slot, &out);
	for (uint32_t i = 0; i < out.nr; i++) {
		bool lang = out.frame[i] & INTERLEAVE_LANG;
		bool inlined = lang && lang_place_instr(out.place[i]) == LANG_INLINED;

		text[i] = (char)((inlined ? 'A'
				  : lang  ? 'a'
					  : '0') +
				 (lang ? lang_place_code(out.place[i]) : out.frame[i]));
	}
	assert_string_equal(text, frames);
	assert_int_equal(out.verdict, verdict);
}

/* Compiled code is its function; the function that a builtin runs is its caller. */
TEST(test_v8)
{
	make_v8("ccbBnncn");
	make_v8_slot("0126");
	expect_v8("ab2c345d7", INTERLEAVE_CERTAIN);
	/* One that is not on the native stack is left out; one that is not read makes a guess. */
	make_v8_slot("013456");
	expect_v8("ab2345f7", INTERLEAVE_GUESSED);
	make_v8_slot("");
	expect_v8("", INTERLEAVE_NONE);
	make_v8_slot("5");
	expect_v8("", INTERLEAVE_NONE);
}

/* A builtin without a frame runs at the frame pointer of its caller. */
TEST(test_v8_frameless)
{
	make_v8("bbn");
	native.v8[0].fp = native.v8[1].fp;
	make_v8_slot("1");
	native.nr_guessed = native.nr_v8_guessed = 1;
	expect_v8("01a2", INTERLEAVE_CERTAIN);
	native.nr_v8_guessed = 0;
	expect_v8("01a2", INTERLEAVE_GUESSED);
}

/* The innermost function makes its frame, or leaves it: its name is a guess. */
TEST(test_v8_entry)
{
	make_v8("ccn");
	make_v8_slot(".01");
	u.slot.top = LANG_TOP_UNKNOWN;
	expect_v8("abc2", INTERLEAVE_GUESSED);
	make_v8_slot("01");
	u.slot.top = LANG_TOP_UNKNOWN;
	expect_v8("ab2", INTERLEAVE_GUESSED);
	/* Sampled in a builtin: the code there has no function. */
	make_v8("bcn");
	make_v8_slot(".01");
	u.slot.top = LANG_TOP_UNKNOWN;
	expect_v8("0bc2", INTERLEAVE_CERTAIN);
}

/* It has no frame: certain if the code is the function's, and the code on top of the stack its
 * caller's. */
TEST(test_v8_no_frame)
{
	make_v8("ccn");
	native.ip[0] += 4;
	native.v8[0].on_top = 0x700009;
	make_v8_slot(".01");
	u.slot.top = LANG_TOP_FRAMELESS;
	expect_v8("abc2", INTERLEAVE_CERTAIN);
	u.slot.frames[1].compiled[0].start = 0x700009;
	expect_v8("abc2", INTERLEAVE_GUESSED);
	u.slot.frames[1].compiled[0].start = 0x700008;
	u.slot.frames[0].compiled[0].start = 0x700008;
	expect_v8("Abc2", INTERLEAVE_GUESSED);
	/* Its frame pointer was pushed: it has a native frame, and its caller another one. */
	native.v8[0].on_top = 0;
	native.v8[0].fp = native.v8[1].fp;
	make_v8_slot(".1");
	u.slot.top = LANG_TOP_FRAMELESS;
	expect_v8("ab2", INTERLEAVE_CERTAIN);
	/* Called by a builtin without JavaScript, which is not among the frames. */
	make_v8("cBn");
	native.v8[0].javascript = false;
	make_v8_slot(".");
	u.slot.top = LANG_TOP_FRAMELESS;
	expect_v8("a12", INTERLEAVE_GUESSED);
}

/* Code of WebAssembly is its function, by its address, also if it has no frame. */
TEST(test_v8_wasm)
{
	static const struct lang_compiled wasm = { .start = 0x800000, .size = 16 };

	make_v8("Bccn");
	native.v8[0].compiled = true;
	native.ip[0] = 0x800004;
	native.v8[0].on_top = 0x800005;
	make_v8_slot("12?");
	u.slot.frames[2].compiled[0] = wasm;
	u.slot.frames[2].boundary = LANG_WASM;
	expect_v8("cab3", INTERLEAVE_CERTAIN);
	/* It has no frame, and was called by other code of WebAssembly, which has this one. */
	u.slot.frames[2].compiled[0].inlined = true;
	expect_v8("ccab3", INTERLEAVE_CERTAIN);
	/* Its name was not read yet. */
	u.slot.frames[2].code = CODE_NONE;
	expect_v8("00ab3", INTERLEAVE_CERTAIN);
	/* It has no frame, and was called by JavaScript. */
	make_v8("ccn");
	native.ip[0] = 0x800004;
	native.v8[0].on_top = 0x700009;
	make_v8_slot("01?");
	u.slot.frames[2].compiled[0] = wasm;
	u.slot.frames[2].compiled[0].inlined = true;
	u.slot.frames[2].boundary = LANG_WASM;
	expect_v8("cab2", INTERLEAVE_CERTAIN);
	native.v8[0].on_top = 0;
	expect_v8("cb2", INTERLEAVE_CERTAIN);
}

/* Functions may be inlined, unless the code is the function's own and has none. */
TEST(test_v8_inlined)
{
	make_v8("cbcc");
	make_v8_slot("0123");
	u.slot.frames[0].compiled[0] = (struct lang_compiled){ 0x6fff00, 0x200, CODE_NONE, false };
	u.slot.frames[1].compiled[0] = (struct lang_compiled){ 0x6fff00, 0x200, CODE_NONE, true };
	u.slot.frames[2].compiled[0] = (struct lang_compiled){ 0x6fff00, 0x200, CODE_NONE, true };
	u.slot.frames[3].compiled[0] = (struct lang_compiled){ 0x6fff00, 0x100, CODE_NONE, false };
	expect_v8("a1bCD", INTERLEAVE_CERTAIN);
}

/* A table of the code: the functions that are inlined at its bytes, each with its line. */
TEST(test_v8_table)
{
	static const struct v8_inlined calls[] = { { 5, 31, V8_NOT_INLINED }, { 6, 32, 0 } };
	uint8_t bytes[256];
	struct v8_table t = { .bytes = bytes, .room = sizeof(bytes) };
	struct code_text text = { .name = "f", .name_size = 1, .compiled = true };
	const struct code_key key = { 1, 2, 3 };
	uint32_t id;

	assert_true(v8table_begin(&t, calls, 2));
	assert_true(v8table_add(&t, &(struct v8_entry){ 0x80, 40, V8_NOT_INLINED }));
	assert_true(v8table_add(&t, &(struct v8_entry){ 0x100, 41, 1 }));
	assert_true(v8table_add(&t, &(struct v8_entry){ 0x180, 0, V8_NOT_INLINED }));
	codes = script_functions_new();
	text.table = bytes;
	text.table_size = t.size;
	text.file = text.name;
	text.file_size = 1;
	id = script_functions_add(codes, &key, &text);
	make_v8("cnccn");
	make_v8_slot("023");
	u.slot.frames[0].compiled[1] = (struct lang_compiled){ 0x6fff00, 0x200, id, true };
	u.slot.frames[0].compiled[0].size = 0;
	u.slot.frames[1].compiled[0] = (struct lang_compiled){ 0x700000 - 0x90, 0x200, id, true };
	u.slot.frames[2].compiled[0] = (struct lang_compiled){ 0x700000 - 0x1a0, 0x200, id, true };
	expect_v8("gfa1bc4", INTERLEAVE_CERTAIN);
	assert_int_equal(lang_place_instr(out.place[0]), 41);
	assert_int_equal(lang_place_instr(out.place[1]), 32);
	assert_int_equal(lang_place_instr(out.place[2]), 31);
	assert_int_equal(lang_place_instr(out.place[4]), 40);
	assert_int_equal(lang_place_instr(out.place[5]), LANG_NO_INSTR);
	/* In front of the first entry: the function, with nothing said of its lines. */
	u.slot.frames[1].compiled[0].start = 0x700000;
	expect_v8("gfa1Bc4", INTERLEAVE_CERTAIN);
	script_functions_free(codes);
	codes = NULL;
}

/*
 * Groups that are in none of many C frames are not compared with all of them: the sampler thread
 * has a real-time priority.
 */
TEST(test_forged)
{
	struct lang_slot *slot =
		calloc(1, sizeof(*slot) + LANG_FRAMES_MAX * sizeof(struct lang_frame));
	char frames[64] = "";

	assert_non_null(slot);
	memset(frames, 'l', 40);
	frames[40] = 'n';
	make_native(frames);
	native.stop = UNWIND_TRUNCATED;
	for (uint32_t nr = 100; nr <= LANG_FRAMES_MAX; nr += LANG_FRAMES_MAX - 100) {
		slot->nr = (uint16_t)nr;
		for (uint32_t g = 0; g < nr; g++)
			slot->frames[g].boundary = 0x1000;
		slot->frames[nr - 1].boundary = SP + 0x100ULL * 39 + 8;
		interleave_stacks(&python, &native, slot, &out);
		assert_int_equal(out.verdict, nr == 100 ? INTERLEAVE_GUESSED : INTERLEAVE_NONE);
	}
	free(slot);
}

/* An inlined function that has no id: the others, as a guess. */
TEST(test_v8_no_room)
{
	static const struct v8_inlined calls[] = { { CODE_NONE, 31, V8_NOT_INLINED },
						   { 6, 32, 0 } };
	uint8_t bytes[256];
	struct v8_table t = { .bytes = bytes, .room = sizeof(bytes) };
	const struct code_text text = { .name = "f",
					.name_size = 1,
					.file = "f",
					.compiled = true,
					.table = bytes,
					.table_size = sizeof(bytes) };
	const struct code_key key = { 1, 2, 3 };
	uint32_t id;

	memset(bytes, 0, sizeof(bytes));
	assert_true(v8table_begin(&t, calls, 2));
	assert_true(v8table_add(&t, &(struct v8_entry){ 0, 41, 1 }));
	codes = script_functions_new();
	id = script_functions_add(codes, &key, &text);
	make_v8("cn");
	make_v8_slot("0");
	u.slot.frames[0].compiled[0] = (struct lang_compiled){ 0x6fff00, 0x200, id, true };
	expect_v8("ga1", INTERLEAVE_GUESSED);
	script_functions_free(codes);
	codes = NULL;
}

TEST(test_v8_checks)
{
	make_v8("nccn");
	make_v8_slot("12");
	u.slot.checked = 0;
	expect_v8("0ab3", INTERLEAVE_GUESSED);
	make_v8_slot("12");
	u.slot.same = SP + 0x187;
	expect_v8("0ab3", INTERLEAVE_GUESSED);
	make_v8_slot("12");
	native.stop = UNWIND_TRUNCATED;
	expect_v8("0ab3", INTERLEAVE_GUESSED);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
