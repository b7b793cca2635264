/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Read one function: its bytes, the line of each part, and the text of these
 * lines. A job for a helper: it holds copies of all its input.
 */
#ifndef SYMBOLS_SOURCE_CODE_READ_H
#define SYMBOLS_SOURCE_CODE_READ_H

#include "symbols/base/helper.h"
#include "symbols/code/code.h"
#include "symbols/source/script.h"
#include "symbols/object/load.h"

#define CODE_SIZE_MAX  (256u << 10)
#define CODE_FILES_MAX 64u

/* From here on the code is of this line. */
struct reading_row {
	uint64_t vaddr;
	uint32_t file, line; /* LISTING_NONE and 0: no line */
};

struct reading {
	struct job job;
	/* Input. */
	struct load_where where; /* where.identity.kind is the kind of the code's home */
	uint64_t offset;	 /* in its file or the vdso; the kernel: its address now */
	bool no_lines;
	char *kcore_path; /* owned */
	bool kcore_below; /* below where.root */
	uint16_t machine; /* e_machine; EM_NONE: this machine's */
	bool wide;
	struct script_want script; /* where.identity.kind is OBJECT_SCRIPT */
	/* Result, partly set before; the listing has no instructions yet. */
	struct listing *l;
	uint8_t *bytes;
	uint32_t nr_bytes;
	struct reading_row *rows; /* in order of address */
	uint32_t nr_rows, max_rows;
	int64_t built_ns;	     /* last change of the file */
	char *raw[CODE_FILES_MAX];   /* of l->files, raw */
	char *paths[CODE_FILES_MAX]; /* with their folder */
};

/* While reading: from @vaddr on the code is of @line of @file, below @dir (may be NULL). */
void code_read_add_row(struct reading *r, uint64_t vaddr, const char *dir, const char *file,
		       uint32_t line);
/* Create a job for the function of @l, taking over the reference. NULL when out of memory. */
struct reading *code_read_new(struct listing *l);

#endif
