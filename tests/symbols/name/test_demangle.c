// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * demangle: the expected names, and names made to explode.
 */
#include "symbols/name/demangle.c"

#include "tests/prelude.h"
#include "symbols/base/base.h"
#include "tests/yardstick.h"

#define OUT_SIZE 1025

/* Append @text; the new end. */
static char *append(char *p, const char *text)
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
		/* A lambda of main() and a type nested in a function as arguments. */
		{ "_D3std9algorithm9iteration__T9MapResultS2dn4mainFZ9__lambda3TSQCi5range__"
		  "T4iotaTiTiZQkFiiZ6ResultZQCr5emptyMFNaNbNdNiNfZb",
		  "std.algorithm.iteration.MapResult!().MapResult.empty" },
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

/*
 * C++20, by clang 19 and g++ 14 from one program, with the kinds of parameters and constraints: as
 * llvm-cxxfilt 19 has them, but for lambdas, the word "friend", and some that it cannot read.
 */
TEST(test_names_with_constraints)
{
	static const struct {
		const char *mangled, *name; /* NULL: shown raw */
	} cases[] = {
		{ "_ZN1n3conITkNS_1CEiEET_S1_", "n::con<int>" },
		{ "_ZN1n4con2ITkNS_4SameIiEEiEET_S2_", "n::con2<int>" },
		{ "_ZN1n5autopITkNS_1CEiTkSt8integraliEEiT_T0_", "n::autop<int, int>" },
		{ "_ZN1n4enifIiTnNSt9enable_ifIXsr3stdE13is_integral_vIT_EEiE4typeELi0EEEiS2_"
		  "St6vectorIS2_SaIS2_EE",
		  "n::enif<int, 0>" },
		{ "_ZN1n3reqIiQ1CIT_EEES1_S1_", "n::req<int>" },
		{ "_ZN1n4req3INS_1SEQrQT__XplfL0p_Li1EXcldtfL0p_3fooERSt7same_asIiETNS2_"
		  "4typeEQLb1EEEEiS2_",
		  "n::req3<n::S>" },
		{ "_ZN1n2ntITnDaLi3EEEiv", "n::nt<3>" },
		{ "_ZN1n3nt2ITnDcLi3EEEiv", "n::nt2<3>" },
		{ "_ZN1n3nt3ITnDkNS_1CELc120EEEiv", "n::nt3<(char)120>" },
		{ "_ZN1n3nt4IlTnT_Ll3EEEiv", "n::nt4<long, 3l>" },
		{ "_ZN1n4packIJiiEQfraa1CIT_EEEiDpS1_", "n::pack<int, int>" },
		{ "_ZN1n5pack2ITpTkNS_1CEJiiEEEiDpT_", "n::pack2<int, int>" },
		{ "_ZN1n5pack4ITpTnDaJLi1ELc50EEEEiv", "n::pack4<1, (char)50>" },
		{ "_ZN1n1KIiEF3fr2ES1_Q1CIT_E", "n::K<int>::fr2" },
		{ "_ZN1n1KIiE1mITkSt8integraliEEiT_", "n::K<int>::m<int>" },
		{ "_ZN1n2ClIiLi0EEcvT_ITkSt8integraliEEv", "n::Cl<int, 0>::operator int<int>" },
		{ "_ZN1n2ClIiLi0EEplITkSt8integraliEEiT_", "n::Cl<int, 0>::operator+<int>" },
		{ "_ZN1n2ClIiLi0EE3go2IiTnNSt9enable_ifIXgtstT_Li1EEiE4typeELi0EEEiS4_", "n::Cl<"
											 "int, "
											 "0>::go2<"
											 "int, "
											 "0>" },
		{ "_ZN1n2clIZ4mainEUlTkNS_1CET_E_EEiS1_", "n::cl<main::{lambda<typename "
							  "$T0>($T0)#1}>" },
		{ "_ZZ4mainENKUlTkN1n1CET_E_clIiEEDaS0_", "main::{lambda<typename "
							  "$T0>($T0)#1}::operator()<int>" },
		{ "_ZZN1n3lamIiTnNSt9enable_ifIXsr3stdE13is_integral_vIT_"
		  "EEiE4typeELi0EEEiSt6vectorIS2_SaIS2_EEENKUlS2_E_clIlEEDaS2_",
		  "n::lam<int, 0>(std::vector<int, std::allocator<int> "
		  ">)::{lambda(auto:1)#1}::operator()<long>" },
		{ "_ZN1n7refbackISt6vectorIiSaIiEEiTnNSt9enable_ifIXsr3stdE9is_same_vIT_S1_IT0_"
		  "SaIS6_EEEEPS8_E4typeELPS3_0ES3_EEiS5_T2_",
		  "n::refback<std::vector<int, std::allocator<int> >, int, (std::vector<int, "
		  "std::allocator<int> >*)0, std::vector<int, std::allocator<int> > >" },
		{ "_ZN1z1GIiEC2ITkSt14convertible_toIT_ElTnNSt9enable_ifIXntsr3stdE9is_same_vIS4_"
		  "iEEDnE4typeELDn0EEEOS4_",
		  "z::G<int>::G<long, (decltype(nullptr))0>" },
		{ "_ZNSt6ranges8ref_viewISt6vectorIiSaIiEEEC2ITkNSt8__detail16__different_fromINS0_"
		  "IT_EEEERS3_Qaa14convertible_toITL0__RS8_ErqXcl6_S_funcl7declvalISC_EEEEEEOS8_",
		  "std::ranges::ref_view<std::vector<int, std::allocator<int> > "
		  ">::ref_view<std::vector<int, std::allocator<int> >&>" },
		{ "_ZStFeqITkSt11common_withIT_ENSt6ranges14transform_viewINS2_11filter_viewINS2_"
		  "8ref_viewISt6vectorIiSaIiEEEEZ4mainE3$_0EEZ4mainE3$_1E9_"
		  "IteratorILb0EEEEbRKSt16counted_iteratorISF_ERKSG_IS1_E",
		  "std::operator==<std::ranges::transform_view<std::ranges::filter_view<std::"
		  "ranges::ref_view<std::vector<int, std::allocator<int> > >, main::$_0>, "
		  "main::$_1>::_Iterator<false> >" },
		{ "_ZNH1z1X1fERS0_i", "z::X::f" },
		{ "_ZNH1z1X1gIRS0_EEiOT_", "z::X::g<z::X&>" },
		{ "_ZNH1z3$_4clIS0_EEiRKT_i", "z::$_4::operator()<z::$_4>" },
		/* Not whole, not known, a substitution of what is not there. */
		{ "_ZN1n3conITkNS_1CEiET_S1_", NULL },
		{ "_ZN1n3conITkNS_1CE", NULL },
		{ "_ZN1n3conITn", NULL },
		{ "_ZN1n2ntITnDyLi3EEEiv", NULL },
		{ "_ZN1n3conITkNS_1CES7_EET_S1_", NULL },
		{ "_ZN1n3reqIiQ1CIT_ES1_", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char out[OUT_SIZE] = "", *friend;
		size_t size =
			demangle(cases[i].mangled, strlen(cases[i].mangled), out, sizeof(out));

		/* Of newer binutils. */
		friend = strstr(out, "[friend]");
		if (friend)
			memmove(friend, friend + 8, strlen(friend + 8) + 1);
		if (cases[i].name)
			assert_string_equal(out, cases[i].name);
		else
			assert_int_equal(size, 0);
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

/* Have the worker read one name, of an image of @dialect. */
static void read_name(char dialect, const char *name, char *clean, size_t clean_size)
{
	char request[2048];
	uint16_t size = (uint16_t)(strlen(name) + 1);
	struct sandbox_call c = { .request = request, .size = size + 2U };

	memcpy(request, &size, sizeof(size));
	request[2] = dialect;
	memcpy(request + 3, name, size - 1U);
	assert_int_equal(demangler_reader.serve(&c), 0);
	memcpy(&size, c.reply.bytes, sizeof(size));
	assert_int_equal(c.reply.size, size + 2);
	assert_true(size < clean_size);
	memcpy(clean, c.reply.bytes + 2, size);
	clean[size] = '\0';
	free(c.reply.bytes);
}

/*
 * As compilers of Debian 12 and 13 wrote them: GHC 9.0, OCaml 4.13 and 5.3, GNAT and gfortran 12,
 * Free Pascal 3.2, Nim 1.6, GnuCOBOL 4.
 */
TEST(test_names_that_look_like_c)
{
	static const struct {
		char dialect;
		const char *mangled, *name; /* "": shown raw */
	} cases[] = {
		{ 'h', "ghczmprim_GHCziTypes_ZMZN_con_info", "GHC.Types.[]" },
		{ 'h', "Main_z3b1U_info", "Main.α" },
		{ 'h', "Main_zz3b1U_info", "Main.z3b1U" },
		{ 0, "ghczmprim_GHCziTypes_ZMZN_con_info", "GHC.Types.[]" },
		{ 'h', "base_GHCziTopHandler_runMainIO1_info", "GHC.TopHandler.runMainIO1" },
		{ 'h', "base_DataziTypeableziInternal_zdwmkTrCon_slow",
		  "Data.Typeable.Internal.$wmkTrCon_slow" },
		{ 'h', "ghczmprim_GHCziTuple_Z3T_con_info", "GHC.Tuple.(,,)" },
		{ 'h', "ghczmprim_GHCziTuple_Z2H_con_info", "GHC.Tuple.(#,#)" },
		{ 'h', "base_GHCziBase_zlzg_info", "GHC.Base.<>" },
		{ 'h', "base_ForeignziStorable_CZCStorable_con_info",
		  "Foreign.Storable.C:Storable" },
		{ 'h', "Main_zlzpzg_info", "Main.<+>" },
		{ 'h', "Main_zdwalphaSum_info", "Main.$walphaSum" },
		{ 'h', "ZCMain_main_info", ":Main.main" },
		{ 'h', "stg_ap_v_info", "" },
		{ 'h', "hs_main", "" },
		{ 0, "Main_zdwalphaSum_info", "" },
		{ 0, "Widget_get_info", "" },
		{ 0, "my_Widget_resize_info", "" },
		{ 0, "camlShares__alpha_sum_81", "Shares.alpha_sum" },
		{ 0, "camlShares.alpha_sum_270", "Shares.alpha_sum" },
		{ 0, "camlShares__beta$27_86", "Shares.beta'" },
		{ 0, "camlShares.$2b$21_350", "Shares.+!" },
		{ 0, "camlShares__fun_168", "Shares.fun_168" },
		{ 0, "camlShares.entry", "Shares.entry" },
		{ 0, "camlStdlib__List.map_462", "Stdlib.List.map" },
		{ 0, "caml_classify_float_unboxed", "" },
		{ 0, "camlShares", "" },
		{ 0, "camlShares__x$", "Shares.x$" },
		{ 0, "__shares_MOD_alpha_sum", "shares::alpha_sum" },
		{ 0, "__outer_MOD_subm", "outer::subm" },
		{ 0, "__a_MOD_b.constprop.0", "a::b.constprop.0" },
		{ 0, "___MOD_", "" },
		{ 0, "P$SHARES$_$ALPHA_SUM$LONGINT$$LONGINT_$$_INNER$LONGINT",
		  "SHARES.ALPHA_SUM.INNER" },
		{ 0, "P$SHARES$_$TSHAPE_$__$$_DRAW$LONGINT", "SHARES.TSHAPE.DRAW" },
		{ 0, "P$SHARES_$$_ALPHA_SUM$LONGINT$$LONGINT", "SHARES.ALPHA_SUM" },
		{ 0, "WORK_$$_BETA$SHORTSTRING$LONGINT$$LONGINT", "WORK.BETA" },
		{ 0, "WORK_$$_init$", "WORK.init" },
		{ 0, "Outer$_$inner", "" },
		{ 0, "$_", "" },
		{ 0, "A$_", "" },
		{ 'a', "_ada_shares", "shares" },
		{ 'a', "shares__work__alpha_sum.8", "shares.work.alpha_sum" },
		{ 'a', "shares__work__alpha_sum__inner.9", "shares.work.alpha_sum.inner" },
		{ 'a', "shares__work__Oadd.10", "shares.work.\"+\"" },
		{ 'a', "shares__work__box__putN.6", "shares.work.box.put" },
		{ 'a', "shares__work__runnerTB.1", "shares.work.runner" },
		{ 'a', "ada_main___elabb", "ada_main.elabb" },
		{ 'a', "shares__work__box__putP___finalizer.7", "shares.work.box.putP.finalizer" },
		{ 'a', "ada__text_io__put_line__2", "ada.text_io.put_line" },
		{ 'a', "outerXb__inner__runXnb", "outerXb.inner.run" },
		{ 'a', "____", "" },
		{ 'a', "main", "" },
		{ 0, "shares__work__alpha_sum", "" },
		{ 'n', "alphaSum__shares_5", "shares.alphaSum" },
		{ 'n', "plusemark___shares_155", "shares.+!" },
		{ 'n', "dollar___shares_212", "shares.$" },
		{ 'n', "addInt__stdZprivateZdigitsutils_120", "std/private/digitsutils.addInt" },
		{ 'n', "NimMain", "" },
		{ 'n', "__x_1", "" },
		{ 0, "alphaSum__shares_5", "" },
		{ 'c', "SHARES__MAIN_", "SHARES-MAIN_" },
		{ 'c', "ALPHA__SUM", "ALPHA-SUM" },
		{ 'c', "cob_display", "" },
		/* C++ comes first in any image. */
		{ 'h', "_ZN3foo3barEv", "foo::bar" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char clean[TEXT_MAX + 64];

		read_name(cases[i].dialect, cases[i].mangled, clean, sizeof(clean));
		assert_string_equal(clean, cases[i].name);
	}
}

/* A name that is longer than a text has no template arguments: its end is the function. */
TEST(test_long_names)
{
	static const struct {
		unsigned int nr; /* of arguments, of 40 bytes each */
		const char *begin, *name;
	} cases[] = {
		{ 3, "ns::Box<std::vector<int, std::allocator<int> >, std::", NULL },
		{ 25, "ns::Box<std", NULL },
		{ 26, "ns::Box<>::", "ns::Box<>::run<>" },
		{ 200, "ns::Box<>::", "ns::Box<>::run<>" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char request[2048], clean[TEXT_MAX + 64];
		char *p = append(request + 3, "_ZN2ns3BoxIJSt6vectorIiSaIiEE");
		struct sandbox_call c = { .request = request };
		uint16_t size;

		for (unsigned int k = 1; k < cases[i].nr; k++)
			p = append(p, "S3_");
		p = append(p, "EE3runIcEEvv");
		request[2] = 0;
		size = (uint16_t)(p - request - 2);
		memcpy(request, &size, sizeof(size));
		c.size = (size_t)(p - request);
		assert_int_equal(demangler_reader.serve(&c), 0);
		memcpy(&size, c.reply.bytes, sizeof(size));
		assert_int_equal(c.reply.size, size + 2);
		assert_true(size < sizeof(clean));
		memcpy(clean, c.reply.bytes + 2, size);
		clean[size] = '\0';
		assert_memory_equal(clean, cases[i].begin, strlen(cases[i].begin));
		if (cases[i].name)
			assert_string_equal(clean, cases[i].name);
		else
			assert_string_equal(clean + size - 11, "::run<char>");
		free(c.reply.bytes);
	}
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
		char *p = append(name, "_Z1fISt4pairIiiE");

		for (unsigned int i = 0; i < levels; i++)
			p += sprintf(p, "S_IS%c_S%c_E", digits[i], digits[i]);
		append(p, "EvT_");
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
			char *p = append(name, "_Z1fIJ");

			for (unsigned int i = 0; i < width; i++)
				p = append(p, "JE");
			p = append(p, "EE1gI");
			for (unsigned int i = 0; i < depth; i++)
				p = append(p, "Dp");
			append(p, "T_EvT_");
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
		char *p = append(name, "_Z1fI");

		while (p - name < DEMANGLE_NAME_MAX / 2)
			p = append(p, parts[i][0]);
		while (p - name < DEMANGLE_NAME_MAX - 16)
			p = append(p, parts[i][1]);
		append(p, "Ev");
		assert_true(costs_at_most(50.0, name, &size));
	}
}

/* D's back references name identifiers; none may point outside, and their number costs nothing. */
TEST(test_d_references)
{
	char name[DEMANGLE_NAME_MAX];
	char *p = append(name, "_D1a1b");
	size_t size;

	for (int i = 0; i < 1000; i++)
		p = append(p, "Qc");
	append(p, "FZv");
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
