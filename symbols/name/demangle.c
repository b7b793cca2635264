// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * C++, Rust and D names, and some of other compilers, with limits; many in one call to the
 * sandbox, with a memo.
 *
 * Output is limited by leaving the demangler with longjmp from its output callback: the callback
 * variants allocate only on the stack, so nothing leaks. Runs on: a worker of the sandbox.
 */
#include "symbols/name/name.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "symbols/base/base.h"
#include "symbols/base/table.h"
#include "symbols/base/text.h"
#include "symbols/sandbox/sandbox.h"

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

/* Append @suffix of a clone (".isra.0", ".part.0"), a separate function; none of LLVM's. */
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

	assert(size && buf_size);
	name[size] = '\0';
	out = run(rust_demangle_callback, DMGL_ANSI, name, buf, buf_size);
	name[size] = dot;
	return add_suffix(name + size, buf, out, buf_size);
}

/* Return false if the @size bytes at @name are no mangled name for sure. */
static bool demangle_may(const char *name, size_t size)
{
	return size >= 3 && size <= DEMANGLE_NAME_MAX && name[0] == '_' &&
	       (name[1] == 'Z' || name[1] == 'R' ||
		(name[1] == 'D' && isdigit((unsigned char)name[2]))) &&
	       !memchr(name, '\0', size);
}

static size_t demangle_d(const char *name, char *buf, size_t buf_size);
static bool older_write(const char *name, char *out, size_t size);

/* Demangle a name of C++; 0 also if it may cost too much. */
static size_t demangle_cplus(const char *name, size_t size, char *buf, size_t buf_size)
{
	/* Its recursion limit refuses all names over 1 KiB; DEMANGLE_NAME_MAX is the limit here. */
	return may_explode(name, size)
		       ? 0
		       : run(cplus_demangle_v3_callback, DMGL_ANSI | DMGL_NO_RECURSE_LIMIT, name,
			     buf, buf_size);
}

/*
 * Demangle the @size bytes at @name (C++, Rust, D; without parameters and without
 * Rust's hash) into @buf, cut at the end, NUL-terminated. Return the bytes
 * written, or 0: not mangled, refused, or unknown syntax (show it raw).
 */
static size_t demangle(const char *name, size_t size, char *buf, size_t buf_size)
{
	char copy[DEMANGLE_NAME_MAX + 1], older[DEMANGLE_NAME_MAX + 1];
	size_t out, rust;

	assert(name || !size);
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
	out = demangle_cplus(copy, size, buf, buf_size);
	if (!out && copy[1] == 'Z' && older_write(copy, older, sizeof(older)))
		out = demangle_cplus(older, strlen(older), buf, buf_size);
	return add_suffix(copy + strcspn(copy, "."), buf, out, buf_size);
}

/*
 * D: the dotted name only, template arguments as "!()" (dlang.org, "Application
 * Binary Interface", name mangling). Not libiberty's: its D demangler ends the
 * program when out of memory, and does not limit the output of back references.
 *
 * Any thread. The name is hostile: steps go forward only, nesting is limited.
 */

#define DEPTH_MAX 32U

struct d_name {
	const char *pos, *start;
	char *buf;
	size_t size, max;
};

static const char *skip_type(const char *p, const char *start, unsigned int depth);

/* Read a decimal length and return the name of that length; NULL when there is none. */
static const char *identifier(const char *p, size_t *size)
{
	unsigned long nr = 0;

	if (!isdigit((unsigned char)*p))
		return NULL;
	while (isdigit((unsigned char)*p) && nr <= DEMANGLE_NAME_MAX)
		nr = nr * 10 + (unsigned long)(*p++ - '0');
	*size = nr;
	return nr && nr <= strlen(p) ? p : NULL;
}

static const char *skip_digits(const char *p)
{
	const char *end = p + strspn(p, "0123456789");

	return end > p ? end : NULL;
}

/* Read "Q" and a distance in letters, the last one small. */
static const char *skip_reference(const char *p)
{
	for (p++; *p >= 'A' && *p <= 'Z'; p++)
		;
	return *p >= 'a' && *p <= 'z' ? p + 1 : NULL;
}

static bool is_template(const char *p)
{
	return !strncmp(p, "__T", 3) || !strncmp(p, "__U", 3);
}

/* Skip a value of a template: null, a number, a string. */
static const char *skip_value(const char *p)
{
	if (*p == 'n')
		return p + 1;
	if (*p == 'i' || *p == 'N')
		return skip_digits(p + 1);
	if (!*p || !strchr("awd", *p))
		return skip_digits(p);
	p = skip_digits(p + 1);
	return p && *p == '_' ? p + 1 + strspn(p + 1, "0123456789abcdef") : NULL;
}

static const char *skip_arguments(const char *p, const char *start, unsigned int depth);

static const char *skip_parameters(const char *p, const char *start, unsigned int depth);

/* Return whether a name begins at @p: a reference may be to one, or to a type. */
static bool is_name(const char *p, const char *start)
{
	const char *q = p;
	size_t distance = 0;

	if (*p != 'Q')
		return isdigit((unsigned char)*p) || is_template(p);
	for (p++; *p >= 'A' && *p <= 'Z' && distance <= DEMANGLE_NAME_MAX; p++)
		distance = distance * 26 + (size_t)(*p - 'A');
	if (*p < 'a' || *p > 'z')
		return false;
	distance = distance * 26 + (size_t)(*p - 'a');
	return distance <= (size_t)(q - start) && isdigit((unsigned char)q[-(ptrdiff_t)distance]);
}

/*
 * Skip the type of a function in which the next name is nested: "M" and its kind for one with a
 * frame, attributes, parameters. Its result is only written at the end. NULL: there is none.
 */
static const char *skip_outer(const char *p, const char *start, unsigned int depth)
{
	bool framed = *p == 'M';

	for (p += framed; framed && *p && strchr("xyO", *p); p++)
		;
	if (!*p || !strchr("FUWRY", *p))
		return NULL;
	p = skip_parameters(p + 1, start, depth);
	return p && *p && is_name(p + 1, start) ? p + 1 : NULL;
}

/* Skip names with dots between them; at least one. */
static const char *skip_names(const char *p, const char *start, unsigned int depth)
{
	bool any = false;
	size_t size;

	if (!depth)
		return NULL;
	for (;; any = true) {
		const char *at = p, *in;

		if (is_template(at))
			at = skip_arguments(at, start, depth - 1);
		else if (*at == 'Q' && any && !is_name(at, start))
			return p; /* the type of the next parameter */
		else if (*at == 'Q')
			at = skip_reference(at);
		else if (any && (in = skip_outer(at, start, depth - 1)))
			at = in;
		else if ((at = identifier(at, &size)))
			at += size;
		if (!at)
			return any ? p : NULL;
		p = at;
	}
}

/* Skip "__T", a name, arguments up to the "Z". */
static const char *skip_arguments(const char *p, const char *start, unsigned int depth)
{
	size_t size;

	if (!depth)
		return NULL;
	p += 3;
	if (*p == 'Q')
		p = skip_reference(p);
	else if ((p = identifier(p, &size)))
		p += size;
	while (p && *p && *p != 'Z') {
		p += *p == 'H';
		switch (*p++) {
		case 'T':
			p = skip_type(p, start, depth - 1);
			break;
		case 'V':
			p = skip_type(p, start, depth - 1);
			p = p ? skip_value(p) : NULL;
			break;
		case 'S':
			p = skip_names(p, start, depth - 1);
			break;
		case 'X':
			p = identifier(p, &size);
			p = p ? p + size : NULL;
			break;
		default:
			return NULL;
		}
	}
	return p && *p == 'Z' ? p + 1 : NULL;
}

