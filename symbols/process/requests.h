/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests of the sampler threads to the loader: read /proc/PID.
 *
 * A small open-addressed set of pids: a second request for a pid is dropped. A
 * filter limits unknown pids to one request a second each.
 *
 * Threads: all lock-free, from any thread; requests_take() from the loader.
 */
#ifndef SYMBOLS_PROCESS_REQUESTS_H
#define SYMBOLS_PROCESS_REQUESTS_H

#include <stdatomic.h>
#include <sys/types.h>

#include "symbols/base/base.h"

#define REQUESTS_SLOTS	  1024u
#define REQUESTS_FILTERS  4096u
#define REQUESTS_EVERY_NS 1000000000ULL

struct requests {
	atomic_int nr;				    /* queued; a little off during a put or take */
	atomic_int slots[REQUESTS_SLOTS];	    /* pid, 0: empty */
	_Atomic uint64_t filters[REQUESTS_FILTERS]; /* pid << 32 | time in units of 2^20 ns */
};

/*
 * Test whether a request at @now_ns may follow one at @last (0: never). If so set
 * @last; true on one thread only.
 */
bool requests_due(_Atomic uint64_t *last, uint64_t now_ns);
/* The same for a pid without a record. */
bool requests_due_unknown(struct requests *a, pid_t pid, uint64_t now_ns);
/* Queue @pid. False: already queued, or the set is full. */
bool requests_put(struct requests *a, pid_t pid);
/* Take a request out of slot *@pos or a later one; 0: none left. */
pid_t requests_take(struct requests *a, uint32_t *pos);

#endif
