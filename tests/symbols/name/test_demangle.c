// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * demangle: the expected names, and names made to explode.
 */
#include "tests/prelude.h"
#include "symbols/base/base.h"
#include "symbols/name/internal.h"
#include "tests/yardstick.h"

#define OUT_SIZE 1025

/* Append @text; the new end. */
static char *put(char *p, const char *text)
{
	size_t size = strlen(text);

	memcpy(p, text, size + 1);
	return p + size;
}

TEST(test_names)
{
	static const struct {
		const char *mangled, *name; /* NULL: shown raw */
	} cases[] = {
		{ "_ZNSt6vectorIiSaIiEE9push_backEOi", "std::vector<int, std::allocator<int> "
						       ">::push_back" },
		{ "_ZN3foo3barEv", "foo::bar" },
		{ "_ZNK3foo3barEv", "foo::bar" },
		{ "_ZN3fooC1Ei", "foo::foo" },
		{ "_ZN3fooD0Ev", "foo::~foo" },
		{ "_ZlsRSoRK3foo", "operator<<" },
		{ "_ZTI3foo", "typeinfo for foo" },
		{ "_ZN3foo3barEv.cold", "foo::bar.cold" },
		{ "_ZN3foo3barEv.part.0.constprop.1", "foo::bar.part.0.constprop.1" },
		{ "_ZN3foo3barEv.llvm.123456", "foo::bar" },
		{ "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_"
								      "fmt" },
		/* Dots before the hash, and a suffix behind it. */
		{ "_ZN47_$LT$scr2..My$u20$as$u20$core..hash..Hasher$GT$5write17hf6deb5acd592ffd4E",
		  "<scr2::My as core::hash::Hasher>::write" },
		{ "_ZN47_$LT$scr2..My$u20$as$u20$core..hash..Hasher$GT$5write17hf6deb5acd592ffd4E."
		  "cold",
		  "<scr2::My as core::hash::Hasher>::write.cold" },
		{ "_ZN47_$LT$scr2..My$u20$as$u20$core..hash..Hasher$GT$5write17hf6deb5acd592ffd4E"
		  ".llvm.14786954344971462818",
		  "<scr2::My as core::hash::Hasher>::write" },
		{ "_RNvCskwGfYPst2Cb_3foo16example_function", "foo::example_function" },
		{ "_RNvNtNtCsjrHSEGnQ3l9_3std2io5stdio19OUTPUT_CAPTURE_USED.0", "std::io::stdio::"
										"OUTPUT_CAPTURE_"
										"USED.0" },
		{ "_RNvCskwGfYPst2Cb_3foo16example_function.llvm.99", "foo::example_function" },
		{ "_D3std5stdio4File5writeMFZv", "std.stdio.File.write" },
		{ "_D3foo3barQeFZv", "foo.bar.bar" },
		{ "_D3std9algorithm__T3mapTiZ3mapFZv", "std.algorithm.map!().map" },
		{ "_D5wheel__T5WheelTmZQj4hotDMFNaNbNiNfmZm", "wheel.Wheel!().Wheel.hotD" },
		{ "_D1m__T1fVii42VAyaa3_616263S3foo3barTHiAyaTPFiKaZvZ1gFZv", "m.f!().g" },
		{ "_D1m__T1fTDxFNbAxaZDFZiTG4fTS1s__T1tTvZ1uZ1gFZv", "m.f!().g" },
		{ "_D1m__T1fT?Z1gFZv", "m.f!()" },
		{ "_D3std16__T3mapTiTiTiTiZ3runFZv", "std.map!().run" },
		/* Nested functions and lambdas: each has the type of the one around before it. */
		{ "_D1x4mainFAAyaZ5parseMFNbNikZk", "x.main.parse" },
		{ "_D1x4mainFAAyaZ9__lambda3MFNbNikZk", "x.main.__lambda3" },
		{ "_D1m1C3runMxFNbZ5innerMFNaiZ4deepMFZv", "m.C.run.inner.deep" },
		{ "_D1m1fFS1m1SZ__T1gTiZQgMFZv", "m.f.g!()" },
		{ "_D1m1fFS1m1SZQh", "m.f" },
		{ "_D1m1fMFNaZ1gMF?Z1hMFZv", "m.f.g" },
		{ "_D9short", NULL },
		{ "_D0", NULL },
		{ "_D4294967299foo", NULL },
		{ "main", NULL },
		{ "", NULL },
		{ "_", NULL },
		{ "_Z", NULL },
		{ "_ZN", NULL },
		{ "_R", NULL },
		{ "_Zebra", NULL },
		{ "_start", NULL },
		{ "Z3foov", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char out[OUT_SIZE] = "untouched";
		size_t size =
			demangle(cases[i].mangled, strlen(cases[i].mangled), out, sizeof(out));

		if (!cases[i].name) {
			if (size)
				fail_msg("%s became %s", cases[i].mangled, out);
			continue;
		}
		assert_string_equal(out, cases[i].name);
		assert_int_equal(size, strlen(cases[i].name));
	}
}

/* The name has the given size, without a NUL behind it; NULs inside are refused. */
TEST(test_bounds)
{
	char out[OUT_SIZE], small[8], big[DEMANGLE_NAME_MAX + 16];
	char *exact = malloc(13);

	memcpy(exact, "_ZN3foo3barEv", 13);
	assert_int_equal(demangle(exact, 13, out, sizeof(out)), 8);
	assert_int_equal(demangle(exact, 13, small, sizeof(small)), 7);
	assert_string_equal(small, "foo::ba");
	assert_int_equal(demangle(exact, 13, small, 1), 0);
	assert_int_equal(demangle("_ZN3\0oo3barEv", 13, out, sizeof(out)), 0);
	memset(big, 'a', sizeof(big));
	memcpy(big, "_Z4089", 6);
	big[DEMANGLE_NAME_MAX - 1] = 'v';
	assert_int_equal(demangle(big, DEMANGLE_NAME_MAX, out, sizeof(out)), OUT_SIZE - 1);
	assert_int_equal(demangle(big, DEMANGLE_NAME_MAX + 1, out, sizeof(out)), 0);
	free(exact);
}

/* Demangle one name within a number of milliseconds; return the result. */
static bool costs_at_most(double ms, const char *name, size_t *size)
{
	char out[OUT_SIZE];
	uint64_t start = yardstick_cpu_ns();

	*size = demangle(name, strlen(name), out, sizeof(out));
	assert_true(*size < sizeof(out));
	return yardstick_within(start, ms);
}

/* Pairs of pairs by back reference: the whole name doubles with each level. */
TEST(test_substitutions_that_double)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char name[1024];
	size_t size;

	for (unsigned int levels = 5; levels < 36; levels++) {
		char *p = put(name, "_Z1fISt4pairIiiE");

		for (unsigned int i = 0; i < levels; i++)
			p += sprintf(p, "S_IS%c_S%c_E", digits[i], digits[i]);
		put(p, "EvT_");
		assert_true(costs_at_most(5.0, name, &size));
		if (levels > 20)
			assert_int_equal(size, OUT_SIZE - 1); /* cut, not refused */
	}
}