/* Skip a function's attributes and parameters, up to the letter that ends them. */
static const char *skip_parameters(const char *p, const char *start, unsigned int depth)
{
	for (; *p == 'N' && p[1] && strchr("abcdefijlm", p[1]); p += 2)
		;
	while (p && *p && !strchr("XYZ", *p)) {
		while (*p && strchr("MJKLI", *p)) /* scope, out, ref, lazy, in */
			p++;
		p = skip_type(p, start, depth);
	}
	return p && *p ? p : NULL;
}

/* Skip a function's attributes, parameters and result. */
static const char *skip_function(const char *p, const char *start, unsigned int depth)
{
	p = skip_parameters(p, start, depth);
	return p ? skip_type(p + 1, start, depth) : NULL;
}

static const char *skip_type(const char *p, const char *start, unsigned int depth)
{
	/* const, immutable, shared, inout, vectors; arrays and pointers to the next type. */
	while (*p &&
	       (strchr("xyOAP", *p) || !strncmp(p, "Ng", 2) || !strncmp(p, "Nh", 2) || *p == 'G')) {
		p += *p == 'N' ? 2 : 1;
		if (p[-1] == 'G' && !(p = skip_digits(p)))
			return NULL;
	}
	if (!depth || !*p)
		return NULL;
	if (*p == 'Q')
		return skip_reference(p);
	if (strchr("CSETI", *p))
		return skip_names(p + 1, start, depth - 1);
	if (*p == 'H')
		return (p = skip_type(p + 1, start, depth - 1)) ? skip_type(p, start, depth - 1)
								: NULL;
	if (*p == 'D')
		p += 1 + strspn(p + 1, "xyO");
	if (strchr("FUWRY", *p))
		return skip_function(p + 1, start, depth - 1);
	if (!strncmp(p, "Nn", 2) || !strncmp(p, "zi", 2) || !strncmp(p, "zk", 2))
		return p + 2;
	return strchr("vghstiklmfdeopjqrcbauwn", *p) ? p + 1 : NULL;
}

/* Read the identifier of a back reference at d->pos. */
static const char *reference(struct d_name *d, size_t *size)
{
	const char *q = d->pos++;
	size_t distance = 0;

	while (*d->pos >= 'A' && *d->pos <= 'Z' && distance <= DEMANGLE_NAME_MAX)
		distance = distance * 26 + (size_t)(*d->pos++ - 'A');
	if (*d->pos < 'a' || *d->pos > 'z')
		return NULL;
	distance = distance * 26 + (size_t)(*d->pos++ - 'a');
	return distance <= (size_t)(q - d->start) ? identifier(q - distance, size) : NULL;
}

static void put(struct d_name *d, const char *bytes, size_t size)
{
	size = MIN(size, d->max - d->size);
	memcpy(d->buf + d->size, bytes, size);
	d->size += size;
}

/* Write one part of the name; false at the end of the known syntax. */
static bool part(struct d_name *d)
{
	bool template = is_template(d->pos);
	const char *name, *end = template ? skip_arguments(d->pos, d->start, DEPTH_MAX) : NULL;
	size_t size;

	d->pos += template ? 3 : 0;
	name = *d->pos == 'Q' ? reference(d, &size) : identifier(d->pos, &size);
	if (!name)
		return false;
	if (name >= d->pos)
		d->pos = name + size;
	if (d->size)
		put(d, ".", 1);
	if (size > 3 && !strncmp(name, "__T", 3)) { /* older form: with a length before it */
		const char *inner = identifier(name + 3, &size);

		if (!inner)
			return false;
		put(d, inner, size);
		put(d, "!()", 3);
		return true;
	}
	put(d, name, size);
	if (!template)
		return true;
	put(d, "!()", 3);
	if (end)
		d->pos = end;
	return end;
}

/* Go on with the name that is nested in this function. False: none is. */
static bool skip_around(struct d_name *d)
{
	const char *p = skip_outer(d->pos, d->start, DEPTH_MAX);

	d->pos = p ? p : d->pos;
	return p;
}

/* Demangle a D name ("_D" and a digit), NUL-terminated, of at most DEMANGLE_NAME_MAX bytes. */
static size_t demangle_d(const char *name, char *buf, size_t buf_size)
{
	struct d_name d = { .pos = name + 2, .start = name, .buf = buf, .max = buf_size - 1 };

	while (d.size < d.max && (part(&d) || skip_around(&d)))
		;
	buf[d.size] = '\0';
	return d.size;
}

/*
 * C++20: names of clang 18 and gcc 14 and later are written as older compilers write them.
 *
 * In these names template arguments have the kind of their parameter before them ("Tn" and a type,
 * "Tk" and a concept), constraints follow arguments and parameters ("Q" and an expression), friends
 * have an "F" (Itanium C++ ABI, 5.1; cxx-abi issues 24 and 167). libiberty of binutils 2.40 refuses
 * them. They are left out: the name is the same, but a substitution is then another number, or has
 * to be written in full, so that the whole grammar is followed, twice: to find the components that
 * substitutions refer to, and to write. The signature is not shown and is left out.
 *
 * Any thread. The name is hostile: nesting, steps and the size written are limited; unknown syntax
 * is refused.
 */

#define OLDER_DEPTH_MAX	 256U
#define OLDER_STEPS_MAX	 20000U
#define COMPONENTS_MAX	 512U
#define COMPONENT_ABSENT UINT16_MAX

enum component_kind { COMPONENT_TYPE, COMPONENT_PREFIX, COMPONENT_TEMPLATE };

/* A part of the name that a substitution may refer to. */
struct component {
	uint16_t from, to; /* in the name */
	uint16_t number;   /* as written; COMPONENT_ABSENT: not yet */
	uint8_t kind;	   /* enum component_kind */
};

struct older {
	const char *name, *pos;
	const char *stop; /* the end of a component that is written in full; NULL */
	char *out;
	size_t size, max;
	struct component list[COMPONENTS_MAX];
	uint32_t nr, nr_written;
	unsigned int depth, steps, muted;
	bool writing, bad;
};

static void older_type(struct older *o);
static void older_expression(struct older *o);
static void older_encoding(struct older *o);
static void older_arguments(struct older *o);
static void older_name(struct older *o);
static void older_prefix(struct older *o);
static void older_constraint(struct older *o);

static void older_put(struct older *o, const char *text, size_t size)
{
	if (!o->writing || o->muted)
		return;
	o->bad |= size > o->max - o->size;
	if (o->bad)
		return;
	memcpy(o->out + o->size, text, size);
	o->size += size;
}

/* Write the next @size bytes of the name. */
static void older_copy(struct older *o, size_t size)
{
	o->bad |= strnlen(o->pos, size) < size;
	if (o->bad)
		return;
	older_put(o, o->pos, size);
	o->pos += size;
}

/* Leave out the next @size bytes, which are there. */
static void older_drop(struct older *o, size_t size)
{
	o->pos += size;
}

/* Write @c, which has to be next. */
static void older_expect(struct older *o, char c)
{
	o->bad |= *o->pos != c;
	older_copy(o, 1);
}

static void older_copy_all(struct older *o, const char *letters)
{
	older_copy(o, strspn(o->pos, letters));
}

/* Return whether there is more before @end, within the limits. */
static bool older_more(struct older *o, char end)
{
	o->bad |= ++o->steps > OLDER_STEPS_MAX || !*o->pos;
	return !o->bad && *o->pos != end;
}

