/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Facts about an ELF file, read in the cage: build-id, addresses of some symbols, debug
 * information, and the debug file that it has elsewhere.
 *
 * Runs on: a helper; may hang. Numbers are foreign; texts end, and build-ids have a valid size.
 */
#ifndef SYMBOLS_OBJECT_ELFFACTS_H
#define SYMBOLS_OBJECT_ELFFACTS_H

#include "symbols/sandbox/sandbox.h"
#include "symbols/object/elffacts_wire.h"
#include "symbols/object/elfvar.h"

/* A file, and the questions about it. */
struct elffacts_input {
	int fd;
	uint64_t size;
	uint64_t offset;     /* of the byte for vaddr */
	struct elfvar *vars; /* out: elfvar_find() */
	uint32_t nr_vars;    /* ELFFACTS_VARS_MAX at most */
	struct watch *watch; /* progress; may be NULL */
};

/* Read the facts. 0, -ENOEXEC, or another error as of elfcage_ask(). */
int elffacts_read(struct elffacts *out, const struct elffacts_input *in);

/*
 * Find the variable that is @at bytes behind the first byte of the file in memory: its name,
 * foreign text with a NUL, and the distance of its begin. 0, -ENOENT: none, or as elffacts_read().
 */
int elffacts_variable(int fd, uint64_t size, uint64_t at, char name[static ELFFACTS_NAME_MAX],
		      uint64_t *begin);

/*
 * Open the debug file of an object with @facts, below @root if it is found by link, and read its
 * facts; add *bias to its addresses to get the ones of the object. 0 (the caller closes
 * file->fd), or -ENOENT.
 */
int elffacts_open_debug(const struct elffacts_input *object, const struct elffacts *facts,
			const char *root, const char *object_path, struct foreign_file *file,
			struct elffacts *out, uint64_t *bias);

/* Collect the facts that need no request. */
void elffacts_collect(struct elffacts *out, const struct elffile *f);

/* The reader, for the cage. */
extern const struct cage_reader elffacts_reader;

#endif
