// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libiberty's demanglers behind limits.
 *
 * Output is limited by leaving the demangler with longjmp from its output
 * callback: the callback variants allocate only on the stack, so nothing leaks.
 * Runs on: a worker of the cage.
 */
#include "symbols/name/demangle.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"

#define TEMPLATE_COPIES_MAX (128U << 10) /* x 16 bytes of the printer's stack */
#define SILENT_STEPS_MAX    1000000U

struct sink {
	char *buf;
	size_t size, max;
	jmp_buf full;
};

typedef int (*demangler_fn)(const char *mangled, int options, demangle_callbackref callback,
			    void *opaque);

/* Take output until the buffer is full, then leave the demangler. */
static void take(const char *bytes, size_t size, void *opaque)
{
	struct sink *sink = opaque;
	size_t here = MIN(size, sink->max - sink->size);

	if (here) /* the demanglers pass NULL for no text */
		memcpy(sink->buf + sink->size, bytes, here);
	sink->size += here;
	if (here < size)
		longjmp(sink->full, 1);
}

/* Run @fn with the output bounded; return the bytes written, 0 when @fn failed. */
static size_t run(demangler_fn fn, int options, const char *name, char *buf, size_t buf_size)
{
	struct sink sink = { .buf = buf, .max = buf_size - 1 };

	if (setjmp(sink.full) == 0 && !fn(name, options, take, &sink))
		return 0;
	buf[sink.size] = '\0';
	return sink.size;
}

/* Count the occurrences of a text in @name. */
static size_t count(const char *name, const char *what)
{
	size_t nr = 0;

	for (const char *p = name; (p = strstr(p, what)); p++)
		nr++;
	return nr;
}

/* Pack expansions and sizes of packs: "Dp", "sp", "sZ". */
static size_t count_packs(const char *name)
{
	size_t nr = 0;

	for (const char *p = name; p[0]; p++)
		nr += (p[0] == 's' && (p[1] == 'p' || p[1] == 'Z')) || (p[0] == 'D' && p[1] == 'p');
	return nr;
}

/*
 * Return true if a C++ name may cost much before it prints much. Two ways are
 * known: the printer's stack grows by (references to template parameters) x
 * (templates), and nested pack expansions over empty packs multiply without
 * output.
 */
static bool may_explode(const char *name, size_t size)
{
	size_t packs = count_packs(name), params;
	uint64_t steps = 1, width;

	/*
	 * At most one parameter and one template per letter, as counted below.
	 */
	if (packs < 2 && size * (size + 1) <= TEMPLATE_COPIES_MAX)
		return false;
	params = count(name, "T_") + count(name, "RT") + count(name, "OT");
	for (const char *p = name; (p = strchr(p, 'T')); p++)
		params += isalnum((unsigned char)p[1]) != 0;
	if (params * (count(name, "I") + 1) > TEMPLATE_COPIES_MAX)
		return true;
	if (packs < 2)
		return false;
	width = count(name, "JE") + count(name, "IE") + params + 1;
	for (size_t i = 0; i < packs && steps <= SILENT_STEPS_MAX; i++)
		steps *= width;
	return steps > SILENT_STEPS_MAX;
}

/*
 * Return the size of a name of Rust's old scheme without its suffix, else 0. Such a name looks like
 * C++ but ends in a hash: "17h", 16 hex digits, "E". It may have dots before the hash.
 */
static size_t rust_legacy_size(const char *name, size_t size)
{
	if (strncmp(name, "_ZN", 3))
		return 0;
	for (size_t end = size; end > 23; end--)
		if (name[end - 1] == 'E' && (end == size || name[end] == '.') &&
		    !strncmp(name + end - 20, "17h", 3) &&
		    strspn(name + end - 17, "0123456789abcdef") >= 16)
			return end;
	return 0;
}

/* Append @suffix of a clone (".cold", ".part.0"), which is a separate function; none of LLVM's. */
static size_t add_suffix(const char *suffix, char *buf, size_t size, size_t buf_size)
{
	size_t more = strlen(suffix);

	if (!size || !strncmp(suffix, ".llvm.", 6) || size + more >= buf_size)
		return size;
	memcpy(buf + size, suffix, more + 1);
	return size + more;
}

/* Demangle a name of Rust: its first @size bytes are all but the suffix. */
static size_t demangle_rust(char *name, size_t size, char *buf, size_t buf_size)
{
	char dot = name[size];
	size_t out;

	name[size] = '\0';
	out = run(rust_demangle_callback, DMGL_ANSI, name, buf, buf_size);
	name[size] = dot;
	return add_suffix(name + size, buf, out, buf_size);
}

bool demangle_may(const char *name, size_t size)
{
	return size >= 3 && size <= DEMANGLE_NAME_MAX && name[0] == '_' &&
	       (name[1] == 'Z' || name[1] == 'R' ||
		(name[1] == 'D' && isdigit((unsigned char)name[2]))) &&
	       !memchr(name, '\0', size);
}

size_t demangle(const char *name, size_t size, char *buf, size_t buf_size)
{
	char copy[DEMANGLE_NAME_MAX + 1];
	size_t out, rust;

	if (buf_size < 2 || !demangle_may(name, size))
		return 0;
	memcpy(copy, name, size);
	copy[size] = '\0';
	if (copy[1] == 'D')
		return demangle_d(copy, buf, buf_size);
	if (copy[1] == 'R')
		return demangle_rust(copy, strcspn(copy, "."), buf, buf_size);
	rust = rust_legacy_size(copy, size);
	out = rust ? demangle_rust(copy, rust, buf, buf_size) : 0;
	if (out)
		return out;
	if (may_explode(copy, size))
		return 0;
	/* Its recursion limit refuses all names over 1 KiB; DEMANGLE_NAME_MAX is the limit here. */
	out = run(cplus_demangle_v3_callback, DMGL_ANSI | DMGL_NO_RECURSE_LIMIT, copy, buf,
		  buf_size);
	return add_suffix(copy + strcspn(copy, "."), buf, out, buf_size);
}
