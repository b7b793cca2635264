// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * runtime: for each problem and runtime one fix, and no fix of another one.
 */
#include "symbols/jit/internal.h"

#include "tests/prelude.h"

#include "symbols/script/script.h"
#include "symbols/base/base.h"

#define EXEC "7f00-7f10 r-xp 0 08:01 5 "

static const char *fix(enum runtime_problem problem, const char *exe, const char *maps)
{
	return runtime_fix(problem, exe, maps, strlen(maps));
}

/* Code generated at run time: the program, its libraries, and a word of the fix. */
static const struct {
	const char *exe, *maps, *word;
} generated[] = {
	{ "/usr/bin/node", "", "node --perf-basic-prof" },
	{ "/usr/bin/node-22", "", "node --perf-basic-prof" },
	{ "/usr/bin/stub", EXEC "/usr/lib/libnode.so.108\n", "node --perf-basic-prof" },
	{ "/home/a/.deno/bin/deno", "", "deno run --v8-flags=--perf-basic-prof" },
	{ "/home/a/.bun/bin/bun", "", "BUN_JSC_useJITDump=1" },
	{ "/opt/bun/bun.exe", "", "BUN_JSC_useJITDump=1" },
	{ "/usr/lib/jvm/java-17/bin/java", "", "Compiler.perfmap" },
	{ "/opt/app/server", EXEC "/usr/lib/jvm/libjvm.so\n", "Compiler.perfmap" },
	{ "/srv/Api", EXEC "/usr/share/dotnet/libcoreclr.so\n", "DOTNET_PerfMapEnabled=1" },
	{ "/usr/bin/dotnet", "", "before .NET 6: COMPlus_PerfMapEnabled=1" },
	{ "/usr/bin/mono-sgen", "", "mono --jitmap; it writes the last names when it ends" },
	{ "/usr/bin/luajit-2.1.0-beta3", "", "LUAJIT_USE_PERFTOOLS" },
	{ "/usr/sbin/nginx", EXEC "/usr/lib/libluajit-5.1.so.2.1.0\n", "LUAJIT_USE_PERFTOOLS" },
	/* LuaJIT and a JVM in Python: not Python's code. */
	{ "/usr/bin/python3.11", EXEC "/x/lupa/luajit21.cpython-311-x86_64-linux-gnu.so\n",
	  "LUAJIT_USE_PERFTOOLS" },
	{ "/usr/bin/python3.11", EXEC "/usr/lib/jvm/libjvm.so\n", "Compiler.perfmap" },
	{ "/usr/bin/python3.12", EXEC "/usr/lib/libllvm.so\n", "a library generated it" },
	{ "/usr/bin/uwsgi", EXEC "/usr/lib/libpython3.11.so.1.0\n", "a library generated it" },
	{ "/usr/lib/erlang/erts-13.1.5/bin/beam.smp", "", "ERL_FLAGS=\"+JPperf true\"" },
	{ "/usr/bin/qemu-x86_64", "", "it writes the last ones when it ends" },
	{ "/usr/lib/postgresql/15/bin/postgres", EXEC "/usr/lib/postgresql/15/lib/llvmjit.so\n",
	  "jit_profiling_support=on" },
	{ "/usr/bin/guile-3.0", "", "GUILE_JIT_THRESHOLD=-1" },
	{ "/usr/lib/racket", "", "Racket writes no perf map" },
	{ "/usr/bin/pypy3.9-c", "", "PyPy writes no perf map" },
	{ "/usr/bin/php8.2", "", "opcache.jit_debug=0x10" },
	{ "/usr/sbin/apache2", EXEC "/usr/lib/apache2/modules/libphp8.2.so\n", "opcache.jit" },
	{ "/usr/bin/ruby3.3", "", "--yjit-perf=map" },
	{ "/usr/bin/something", "", "/tmp/perf-PID.map" },
	/* Names that only begin like a runtime. */
	{ "/usr/bin/nodelist", "", "/tmp/perf-PID.map" },
	{ "/usr/bin/pythonista", "", "/tmp/perf-PID.map" },
	{ "/usr/bin/bunny", "", "/tmp/perf-PID.map" },
	{ "", "", "/tmp/perf-PID.map" },
};

TEST(test_generated)
{
	for (size_t i = 0; i < ARRAY_SIZE(generated); i++) {
		const char *words = fix(RUNTIME_NO_MAP, generated[i].exe, generated[i].maps);

		if (!strstr(words, generated[i].word))
			fail_msg("%s: '%s'", generated[i].exe, words);
		/* It splits functions of Node into two rows. */
		if (strstr(generated[i].exe, "node"))
			assert_null(strstr(words, "--interpreted-frames-native-stack"));
		/* It names Python functions: they never are such code. */
		assert_null(strstr(words, "-X perf"));
	}
}

