/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One thread reads files, another looks on: how long it has waited for the
 * present read, how far it came, and the wish that it gives up.
 *
 * A read that hangs in the kernel cannot be interrupted; this tells that it
 * does. Figures are relaxed: each stands alone.
 */
#ifndef SYMBOLS_BASE_WATCH_H
#define SYMBOLS_BASE_WATCH_H

#include <errno.h>
#include <stdatomic.h>

#include "symbols/base/base.h"

struct watch {
	atomic_ullong since_ns;	   /* the read that goes on began then; 0: none does */
	atomic_ullong waited_ns;   /* by reads that are over */
	atomic_ullong done, total; /* bytes; the total may grow */
	atomic_bool aside;	   /* it reads a file beside its object: a debug file */
	atomic_bool cancel;	   /* give up at the next read */
};

/* The reader: a read begins. 0, or -ECANCELED. @w may be NULL, as below. */
static inline int watch_begin(struct watch *w)
{
	if (!w)
		return 0;
	if (atomic_load_explicit(&w->cancel, memory_order_relaxed))
		return -ECANCELED;
	atomic_store_explicit(&w->since_ns, time_now_ns(), memory_order_relaxed);
	return 0;
}

/* The reader: it is over, and brought @size bytes. */
static inline void watch_end(struct watch *w, uint64_t size)
{
	uint64_t since;

	if (!w)
		return;
	since = atomic_exchange_explicit(&w->since_ns, 0, memory_order_relaxed);
	atomic_fetch_add_explicit(&w->waited_ns, time_now_ns() - since, memory_order_relaxed);
	atomic_fetch_add_explicit(&w->done, size, memory_order_relaxed);
}

/* The reader: so many bytes more are to come. */
static inline void watch_expect(struct watch *w, uint64_t size)
{
	if (w)
		atomic_fetch_add_explicit(&w->total, size, memory_order_relaxed);
}

static inline void watch_aside(struct watch *w, bool aside)
{
	if (w)
		atomic_store_explicit(&w->aside, aside, memory_order_relaxed);
}

/* The other: how long the present read has taken so far. */
static inline uint64_t watch_blocked_ns(const struct watch *w, uint64_t now_ns)
{
	uint64_t since = atomic_load_explicit(&w->since_ns, memory_order_relaxed);

	return since && now_ns > since ? now_ns - since : 0;
}

/* The other: how much of it is done, in thousandths. */
static inline unsigned int watch_permille(const struct watch *w)
{
	uint64_t done = atomic_load_explicit(&w->done, memory_order_relaxed);
	uint64_t total = atomic_load_explicit(&w->total, memory_order_relaxed);

	return total ? (unsigned int)(MIN(done, total) * 1000 / total) : 0;
}

#endif
