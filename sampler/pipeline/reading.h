/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which process a reader reads, and since when: to find a read that hangs.
 *
 * Threads: begin and end by the reader, the rest by any. Invariant: a process is only seen with
 * the time at which that read began, so that no other process is blamed.
 */
#ifndef SAMPLER_PIPELINE_READING_H
#define SAMPLER_PIPELINE_READING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct reading {
	_Atomic uint64_t since_ns; /* 0: none */
	atomic_int pid;
	atomic_uint process; /* incarnation */
};

static inline void reading_begin(struct reading *r, pid_t pid, uint32_t process, uint64_t now_ns)
{
	/* Release: the end of the read before; pairs with reading_hangs(). */
	atomic_store_explicit(&r->pid, (int)pid, memory_order_release);
	atomic_store_explicit(&r->process, process, memory_order_release);
	/* Release: which process it is; pairs with reading_hangs(). */
	atomic_store_explicit(&r->since_ns, now_ns, memory_order_release);
}

static inline void reading_end(struct reading *r)
{
	atomic_store_explicit(&r->since_ns, 0, memory_order_relaxed);
}

/* Return whether a read began @hang_ns ago or earlier, and goes on; get its process. */
static inline bool reading_hangs(const struct reading *r, uint64_t now_ns, uint64_t hang_ns,
				 pid_t *pid, uint32_t *process)
{
	uint64_t since_ns = atomic_load_explicit(&r->since_ns, memory_order_acquire);

	if (!since_ns || now_ns < since_ns + hang_ns)
		return false;
	*pid = atomic_load_explicit(&r->pid, memory_order_acquire);
	*process = atomic_load_explicit(&r->process, memory_order_acquire);
	/* Else it has ended, and these may be of the next one. */
	return atomic_load_explicit(&r->since_ns, memory_order_relaxed) == since_ns;
}

#endif