static bool older_enter(struct older *o)
{
	o->bad |= ++o->steps > OLDER_STEPS_MAX || o->depth >= OLDER_DEPTH_MAX;
	o->depth += !o->bad;
	return !o->bad;
}

static bool older_is(const struct older *o, const char *text)
{
	return !strncmp(o->pos, text, strlen(text));
}

/* Is the next letter one of @letters? */
static bool older_any(const struct older *o, const char *letters)
{
	return *o->pos && strchr(letters, *o->pos);
}

/* Write a substitution. */
static void older_put_number(struct older *o, uint32_t number)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char text[8], *p = text + sizeof(text);

	*--p = '_';
	for (; number; number = (number - 1) / 36)
		*--p = digits[(number - 1) % 36];
	*--p = 'S';
	older_put(o, p, (size_t)(text + sizeof(text) - p));
}

/*
 * Note the component that begins at @from and was written from @at on. If it was written before,
 * refer to that.
 */
static void older_note(struct older *o, const char *from, size_t at, enum component_kind kind)
{
	const uint16_t begin = (uint16_t)(from - o->name), end = (uint16_t)(o->pos - o->name);
	uint32_t i = 0;

	if (o->bad || (o->writing && o->muted))
		return;
	if (!o->writing) {
		o->bad |= o->nr == COMPONENTS_MAX;
		if (!o->bad)
			o->list[o->nr++] = (struct component){ begin, end, COMPONENT_ABSENT, kind };
		return;
	}
	while (i < o->nr && (o->list[i].from != begin || o->list[i].to != end))
		i++;
	if (i == o->nr) {
		o->bad = true;
	} else if (o->list[i].number == COMPONENT_ABSENT) {
		o->list[i].number = (uint16_t)o->nr_written++;
	} else {
		o->size = at;
		older_put_number(o, o->list[i].number);
	}
}

/* Write component @c, which was left out before, from its place in the name. */
static void older_in_full(struct older *o, struct component *c, bool in_prefix)
{
	const char *back = o->pos, *stop = o->stop;
	bool nested = false;

	o->pos = o->name + c->from;
	if (c->kind == COMPONENT_TYPE && in_prefix && *o->pos == 'N') {
		o->pos += 1 + strspn(o->pos + 1, "rVKRO");
		o->stop = o->name + c->to - 1;
		older_prefix(o);
		c->number = (uint16_t)o->nr_written++;
		o->pos += *o->pos == 'E';
	} else if (c->kind == COMPONENT_TYPE) {
		o->bad |= in_prefix && !isdigit((unsigned char)*o->pos) && !older_any(o, "STD");
		o->stop = *o->pos == 'T' ? o->name + c->to : NULL;
		older_type(o);
	} else if (c->kind == COMPONENT_PREFIX) {
		/* Arguments may follow; else the last name is that of a type. */
		nested = !in_prefix;
		if (nested)
			older_put(o, "N", 1);
		o->stop = o->name + c->to;
		older_prefix(o);
		c->number = (uint16_t)o->nr_written++;
	} else {
		o->stop = o->name + c->to;
		older_name(o);
	}
	o->bad |= o->pos != o->name + c->to;
	o->pos = back;
	o->stop = stop;
	if (!nested)
		return;
	if (*o->pos == 'I')
		older_arguments(o);
	older_put(o, "E", 1);
}

/*
 * "S_", "S0_", and so on: write it with the number as it is now. Return whether arguments of a
 * template follow.
 */
static bool older_substitution(struct older *o, bool in_prefix)
{
	bool arguments;
	uint32_t number = 0;
	const char *p = o->pos + 1;

	for (; isdigit((unsigned char)*p) || (*p >= 'A' && *p <= 'Z'); p++)
		number = MIN(number * 36 + (uint32_t)(*p <= '9' ? *p - '0' : *p - 'A' + 10),
			     COMPONENTS_MAX);
	number += p > o->pos + 1;
	o->bad |= *p != '_' || number >= o->nr;
	if (o->bad)
		return false;
	o->pos = p + 1;
	arguments = *o->pos == 'I';
	if (!o->writing || o->muted)
		return arguments;
	if (o->list[number].number != COMPONENT_ABSENT) {
		older_put_number(o, o->list[number].number);
	} else if (older_enter(o)) {
		older_in_full(o, &o->list[number], in_prefix);
		o->depth--;
	}
	return arguments;
}

/* The same, or one of the abbreviations of std's types. */
static bool older_s(struct older *o, bool in_prefix)
{
	if (!o->pos[1] || !strchr("absiod", o->pos[1]))
		return older_substitution(o, in_prefix);
	older_copy(o, 2);
	return *o->pos == 'I';
}

static void older_source_name(struct older *o)
{
	size_t size, digits = strspn(o->pos, "0123456789");
	const char *text = identifier(o->pos, &size);

	o->bad |= !text;
	if (text)
		older_copy(o, digits + size);
}

/* "Tk" and a concept, "Tn" and a type, and others: the kind of a parameter. Left out. */
static void older_parameter(struct older *o)
{
	const char kind = o->pos[1];

	if (!older_enter(o))
		return;
	o->muted++;
	older_copy(o, 2);
	if (kind == 'n') {
		older_type(o);
	} else if (kind == 'k') {
		older_name(o);
	} else if (kind == 'p' && *o->pos == 'T') {
		older_parameter(o);
	} else if (kind == 't') {
		while (older_more(o, 'E') && *o->pos == 'T')
			older_parameter(o);
		older_constraint(o);
		older_expect(o, 'E');
	} else {
		o->bad |= kind != 'y';
	}
	o->muted--;
	o->depth--;
}

static bool older_is_parameter(const struct older *o)
{
	return *o->pos == 'T' && o->pos[1] && strchr("yntpk", o->pos[1]);
}

/* A constraint: left out. */
static void older_constraint(struct older *o)
{
	if (*o->pos != 'Q')
		return;
	o->muted++;
	older_copy(o, 1);
	older_expression(o);
	o->muted--;
}

/* A lambda: behind "Ul". Its parameters of templates are known, but for concepts. */
static void older_lambda(struct older *o)
{
	while (older_more(o, 'E') && older_is_parameter(o)) {
		const char kind = o->pos[1];

		if (kind == 'k') {
			older_put(o, "Ty", 2);
			older_parameter(o);
			continue;
		}
		o->bad |= kind == 't';
		older_copy(o, 2);
		if (kind == 'n')
			older_type(o);
	}
	older_constraint(o);
	while (older_more(o, 'E') && *o->pos != 'Q')
		older_type(o);
	older_constraint(o);
	older_expect(o, 'E');
	older_copy_all(o, "0123456789");
	older_expect(o, '_');
}

static void older_operator(struct older *o)
{
	if (older_is(o, "cv")) {
		older_copy(o, 2);
		older_type(o);
	} else if (older_is(o, "li") || (*o->pos == 'v' && isdigit((unsigned char)o->pos[1]))) {
		older_copy(o, 2);
		older_source_name(o);
	} else {
		older_copy(o, 2);
	}
}

/* A name without its scope. */
static void older_unqualified(struct older *o)
{
	const char *p;

	if (*o->pos == 'F') /* a friend */
		older_drop(o, 1);
	older_copy(o, *o->pos == 'L');
	p = o->pos;
	if (isdigit((unsigned char)*p)) {
		older_source_name(o);
	} else if (older_is(o, "Ul")) {
		older_copy(o, 2);
		older_lambda(o);
	} else if (older_is(o, "Ut")) {
		older_copy(o, 2);
		older_copy_all(o, "0123456789");
		older_expect(o, '_');
	} else if (*p == 'C' && p[1] == 'I') {
		older_copy(o, 3);
		older_type(o);
	} else if ((*p == 'C' || *p == 'D') && isdigit((unsigned char)p[1])) {
		older_copy(o, 2);
	} else if (*p >= 'a' && *p <= 'z') {
		older_operator(o);
	} else {
		o->bad = true;
	}
	while (!o->bad && *o->pos == 'B') {
		older_copy(o, 1);
		older_source_name(o);
	}
}

