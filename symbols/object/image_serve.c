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

#include "symbols/object/elfcage_serve.h"
#include "symbols/object/elfsig.h"
#include "symbols/object/image_flat.h"
#include "symbols/object/image_read.h"

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

/* Build the image of the open files, but for the signal return. */
static int build(struct elfcage_serve *v, const struct image_request *r, bool debug,
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
static void finish(struct elfcage_serve *v, const struct image_request *r, struct image **image)
{
	if (elfcage_serve_misses(v) || !*image)
		return;
	elfsig_find(*image, &v->file[IMAGE_OBJECT]);
	if (elfcage_serve_misses(v)) {
		keep(*image, r->serial);
		*image = NULL;
	}
}

static int serve_files(struct elfcage_serve *v, struct cage_call *c, const void *request)
{
	const struct image_request *r = request;
	struct image *image = NULL;
	struct image_answer a = { .match = DEBUGFILE_OTHER };
	int rc = elfcage_serve_open(v, c, IMAGE_OBJECT);
	bool debug;

	/* Go on without a debug file that cannot be opened. */
	debug = !rc && c->fds[IMAGE_DEBUG] >= 0 && !elfcage_serve_open(v, c, IMAGE_DEBUG);
	if (!rc)
		rc = build(v, r, debug, &a, &image);
	if (!rc)
		finish(v, r, &image);
	rc = elfcage_serve_begin(v, c, rc);
	if (!rc && !elfcage_serve_misses(v)) {
		cage_put(&c->reply, &a, sizeof(a));
		if (image)
			image_flat_put(&c->reply, image);
	}
	image_free(image);
	return rc;
}

static int serve(struct cage_call *c)
{
	struct image_request r;

	return elfcage_serve_call(c, &r, sizeof(r), serve_files);
}

#define READER(nr)                                                                                 \
	{                                                                                          \
		.kind = CAGE_IMAGE + (nr), .name = "proftop-image", .serve = serve,                \
		.memory_max = 8ULL << 30, .reply_max = 2UL << 30, .map_reply = true,               \
	}

const struct cage_reader image_readers[IMAGE_READERS] = { READER(0), READER(1), READER(2),
							  READER(3) };
