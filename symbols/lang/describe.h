/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From a file that is an interpreter and a process that has it mapped to the
 * description of that process's interpreter.
 *
 * The addresses are symbols of the file; the version is read from the process.
 * May hang: a job for a helper.
 */
#ifndef SYMBOLS_LANG_DESCRIBE_H
#define SYMBOLS_LANG_DESCRIBE_H

#include <sys/types.h>

#include "symbols/base/helper.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/lang/lang.h"

struct object;

/* Which language a file may interpret, by its name or by what its image shows; LANG_NONE. */
enum lang_kind describe_kind(const struct object *object);

/* Where a process has it mapped. */
struct describe_where {
	pid_t pid;
	uint32_t process;    /* incarnation */
	uint64_t start, end; /* addresses of the mapping that holds its code */
	uint64_t offset;     /* file offset of start */
	uint32_t maj, min;
	uint64_t ino;
	char *path;		  /* owned */
	enum lang_kind kind;	  /* of its object, as when the process was found by it */
	char name[LANG_FILE_MAX]; /* of its object: of some languages it has the version */
};

struct describe {
	struct job job;
	struct describe_where where;
	atomic_bool asks; /* its worker, or waits for that: both have limits of their own */
	/* Once it is done: */
	int rc; /* -ENOENT: the file is no interpreter, its library may be; -EAGAIN: try later */
	struct lang_desc *desc; /* to be taken; NULL when rc is not 0 */
};

/* NULL when out of memory. Takes @where's path over. Ended by job.drop(). */
struct describe *describe_new(const struct describe_where *where);

struct describe_file;
struct elffile;

/*
 * Find the symbols of an interpreter of @kind in a file of this name, without the bias. 0 or
 * -ENOENT: some are missing.
 */
int describe_read_file(struct describe_file *out, const struct elffile *f, enum lang_kind kind,
		       const char *name);
/* The reader of the files, for the cage. */
extern const struct cage_reader describe_reader;

#endif