/* "T_", "T0_"; "TL0__" is in constraints only. */
static void older_template_param(struct older *o)
{
	older_copy(o, 1);
	if (*o->pos == 'L') {
		o->bad |= !o->muted && o->writing;
		older_copy(o, 1);
		older_copy_all(o, "0123456789");
		older_expect(o, '_');
	}
	older_copy_all(o, "0123456789");
	older_expect(o, '_');
}

static void older_decltype(struct older *o)
{
	older_copy(o, 2);
	older_expression(o);
	older_expect(o, 'E');
}

/* The names of a nested name, up to its "E" or the stop. */
static void older_prefix(struct older *o)
{
	const char *from = o->pos, *stop = o->stop;
	size_t at = o->size;

	o->stop = NULL;
	while (older_more(o, 'E') && o->pos != stop) {
		bool fresh = true;

		if (older_is(o, "St")) {
			older_copy(o, 2);
			fresh = false;
		} else if (*o->pos == 'S') {
			older_s(o, true);
			fresh = false;
		} else if (*o->pos == 'T') {
			older_template_param(o);
		} else if (older_is(o, "Dt") || older_is(o, "DT")) {
			older_decltype(o);
		} else if (*o->pos == 'I') {
			older_arguments(o);
		} else if (*o->pos == 'M') {
			older_copy(o, 1);
			fresh = false;
		} else {
			older_unqualified(o);
		}
		if (fresh && *o->pos != 'E' && o->pos != stop)
			older_note(o, from, at, COMPONENT_PREFIX);
	}
}

/* A name in a function: behind "Z". */
static void older_local(struct older *o)
{
	older_encoding(o);
	older_expect(o, 'E');
	if (*o->pos == 's') {
		older_copy(o, 1);
	} else {
		if (*o->pos == 'd') {
			older_copy(o, 1);
			older_copy_all(o, "0123456789");
			older_expect(o, '_');
		}
		older_name(o);
	}
	if (older_is(o, "__")) {
		older_copy(o, 2);
		older_copy_all(o, "0123456789");
		older_expect(o, '_');
	} else if (*o->pos == '_') {
		older_copy(o, 2);
	}
}

static void older_name(struct older *o)
{
	const char *from = o->pos, *stop = o->stop;
	size_t at = o->size;

	if (!older_enter(o))
		return;
	o->stop = NULL;
	if (*o->pos == 'N') {
		older_copy(o, 1);
		if (*o->pos == 'H') /* a function with an explicit object */
			older_drop(o, 1);
		older_copy_all(o, "rVK");
		older_copy(o, *o->pos == 'R' || *o->pos == 'O');
		older_prefix(o);
		older_expect(o, 'E');
	} else if (*o->pos == 'Z') {
		older_copy(o, 1);
		older_local(o);
	} else if (*o->pos == 'S' && o->pos[1] != 't') {
		older_s(o, false);
		if (*o->pos == 'I')
			older_arguments(o);
	} else {
		older_copy(o, older_is(o, "St") ? 2 : 0);
		older_unqualified(o);
		if (*o->pos == 'I' || o->pos == stop)
			older_note(o, from, at, COMPONENT_TEMPLATE);
		if (*o->pos == 'I' && o->pos != stop)
			older_arguments(o);
	}
	o->depth--;
}

/* One of a literal's forms, behind "L". */
static void older_literal(struct older *o)
{
	older_copy(o, 1);
	if (older_is(o, "_Z")) {
		older_copy(o, 2);
		older_encoding(o);
	} else {
		older_type(o);
		older_copy_all(o, "0123456789abcdefn_");
	}
	older_expect(o, 'E');
}

static void older_argument(struct older *o)
{
	if (!older_enter(o))
		return;
	if (older_is_parameter(o))
		older_parameter(o);
	if (*o->pos == 'L') {
		older_literal(o);
	} else if (*o->pos == 'X') {
		older_copy(o, 1);
		older_expression(o);
		older_expect(o, 'E');
	} else if (*o->pos == 'J') {
		older_copy(o, 1);
		while (older_more(o, 'E'))
			older_argument(o);
		older_expect(o, 'E');
	} else {
		older_type(o);
	}
	o->depth--;
}

static void older_arguments(struct older *o)
{
	older_expect(o, 'I');
	while (older_more(o, 'E') && *o->pos != 'Q')
		older_argument(o);
	older_constraint(o);
	older_expect(o, 'E');
}

/* A function type, at "F". */
static void older_function(struct older *o)
{
	older_expect(o, 'F');
	older_copy(o, *o->pos == 'Y');
	while (older_more(o, 'E') && !((*o->pos == 'R' || *o->pos == 'O') && o->pos[1] == 'E'))
		older_type(o);
	older_copy_all(o, "RO");
	older_expect(o, 'E');
}

/* A type that begins with "D". Return whether it may be referred to. */
static bool older_type_d(struct older *o)
{
	const char kind = o->pos[1];

	if (kind == 't' || kind == 'T') {
		older_decltype(o);
		return true;
	}
	if (kind == 'p') {
		older_copy(o, 2);
		older_type(o);
		return true;
	}
	if (kind == 'k' || kind == 'K') { /* a type that a concept constrains */
		older_put(o, kind == 'k' ? "Da" : "Dc", 2);
		o->muted++;
		older_copy(o, 2);
		older_name(o);
		o->muted--;
		return false;
	}
	if (kind == 'v') {
		older_copy(o, 2);
		older_copy_all(o, "0123456789");
		older_expect(o, '_');
		older_type(o);
		return true;
	}
	older_copy(o, 2);
	if (kind == 'F' || kind == 'B' || kind == 'U') {
		older_copy_all(o, "0123456789");
		o->bad |= !older_any(o, "_xb");
		older_copy(o, 1);
	} else {
		o->bad |= !kind || !strchr("nacdefhius", kind);
	}
	return false;
}

/* Qualifiers of a type, and exceptions of a function. */
static void older_qualifiers(struct older *o)
{
	while (older_more(o, '\0')) {
		if (older_any(o, "rVK") || older_is(o, "Do")) {
			older_copy(o, 1 + (*o->pos == 'D'));
		} else if (older_is(o, "DO")) {
			older_copy(o, 2);
			older_expression(o);
			older_expect(o, 'E');
		} else if (older_is(o, "Dw")) {
			older_copy(o, 2);
			while (older_more(o, 'E'))
				older_type(o);
			older_expect(o, 'E');
		} else {
			return;
		}
	}
}

/* An array, or a pointer to a member; at "A", "M". */
static void older_of_two(struct older *o)
{
	bool array = *o->pos == 'A';

	older_copy(o, 1);
	if (!array)
		older_type(o);
	else if (isdigit((unsigned char)*o->pos) || *o->pos == '_')
		older_copy_all(o, "0123456789");
	else
		older_expression(o);
	if (array)
		older_expect(o, '_');
	older_type(o);
}

