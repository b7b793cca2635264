/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which process a thread reads from /proc, since when, and which ones are left out because another
 * thread hangs in them: an exec may hold up each reader of its process for as long as a file system
 * of any user does not respond.
 *
 * Threads: proc_watch_use() to proc_watch_is_mine() by the reader; proc_watch_hangs() and
 * proc_watch_leave() by one watcher; the others by both.
 */
#ifndef SYMBOLS_PROCESS_PROC_WATCH_H
#define SYMBOLS_PROCESS_PROC_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "symbols/base/base.h"

/* Readers that hang; then none takes their place. */
#define PROC_HUNG_MAX 32U
/* Of these in processes of one real user; then its other ones are left out. */
#define PROC_HUNG_OF_USER 8U

/* Return the real uid of a process, without a read that may hang; (uid_t)-1: unknown. */
typedef uid_t (*proc_user_fn)(pid_t pid);

struct proc_hung {
	proc_user_fn user_of;
	/* Relaxed. */
	atomic_int pids[PROC_HUNG_MAX]; /* 0: free */
	atomic_uint users[PROC_HUNG_MAX];
};

struct proc_watch {
	atomic_ullong since_ns; /* of the read; 0: none; UINT64_MAX: left */
	atomic_int pid;		/* relaxed */
	bool left;		/* of the reader: another thread has its work */
	const struct proc_hung *hung;
};

/* As proc_user_fn, from its status. */
uid_t proc_user_of(pid_t pid);
/* Report whether PROC_HUNG_OF_USER processes of @user hang: its other ones are left out. */
bool proc_hung_is_full(const struct proc_hung *h, uid_t user);

/* Note the reads of this thread in @w; NULL: nowhere, as of a thread that did not call this. */
void proc_watch_use(struct proc_watch *w);
/* Begin to read @pid. False: leave it out, it hangs, or too many of its user do. */
bool proc_watch_begin(pid_t pid);
/* End that. False: it took so long that another thread has the work now. */
bool proc_watch_end(void);
/* Report whether no other thread has the work. */
bool proc_watch_is_mine(void);

/* Return the process that is read for at least @ns; 0: none. *@since_ns: for the next call. */
pid_t proc_watch_hangs(const struct proc_watch *w, uint64_t ns, uint64_t *since_ns);
/* Take the work from the thread in the read since @since_ns; false: that has ended. */
bool proc_watch_leave(struct proc_watch *w, uint64_t since_ns);

#endif
