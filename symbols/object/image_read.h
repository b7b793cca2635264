/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Build the image of an object from its file: pread, never a mapping, since the
 * file can be truncated at any time.
 *
 * Runs on: a helper.
 */
#ifndef SYMBOLS_OBJECT_IMAGE_READ_H
#define SYMBOLS_OBJECT_IMAGE_READ_H

#include "symbols/object/image.h"

struct watch;

/* An ELF file to read. */
struct image_input {
	int fd;
	uint64_t size;
	const char *path; /* a hint for debug files; may be NULL */
	bool no_debug_files;
	uint64_t
		memory_max; /* of all large tables read at a time; larger ones: not read; 0: none */
	struct watch *watch; /* progress; may be NULL */
};

/*
 * Build an image from an ELF file. 0, or -errno with a message; -EAGAIN while other large files
 * are read. Any thread; slow; may hang.
 */
int image_read(struct image **out, const struct image_input *in, struct err *e);
/* Build an image from a descriptor alone. */
int image_read_fd(struct image **out, int fd, uint64_t file_size, struct err *e);
/* Build an image from ELF bytes in memory (the vdso). */
int image_read_memory(struct image **out, const void *bytes, size_t size, struct err *e);

#endif
