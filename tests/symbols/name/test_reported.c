// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * naming: names as JITs report them, without how their code was made.
 */
#include "symbols/name/naming.c"

#include "tests/prelude.h"

static void assert_reported(const char *name, const char *want)
{
	char out[REPORTED_MAX];
	char *exact = malloc(strlen(name) + 1); /* for sanitizers */
	size_t size;

	memcpy(exact, name, strlen(name));
	size = put_reported(out, exact, strlen(name));
	free(exact);
	assert_int_equal(size, strlen(want));
	assert_memory_equal(out, want, size);
}

/* Lines of CoreCLR 9.0.7. */
TEST(test_managed)
{
	static const char *const tiers[] = { "QuickJitted",	  "InstrumentedTier",
					     "OptimizedTier1OSR", "OptimizedTier1",
					     "Optimized",	  "MinOptJitted" };
	char name[128];

	for (size_t i = 0; i < ARRAY_SIZE(tiers); i++) {
		snprintf(name, sizeof(name), "int32 [Shares] Shares::fib(int32)[%s]", tiers[i]);
		assert_reported(name, "Shares.fib");
	}
	assert_reported("int32 [Shares] Shares::fib(int32)", "Shares.fib");
	assert_reported("instance void [Shares] Shares+<Main>c__AnonStorey2::.ctor()[QuickJitted]",
			"Shares.<Main>c__AnonStorey2..ctor");
	assert_reported("int32 [Shares] Shares::<gamma>m__0(int32,int32)[OptimizedTier1]", "Shares."
											   "<gamma>"
											   "m__0");
	assert_reported("int32 [Shares] dynamicClass::IL_STUB_PInvoke(int32,valuetype "
			"Shares/Time&)[Optimized]",
			"dynamicClass.IL_STUB_PInvoke");
	assert_reported("int32 [System.Private.CoreLib] System.Collections.Generic."
			"ArraySortHelper`1[System.Int32]::PickPivotAndPartition(valuetype System."
			"Span`1<!0>,class System.Comparison`1<!0>)[OptimizedTier1]",
			"System.Collections.Generic.ArraySortHelper<System.Int32>."
			"PickPivotAndPartition");
	/* The type of the result has modules, generic arguments and arrays. */
	assert_reported("class [mscorlib]System.Collections.Generic.List`1<class [A b]X> [Shares] "
			"S.A`2+B[System.Int32[],System.Object[,]]::m(!0[])[Tier",
			"S.A.B<System.Int32[],System.Object[,]>.m");
	assert_reported("!!0[] [Shares] S::m`1()", "S.m`1");
}

TEST(test_tiers)
{
	static const char *const marks[] = { "~", "^", "+", "+'", "*", "*'" };
	char name[64];

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		snprintf(name, sizeof(name), "JS:%sfoo /a b.js:1:2", marks[i]);
		assert_reported(name, "JS:foo /a b.js:1:2");
		snprintf(name, sizeof(name), "LazyCompile:%s", marks[i]);
		assert_reported(name, "LazyCompile:");
	}
	assert_reported("Builtin:~x", "Builtin:~x");
	assert_reported("JS:foo", "JS:foo");
	assert_reported("JS:", "JS:");
	assert_reported("xJS:~foo", "xJS:~foo");
	assert_reported("Ljava/lang/String;::hashCode", "Ljava/lang/String;::hashCode");
}

/* Erlang writes a function in several ways: it has one name. */
TEST(test_erlang)
{
	assert_reported("$lists:map/2", "lists:map/2");
	assert_reported("lists:map/2-CodeInfoPrologue", "lists:map/2");
	assert_reported("lists:map/2", "lists:map/2");
	assert_reported("$scope", "$scope");
	assert_reported("x-CodeInfoPrologue", "x-CodeInfoPrologue");
}

/* No byte outside a name is read, and none outside the buffer is written. */
TEST(test_damaged)
{
	static const char *const whole[] = {
		"instance class [a]B`1<!0> [System.Private.CoreLib] S.A`2+B[C[],D]::<m>(x)[T]",
		"JS:*'f x.js",
		" [a] ::(",
		"void [a] b::(",
		"void [a] ::m(",
		"[a] b::m(",
		" [] b[::m(",
	};
	char part[128], out[REPORTED_MAX], *huge = malloc(2 * REPORTED_MAX);

	for (size_t i = 0; i < ARRAY_SIZE(whole); i++) {
		for (size_t n = 1; n <= strlen(whole[i]); n++) {
			char *exact = memcpy(malloc(n), whole[i], n);

			assert_true(put_reported(out, exact, n) <= n);
			free(exact);
		}
	}
	for (unsigned int i = 0; i < 100000; i++) {
		size_t n = 1 + i % (sizeof(part) - 1);

		for (size_t k = 0; k < n; k++)
			part[k] = " []:(`1+,a*<>"[(i * 2654435761U >> (k % 28)) * (k + 7) % 13];
		assert_true(put_reported(out, part, n) <= n);
	}
	memset(huge, '[', 2 * REPORTED_MAX);
	memcpy(huge, "a [b] c`1::", 11);
	assert_int_equal(put_reported(out, huge, 2 * REPORTED_MAX), REPORTED_MAX);
	free(huge);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
