/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lines of a source file, for people to read beside the code.
 *
 * Its path is what debug information says, and so anybody's choice. It is
 * opened as the process sees it, else as we do, with the rights of whoever
 * runs us and no more: a proftop with capabilities of its own reads none.
 *
 * Runs on: a helper. A file may hang; look at the stop afterwards.
 */
#ifndef SYMBOLS_SOURCE_SOURCE_H
#define SYMBOLS_SOURCE_SOURCE_H

#include <sys/types.h>

#include "symbols/source/listing.h"

#define SOURCE_SIZE_MAX	 (8u << 20)
#define SOURCE_LINES_MAX 8192u /* of one listing */

struct source_want {
	const char *path;
	pid_t pid;	      /* in whose root first; 0: ours only */
	const char *root;     /* a folder to look below first; NULL */
	uint32_t first, last; /* lines, 1 the first */
	int64_t built_ns;     /* when the program was made; 0: not known */
};

/* The lines into @file of @l, or why there are none. */
void source_read(struct listing *l, struct listing_file *file, const struct source_want *want);
/* The same from bytes that are here. */
void source_parse(struct listing *l, struct listing_file *file, const struct source_want *want,
		  const char *text, size_t size);

#endif