/* A type with its parts. Return whether it may be referred to. */
static bool older_type_parts(struct older *o, const char *from, size_t at)
{
	if (older_any(o, "rVK") || older_is(o, "Do") || older_is(o, "DO") || older_is(o, "Dw")) {
		older_qualifiers(o);
		if (*o->pos == 'F')
			older_function(o);
		else
			older_type(o);
	} else if (older_any(o, "PROCG")) {
		older_copy(o, 1);
		older_type(o);
	} else if (*o->pos == 'F') {
		older_function(o);
	} else if (older_any(o, "AM")) {
		older_of_two(o);
	} else if (*o->pos == 'D') {
		return older_type_d(o);
	} else if (*o->pos == 'T') {
		older_template_param(o);
		if (*o->pos == 'I' && o->pos != o->stop) {
			older_note(o, from, at, COMPONENT_TYPE);
			older_arguments(o);
		}
	} else if (*o->pos == 'S' && o->pos[1] != 't') {
		bool arguments = older_s(o, false);

		if (*o->pos == 'I')
			older_arguments(o);
		return arguments;
	} else {
		o->bad |= !older_any(o, "NZS123456789");
		older_name(o);
	}
	return true;
}

static void older_type(struct older *o)
{
	const char *from = o->pos;
	size_t at = o->size;

	if (!older_enter(o))
		return;
	if (older_any(o, "vwbcahstijlmxynofdegz"))
		older_copy(o, 1);
	else if (older_type_parts(o, from, at))
		older_note(o, from, at, COMPONENT_TYPE);
	o->depth--;
}

static void older_expressions(struct older *o, char end)
{
	while (older_more(o, end))
		older_expression(o);
	older_expect(o, end);
}

/* The last part of a name that is looked up when the template is used. */
static void older_base(struct older *o)
{
	if (older_is(o, "on")) {
		older_copy(o, 2);
		older_operator(o);
	} else if (older_is(o, "dn")) {
		older_copy(o, 2);
		if (isdigit((unsigned char)*o->pos))
			older_source_name(o);
		else
			older_type(o);
	} else {
		older_source_name(o);
	}
	if (*o->pos == 'I')
		older_arguments(o);
}

/* The same with its scope; behind "sr". */
static void older_unresolved(struct older *o)
{
	bool many = *o->pos == 'N' || isdigit((unsigned char)*o->pos);

	older_copy(o, *o->pos == 'N');
	if (!isdigit((unsigned char)*o->pos))
		older_type(o);
	while (many && older_more(o, 'E'))
		older_base(o);
	if (many)
		older_expect(o, 'E');
	older_base(o);
}

/* Requirements, behind "rq" and "rQ": constraints only. */
static void older_requirements(struct older *o, bool with_types)
{
	o->bad |= o->writing && !o->muted;
	while (with_types && older_more(o, '_'))
		older_type(o);
	older_copy(o, with_types);
	while (older_more(o, 'E')) {
		const char kind = *o->pos;

		older_copy(o, 1);
		if (kind == 'T')
			older_type(o);
		else
			older_expression(o);
		o->bad |= !strchr("TXQ", kind);
		older_copy(o, kind == 'X' && *o->pos == 'N');
		if (kind == 'X' && *o->pos == 'R') {
			older_copy(o, 1);
			older_name(o);
		}
	}
	older_expect(o, 'E');
}

/* A parameter of the function, or a fold; at "f". */
static void older_f(struct older *o)
{
	bool left = o->pos[1] == 'L' && isdigit((unsigned char)o->pos[2]);
	const char kind = o->pos[1];

	older_copy(o, 2);
	if (kind == 'p' && *o->pos == 'T') {
		older_copy(o, 1);
	} else if (kind == 'p' || left) {
		if (left) {
			older_copy_all(o, "0123456789");
			older_expect(o, 'p');
		}
		older_copy_all(o, "rVK");
		older_copy_all(o, "0123456789");
		older_expect(o, '_');
	} else {
		o->bad |= !kind || !strchr("lrLR", kind);
		older_copy(o, 2);
		older_expression(o);
		if (kind == 'L' || kind == 'R')
			older_expression(o);
	}
}

/* Return the number of operands of an operator; 0: unknown. */
static unsigned int operands_of(const char *op)
{
	static const char *const of[] = { "", "psngaddecontppmmawsznxtespdldatw",
					  ("plmimldvrmanoreoaSpLmIlsrseqneltgtlegessaaoocmpmixdsaNo"
					   "R"
					   "mLdVrMeOlSrS"),
					  "qu" };

	for (unsigned int nr = 1; nr < ARRAY_SIZE(of); nr++)
		for (const char *p = of[nr]; *p; p += 2)
			if (!strncmp(p, op, 2))
				return nr;
	return 0;
}

/* An expression that has a type first. */
static void older_typed(struct older *o)
{
	bool conversion = older_is(o, "cv"), list = older_is(o, "tl");

	older_copy(o, 2);
	older_type(o);
	conversion = conversion && *o->pos == '_';
	older_copy(o, conversion);
	if (conversion || list)
		older_expressions(o, 'E');
	else
		older_expression(o);
}

static void older_expression(struct older *o)
{
	const char *p = o->pos;

	if (!older_enter(o))
		return;
	if (*p == 'L') {
		older_literal(o);
	} else if (*p == 'T') {
		older_template_param(o);
	} else if (*p == 'f') {
		older_f(o);
	} else if (isdigit((unsigned char)*p) || older_is(o, "on") || older_is(o, "dn")) {
		older_base(o);
	} else if (older_is(o, "gs")) {
		older_copy(o, 2);
		older_expression(o);
	} else if (older_is(o, "sr")) {
		older_copy(o, 2);
		older_unresolved(o);
	} else if (older_is(o, "rq") || older_is(o, "rQ")) {
		older_copy(o, 2);
		older_requirements(o, p[1] == 'Q');
	} else if (older_is(o, "il") || older_is(o, "cl") || older_is(o, "cp")) {
		older_copy(o, 2);
		older_expressions(o, 'E');
	} else if (older_is(o, "st") || older_is(o, "ti") || older_is(o, "at")) {
		older_copy(o, 2);
		older_type(o);
	} else if (older_is(o, "cv") || older_is(o, "tl") || older_is(o, "dc") ||
		   older_is(o, "sc") || older_is(o, "cc") || older_is(o, "rc")) {
		older_typed(o);
	} else if (older_is(o, "dt") || older_is(o, "pt")) {
		older_copy(o, 2);
		older_expression(o);
		if (older_is(o, "sr"))
			older_expression(o);
		else
			older_base(o);
	} else if (older_is(o, "sZ")) {
		older_copy(o, 2);
		older_expression(o);
	} else if (older_is(o, "sP")) {
		older_copy(o, 2);
		while (older_more(o, 'E'))
			older_argument(o);
		older_expect(o, 'E');
	} else if (older_is(o, "tr")) {
		older_copy(o, 2);
	} else {
		unsigned int nr = operands_of(p);

		o->bad |= !nr;
		older_copy(o, 2);
		older_copy(o, (older_is(o, "_") && (!strncmp(p, "pp", 2) || !strncmp(p, "mm", 2))));
		for (; nr && !o->bad; nr--)
			older_expression(o);
	}
	o->depth--;
}

/* A function in which a name is: with its parameters, which are shown. */
static void older_encoding(struct older *o)
{
	if (!older_enter(o))
		return;
	older_name(o);
	while (!o->bad && *o->pos && !older_any(o, "EQ."))
		older_type(o);
	older_constraint(o);
	o->depth--;
}

