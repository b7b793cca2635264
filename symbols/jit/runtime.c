// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Language runtimes, their problems, and the fixes.
 *
 * Any thread.
 */
#include "symbols/jit/runtime.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/foreign.h"
#include "symbols/process/procfs.h"

#define NOT_READ(language) "proftop does not read functions of " language

struct runtime {
	const char *program; /* the program's name, without its version; with '-' a prefix */
	const char *library; /* or part of a mapped path; NULL: nothing typical */
	bool host; /* generates no code: code without a file is that of a library, if one does */
	const char *fix[RUNTIME_NR_PROBLEMS]; /* NULL: that of all others */
};

static const struct runtime runtimes[] = {
	{ "node",
	  "/libnode.so",
	  false,
	  { [RUNTIME_NO_MAP] = "start it with: node --perf-basic-prof" } },
	{ "deno",
	  NULL,
	  false,
	  { [RUNTIME_NO_MAP] = "start it with: deno run "
			       "--v8-flags=--perf-basic-prof,--interpreted-frames-native-stack",
	    [RUNTIME_NO_CFI] = "none: Deno is built without unwind tables" } },
	{ "bun",
	  NULL,
	  false,
	  { [RUNTIME_NO_MAP] = "start it with the environment BUN_JSC_useJITDump=1",
	    [RUNTIME_NO_CFI] = "none: Bun is built without unwind tables" } },
	{ "electron",
	  NULL,
	  false,
	  { [RUNTIME_NO_MAP] = "start it with: --js-flags=--perf-basic-prof" } },
	{ "chrome",
	  NULL,
	  false,
	  { [RUNTIME_NO_MAP] = "start it with: --js-flags=--perf-basic-prof --no-sandbox" } },
	{ "chromium",
	  NULL,
	  false,
	  { [RUNTIME_NO_MAP] = "start it with: --js-flags=--perf-basic-prof --no-sandbox" } },
	{ "java",
	  "/libjvm.so",
	  false,
	  { [RUNTIME_NO_MAP] = "start it with -XX:+PreserveFramePointer, then: jcmd PID "
			       "Compiler.perfmap (JDK 17)",
	    [RUNTIME_CUT] = "without G1: java -XX:+UseCountedLoopSafepoints; with G1 none: the "
			    "innermost method of a loop may be its caller" } },
	{ "dotnet",
	  "/libcoreclr.so",
	  false,
	  { [RUNTIME_NO_MAP] = "start it with the environment DOTNET_PerfMapEnabled=1" } },
	{ "mono", "/libmonosgen", false, { [RUNTIME_NO_MAP] = "start it with: mono --jitmap" } },
	{ "luajit",
	  "luajit",
	  false,
	  { [RUNTIME_NO_MAP] = "build LuaJIT with XCFLAGS=-DLUAJIT_USE_PERFTOOLS: it then writes a "
			       "perf map; or start it with: luajit -joff",
	    [RUNTIME_SCRIPTS] = NOT_READ("Lua") } },
	{ "pypy",
	  "/libpypy",
	  false,
	  { [RUNTIME_NO_MAP] = "none: PyPy writes no perf map",
	    [RUNTIME_SCRIPTS] = NOT_READ("PyPy") } },
	{ "beam.smp",
	  NULL,
	  false,
	  { [RUNTIME_NO_MAP] = "start it with the environment ERL_FLAGS=\"+JPperf true\"" } },
	{ "julia",
	  "/libjulia",
	  false,
	  { [RUNTIME_NO_MAP] = "start it with the environment ENABLE_JITPROFILING=1" } },
	{ "qemu-",
	  NULL,
	  false,
	  { [RUNTIME_NO_MAP] = "start it with: qemu -perfmap (8.0 or later): addresses of guest "
			       "code instead of names" } },
	{ "wasmtime",
	  "/libwasmtime",
	  false,
	  { [RUNTIME_NO_MAP] = "start it with: wasmtime --profile=perfmap" } },
	{ "postgres",
	  "/llvmjit.so",
	  false,
	  { [RUNTIME_NO_MAP] = "start the session with: PGOPTIONS='-c "
			       "jit_profiling_support=on'" } },
	{ "guile",
	  "/libguile-",
	  false,
	  { [RUNTIME_NO_MAP] = "none: Guile writes no perf map; GUILE_JIT_THRESHOLD=-1 switches "
			       "its "
			       "JIT off",
	    [RUNTIME_SCRIPTS] = NOT_READ("Scheme") } },
	{ "scheme", NULL, false, { [RUNTIME_NO_MAP] = "none: Chez Scheme writes no perf map" } },
	{ "racket", NULL, false, { [RUNTIME_NO_MAP] = "none: Racket writes no perf map" } },
	{ "sbcl",
	  "/sbcl.core",
	  false,
	  { [RUNTIME_NO_MAP] = "none: SBCL writes no perf map; Lisp code of the program can",
	    [RUNTIME_SCRIPTS] = NOT_READ("Lisp in a core file") } },
	/* Interpreters. */
	{ "lua", "/liblua5.", false, { [RUNTIME_SCRIPTS] = NOT_READ("Lua") } },
	{ "tclsh", "/libtcl", false, { [RUNTIME_SCRIPTS] = NOT_READ("Tcl") } },
	{ "R", "/libR.so", false, { [RUNTIME_SCRIPTS] = NOT_READ("R") } },
	{ "octave-cli", "/liboctinterp.so", false, { [RUNTIME_SCRIPTS] = NOT_READ("Octave") } },
	{ "bash", NULL, false, { [RUNTIME_SCRIPTS] = NOT_READ("shell scripts") } },
	{ "dash", NULL, false, { [RUNTIME_SCRIPTS] = NOT_READ("shell scripts") } },
	{ "zsh", NULL, false, { [RUNTIME_SCRIPTS] = NOT_READ("shell scripts") } },
	{ "ksh", NULL, false, { [RUNTIME_SCRIPTS] = NOT_READ("shell scripts") } },
	{ "gawk", NULL, false, { [RUNTIME_SCRIPTS] = NOT_READ("awk") } },
	{ "mawk", NULL, false, { [RUNTIME_SCRIPTS] = NOT_READ("awk") } },
	{ "bc", NULL, false, { [RUNTIME_SCRIPTS] = NOT_READ("bc") } },
	{ "gforth", NULL, false, { [RUNTIME_SCRIPTS] = NOT_READ("Forth") } },
	{ "swipl", "/libswipl.so", false, { [RUNTIME_SCRIPTS] = NOT_READ("Prolog") } },
	{ "ocamlrun", "/libcamlrun", false, { [RUNTIME_SCRIPTS] = NOT_READ("OCaml bytecode") } },
	{ "ecl", "/libecl.so", false, { [RUNTIME_SCRIPTS] = NOT_READ("Lisp bytecode") } },
	{ NULL, "/plpgsql.so", false, { [RUNTIME_SCRIPTS] = NOT_READ("PL/pgSQL") } },
	{ NULL, "/ngx_http_js_module", false, { [RUNTIME_SCRIPTS] = NOT_READ("njs") } },
	/* Libraries with code in assembler, and a C library without tables. */
	{ NULL, "/ld-musl-", false, { [RUNTIME_NO_CFI] = "none: musl has no unwind tables" } },
	{ NULL, "/libc.musl-", false, { [RUNTIME_NO_CFI] = "none: musl has no unwind tables" } },
	{ NULL,
	  "-linux-musl/libc.so",
	  false,
	  { [RUNTIME_NO_CFI] = "none: musl has no unwind tables" } },
	{ NULL,
	  "/libgmp.so",
	  false,
	  { [RUNTIME_NO_CFI] = "none: its assembler code has no unwind tables" } },
	{ NULL,
	  "openblas",
	  false,
	  { [RUNTIME_NO_CFI] = "none: its assembler code has no unwind tables" } },
	/* Interpreters that load any library: last. */
	{ "python",
	  "/libpython3",
	  true,
	  { [RUNTIME_NO_MAP] = "none of Python's: a library generated it (as Numba or LuaJIT) and "
			       "wrote no perf map" } },
	{ "php", "/libphp", true, { [RUNTIME_NO_MAP] = "set opcache.jit_debug=0x10" } },
	{ "ruby",
	  "/libruby",
	  true,
	  { [RUNTIME_NO_MAP] = "start it with: ruby --yjit --yjit-perf=map (3.3 or later)" } },
	{ "perl",
	  "/libperl.so",
	  true,
	  { [RUNTIME_NO_MAP] = "none of Perl's: a library generated it and wrote no perf map" } },
};

