/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The folder of --keep: its segments, in order of their numbers. Other files in it are left alone.
 *
 * One thread at a time: the builder, or that of the replay.
 */
#ifndef SAMPLER_KEEP_DIR_H
#define SAMPLER_KEEP_DIR_H

#include "symbols/base/base.h"

#define KEEP_DIR_NAME	  24
#define KEEP_SEGMENT_MAX  ((uint64_t)1 << 30) /* bytes of one segment that are read */
#define KEEP_SEGMENTS_MAX 65536
#define KEEP_NUMBER_MAX	  0xfff00000u /* with room for one session */

/* Open a folder. 0 or -errno with a sentence. */
int keep_dir_open(int *fd, const char *path, struct err *e);
/*
 * Lock the folder @dir, of @path, for one session, until @lock is closed: by a file that no other
 * user can open. The folder itself could be locked by any user that may read it. 0 or -errno with a
 * sentence.
 */
int keep_dir_lock(int *lock, int dir, const char *path, struct err *e);
void keep_dir_name(char name[static KEEP_DIR_NAME], uint32_t number);
/*
 * List the numbers of all segments in order; malloc'ed. Return how many there are, or -errno with a
 * sentence: also for more than KEEP_SEGMENTS_MAX.
 */
int keep_dir_list(int fd, uint32_t **numbers, struct err *e);
/* Get the highest number; 0: none. -EOVERFLOW with a sentence: no session can follow. */
int keep_dir_last(int fd, uint32_t *last, struct err *e);
/*
 * Remove the oldest segments until the rest has @size bytes, and all older than @time_ns. 0, or
 * -errno with a sentence: one is still there.
 */
int keep_dir_shrink(int fd, uint64_t size, uint64_t time_ns, struct err *e);

#endif
