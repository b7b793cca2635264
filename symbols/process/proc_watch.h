/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which process a thread reads from /proc, since when, and which ones are left out because another
 * thread hangs in them: an exec may hold up each reader of its process for as long as a file system
 * of any user does not respond.
 *
 * Threads: proc_watch_use() to proc_watch_is_mine() by the reader; proc_watch_hangs() and
 * proc_watch_leave() by one watcher.
 */
#ifndef SYMBOLS_PROCESS_PROC_WATCH_H
#define SYMBOLS_PROCESS_PROC_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "symbols/base/base.h"

/* Readers that hang; then none takes their place. */
#define PROC_HUNG_MAX 32U

struct proc_hung {
	atomic_int pids[PROC_HUNG_MAX]; /* 0: free; relaxed */
};

struct proc_watch {
	atomic_ullong since_ns; /* of the read; 0: none; UINT64_MAX: left */
	atomic_int pid;		/* relaxed */
	bool left;		/* of the reader: another thread has its work */
	const struct proc_hung *hung;
};

/* Note the reads of this thread in @w; NULL: nowhere, as of a thread that did not call this. */
void proc_watch_use(struct proc_watch *w);
/* Begin to read @pid. False: leave it out, another thread hangs in it. */
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