static const char *const others[RUNTIME_NR_PROBLEMS] = {
	[RUNTIME_NO_MAP] = "have its JIT write a perf map (/tmp/perf-PID.map)",
	[RUNTIME_NO_CFI] = "C and C++: build it with -fasynchronous-unwind-tables; assembler needs "
			   ".cfi lines; others: none",
	[RUNTIME_CUT] = "none: native frames without unwind tables are in between, or the stack is "
			"truncated; see the messages on stacks",
	[RUNTIME_UNALIGNED] = "none: native frames are exact; report it if it lasts",
	[RUNTIME_UNTRIED] = "none: native frames are exact",
	[RUNTIME_LATE] = "a real-time priority for the readers: cap_sys_nice (make install "
			 "SETCAP=1), or a lower rate (-F)",
	[RUNTIME_LATE_FIRST] = "a lower rate (-F): the CPUs are busy with other readers",
};

/* Return whether @name is the program @of, with a version or a suffix at most: "lua5.4". */
static bool is_program(const char *name, const char *of)
{
	size_t size = strlen(of);

	if (strncmp(name, of, size) != 0)
		return false;
	return of[size - 1] == '-' || !isalpha((unsigned char)name[size]);
}

static const struct runtime *find_program(const char *path, bool host)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++)
		if (runtimes[i].program && runtimes[i].host == host &&
		    is_program(name, runtimes[i].program))
			return &runtimes[i];
	return NULL;
}

