/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Build the image of an object from its file: pread, never a mapping, since the
 * file can be truncated at any time.
 *
 * image_read() reads the bytes in this thread, and has them parsed in the cage, by image_build().
 */
#ifndef SYMBOLS_OBJECT_IMAGE_READ_H
#define SYMBOLS_OBJECT_IMAGE_READ_H

#include "symbols/sandbox/sandbox.h"
#include "symbols/object/debugfile.h"
#include "symbols/object/image.h"

#define IMAGE_READERS (CAGE_IMAGE_LAST - CAGE_IMAGE + 1)

struct watch;

/* An ELF file to read. */
struct image_input {
	int fd;
	uint64_t size;
	const char *path; /* a hint for debug files; may be NULL */
	bool no_debug_files;
	bool copied; /* the cage gets a copy, as of any file system that may hang */
	uint64_t
		memory_max; /* of all large tables read at a time; larger ones: not read; 0: none */
	struct watch *watch; /* progress; may be NULL */
};

/*
 * Build an image from an ELF file. 0, or -errno with a message; -EAGAIN while other large files
 * are read; the errors of cage_call(). Helpers only: slow; may hang.
 */
int image_read(struct image **out, const struct image_input *in, struct err *e);
/* Build an image from a descriptor alone. */
int image_read_fd(struct image **out, int fd, uint64_t file_size, struct err *e);
/* Build an image from ELF bytes in memory (the vdso), in this thread. */
int image_read_memory(struct image **out, const void *bytes, size_t size, struct err *e);

/* The files that an image is built from. */
struct image_parts {
	const struct elffile *file;
	const struct elffile *debug; /* NULL: none, or unknown yet */
	uint64_t debug_bias;	     /* to add to the addresses of the debug file */
	bool by_link;		     /* how the debug file was found */
	uint64_t memory_max;	     /* a table above this is not read; 0: no limit */
};

/* Build an image. 0, -ENOEXEC or -ENOMEM. If files were not there as a whole, see elffile_waits().
 */
int image_build(struct image **out, const struct image_parts *parts);

/* The readers, for the cage: all are the same. */
extern const struct cage_reader image_readers[IMAGE_READERS];

#endif
