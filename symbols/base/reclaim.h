/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Freeing what readers may still see: call_rcu() of urcu-qsbr.
 *
 * ThreadSanitizer does not see liburcu's queues and grace periods. Look-ups
 * end with reclaim_reader_done(), the callback begins with
 * reclaim_grace_over(); without that sanitizer both are nothing.
 */
#ifndef SYMBOLS_BASE_RECLAIM_H
#define SYMBOLS_BASE_RECLAIM_H

#include <urcu-qsbr.h>

#include "symbols/base/intern.h"

#define reclaim_reader_done() grace_reader_done((void *)(uintptr_t)&urcu_qsbr_flavor)
#define reclaim_grace_over()  grace_waited((void *)(uintptr_t)&urcu_qsbr_flavor)

/* Call @free_it with @head once no reader can hold what it is in. */
static inline void reclaim_later(struct rcu_head *head, void (*free_it)(struct rcu_head *head))
{
	reclaim_reader_done(); /* the writer's own accesses */
	call_rcu(head, free_it);
}

#endif
