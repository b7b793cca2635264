/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of symbols/image/, and by tests; no other room includes it. */
#ifndef SYMBOLS_IMAGE_INTERNAL_H
#define SYMBOLS_IMAGE_INTERNAL_H

#include <stdatomic.h>
#include <sys/types.h>

#include "symbols/base/base.h"
#include "symbols/image/image.h"

struct backoff;
struct image;
struct load;
struct object;
struct objects;
struct watch;

/*
 * File systems that do not answer: which devices to leave alone, and until when.
 *
 * A read that hangs holds a helper thread. One dead server with a thousand
 * libraries must not hold a thousand helpers, so files on its device are not
 * tried for a while: twice as long after each read that hangs, until one
 * succeeds.
 *
 * Pure; one thread: the loader.
 */

#define BACKOFF_SLOW_MAX    12U /* reads that hang, on all devices */
#define BACKOFF_REST_MIN_NS 2000000000ULL

/* An ELF file to read. */
struct derive_choice;

struct image_input {
	int fd;
	uint64_t size;
	const char *path; /* a hint for debug files; may be NULL */
	pid_t pid;	  /* it is below the root of this process; 0: below @root */
	const char *root; /* as in untrusted_want */
	bool no_debug_files;
	bool recorded; /* as in image_parts */
	bool copied;   /* the sandbox gets a copy, as of any file system that may hang */
	uint64_t
		memory_max; /* of all large tables read at a time; larger ones: not read; 0: none */
	struct watch *watch;		    /* progress; may be NULL */
	const struct derive_choice *choice; /* as in derive_image() */
};

/*
 * Build an image from an ELF file. 0, or -errno with a message; -EAGAIN while other large files
 * are read; the errors of sandbox_call(). Helpers only: slow; may hang.
 */
int image_read(struct image **out, const struct image_input *in, struct err *e);
/* Build an image from ELF bytes in memory (the vdso), in this thread. */
int image_read_memory(struct image **out, const void *bytes, size_t size, struct err *e);

struct image_request {
	uint64_t serial; /* the same for all calls for one image, until it is there */
	uint64_t memory_max;
	uint32_t by_link;
	uint32_t same_crc; /* the debug file is the one of the link */
	uint32_t may_map;  /* the caller maps parts of the file */
	uint32_t recorded;
	uint32_t chooses; /* the rest is a struct derive_choice */
	uint32_t visits_max;
	uint32_t alone;
	uint64_t sites[OBJECT_SITES / 64];
};

#endif
