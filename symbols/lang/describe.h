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
#include "symbols/lang/describe_v8.h"
#include "symbols/lang/lang.h"

/* Which language a file of this name may interpret; LANG_NONE. */
enum lang_kind describe_kind_of_name(const char *name);

/* Where a process has it mapped. */
struct describe_where {
	pid_t pid;
	uint32_t process;    /* incarnation */
	uint64_t start, end; /* addresses of the mapping that holds its code */
	uint64_t offset;     /* file offset of start */
	uint32_t maj, min;
	uint64_t ino;
	char *path; /* owned */
};

struct describe {
	struct job job;
	struct describe_where where;
	/* Once it is done: */
	int rc;			/* -ENOENT: the file is no interpreter, its library may be */
	struct lang_desc *desc; /* to be taken; NULL when rc is not 0 */
};

/* NULL when memory is out. Takes @where's path over. Ended by job.drop(). */
struct describe *describe_new(const struct describe_where *where);

/* The symbols of an interpreter's file. */
struct describe_file {
	enum lang_kind kind;
	uint32_t version;   /* from the name of the file: 0x030b0000; PHP: from its bytes */
	const char *reason; /* static: the reason why it has no frames; NULL: it has */
	uint64_t runtime, code_type, version_at;
	struct lang_range eval[LANG_EVAL_MAX];
	uint32_t nr_eval;
	struct v8_symbols symbols; /* of LANG_NODE */
	struct v8_file v8;
};
/* 0 or -ENOENT: symbols are missing. @name: of the file. */
int describe_read_file(struct describe_file *out, const struct elffile *f, const char *name);

#endif
