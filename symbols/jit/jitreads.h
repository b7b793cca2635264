/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Jobs that read the files of JIT compilers: a few at a time, and one at a time
 * where a read hangs.
 *
 * A dead server with the files of a hundred processes must not hold a hundred
 * helpers. A *source* is the mount namespace of a process (perf maps) or a device
 * (jitdumps).
 *
 * One thread: the loader; the jobs run on helpers.
 */
#ifndef SYMBOLS_JIT_JITREADS_H
#define SYMBOLS_JIT_JITREADS_H

#include <sys/types.h>

#include "symbols/base/helper.h"
#include "symbols/image/image.h"

#define JITREADS_ACTIVE_MAX  4U /* that do not hang */
#define JITREADS_HANGING_MAX 6U
#define JITREADS_FOREIGN_MAX 4U /* of sources that any user can make */
#define JITREADS_HANG_NS     500000000ULL
/* How long the code of a process that has ended is kept: as the default --history. */
#define JITREADS_KEEP_NS  600000000000ULL
#define JITREADS_NO_REPLY "its file system does not respond: will retry"

struct jitread {
	struct job job;
	uint64_t source;
	bool foreign; /* any user can make such a source */
};

struct jitreads {
	struct helpers *helpers; /* NULL: jobs run on the caller's thread */
	struct jitread *running[JITREADS_ACTIVE_MAX + JITREADS_HANGING_MAX];
	unsigned int nr;
};

/* Set the source of files below the root of @pid. */
void jitreads_namespace(struct jitread *read, pid_t pid);
/* Set the source of files on a device. */
void jitreads_device(struct jitread *read, uint32_t maj, uint32_t min);
/* Test whether one more may run now. */
bool jitreads_has_room(const struct jitreads *r);
/*
 * Start @read. 0; -EAGAIN: too many run, try later; -ETIME: a read of its source
 * hangs, or too many do.
 */
int jitreads_start(struct jitreads *r, struct jitread *read);
/* Test whether a started @read has ended; then it can be started again. */
bool jitreads_ended(struct jitreads *r, const struct jitread *read);
/* Test whether @read hangs in one system call. */
bool jitread_hangs(const struct jitread *read, uint64_t now_ns);
/* Abandon a started @read: it is freed now, or when it ends. */
void jitreads_leave(struct jitreads *r, struct jitread *read);

/* Return the user of the process @pid, or with the memory @object; UINT32_MAX: not known. */
uint32_t jitreads_user_of(pid_t pid);
uint32_t jitreads_user_with(struct objects *objects, const struct object *object);

/* The entry of a process in a table, one of which is to be evicted. */
struct jitreads_candidate {
	uint32_t uid;
	uint32_t used; /* object_clock() of the latest sample */
	bool pinned;   /* not evicted: it is being read */
};
/*
 * Return the entry to evict for a process of @uid; UINT32_MAX: none. The least recently sampled
 * one: of all, or of this user alone if it has half of the table.
 */
uint32_t jitreads_victim(const struct jitreads_candidate *candidates, uint32_t nr, uint32_t uid);
/* The part of a table that one user may take. */
#define JITREADS_USER(max) ((max) / 4 * 3)

/* Whether a process has ended, and since when it is known. All zero at first. */
struct jitreads_end {
	uint64_t check_ns; /* not asked before */
	uint64_t since_ns; /* 0: it runs */
};
/* Return true if @pid ended JITREADS_KEEP_NS before @now_ns: its code can be freed. */
bool jitreads_expired(struct jitreads_end *e, pid_t pid, uint64_t now_ns);

#endif
