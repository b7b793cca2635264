// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * D: the dotted name only, template arguments as "!()" (dlang.org, "Application
 * Binary Interface", name mangling). Not libiberty's: its D demangler ends the
 * program when out of memory, and does not limit the output of back references.
 *
 * Any thread. The name is hostile: steps go forward only, nesting is limited.
 */
#include "symbols/name/demangle.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "symbols/base/base.h"

#define DEPTH_MAX 32U

struct d_name {
	const char *pos, *start;
	char *buf;
	size_t size, max;
};

static const char *skip_type(const char *p, unsigned int depth);

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

static const char *skip_arguments(const char *p, unsigned int depth);

/* Skip names with dots between them; at least one. */
static const char *skip_names(const char *p, unsigned int depth)
{
	bool any = false;
	size_t size;

	if (!depth)
		return NULL;
	for (;; any = true) {
		const char *at = p;

		if (is_template(at))
			at = skip_arguments(at, depth - 1);
		else if (*at == 'Q' && any)
			return p; /* of the next argument, as far as known */
		else if (*at == 'Q')
			at = skip_reference(at);
		else if ((at = identifier(at, &size)))
			at += size;
		if (!at)
			return any ? p : NULL;
		p = at;
	}
}

/* Skip "__T", a name, arguments up to the "Z". */
static const char *skip_arguments(const char *p, unsigned int depth)
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
			p = skip_type(p, depth - 1);
			break;
		case 'V':
			p = skip_type(p, depth - 1);
			p = p ? skip_value(p) : NULL;
			break;
		case 'S':
			p = skip_names(p, depth - 1);
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

/* Skip a function's attributes, parameters and result. */
static const char *skip_function(const char *p, unsigned int depth)
{
	for (; *p == 'N' && p[1] && strchr("abcdefijlm", p[1]); p += 2)
		;
	while (p && *p && !strchr("XYZ", *p)) {
		while (*p && strchr("MJKLI", *p)) /* scope, out, ref, lazy, in */
			p++;
		p = skip_type(p, depth);
	}
	return p && *p ? skip_type(p + 1, depth) : NULL;
}

static const char *skip_type(const char *p, unsigned int depth)
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
		return skip_names(p + 1, depth - 1);
	if (*p == 'H')
		return (p = skip_type(p + 1, depth - 1)) ? skip_type(p, depth - 1) : NULL;
	if (*p == 'D')
		p += 1 + strspn(p + 1, "xyO");
	if (strchr("FUWRY", *p))
		return skip_function(p + 1, depth - 1);
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
	const char *name, *end = template ? skip_arguments(d->pos, DEPTH_MAX) : NULL;
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

size_t demangle_d(const char *name, char *buf, size_t buf_size)
{
	struct d_name d = { .pos = name + 2, .start = name, .buf = buf, .max = buf_size - 1 };

	while (d.size < d.max && part(&d))
		;
	buf[d.size] = '\0';
	return d.size;
}
