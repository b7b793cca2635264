/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The worker's side of elfcage.h: files of which some parts are there.
 *
 * Runs in the worker, or in the thread of the call.
 */
#ifndef SYMBOLS_OBJECT_ELFCAGE_SERVE_H
#define SYMBOLS_OBJECT_ELFCAGE_SERVE_H

#include "symbols/sandbox/sandbox.h"
#include "symbols/object/elfcage_wire.h"
#include "symbols/elf/elf.h"

/* The files of a call. */
struct elfcage_serve {
	struct elfparts there[ELFCAGE_FILES], missed[ELFCAGE_FILES];
	struct elffile file[ELFCAGE_FILES];
	uint64_t size[ELFCAGE_FILES];
	const uint8_t *request; /* of the reader */
	size_t request_size;
};

typedef int (*elfcage_serve_fn)(struct elfcage_serve *v, struct cage_call *c, const void *request);

/*
 * Serve a call by @fn: it opens files and puts the answer. @request: room for the request, of @size
 * bytes. The files are closed afterwards. As @fn, or -EINVAL: another size, or no file.
 */
int elfcage_serve_call(struct cage_call *c, void *request, size_t size, elfcage_serve_fn fn);
/* Open file @i; as elffile_open(). */
int elfcage_serve_open(struct elfcage_serve *v, const struct cage_call *c, int i);
/* Test whether parts were missed: then the result is not used. */
bool elfcage_serve_misses(const struct elfcage_serve *v);
/*
 * Begin the answer, with the missed parts. @rc: of the reader, which counts if nothing was missed;
 * then its answer follows. Returns the result of the call.
 */
int elfcage_serve_begin(const struct elfcage_serve *v, struct cage_call *c, int rc);

#endif
