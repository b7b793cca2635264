/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Debian package that a file is from, by dpkg's lists of files. They are tens of megabytes: a
 * thread reads them, for one path at a time.
 *
 * Threads: packages_*() on the main thread. A thread that hangs is abandoned with its copies.
 */
#ifndef UI_CLI_PACKAGES_H
#define UI_CLI_PACKAGES_H

#include <stddef.h>

#define PACKAGES_NAME_MAX    96
#define PACKAGES_ARCHIVE_MAX 256

struct packages;

/*
 * @dir: dpkg's folder, NULL: /var/lib/dpkg/info. @sources: apt's folder, NULL: /etc/apt. Return
 * NULL without memory.
 */
struct packages *packages_new(const char *dir, const char *sources);
/* NULL is fine. */
void packages_free(struct packages *p);

enum packages_result {
	PACKAGES_PENDING, /* being looked up: call again */
	PACKAGES_NONE,	  /* of no package, or this is not Debian */
	PACKAGES_FOUND,
};
/*
 * Find the package of the file @path, an absolute path. @name: the name of the package with its
 * debug symbols. @archive: the line for apt's sources.list that this package needs, "": none. @p
 * NULL: none.
 */
enum packages_result packages_find(struct packages *p, const char *path,
				   char name[static PACKAGES_NAME_MAX],
				   char archive[static PACKAGES_ARCHIVE_MAX]);

#endif
