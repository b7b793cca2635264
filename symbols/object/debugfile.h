/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The separate debug file of a stripped object (GDB manual, "Debugging
 * Information in Separate Files"): by build-id below /usr/lib/debug/.build-id or
 * in the cache of debuginfod, else by the name in .gnu_debuglink, of which only
 * the basename is used, below /usr/lib/debug, with its CRC checked. Only our own
 * root is searched, never that of a process, nor the directory of the object.
 *
 * Runs on: a helper.
 */
#ifndef SYMBOLS_OBJECT_DEBUGFILE_H
#define SYMBOLS_OBJECT_DEBUGFILE_H

#include "symbols/object/elffile.h"

#define DEBUGFILE_CRC_MAX (1ULL << 30) /* largest file with a CRC check */

/*
 * Open the debug file of @object into @debug; add *bias to its addresses to get addresses of
 * @object. 0, -ENOENT: there is none, or -errno. After 0 the caller calls debugfile_close().
 */
int debugfile_open(const struct elffile *object, struct elffile *debug, uint64_t *bias);
/* Open the debug file by .gnu_debuglink, below the directory @root. */
int debugfile_open_link(const struct elffile *object, const char *root, struct elffile *debug,
			uint64_t *bias);
void debugfile_close(struct elffile *debug);

/* Write the path for a build-id into @buf; false if the build-id is too short. */
bool debugfile_path(const uint8_t *build_id, size_t size, char *buf, size_t buf_size);

#define DEBUGFILE_ROOT "/usr/lib/debug"

#endif
