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

#include "symbols/base/foreign.h"
#include "symbols/elf/elf.h"

#define DEBUGFILE_CRC_MAX  (1ULL << 30) /* largest file with a CRC check */
#define DEBUGFILE_CRC_NS   20000000000ULL
#define DEBUGFILE_LINK_MAX 512U

/* The names that an object gives its debug file. */
struct debugfile_names {
	uint8_t build_id[20];
	uint8_t build_id_size;
	char link[DEBUGFILE_LINK_MAX]; /* empty: none */
	uint32_t crc;
};
void debugfile_names(struct debugfile_names *n, const struct elffile *object);
/* Test a name of a link: no folder, not hidden. */
bool debugfile_link_ok(const char *name);
/*
 * Open place @i where the debug file may be: by build-id first, then by link, below @root.
 * @object_path: of the object, or NULL. *by_link is set. 0, -ENOENT: not there, -ERANGE: there are
 * no more places, or -errno. The caller closes out->fd.
 */
int debugfile_try(const struct debugfile_names *n, unsigned int i, const char *root,
		  const char *object_path, struct watch *watch, struct foreign_file *out,
		  bool *by_link);
/* Whether a debug file is the one of the object. */
enum debugfile_match { DEBUGFILE_OTHER, DEBUGFILE_CRC_DECIDES, DEBUGFILE_SAME };
/* Compare machine and build-id. *@bias: what the addresses of the debug file lack. */
enum debugfile_match debugfile_match(const struct elffile *object, const struct elffile *debug,
				     bool by_link, uint64_t *bias);
/*
 * Compute the CRC-32 of .gnu_debuglink of a file of @size bytes, or take the one that a call before
 * has computed. 0; -EAGAIN while another file is read; -ETIME, -ECANCELED or another error.
 * @time_ns: DEBUGFILE_CRC_NS. A longer one is ended, and its file is not used; one that hangs does
 * not hold up others for more.
 */
int debugfile_crc(int fd, uint64_t size, struct watch *watch, uint64_t time_ns, uint32_t *crc);

/* Write the path for a build-id into @buf; false if the build-id is too short. */
bool debugfile_path(const uint8_t *build_id, size_t size, char *buf, size_t buf_size);

/* Folders in which libdebuginfod may have its cache. */
#define DEBUGFILE_CACHES 4U
/* Write the path of folder @nr. Return its length; 0: its variable is not set. */
int debugfile_cache_folder(unsigned int nr, char *buf, size_t size);
/*
 * Write the path of candidate @nr where libdebuginfod caches the debug file of a
 * build-id, from the environment. False: no such candidate.
 */
bool debugfile_cache_path(const uint8_t *build_id, size_t size, unsigned int nr, char *buf,
			  size_t buf_size);

#define DEBUGFILE_ROOT "/usr/lib/debug"

#endif
