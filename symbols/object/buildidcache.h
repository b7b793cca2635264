/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perf's cache of files by build-id, ~/.debug: the programs of recordings as perf record saw them.
 *
 * Threads: helpers.
 */
#ifndef SYMBOLS_OBJECT_BUILDIDCACHE_H
#define SYMBOLS_OBJECT_BUILDIDCACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/base/foreign.h"

/* Write the path of the cached file with this build-id. @old: as perf wrote it before Linux 4.9. */
bool buildidcache_path(const char *home, const uint8_t *build_id, size_t size, bool old, char *buf,
		       size_t buf_size);
/*
 * Open the file with this build-id: in the cache of the invoking user with the rights of that user;
 * behind sudo then in that of root. Only a file that belongs to that user or to root. 0 or -ENOENT;
 * the caller closes out->fd.
 */
int buildidcache_open(const uint8_t *build_id, size_t size, struct foreign_file *out);

#endif