/* The option is of gcc: no fix for files of others. */
TEST(test_tables)
{
	static const char *const none[] = {
		"/home/a/.bun/bin/bun",
		"/opt/bun/bun.exe",
		"/home/a/.deno/bin/deno",
		"/lib/ld-musl-x86_64.so.1",
		"/usr/lib/x86_64-linux-musl/libc.so",
		"/lib/libc.musl-x86_64.so.1",
		"/usr/lib/x86_64-linux-gnu/libgmp.so.10.4.1",
		"/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblasp-r0.3.21.so",
		"/x/numpy.libs/libscipy_openblas64_-ff651d7f.so",
	};

	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		assert_int_equal(strncmp(runtime_fix_in(RUNTIME_NO_CFI, none[i]), "none: ", 6), 0);
	/* Any other: the language is a condition. */
	assert_int_equal(strncmp(runtime_fix_in(RUNTIME_NO_CFI, "/usr/bin/x"), "C and C++: ", 11),
			 0);
}

TEST(test_scripts)
{
	static const struct {
		const char *path, *language; /* NULL: it has a reader, or is no interpreter */
	} files[] = {
		{ "/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2.1.0", NULL },
		{ "/usr/bin/tclsh8.6", "Tcl" },
		{ "/usr/lib/x86_64-linux-gnu/libtcl8.6.so", "Tcl" },
		{ "/usr/lib/R/lib/libR.so", "R" },
		{ "/usr/lib/R/bin/exec/R", "R" },
		{ "/usr/lib/x86_64-linux-gnu/liboctinterp.so.10.0.1", "Octave" },
		{ "/usr/lib/x86_64-linux-gnu/libguile-3.0.so.1.6.0", "Scheme" },
		{ "/usr/bin/bash", "shell scripts" },
		{ "/bin/dash", "shell scripts" },
		{ "/usr/bin/gawk", "awk" },
		{ "/usr/bin/mawk", "awk" },
		{ "/usr/bin/bc", "bc" },
		{ "/usr/bin/ocamlrun", "OCaml bytecode" },
		{ "/usr/lib/sbcl/sbcl.core", "Lisp" },
		{ "/usr/lib/postgresql/15/lib/plpgsql.so", "PL/pgSQL" },
		{ "/usr/bin/pypy3.9-c", "PyPy" },
		{ "/usr/bin/python3.11", NULL },
		{ "/usr/lib/x86_64-linux-gnu/libperl.so.5.36", NULL },
		{ "/usr/lib/x86_64-linux-gnu/libc.so.6", NULL },
		{ "/usr/bin/bcc", NULL },
		{ "/usr/bin/Rscript", NULL },
		{ "/usr/bin/basht", NULL },
		{ "/usr/bin/luac", NULL },
		{ "/usr/bin/lua5.4", NULL },
		{ "/usr/lib/x86_64-linux-gnu/liblua5.1.so.0.0.0", NULL },
		{ "", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		const char *words = runtime_fix_in(RUNTIME_SCRIPTS, files[i].path);

		if (!words != !files[i].language)
			fail_msg("%s: %s", files[i].path, words ? words : "nothing");
		if (words && !strstr(words, files[i].language))
			fail_msg("%s: '%s'", files[i].path, words);
		/* Symbols of the interpreter are no functions of scripts. */
		assert_true(!words || !strstr(words, "dbgsym"));
	}
}

/* No fix of one language for the doubts of another. */
TEST(test_languages)
{
	static const enum runtime_problem doubts[] = { RUNTIME_CUT, RUNTIME_UNALIGNED,
						       RUNTIME_UNTRIED, RUNTIME_LATE,
						       RUNTIME_LATE_FIRST };

	for (int kind = LANG_NONE; kind <= LANG_NR; kind++) {
		bool java = kind == LANG_NR;
		const char *language = lang_name(java ? LANG_JAVA : (enum lang_kind)kind);

		for (size_t i = 0; i < ARRAY_SIZE(doubts); i++) {
			const char *words = runtime_fix_in(doubts[i], language);

			assert_int_equal(strstr(words, "G1") != NULL,
					 java && doubts[i] == RUNTIME_CUT);
			assert_int_equal(strstr(words, "cap_sys_nice") != NULL,
					 doubts[i] == RUNTIME_LATE);
		}
	}
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
