/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Read ELF files in the cage: their bytes here, their meaning in a worker.
 *
 * A read may hang, and a worker that waits for a file would hold up all others. So the worker reads
 * parts that this thread has read before: from the page cache, of a file system that is a disk or
 * memory, else from a copy. It begins with both ends of a file and names the parts that it misses;
 * this thread reads them, and calls again. Most files take one call or two.
 *
 * Runs on: a helper. The worker cannot write to a descriptor that it gets.
 */
#ifndef SYMBOLS_OBJECT_ELFCAGE_H
#define SYMBOLS_OBJECT_ELFCAGE_H

#include "symbols/cage/cage.h"
#include "symbols/object/elfcage_wire.h"

struct watch;

/* Of a reading that is not told otherwise. A call may take twice its time on a busy machine. */
#define ELFCAGE_MEMORY	(256ULL << 20)
#define ELFCAGE_TIME_NS 10000000000ULL

/* A file, and its parts that the worker may read. */
struct elfcage_file {
	int fd; /* borrowed; -1: none */
	uint64_t size;
	int copy; /* a memfd; -1: the worker reads the file itself */
	int sent; /* its descriptor, read-only */
	struct elfparts there;
};

struct elfcage {
	struct watch *watch; /* progress; may be NULL */
	uint64_t memory_max; /* of all large files that are read at a time; ELFCAGE_MEMORY */
	uint64_t time_ns;    /* of all calls; ELFCAGE_TIME_NS */
	bool copied;	     /* the worker gets a copy, as of any file system that may hang */
	/* Private: */
	struct elfcage_file files[ELFCAGE_FILES];
	uint64_t sum, held;		  /* bytes that were read; of these counted for all */
	uint64_t took_ns;		  /* of time_ns */
	const struct cage_reader *reader; /* of the last answer, with its generation */
	uint32_t generation;
	uint8_t *buf;
	unsigned int nr_calls;
	uint8_t request[CAGE_REQUEST_MAX];
};

/* Make a reading of files, none of which is open, with the limits above. NULL: no memory. */
struct elfcage *elfcage_new(void);
void elfcage_free(struct elfcage *c);
/* Begin with both ends of file @i. 0, -ENOEXEC: it is empty, or -errno. */
int elfcage_open(struct elfcage *c, int i, int fd, uint64_t size);
void elfcage_close(struct elfcage *c, int i);
/*
 * Call @reader with @request until it misses no part of the files. Its answer is behind
 * ELFCAGE_ANSWER bytes of @out, which the caller frees. 0; -EAGAIN while other large files are
 * read; -ENOEXEC, -ENOENT, -ESTALE, -E2BIG, -ENOSPC or -ENOMEM of the reader; -EBADMSG: other
 * errors, or an invalid answer; other errors of cage_call(), or -errno.
 */
int elfcage_ask(struct elfcage *c, const struct cage_reader *reader, const void *request,
		size_t size, struct cage_answer *out);
/* Refuse the last answer, which is invalid: its worker ends. Returns -EBADMSG. */
int elfcage_refuse(struct elfcage *c);

#endif
