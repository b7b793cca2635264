/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Progress and cancellation of blocking reads: one thread reads files, another
 * watches.
 *
 * A read that hangs in the kernel cannot be interrupted, but it can be seen. All
 * figures are relaxed and independent.
 */
#ifndef SYMBOLS_BASE_WATCH_H
#define SYMBOLS_BASE_WATCH_H

#include <errno.h>
#include <stdatomic.h>

#include "symbols/base/base.h"

struct watch {
	atomic_ullong since_ns;	   /* begin of the present read; 0: none */
	atomic_ullong waited_ns;   /* by finished reads */
	atomic_ullong done, total; /* bytes; the total may grow */
	atomic_bool aside;	   /* reads a file beside its object: a debug file */
	atomic_bool cancel;	   /* end with the next read */
};

/* Reader: begin a read. 0, or -ECANCELED. @w may be NULL, as below. */
static inline int watch_begin(struct watch *w)
{
	if (!w)
		return 0;
	if (atomic_load_explicit(&w->cancel, memory_order_relaxed))
		return -ECANCELED;
	atomic_store_explicit(&w->since_ns, time_now_ns(), memory_order_relaxed);
	return 0;
}

/* Reader: end a read of @size bytes. */
static inline void watch_end(struct watch *w, uint64_t size)
{
	uint64_t since;

	if (!w)
		return;
	since = atomic_exchange_explicit(&w->since_ns, 0, memory_order_relaxed);
	atomic_fetch_add_explicit(&w->waited_ns, time_now_ns() - since, memory_order_relaxed);
	atomic_fetch_add_explicit(&w->done, size, memory_order_relaxed);
}

/* Reader: add @size bytes to the total expected. */
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

/* Watcher: return how long the present read has taken. */
static inline uint64_t watch_blocked_ns(const struct watch *w, uint64_t now_ns)
{
	uint64_t since = atomic_load_explicit(&w->since_ns, memory_order_relaxed);

	return since && now_ns > since ? now_ns - since : 0;
}

/* Watcher: return the part done in thousandths. */
static inline unsigned int watch_permille(const struct watch *w)
{
	uint64_t done = atomic_load_explicit(&w->done, memory_order_relaxed);
	uint64_t total = atomic_load_explicit(&w->total, memory_order_relaxed);

	return total ? (unsigned int)(MIN(done, total) * 1000 / total) : 0;
}

#endif
