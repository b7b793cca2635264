// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Files in the cage.
 */
#include "symbols/object/elfcage_serve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Take the lists of the request. False: invalid. */
static bool take_request(struct elfcage_serve *v, const struct cage_call *c)
{
	struct elfcage_request r;
	const uint8_t *at = (const uint8_t *)c->request + sizeof(r);
	size_t left;

	if (c->size < sizeof(r))
		return false;
	memcpy(&r, c->request, sizeof(r));
	left = c->size - sizeof(r);
	for (int i = 0; i < ELFCAGE_FILES; i++) {
		size_t size = r.nr_parts[i] * sizeof(struct elfpart);

		if (r.nr_parts[i] > ELFPARTS_MAX || size > left)
			return false;
		v->missed[i].nr = 0;
		v->missed[i].full = false;
		v->there[i].nr = r.nr_parts[i];
		v->size[i] = r.size[i];
		memcpy(v->there[i].list, at, size);
		at += size;
		left -= size;
	}
	v->request = at;
	v->request_size = left;
	return true;
}

int elfcage_serve_call(struct cage_call *c, void *request, size_t size, elfcage_serve_fn fn)
{
	struct elfcage_serve *v = calloc(1, sizeof(*v));
	int rc = -EINVAL;

	if (!v)
		return -ENOMEM;
	if (take_request(v, c) && v->request_size == size && c->fds[0] >= 0) {
		memcpy(request, v->request, size);
		rc = fn(v, c, request);
	}
	for (int i = 0; i < ELFCAGE_FILES; i++)
		elffile_close(&v->file[i]);
	free(v);
	return rc;
}

int elfcage_serve_open(struct elfcage_serve *v, const struct cage_call *c, int i)
{
	return elffile_open_parts(&v->file[i], c->fds[i], v->size[i], &v->there[i], &v->missed[i],
				  NULL);
}

bool elfcage_serve_misses(const struct elfcage_serve *v)
{
	return v->missed[0].nr || v->missed[1].nr;
}

int elfcage_serve_begin(const struct elfcage_serve *v, struct cage_call *c, int rc)
{
	struct elfcage_answer a = { .nr_missed = { v->missed[0].nr, v->missed[1].nr } };

	if (!elfcage_serve_misses(v) && rc)
		return rc;
	cage_put(&c->reply, &a, sizeof(a));
	for (int i = 0; i < ELFCAGE_FILES; i++)
		cage_put(&c->reply, v->missed[i].list, v->missed[i].nr * sizeof(struct elfpart));
	return v->missed[0].full || v->missed[1].full ? -E2BIG : 0;
}
