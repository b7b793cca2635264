// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Language runtimes and their options for perf maps.
 *
 * Runs on: the loader.
 */
#include "symbols/jit/runtime.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/foreign.h"
#include "symbols/process/procfs.h"

static const struct {
	const char *program; /* prefix of the program's name */
	const char *library; /* or part of a mapped path; NULL: nothing typical */
	const char *fix;
} runtimes[] = {
	{ "node", "/libnode.so",
	  "start it with: node --perf-basic-prof --interpreted-frames-native-stack" },
	{ "electron", NULL, "start it with: --js-flags=--perf-basic-prof" },
	{ "chrom", NULL, "start it with: --js-flags=--perf-basic-prof --no-sandbox" },
	{ "java", "/libjvm.so",
	  "start it with -XX:+PreserveFramePointer, then: jcmd PID Compiler.perfmap (JDK 17)" },
	{ "dotnet", "/libcoreclr.so", "start it with the environment DOTNET_PerfMapEnabled=1" },
	{ "mono", "/libmonosgen", "start it with: mono --jitmap" },
	{ "python", "/libpython3",
	  "start it with: python -X perf, or PYTHONPERFSUPPORT=1 (3.12 or later)" },
	{ "pypy", NULL, "PyPy writes no perf map" },
	{ "ruby", "/libruby", "start it with: ruby --yjit --yjit-perf=map" },
	{ "php", "/libphp", "set opcache.jit_debug=0x10" },
	{ "beam", NULL, "start it with: erl +JPperf map" },
	{ "luajit", "/libluajit", "LuaJIT writes no perf map without a patch" },
	{ "julia", "/libjulia", "start it with the environment ENABLE_JITPROFILING=1" },
	{ "qemu-", NULL, "start it with: qemu -perfmap" },
	{ "wasmtime", "/libwasmtime", "start it with: wasmtime --profile=perfmap" },
};

#define FIX_OTHERS "have its JIT write a perf map (/tmp/perf-PID.map)"

const char *runtime_fix(const char *exe, const char *maps, size_t maps_size)
{
	const char *slash = strrchr(exe, '/');
	const char *name = slash ? slash + 1 : exe;

	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++) {
		if (!strncmp(name, runtimes[i].program, strlen(runtimes[i].program)))
			return runtimes[i].fix;
	}
	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++) {
		const char *library = runtimes[i].library;

		if (library && memmem(maps, maps_size, library, strlen(library)))
			return runtimes[i].fix;
	}
	return FIX_OTHERS;
}

const char *runtime_fix_of(int dir_fd)
{
	char exe[PATH_MAX], *maps = NULL;
	ssize_t nr = readlinkat(dir_fd, "exe", exe, sizeof(exe) - 1);
	const char *fix;
	size_t size = 0;

	exe[MAX(nr, 0)] = '\0';
	if (foreign_read_at(dir_fd, "maps", PROCFS_MAPS_SIZE_MAX, &maps, &size))
		maps = NULL;
	fix = runtime_fix(exe, maps ? maps : "", maps ? size : 0);
	free(maps);
	return fix;
}
