/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lines of a source file, to show beside the code.
 *
 * Its path is from debug information, and so chosen by others. It is opened as
 * the process sees it, else as proftop does, with the rights of the user only: a
 * proftop with extra capabilities reads none.
 *
 * Runs on: a helper. A file may hang; check the stop afterwards.
 */
#ifndef SYMBOLS_SOURCE_SOURCE_H
#define SYMBOLS_SOURCE_SOURCE_H

#include <sys/types.h>

#include "symbols/code/code.h"

#define SOURCE_SIZE_MAX	 (8u << 20)
#define SOURCE_LINES_MAX 8192u /* of one listing */

struct source_want {
	const char *path;
	pid_t pid;	      /* use this process's root first; 0: only ours */
	const char *root;     /* a folder to search first; NULL */
	uint32_t first, last; /* lines, from 1 */
	int64_t built_ns;     /* when the program was built; 0: unknown */
};

/* Read the lines into @file of @l, or set the reason. */
void source_read(struct listing *l, struct listing_file *file, const struct source_want *want);
/* Read the lines from bytes in memory. */
void source_parse(struct listing *l, struct listing_file *file, const struct source_want *want,
		  const char *text, size_t size);

#endif