/* Packs of nothing expanded inside each other: time without output. */
TEST(test_packs_of_nothing)
{
	char name[DEMANGLE_NAME_MAX];
	size_t size;

	for (unsigned int depth = 1; depth < 12; depth++) {
		for (unsigned int width = 1; width < 1000; width = width * 3 + 1) {
			char *p = put(name, "_Z1fIJ");

			for (unsigned int i = 0; i < width; i++)
				p = put(p, "JE");
			p = put(p, "EE1gI");
			for (unsigned int i = 0; i < depth; i++)
				p = put(p, "Dp");
			put(p, "T_EvT_");
			assert_true(costs_at_most(50.0, name, &size));
		}
	}
}

/* References x templates bound the printer's stack. */
TEST(test_stack_of_copies)
{
	static const char *const parts[][2] = {
		{ "St1aIiE", "RT_" }, { "IiE", "OT_" }, { "1aIT_E", "RT0_" }, { "P", "T_" },
		{ "N", "1a" },	      { "F", "v" },	{ "X", "sp" },	      { "A", "_" },
	};
	char name[DEMANGLE_NAME_MAX + 64];
	size_t size;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		char *p = put(name, "_Z1fI");

		while (p - name < DEMANGLE_NAME_MAX / 2)
			p = put(p, parts[i][0]);
		while (p - name < DEMANGLE_NAME_MAX - 16)
			p = put(p, parts[i][1]);
		put(p, "Ev");
		assert_true(costs_at_most(50.0, name, &size));
	}
}

/* D's back references name identifiers; none may point outside, and their number costs nothing. */
TEST(test_d_references)
{
	char name[DEMANGLE_NAME_MAX];
	char *p = put(name, "_D1a1b");
	size_t size;

	for (int i = 0; i < 1000; i++)
		p = put(p, "Qc");
	put(p, "FZv");
	assert_true(costs_at_most(5.0, name, &size));
	assert_true(size > 3 && size < OUT_SIZE);
	assert_true(costs_at_most(5.0, "_D1aQzFZv", &size));
	assert_int_equal(size, 1);
	assert_true(costs_at_most(5.0, "_D1aQZZZZZZZZZZZZZZZZZZZZz", &size));
	assert_int_equal(size, 1);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