/* Find a library in @text that has a fix of @problem. */
static const struct runtime *find_library(enum runtime_problem problem, const char *text,
					  size_t size, bool host)
{
	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++) {
		const struct runtime *r = &runtimes[i];

		if (r->library && r->fix[problem] && r->host == host &&
		    memmem(text, size, r->library, strlen(r->library)))
			return r;
	}
	return NULL;
}

const char *runtime_fix(enum runtime_problem problem, const char *exe, const char *maps,
			size_t maps_size)
{
	const struct runtime *r = find_program(exe, false);

	if (!r || !r->fix[problem])
		r = find_library(problem, maps, maps_size, false);
	if (!r)
		r = find_program(exe, true);
	if (!r || !r->fix[problem])
		r = find_library(problem, maps, maps_size, true);
	return r && r->fix[problem] ? r->fix[problem] : others[problem];
}

const char *runtime_fix_in(enum runtime_problem problem, const char *path)
{
	return runtime_fix(problem, path, path, strlen(path));
}

const char *runtime_fix_of(enum runtime_problem problem, int dir_fd)
{
	char exe[PATH_MAX], *maps = NULL;
	ssize_t nr = readlinkat(dir_fd, "exe", exe, sizeof(exe) - 1);
	const char *fix;
	size_t size = 0;

	exe[MAX(nr, 0)] = '\0';
	if (foreign_read_at(dir_fd, "maps", PROCFS_MAPS_SIZE_MAX, &maps, &size))
		maps = NULL;
	fix = runtime_fix(problem, exe, maps ? maps : "", maps ? size : 0);
	free(maps);
	return fix;
}
