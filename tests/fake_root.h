/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A tree of files in place of /proc, /sys or the like: made file by file, and removed at the end.
 */
#ifndef TESTS_FAKE_ROOT_H
#define TESTS_FAKE_ROOT_H

#include "tests/prelude.h"

#include <sys/stat.h>

/* The file @path below @root, with all the folders above it. */
static inline void fake_put(const char *root, const char *path, const char *text)
{
	char full[512];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *p = full + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(full, 0755);
		*p = '/';
	}
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static inline int fake_remove(const char *root)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

#endif
