/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The texts of /proc/PID: maps, status, stat, comm; see proc(5).
 *
 * Hostile: a process chooses its paths and names. Bytes in, fields out, nothing
 * is copied. Pure; any thread.
 */
#ifndef SYMBOLS_PROCESS_PROCFS_H
#define SYMBOLS_PROCESS_PROCFS_H

#include <sys/types.h>

#include "symbols/base/base.h"
#include "symbols/image/image.h"

#define PROCFS_MAPS_SIZE_MAX (16u << 20) /* bytes read of /proc/PID/maps */

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
	uint64_t nr_bad; /* invalid lines, skipped */
};

/*
 * Parse the next whole line of /proc/PID/maps; false at the end. A last line without
 * newline is ignored.
 */
bool procfs_next_map(struct procfs_text *text, struct procfs_map *out);

/* Copy @src without the \ooo escapes of the kernel: at most @dst_size bytes, no NUL. */
size_t procfs_unescape(char *dst, size_t dst_size, const char *src, size_t size);

/*
 * Return the kind of object for the name of a mapping, in /proc/PID/maps and in
 * MMAP2 records. A memfd is a file when mapped privately, as programs and libraries
 * are; JITs share it with the mapping that they write through.
 * The vdso of a 32-bit process, which @start shows, is another one: a file that cannot be read.
 */
enum object_kind procfs_kind(const char *path, size_t size, uint64_t start, bool is_private);

/* Return the value of "Name:\tvalue" in /proc/PID/status as a number; false: absent. */
bool procfs_status_number(const char *text, size_t size, const char *name, uint64_t *value);

/*
 * Get the last number of "NSpid:\t" in /proc/PID/status, the id in the innermost namespace,
 * pid_namespaces(7). Return how many there are; 0: absent, *@pid is unchanged.
 */
unsigned int procfs_status_inner(const char *text, size_t size, uint64_t *pid);

/* Return the letter of "State:\t" in /proc/PID/status; 0: absent. */
char procfs_status_state(const char *text, size_t size);

/*
 * Return field @nr (from 4 on, not the last) of /proc/PID/stat as a number; false:
 * not one.
 */
bool procfs_stat_field(const char *text, size_t size, int nr, uint64_t *value);
/*
 * Convert field 22 of /proc/PID/stat, the start of a process in clock ticks, to the present
 * CLOCK_REALTIME in nanoseconds, as stat(2) has times; 0: @ticks is 0.
 */
int64_t procfs_start_ns(uint64_t ticks);
/* Return field 9 of /proc/PID/stat, PF_* flags. */
bool procfs_stat_flags(const char *text, size_t size, uint64_t *flags);
#define PROCFS_PF_KTHREAD 0x00200000u

#endif
