/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The thread that reads /proc of new processes; in the place of one that hangs, another one.
 *
 * Threads: @serve on the reader, offline for urcu-qsbr; process_readers_wake() and
 * process_readers_hung(): any thread; the rest by one owner at a time.
 */
#ifndef SYMBOLS_PROCESS_READERS_H
#define SYMBOLS_PROCESS_READERS_H

#include <stdbool.h>
#include <stdint.h>

#include "symbols/process/proc_watch.h"

struct process_readers;
struct symbols_hung;

/*
 * Do the requested work, each read between proc_watch_begin() and proc_watch_end(), until
 * proc_watch_is_mine() is false. Return whether there was any.
 */
typedef bool (*process_readers_fn)(void *ctx);

/* Prepare; after work, @done_fd is woken. @user_of: proc_user_of(). 0 or -errno. */
int process_readers_new(struct process_readers **out, process_readers_fn serve, void *ctx,
			proc_user_fn user_of, int done_fd);
/* Start the thread. 0 or -errno, as thread_start(). */
int process_readers_start(struct process_readers *r);
/* Announce work. Async-signal-safe. */
void process_readers_wake(struct process_readers *r);
/* From time to time: start another thread if this one has hung for @ns. */
void process_readers_look(struct process_readers *r, uint64_t ns);
/* Get the threads that hang. */
void process_readers_hung(struct process_readers *r, struct symbols_hung *out);
/* Stop until @deadline_ns. False: a thread still hangs, and uses @r. */
bool process_readers_stop(struct process_readers *r, uint64_t deadline_ns);
/* After a stop without such a thread, or before the start. NULL is allowed. */
void process_readers_free(struct process_readers *r);

#endif
