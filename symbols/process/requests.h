/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Questions of the sampler threads to the loader: "what is process PID?"
 *
 * A small open-addressed set of pids: asking twice is asking once. Beside it a
 * filter for pids that nobody knows, so that each asks once a second at most.
 *
 * Threads: all lock-free, from anywhere; requests_take() from the loader.
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
	atomic_int nr;			  /* that wait; a little off while one is put or taken */
	atomic_int slots[REQUESTS_SLOTS]; /* pid, 0: empty */
	_Atomic uint64_t filters[REQUESTS_FILTERS]; /* pid << 32 | time in units of 2^20 ns */
};

/* May @last (0: never) be followed by a question at @now_ns? Then it is set, once among threads. */
bool requests_due(_Atomic uint64_t *last, uint64_t now_ns);
/* The same for a pid without a record. */
bool requests_due_unknown(struct requests *a, pid_t pid, uint64_t now_ns);
/* True if the pid was put in by this call; false if it waits already, or there is no room. */
bool requests_put(struct requests *a, pid_t pid);
/* Take one out of slot *@pos or a later one; 0: none left. */
pid_t requests_take(struct requests *a, uint32_t *pos);

#endif
