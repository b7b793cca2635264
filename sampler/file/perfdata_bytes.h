/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bytes of a recording: in memory, or read from its file piece by piece on demand. Never
 * mapped: a file that is cut short while it is read must not end the reader.
 *
 * One thread. Every offset and size may be hostile.
 */
#ifndef SAMPLER_FILE_PERFDATA_BYTES_H
#define SAMPLER_FILE_PERFDATA_BYTES_H

#include "sampler/file/reading.h"
#include "symbols/base/base.h"

/* Limit of the bytes kept in memory, when they are not of a regular file. */
#define PERFDATA_MEMORY_MAX (8ULL << 30)

struct perfdata_bytes {
	uint64_t size;
	int fd;		       /* -1: all of them are in memory */
	int pipe;	       /* that is read as it is written; else -1 */
	int memory;	       /* memfd of bytes that were read from a pipe, or copied; else -1 */
	const uint8_t *window; /* window_size bytes from window_at */
	uint64_t window_at, window_size;
	uint8_t *own; /* to be freed; a file's window, of room bytes */
	size_t room;
	bool stopped;	  /* a pipe that was not read to its end */
	uint64_t date_ns; /* when the file was written; 0: not known */
	uint64_t ahead;	  /* read ahead was requested up to here */
};

/*
 * Take over @fd, which is @path. 0 or -errno with a message; then @fd is closed. @step: called
 * while a pipe is read, or NULL.
 */
int perfdata_bytes_open(struct perfdata_bytes *b, int fd, const char *path, sampler_reading_fn step,
			struct err *e);
/*
 * Begin to read @fd, a pipe, as far as it has data: perfdata_bytes_more() reads on. @fd is closed
 * by perfdata_bytes_close().
 */
void perfdata_bytes_begin(struct perfdata_bytes *b, int fd);
/*
 * Forget all bytes before offset @keep, and read the bytes that are there, or wait for them. Return
 * the number of new bytes, 0: the end, -EFBIG or other -errno.
 */
int64_t perfdata_bytes_more(struct perfdata_bytes *b, uint64_t keep);
/* Wait until a pipe has data. Return 1: it has, 0: @step stops here, -ECANCELED. */
int perfdata_bytes_wait(const struct perfdata_bytes *b, sampler_reading_fn step);
/* Read the rest of a pipe, as perfdata_bytes_open(). */
int perfdata_bytes_finish(struct perfdata_bytes *b, const char *path, sampler_reading_fn step,
			  struct err *e);
/* Add @size bytes, and forget all before offset @keep. */
void perfdata_bytes_append(struct perfdata_bytes *b, const uint8_t *bytes, size_t size,
			   uint64_t keep);
/* Copy @size bytes. 0 or -errno. */
int perfdata_bytes_copy(struct perfdata_bytes *b, const void *bytes, size_t size);
/* Open the bytes once more, for reading only. Return a descriptor, which the caller closes, or
 * -errno. */
int perfdata_bytes_share(const struct perfdata_bytes *b);
/* Let the kernel read on behind @offset, for the reader of a file that is shared. */
void perfdata_bytes_ahead(struct perfdata_bytes *b, uint64_t offset);
/* Borrow @memory. */
void perfdata_bytes_borrow(struct perfdata_bytes *b, const void *memory, size_t size);
void perfdata_bytes_close(struct perfdata_bytes *b);

/* For perfdata_bytes_at(): move the window there. False: they are not all there. */
bool perfdata_bytes_move(struct perfdata_bytes *b, uint64_t offset, uint64_t size);

/* @size bytes at @offset, or NULL if they are not all there; valid until the next call. */
static inline const uint8_t *perfdata_bytes_at(struct perfdata_bytes *b, uint64_t offset,
					       uint64_t size)
{
	/* Before the window: a large number. */
	uint64_t at = offset - b->window_at;

	if (at > b->window_size || size > b->window_size - at) {
		if (!perfdata_bytes_move(b, offset, size))
			return NULL;
		at = 0;
	}
	return b->window + at;
}

#endif
