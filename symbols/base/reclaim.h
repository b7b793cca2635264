/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Free memory that readers of urcu-qsbr may still use, on a separate thread.
 *
 * Not by call_rcu() of liburcu: it aborts if its thread does not start.
 * ThreadSanitizer does not see the grace periods of liburcu. Look-ups end with
 * reclaim_reader_done(), the callback begins with reclaim_grace_over(); both are no code
 * without that sanitizer.
 */
#ifndef SYMBOLS_BASE_RECLAIM_H
#define SYMBOLS_BASE_RECLAIM_H

#include <urcu-qsbr.h>

#include "symbols/base/intern.h"

#define reclaim_reader_done() grace_reader_done((void *)(uintptr_t)&urcu_qsbr_flavor)
#define reclaim_grace_over()  grace_waited((void *)(uintptr_t)&urcu_qsbr_flavor)

/* Inside the memory to be freed. */
struct reclaim {
	struct reclaim *next;
	void (*free_it)(struct reclaim *r);
};

/* Start the thread, once in a process. 0 or -errno. */
int reclaim_start(void);

/*
 * Call @free_it with @r, on the thread, when no reader can hold the object around it; in
 * the order of these calls. Any thread, no locks; before reclaim_start() the memory is kept.
 */
void reclaim_later(struct reclaim *r, void (*free_it)(struct reclaim *r));

/* Wait until all memory passed to reclaim_later() before is free. */
void reclaim_wait(void);

#endif
