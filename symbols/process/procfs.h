/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The texts of /proc/PID: maps, status, stat, comm; see proc(5).
 *
 * Hostile: paths and names are what a process wants them to be. Bytes in,
 * fields out, nothing copied. Pure; any thread.
 */
#ifndef SYMBOLS_PROCESS_PROCFS_H
#define SYMBOLS_PROCESS_PROCFS_H

#include <sys/types.h>

#include "symbols/base/base.h"
#include "symbols/object/object.h"

#define PROCFS_MAPS_SIZE_MAX (16u << 20) /* bytes of /proc/PID/maps that are read */

struct procfs_map {
	uint64_t start, end, offset;
	uint64_t ino;
	uint32_t maj, min;
	bool exec, is_private; /* private: writing to it changes no file */
	const char *path;      /* in the text; the kernel writes newlines as \012 */
	size_t path_size;      /* 0: anonymous */
};

struct procfs_text {
	const char *at;
	const char *end;
	uint64_t nr_bad; /* lines that made no sense, and were passed over */
};

/* The next whole line of /proc/PID/maps; false at the end. A last line without newline is cut off.
 */
bool procfs_next_map(struct procfs_text *text, struct procfs_map *out);

/* Undo the kernel's \ooo escapes of @src in place of copy: at most @dst_size bytes, no NUL. */
size_t procfs_unescape(char *dst, size_t dst_size, const char *src, size_t size);

/*
 * What kind of object a mapping's name tells of, in /proc/PID/maps and in MMAP2
 * records. A memfd is a file where it is mapped privately, as programs and
 * libraries are; JITs share it with the mapping that they write through.
 */
enum object_kind procfs_kind(const char *path, size_t size, bool is_private);

/* The value of "Name:\tvalue" in /proc/PID/status as a number; false when absent. */
bool procfs_status_number(const char *text, size_t size, const char *name, uint64_t *value);

/* Field @nr (4 on) of /proc/PID/stat as a number, but not the last; false when it is none. */
bool procfs_stat_field(const char *text, size_t size, int nr, uint64_t *value);
/* Field 9, PF_* flags. */
bool procfs_stat_flags(const char *text, size_t size, uint64_t *flags);
#define PROCFS_PF_KTHREAD 0x00200000u

#endif
