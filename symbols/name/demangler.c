// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names to and from the cage: each is its size (uint16_t) and its bytes, in the request as in the
 * answer; size 0 in the answer: not mangled.
 *
 * Runs on: the loader; serve() in the worker.
 */
#include "symbols/name/demangler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/array.h"
#include "symbols/base/keyhash.h"
#include "symbols/base/text.h"
#include "symbols/cage/cage.h"
#include "symbols/name/demangle.h"
#include "symbols/name/symbol.h"

#define CLEAN_MAX   (TEXT_MAX + 63U) /* longer than a text, so that the arena marks a cut */
#define MEMO_MAX    (4U << 20)	     /* bytes of texts, then it is forgotten */
#define TIMEOUT_NS  4000000000ULL
#define LOST_MAX    64U /* lost workers; one is forgiven each second */
#define LOST_TIME   16U /* a worker that was too slow counts more */
#define FORGIVE_NS  1000000000ULL
#define WORKER_SIZE (256ULL << 20)

/* A call in the making, or an answer in reading. */
struct packet {
	uint8_t bytes[CAGE_REQUEST_MAX];
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
static bool take(struct demangler *d, const struct cage_answer *a, uint32_t first, uint32_t end)
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
	struct cage_answer a;
	int rc;

	p->size = 0;
	for (uint32_t i = first; i < end; i++) {
		uint16_t size = (uint16_t)d->names[i].raw_size;

		memcpy(p->bytes + p->size, &size, sizeof(size));
		memcpy(p->bytes + p->size + sizeof(size), d->texts + d->names[i].raw, size);
		p->size += sizeof(size) + size;
	}
	rc = cage_call(&demangler_reader, p->bytes, p->size, NULL, 0, TIMEOUT_NS, &a);
	if (rc)
		return rc;
	if (!take(d, &a, first, end)) {
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
			if (size + next > CAGE_REQUEST_MAX)
				break;
		}
		call_some(d, &p, first, end);
		d->nr_done = end;
	}
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
static int serve(struct cage_call *c)
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
		cage_put(&c->reply, &out, sizeof(out));
		cage_put(&c->reply, clean, out);
	}
	return 0;
}

const struct cage_reader demangler_reader = {
	.kind = CAGE_NAMES,
	.name = "proftop-names",
	.serve = serve,
	.memory_max = WORKER_SIZE,
};
