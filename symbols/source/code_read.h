/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading one function: its bytes, which line each part of it is of, and the
 * text of these lines. A job for a helper: it holds copies of all it needs.
 */
#ifndef SYMBOLS_SOURCE_CODE_READ_H
#define SYMBOLS_SOURCE_CODE_READ_H

#include "symbols/base/helper.h"
#include "symbols/source/listing.h"
#include "symbols/object/load.h"

#define CODE_SIZE_MAX  (256u << 10)
#define CODE_FILES_MAX 64u

/* From here on the code is of this line. */
struct reading_row {
	uint64_t vaddr;
	uint32_t file, line; /* LISTING_NONE and 0: of none */
};

struct reading {
	struct job job;
	/* What to read. */
	struct load_where where; /* where.identity.kind says where the code is */
	uint64_t offset;	 /* in its file or the vdso; the kernel: where it is now */
	bool no_lines;
	char *kcore_path; /* owned */
	uint16_t machine; /* e_machine; EM_NONE: this machine's */
	bool wide;
	/* What was read, some of it maybe before; the listing has no instructions yet. */
	struct listing *l;
	uint8_t *bytes;
	uint32_t nr_bytes;
	struct reading_row *rows; /* in order of address */
	uint32_t nr_rows, max_rows;
	int64_t built_ns;	     /* when the file changed last */
	char *raw[CODE_FILES_MAX];   /* of l->files, as they were told */
	char *paths[CODE_FILES_MAX]; /* with their folder */
};

/* While reading: from @vaddr on the code is of @line of @file, below @dir (may be NULL). */
void reading_tell(struct reading *r, uint64_t vaddr, const char *dir, const char *file,
		  uint32_t line);
/* For the function of @l, whose reference is taken over. NULL when memory is out. */
struct reading *reading_new(struct listing *l);

#endif
