// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * C++, Rust and D names, with limits; many in one call to the sandbox, with a memo.
 *
 * Output is limited by leaving the demangler with longjmp from its output callback: the callback
 * variants allocate only on the stack, so nothing leaks. Runs on: a worker of the sandbox.
 */
#include "symbols/name/internal.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

/* Return false if the @size bytes at @name are no mangled name for sure. */
static bool demangle_may(const char *name, size_t size)
{
	return size >= 3 && size <= DEMANGLE_NAME_MAX && name[0] == '_' &&
	       (name[1] == 'Z' || name[1] == 'R' ||
		(name[1] == 'D' && isdigit((unsigned char)name[2]))) &&
	       !memchr(name, '\0', size);
}

static size_t demangle_d(const char *name, char *buf, size_t buf_size);

size_t demangle(const char *name, size_t size, char *buf, size_t buf_size)
{
	char copy[DEMANGLE_NAME_MAX + 1];
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
	if (may_explode(copy, size))
		return 0;
	/* Its recursion limit refuses all names over 1 KiB; DEMANGLE_NAME_MAX is the limit here. */
	out = run(cplus_demangle_v3_callback, DMGL_ANSI | DMGL_NO_RECURSE_LIMIT, copy, buf,
		  buf_size);
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

/* Skip a function's attributes and parameters, up to the letter that ends them. */
static const char *skip_parameters(const char *p, unsigned int depth)
{
	for (; *p == 'N' && p[1] && strchr("abcdefijlm", p[1]); p += 2)
		;
	while (p && *p && !strchr("XYZ", *p)) {
		while (*p && strchr("MJKLI", *p)) /* scope, out, ref, lazy, in */
			p++;
		p = skip_type(p, depth);
	}
	return p && *p ? p : NULL;
}

/* Skip a function's attributes, parameters and result. */
static const char *skip_function(const char *p, unsigned int depth)
{
	p = skip_parameters(p, depth);
	return p ? skip_type(p + 1, depth) : NULL;
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

/*
 * Skip the type of a function in which the next part is nested: "M" and its kind for one with a
 * frame, attributes, parameters. Its result is only written at the end. False: there is none.
 */
static bool skip_around(struct d_name *d)
{
	const char *p = d->pos + (*d->pos == 'M');

	while (*p && strchr("xyO", *p) && p > d->pos)
		p++;
	if (!*p || !strchr("FUWRY", *p))
		return false;
	p = skip_parameters(p + 1, DEPTH_MAX);
	if (!p || !*p || (!isdigit((unsigned char)p[1]) && p[1] != 'Q' && !is_template(p + 1)))
		return false;
	d->pos = p + 1;
	return true;
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
 * Names to and from the sandbox: each is its size (uint16_t) and its bytes, in the request as in
 * the answer; size 0 in the answer: not mangled.
 *
 * Runs on: the loader; serve() in the worker.
 */

#define CLEAN_MAX   (TEXT_MAX + 63U) /* longer than a text, so that the arena marks a cut */
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

static const struct demangler_name *find(const struct demangler *d, const char *name, size_t size)
{
	uint64_t hash = keyhash_name(name, size);
	uint32_t at = 0, id;

	while ((id = hashset_next(&d->set, hash, &at)) != HASHSET_NONE) {
		const struct demangler_name *n = &d->names[id];

		if (n->raw_size == size && !memcmp(d->texts + n->raw, name, size))
			return n;
	}
	return NULL;
}

void demangler_want(struct demangler *d, const char *name, size_t size)
{
	struct demangler_name n = { .raw_size = (uint32_t)size };

	assert(d->nr_done <= d->nr && d->nr <= d->max);
	if (!demangle_may(name, size) || find(d, name, size))
		return;
	if (d->texts_size > MEMO_MAX && d->nr == d->nr_done) {
		hashset_clear(&d->set);
		d->nr = d->nr_done = d->texts_size = 0;
	}
	if (!array_reserve(&d->names, &d->max, d->nr + 1ULL) || hashset_reserve(&d->set, 1) ||
	    !put_text(d, name, size, &n.raw))
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

size_t demangler_get(struct demangler *d, const char *name, size_t size, const char **out)
{
	const struct demangler_name *n;

	if (!demangle_may(name, size))
		return 0;
	demangler_want(d, name, size);
	demangler_run(d);
	n = find(d, name, size);
	if (!n || !n->clean_size)
		return 0;
	*out = d->texts + n->clean;
	return n->clean_size;
}

/* The worker: demangle each name of the request. */
static int serve(struct sandbox_call *c)
{
	const uint8_t *request = c->request;
	char clean[CLEAN_MAX + 1];
	size_t at = 0;

	while (at < c->size) {
		uint16_t size, out;

		if (c->size - at < sizeof(size))
			return -EINVAL;
		memcpy(&size, request + at, sizeof(size));
		at += sizeof(size);
		if (size > c->size - at)
			return -EINVAL;
		out = (uint16_t)demangle((const char *)request + at, size, clean, sizeof(clean));
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
