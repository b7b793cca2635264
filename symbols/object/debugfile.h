/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The separate debug file of a stripped object (GDB manual, "Debugging
 * Information in Separate Files"): by build-id below
 * /usr/lib/debug/.build-id, or in the cache of debuginfod, else by the name in .gnu_debuglink, of
 * which only a basename counts, below /usr/lib/debug, its CRC proven. Only our own root is looked
 * into, never a process's, nor the object's own folder.
 *
 * Runs on: a helper.
 */
#ifndef SYMBOLS_OBJECT_DEBUGFILE_H
#define SYMBOLS_OBJECT_DEBUGFILE_H

#include "symbols/object/elffile.h"

#define DEBUGFILE_CRC_MAX (1ULL << 30) /* bytes of a file whose CRC is worth the time */

/*
 * Open the debug file of @object into @debug; *bias is what to add to its
 * addresses to get those of @object. 0, -ENOENT when there is none, or -errno.
 * After 0 the caller ends with debugfile_close().
 */
int debugfile_open(const struct elffile *object, struct elffile *debug, uint64_t *bias);
/* The same by .gnu_debuglink, below the folder @root. */
int debugfile_open_link(const struct elffile *object, const char *root, struct elffile *debug,
			uint64_t *bias);
void debugfile_close(struct elffile *debug);

/* The path for a build-id into @buf; false if the build-id is too short for one. */
bool debugfile_path(const uint8_t *build_id, size_t size, char *buf, size_t buf_size);

#define DEBUGFILE_ROOT "/usr/lib/debug"

#endif
