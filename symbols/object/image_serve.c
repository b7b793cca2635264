// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Build an image from the parts of its file that are there, and name the missed ones.
 *
 * Runs in the worker, or in the thread of the call.
 */
#include "symbols/object/image_wire.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/object/elfsig.h"
#include "symbols/object/image_flat.h"
#include "symbols/object/image_read.h"

/* The files of a call. */
struct served {
	struct elfparts there[IMAGE_NR_FILES], missed[IMAGE_NR_FILES];
	struct elffile file[IMAGE_NR_FILES];
};

/* An image that waits for the code of its signal return, which its symbols have shown. */
struct kept {
	struct image *image;
	uint64_t serial;
};

/* Atomic for the calling threads of programs without a cage; relaxed would do in a worker. */
static _Atomic(struct kept *) kept;

/* Take the kept image if it is the one of @serial; else it is freed. */
static struct image *take_kept(uint64_t serial)
{
	struct kept *k = atomic_exchange(&kept, NULL);
	struct image *image = k && k->serial == serial ? k->image : NULL;

	if (k && !image)
		image_free(k->image);
	free(k);
	return image;
}

/* Keep @image, or free it. */
static void keep(struct image *image, uint64_t serial)
{
	struct kept *k = malloc(sizeof(*k));

	if (!k) {
		image_free(image);
		return;
	}
	*k = (struct kept){ image, serial };
	k = atomic_exchange(&kept, k);
	if (k)
		image_free(k->image);
	free(k);
}

/* Take the lists of the request. False: invalid. */
static bool take_request(struct served *v, const struct cage_call *c, struct image_request *r)
{
	const uint8_t *at = (const uint8_t *)c->request + sizeof(*r);
	size_t left;

	if (c->size < sizeof(*r))
		return false;
	memcpy(r, c->request, sizeof(*r));
	left = c->size - sizeof(*r);
	for (int i = 0; i < IMAGE_NR_FILES; i++) {
		size_t size = r->nr_parts[i] * sizeof(struct elfpart);

		if (r->nr_parts[i] > ELFPARTS_MAX || size > left)
			return false;
		v->missed[i].nr = 0;
		v->missed[i].full = false;
		v->there[i].nr = r->nr_parts[i];
		memcpy(v->there[i].list, at, size);
		at += size;
		left -= size;
	}
	return true;
}

static int open_file(struct served *v, const struct cage_call *c, const struct image_request *r,
		     int i)
{
	return elffile_open_parts(&v->file[i], c->fds[i], r->size[i], &v->there[i], &v->missed[i],
				  NULL);
}

static bool misses(const struct served *v)
{
	return v->missed[IMAGE_OBJECT].nr || v->missed[IMAGE_DEBUG].nr;
}

/* Build the image of the open files, but for the signal return. */
static int build(struct served *v, const struct image_request *r, bool debug,
		 struct image_answer *a, struct image **image)
{
	struct image_parts parts = {
		.file = &v->file[IMAGE_OBJECT],
		.by_link = r->by_link,
		.memory_max = r->memory_max,
	};

	debugfile_names(&a->names, parts.file);
	if (debug)
		a->match = debugfile_match(parts.file, &v->file[IMAGE_DEBUG], r->by_link,
					   &parts.debug_bias);
	if (a->match == DEBUGFILE_CRC_DECIDES && r->same_crc)
		a->match = DEBUGFILE_SAME;
	if (a->match == DEBUGFILE_SAME)
		parts.debug = &v->file[IMAGE_DEBUG];
	/* For another debug file there is an image already. */
	if (debug && !parts.debug)
		return 0;
	*image = take_kept(r->serial);
	return *image ? 0 : image_build(image, &parts);
}

/* Find the signal return, or keep the image until its code is there. */
static void finish(struct served *v, const struct image_request *r, struct image **image)
{
	if (misses(v) || !*image)
		return;
	elfsig_find(*image, &v->file[IMAGE_OBJECT]);
	if (misses(v)) {
		keep(*image, r->serial);
		*image = NULL;
	}
}

static void put_answer(const struct served *v, struct cage_call *c, struct image_answer *a,
		       const struct image *image)
{
	for (int i = 0; i < IMAGE_NR_FILES; i++)
		a->nr_missed[i] = v->missed[i].nr;
	cage_put(&c->reply, a, sizeof(*a));
	for (int i = 0; i < IMAGE_NR_FILES; i++)
		cage_put(&c->reply, v->missed[i].list, v->missed[i].nr * sizeof(struct elfpart));
	if (image && !misses(v))
		image_flat_put(&c->reply, image);
}

static int serve_files(struct served *v, struct cage_call *c, const struct image_request *r)
{
	struct image *image = NULL;
	struct image_answer a = { .match = DEBUGFILE_OTHER };
	int rc = open_file(v, c, r, IMAGE_OBJECT);
	bool debug;

	if (rc && !misses(v))
		return rc;
	/* Go on without a debug file that cannot be opened. */
	debug = !rc && c->fds[IMAGE_DEBUG] >= 0 && !open_file(v, c, r, IMAGE_DEBUG);
	if (!rc)
		rc = build(v, r, debug, &a, &image);
	if (!rc)
		finish(v, r, &image);
	if (!rc || misses(v))
		put_answer(v, c, &a, image);
	if (misses(v))
		rc = v->missed[0].full || v->missed[1].full ? -E2BIG : 0;
	image_free(image);
	elffile_close(&v->file[IMAGE_OBJECT]);
	elffile_close(&v->file[IMAGE_DEBUG]);
	return rc;
}

static int serve(struct cage_call *c)
{
	struct served *v = calloc(1, sizeof(*v));
	struct image_request r;
	int rc = -EINVAL;

	if (!v)
		return -ENOMEM;
	if (take_request(v, c, &r) && c->fds[IMAGE_OBJECT] >= 0)
		rc = serve_files(v, c, &r);
	free(v);
	return rc;
}

#define READER(nr)                                                                                 \
	{                                                                                          \
		.kind = CAGE_IMAGE + (nr), .name = "proftop-image", .serve = serve,                \
		.memory_max = 8ULL << 30, .reply_max = 2UL << 30, .map_reply = true,               \
	}

const struct cage_reader image_readers[IMAGE_READERS] = { READER(0), READER(1), READER(2),
							  READER(3) };