/* Go through the name once. */
static void older_pass(struct older *o, bool writing)
{
	o->writing = writing;
	o->pos = o->name + 2;
	older_put(o, "_Z", 2);
	if (older_is(o, "Th")) { /* a thunk: its offset, and the function */
		older_copy(o, 2);
		older_copy_all(o, "n0123456789");
		older_expect(o, '_');
	}
	older_name(o);
	/* Parameters are not shown; without any, it is no function. */
	if (*o->pos && *o->pos != '.')
		older_put(o, "vv", 2);
	older_put(o, "", 1);
}

/* Return whether a name may be one of C++20: there is something to leave out. */
static bool older_may(const char *name)
{
	static const char *const marks[] = { "Tn", "Tk", "Ty", "Tp", "Tt", "Q", "F", "NH", "Dk" };

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		if (strstr(name, marks[i]))
			return true;
	return false;
}

/* Write @name ("_Z") as older compilers do. False: it is unknown syntax, or too long. */
static bool older_write(const char *name, char *out, size_t size)
{
	struct older o = { .name = name, .out = out, .max = size };

	if (!older_may(name))
		return false;
	older_pass(&o, false);
	o.steps = 0;
	if (!o.bad)
		older_pass(&o, true);
	return !o.bad;
}

/*
 * Names of compilers that encode theirs as identifiers of C: OCaml, Fortran and Pascal by their
 * form, the others as their image says. Each is written as in its language; packages, stamps and
 * types of parameters are left out.
 *
 * The name is hostile: all steps go forward, all output is by put().
 */

static bool ends_with(const char *name, size_t size, const char *end)
{
	return size > strlen(end) && !memcmp(name + size - strlen(end), end, strlen(end));
}

/* Return the size of @name without a number behind a @mark; @size if there is none. */
static size_t without_number(const char *name, size_t size, char mark)
{
	size_t n = size;

	while (n && isdigit((unsigned char)name[n - 1]))
		n--;
	return n > 1 && n < size && name[n - 1] == mark ? n - 1 : size;
}

/* "camlStdlib__List__map_460", of OCaml 5 "camlStdlib__List.map_460": Stdlib.List.map. */
static void put_ocaml(struct d_name *d, const char *name, size_t size)
{
	size_t shown = without_number(name, size, '_');
	bool parts = false;

	/* The number is all that tells functions without a name apart. */
	if (ends_with(name, shown, "fun"))
		shown = size;
	for (size_t i = 4; i < shown; i++) {
		unsigned int byte;

		if (name[i] == '$' && i + 2 < shown && isxdigit((unsigned char)name[i + 1]) &&
		    isxdigit((unsigned char)name[i + 2]) &&
		    sscanf(name + i + 1, "%2x", &byte) == 1) {
			put(d, &(char){ (char)byte }, 1);
			i += 2;
		} else if (name[i] == '.' || !strncmp(name + i, "__", 2)) {
			put(d, ".", 1);
			i += name[i] == '_';
			parts = true;
		} else {
			put(d, name + i, 1);
		}
	}
	d->size = parts ? d->size : 0;
}

/* gfortran: "__module_MOD_procedure". */
static void put_fortran(struct d_name *d, const char *name, size_t size)
{
	const char *mark = strstr(name + 3, "_MOD_");

	if (!mark || !mark[5])
		return;
	put(d, name + 2, (size_t)(mark - name) - 2);
	put(d, "::", 2);
	put(d, mark + 5, size - (size_t)(mark - name) - 5);
}

/* Free Pascal: "P$PROGRAM$_$OUTER$LONGINT_$$_INNER$LONGINT", "UNIT_$$_NAME$LONGINT$$LONGINT". */
static void put_pascal(struct d_name *d, const char *name, size_t size)
{
	static const char capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	const char *at = name + (strncmp(name, "P$", 2) ? 0 : 2), *end = name + size;
	bool part = true;
	unsigned int nr = 0;

	if (at[strspn(at, capitals)] != '$')
		return;
	while (at < end) {
		const char *word = at, *mark;

		at += strcspn(at, "$");
		for (mark = at; at < end && mark > word && mark[-1] == '_'; mark--)
			;
		if (part && d->size)
			put(d, ".", 1);
		if (part)
			put(d, word, (size_t)(mark - word));
		nr += part;
		at = mark + strspn(mark, "$_");
		/* "$" alone is before the type of a parameter. */
		part = memchr(mark, '_', (size_t)(at - mark));
	}
	d->size = nr > 1 ? d->size : 0;
}

/* Write the character that "z25b0U" is, by its code point; else "z". Return what follows. */
static const char *put_z_code_point(struct d_name *d, const char *at)
{
	char *end = (char *)at + 1, utf8[4];
	unsigned long code = isdigit((unsigned char)*end) ? strtoul(end, &end, 16) : 0;

	if (*end != 'U' || code < 0x80 || code > 0x10ffff ||
	    !utf8proc_codepoint_valid((utf8proc_int32_t)code)) {
		put(d, at, 1);
		return at + 1;
	}
	put(d, utf8,
	    (size_t)utf8proc_encode_char((utf8proc_int32_t)code, (utf8proc_uint8_t *)utf8));
	return end + 1;
}

/* GHC's z-encoding: "zd" is $, "ZMZN" is [], "Z3T" a tuple of three, "z25b0U" a code point. */
static void put_z_decoded(struct d_name *d, const char *at, const char *end)
{
	static const char lower[][3] = { "a&", "b|", "c^", "d$", "e=", "g>", "h#",
					 "i.", "l<", "m-", "n!", "p+", "q'", "r\\",
					 "s/", "t*", "u_", "v%", "zz" };
	static const char upper[][3] = { "L(", "R)", "M[", "N]", "C:", "ZZ" };

	while (at < end) {
		const char(*table)[3] = *at == 'z' ? lower : upper;
		size_t nr = *at == 'z' ? ARRAY_SIZE(lower) : ARRAY_SIZE(upper), i = 0;
		const char *digits = at + 1;

		if ((*at != 'z' && *at != 'Z') || digits == end) {
			put(d, at++, 1);
			continue;
		}
		while (i < nr && table[i][0] != *digits)
			i++;
		if (i < nr) {
			put(d, &table[i][1], 1);
			at += 2;
		} else if (isdigit((unsigned char)*digits) && *at == 'Z') {
			unsigned long items = strtoul(digits, (char **)&digits, 10);
			bool unboxed = *digits == 'H';

			put(d, "(#", unboxed ? 2 : 1);
			for (unsigned long k = 1; k < items && k < 64; k++)
				put(d, ",", 1);
			put(d, unboxed ? "#)" : ")", unboxed ? 2 : 1);
			at = digits + (digits < end);
		} else {
			at = put_z_code_point(d, at);
		}
	}
}

/* GHC: "package_ModuleziPart_name_info"; the program's own modules have no package. */
static void put_haskell(struct d_name *d, char dialect, const char *name, size_t size)
{
	static const char *const ends[] = { "_con_info", "_info", "_con_entry",
					    "_entry",	 "_slow", "_fast" };
	const char *part[4] = { name }, *end = "";
	unsigned int nr = 1;

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		if (ends_with(name, size, ends[i])) {
			size -= strlen(ends[i]);
			end = i < 4 ? "" : ends[i]; /* other functions */
			break;
		}
	}
	for (size_t i = 0; i < size; i++) {
		if (!isalnum((unsigned char)name[i]) && name[i] != '_')
			return;
		if (name[i] == '_' && nr == ARRAY_SIZE(part) - 1)
			return;
		if (name[i] == '_')
			part[nr++] = name + i + 1;
	}
	part[nr] = name + size + 1;
	/* Without a library of GHC in the image only the marks that no other has: a package and
	 * "zi". */
	if (nr < 2 || !isupper((unsigned char)*part[nr - 2]) || part[nr - 1] == name + size ||
	    (dialect != 'h' && (nr != 3 || name[size] != '_' || !strstr(name, "zi"))))
		return;
	put_z_decoded(d, part[nr - 2], part[nr - 1] - 1);
	put(d, ".", 1);
	put_z_decoded(d, part[nr - 1], name + size);
	put(d, end, strlen(end));
}

