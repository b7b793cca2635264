/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Free memory that readers may still use: call_rcu() of urcu-qsbr.
 *
 * ThreadSanitizer does not see the queues and grace periods of liburcu. Look-ups
 * end with reclaim_reader_done(), the callback begins with
 * reclaim_grace_over(); both are no code without that sanitizer.
 */
#ifndef SYMBOLS_BASE_RECLAIM_H
#define SYMBOLS_BASE_RECLAIM_H

#include <urcu-qsbr.h>

#include "symbols/base/intern.h"

#define reclaim_reader_done() grace_reader_done((void *)(uintptr_t)&urcu_qsbr_flavor)
#define reclaim_grace_over()  grace_waited((void *)(uintptr_t)&urcu_qsbr_flavor)

/* Call @free_it with @head when no reader can hold the object around it. */
static inline void reclaim_later(struct rcu_head *head, void (*free_it)(struct rcu_head *head))
{
	reclaim_reader_done(); /* for our accesses */
	call_rcu(head, free_it);
}

#endif