/* The operator of Ada that a part of a name is for, as in "Oadd"; NULL: none. */
static const char *ada_operator(const char *part, size_t size)
{
	static const char *const words[][2] = {
		{ "Oabs", "abs" },    { "Oand", "and" },  { "Omod", "mod" },	{ "Onot", "not" },
		{ "Oor", "or" },      { "Orem", "rem" },  { "Oxor", "xor" },	{ "Oeq", "=" },
		{ "One", "/=" },      { "Olt", "<" },	  { "Ole", "<=" },	{ "Ogt", ">" },
		{ "Oge", ">=" },      { "Oadd", "+" },	  { "Osubtract", "-" }, { "Oconcat", "&" },
		{ "Omultiply", "*" }, { "Odivide", "/" }, { "Oexpon", "**" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strlen(words[i][0]) == size && !memcmp(words[i][0], part, size))
			return words[i][1];
	return NULL;
}

/*
 * GNAT: "package__procedure", "_ada_main", "__2" of an overload, "TB" of a task's body, "P" and "N"
 * of a protected object's, "Xb" of a body in a body (gcc, exp_dbug.ads).
 */
static void put_ada(struct d_name *d, const char *name, size_t size)
{
	static const char *const ends[] = { "TB", "P", "N" };
	const char *at = name + (strncmp(name, "_ada_", 5) ? 0 : 5), *end;

	size = without_number(name, size, '.');
	size = without_number(name, size, '_');
	while (size > 2 && name[size - 1] == '_')
		size--;
	for (size_t i = size; i > 2 && strchr("Xbn", name[i - 1]); i--)
		size = name[i - 1] == 'X' ? i - 1 : size;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		size -= ends_with(name, size, ends[i]) ? strlen(ends[i]) : 0;
	end = name + size;
	if (at == name && !memmem(name + 1, size - 1, "__", 2))
		return;
	while (at < end) {
		const char *mark = memmem(at, (size_t)(end - at), "__", 2);
		size_t part = (size_t)((mark ? mark : end) - at);
		const char *operator= ada_operator(at, part);

		if (!part)
			break;
		if (d->size)
			put(d, ".", 1);
		if (operator) {
			put(d, "\"", 1);
			put(d, operator, strlen(operator));
			put(d, "\"", 1);
		} else {
			put(d, at, part);
		}
		at += part;
		at += strspn(at, "_");
	}
}

/* The name of an operator of Nim: "plusemark_" is +!, "eqdestroy_" =destroy. */
static void put_nim_operator(struct d_name *d, const char *at, const char *end)
{
	static const char words[][9] = { "=eq",	     "+plus",  "-minus", "*star",  "/slash",
					 "%percent", "&amp",   "!emark", "<lt",	   ">gt",
					 "$dollar",  "@at",    "^roof",	 "~tilde", "|bar",
					 "?qmark",   ":colon", ".dot" };
	size_t i;

	do {
		for (i = 0; i < ARRAY_SIZE(words); i++) {
			size_t n = strnlen(words[i] + 1, sizeof(words[i]) - 1);

			if ((size_t)(end - at) >= n && !memcmp(at, words[i] + 1, n)) {
				put(d, words[i], 1);
				at += n;
				break;
			}
		}
	} while (i < ARRAY_SIZE(words));
	put(d, at, (size_t)(end - at));
}

/* Nim: "proc__pathZmoduleZname_123". */
static void put_nim(struct d_name *d, const char *name, size_t size)
{
	size_t shown = without_number(name, size, '_'), mark = shown;

	while (mark > 2 && strncmp(name + mark - 2, "__", 2))
		mark--;
	if (shown == size || mark <= 2 || mark == shown)
		return;
	for (size_t i = mark; i < shown; i++)
		put(d, name[i] == 'Z' ? "/" : name + i, 1);
	put(d, ".", 1);
	mark -= 2;
	if (name[mark - 1] == '_')
		put_nim_operator(d, name, name + mark - 1);
	else
		put(d, name, mark);
}

/* GnuCOBOL: "PROGRAM__ID", and "PROGRAM__ID_" for its body. */
static void put_cobol(struct d_name *d, const char *name, size_t size)
{
	if (!isupper((unsigned char)name[0]) || !strstr(name, "__"))
		return;
	for (size_t i = 0; i < size; i++) {
		bool dash = name[i] == '_' && name[i + 1] == '_';

		put(d, dash ? "-" : name + i, 1);
		i += dash;
	}
}

/* Demangle a name of a language that demangle() has not; @dialect: see demangler_want(). */
static size_t demangle_other(char dialect, const char *bytes, size_t size, char *buf,
			     size_t buf_size)
{
	struct d_name d = { .buf = buf, .max = buf_size - 1 };
	char name[DEMANGLE_NAME_MAX + 1];

	memcpy(name, bytes, size);
	name[size] = '\0';
	if (!strncmp(name, "caml", 4) && isupper((unsigned char)name[4]))
		put_ocaml(&d, name, size);
	else if (!strncmp(name, "__", 2) && strstr(name, "_MOD_"))
		put_fortran(&d, name, size);
	else if (strstr(name, "$_"))
		put_pascal(&d, name, size);
	else if (dialect == 'a')
		put_ada(&d, name, size);
	else if (dialect == 'n')
		put_nim(&d, name, size);
	else if (dialect == 'c')
		put_cobol(&d, name, size);
	else
		put_haskell(&d, dialect, name, size);
	buf[d.size] = '\0';
	return d.size;
}

/* Return whether a name may be one of demangle_other(). */
static bool other_may(char dialect, const char *name, size_t size)
{
	return size >= 3 && size <= DEMANGLE_NAME_MAX && !memchr(name, '\0', size) &&
	       (dialect ||
		(size > 6 && !memcmp(name, "caml", 4) && isupper((unsigned char)name[4])) ||
		memchr(name, '$', size) || (name[0] == '_' && memmem(name, size, "_MOD_", 5)) ||
		(ends_with(name, size, "_info") && memmem(name, size, "zi", 2)));
}

/*
 * Names to and from the sandbox: each is its size (uint16_t) and its bytes, in the request as in
 * the answer; size 0 in the answer: not mangled. The first byte of the request's is the dialect.
 *
 * Runs on: the loader; serve() in the worker.
 */

#define CLEAN_MAX   (TEXT_MAX + 63U) /* longer than a text, so that the arena marks a cut */
#define WHOLE_MAX   (16U << 10)	     /* of a name that is shortened */
#define MEMO_MAX    (4U << 20)	     /* bytes of texts, then it is forgotten */
#define TIMEOUT_NS  4000000000ULL
#define LOST_MAX    64U /* lost workers; one is forgiven each second */
#define LOST_TIME   16U /* a worker that was too slow counts more */
#define FORGIVE_NS  1000000000ULL
#define WORKER_SIZE (256ULL << 20)

/* A call in the making, or an answer in reading. */
struct packet {
	uint8_t bytes[SANDBOX_REQUEST_MAX];
	size_t size;
};

void demangler_fini(struct demangler *d)
{
	hashset_fini(&d->set);
	free(d->names);
	free(d->texts);
	*d = (struct demangler){ .nr = 0 };
}

static bool any_may(char dialect, const char *name, size_t size)
{
	return demangle_may(name, size) || other_may(dialect, name, size);
}

/* Append @size bytes to the texts. False: out of memory. */
static bool put_text(struct demangler *d, const void *text, size_t size, uint32_t *at)
{
	if (!array_reserve(&d->texts, &d->texts_max, (uint64_t)d->texts_size + size))
		return false;
	*at = d->texts_size;
	if (size)
		memcpy(d->texts + *at, text, size);
	d->texts_size += (uint32_t)size;
	return true;
}

static const struct demangler_name *find(const struct demangler *d, char dialect, const char *name,
					 size_t size)
{
	uint64_t hash = keyhash_name(name, size);
	uint32_t at = 0, id;

	while ((id = hashset_next(&d->set, hash, &at)) != HASHSET_NONE) {
		const struct demangler_name *n = &d->names[id];

		if (n->raw_size == size + 1 && d->texts[n->raw] == dialect &&
		    !memcmp(d->texts + n->raw + 1, name, size))
			return n;
	}
	return NULL;
}

void demangler_want(struct demangler *d, char dialect, const char *name, size_t size)
{
	struct demangler_name n = { .raw_size = (uint32_t)size + 1 };
	uint32_t at;

	assert(d->nr_done <= d->nr && d->nr <= d->max);
	if (!any_may(dialect, name, size) || find(d, dialect, name, size))
		return;
	if (d->texts_size > MEMO_MAX && d->nr == d->nr_done) {
		hashset_clear(&d->set);
		d->nr = d->nr_done = d->texts_size = 0;
	}
	if (!array_reserve(&d->names, &d->max, d->nr + 1ULL) || hashset_reserve(&d->set, 1) ||
	    !put_text(d, &dialect, 1, &n.raw) || !put_text(d, name, size, &at))
		return;
	d->names[d->nr] = n;
	hashset_add(&d->set, keyhash_name(name, size), d->nr++);
}

/* Return true if too many workers were lost lately. */
static bool is_hopeless(struct demangler *d)
{
	uint64_t now_ns = time_now_ns(), seconds = (now_ns - d->lost_ns) / FORGIVE_NS;

	if (seconds) {
		d->nr_lost -= (uint32_t)MIN(seconds, (uint64_t)d->nr_lost);
		d->lost_ns = now_ns;
	}
	return d->nr_lost > LOST_MAX;
}

/* Take the answer for the names [first, end). False: it is invalid. */
static bool demangler_take(struct demangler *d, const struct sandbox_answer *a, uint32_t first,
			   uint32_t end)
{
	size_t at = 0;

	for (uint32_t i = first; i < end; i++) {
		uint16_t size;
		uint32_t clean;

		if (a->size - at < sizeof(size))
			return false;
		memcpy(&size, a->bytes + at, sizeof(size));
		at += sizeof(size);
		if (size > CLEAN_MAX || size > a->size - at)
			return false;
		if (!put_text(d, a->bytes + at, size, &clean))
			return true;
		d->names[i].clean = clean;
		d->names[i].clean_size = size;
		at += size;
	}
	return at == a->size;
}

/* Demangle the names [first, end), which fit into a call. After a failure they are raw. */
static int call(struct demangler *d, struct packet *p, uint32_t first, uint32_t end)
{
	struct sandbox_answer a;
	int rc;

	p->size = 0;
	for (uint32_t i = first; i < end; i++) {
		uint16_t size = (uint16_t)d->names[i].raw_size;

		memcpy(p->bytes + p->size, &size, sizeof(size));
		memcpy(p->bytes + p->size + sizeof(size), d->texts + d->names[i].raw, size);
		p->size += sizeof(size) + size;
	}
	rc = sandbox_call(&demangler_reader, p->bytes, p->size, NULL, 0, TIMEOUT_NS, &a);
	if (rc)
		return rc;
	if (!demangler_take(d, &a, first, end)) {
		for (uint32_t i = first; i < end; i++)
			d->names[i].clean_size = 0;
		rc = -EBADMSG;
	}
	free(a.bytes);
	return rc;
}

/* Demangle [first, end); a name that ends the worker is found by halves. */
static void call_some(struct demangler *d, struct packet *p, uint32_t first, uint32_t end)
{
	uint32_t starts[32], ends[32], nr = 1;

	starts[0] = first;
	ends[0] = end;
	while (nr && !is_hopeless(d)) {
		uint32_t from = starts[--nr], to = ends[nr], half = from + (to - from) / 2;
		int rc = call(d, p, from, to);

		if (!rc)
			continue;
		d->nr_lost += rc == -ETIME ? LOST_TIME : 1;
		if (to - from < 2 || nr + 2 > ARRAY_SIZE(starts))
			continue;
		starts[nr] = half;
		ends[nr++] = to;
		starts[nr] = from;
		ends[nr++] = half;
	}
}

void demangler_run(struct demangler *d)
{
	struct packet p;

	while (d->nr_done < d->nr) {
		uint32_t first = d->nr_done, end = first;
		size_t size = 0, next;

		for (; end < d->nr; end++, size += next) {
			next = sizeof(uint16_t) + d->names[end].raw_size;
			if (size + next > SANDBOX_REQUEST_MAX)
				break;
		}
		call_some(d, &p, first, end);
		d->nr_done = end;
	}
	assert(d->nr_done == d->nr);
}

size_t demangler_get(struct demangler *d, char dialect, const char *name, size_t size,
		     const char **out)
{
	const struct demangler_name *n;

	if (!any_may(dialect, name, size))
		return 0;
	demangler_want(d, dialect, name, size);
	demangler_run(d);
	n = find(d, dialect, name, size);
	if (!n || !n->clean_size)
		return 0;
	*out = d->texts + n->clean;
	return n->clean_size;
}

/*
 * Demangle a name for all views: one that is too long without its template arguments, so that its
 * end is the name of the function.
 */
static size_t demangle_short(char dialect, const char *name, size_t size,
			     char clean[static CLEAN_MAX])
{
	char whole[WHOLE_MAX];
	size_t nr = demangle(name, size, whole, sizeof(whole));
	struct safe_text is;

	if (!nr && other_may(dialect, name, size))
		nr = demangle_other(dialect, name, size, whole, sizeof(whole));
	is = (struct safe_text){ whole, (uint16_t)nr, (uint16_t)nr };
	if (nr > TEXT_MAX)
		is = text_short_name(clean, is);
	if (is.str == clean)
		return is.size;
	nr = MIN(nr, (size_t)CLEAN_MAX);
	memcpy(clean, whole, nr);
	return nr;
}

/* The worker: demangle each name of the request. */
static int serve(struct sandbox_call *c)
{
	const uint8_t *request = c->request;
	char clean[CLEAN_MAX];
	size_t at = 0;

	while (at < c->size) {
		uint16_t size, out;

		if (c->size - at < sizeof(size))
			return -EINVAL;
		memcpy(&size, request + at, sizeof(size));
		at += sizeof(size);
		if (!size || size > c->size - at)
			return -EINVAL;
		out = (uint16_t)demangle_short((char)request[at], (const char *)request + at + 1,
					       size - 1U, clean);
		at += size;
		sandbox_put(&c->reply, &out, sizeof(out));
		sandbox_put(&c->reply, clean, out);
	}
	return 0;
}

const struct sandbox_reader demangler_reader = {
	.kind = SANDBOX_NAMES,
	.name = "proftop-names",
	.serve = serve,
	.memory_max = WORKER_SIZE,
};
