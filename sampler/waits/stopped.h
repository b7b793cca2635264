/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A task stopped for a moment, for its registers: PTRACE_SEIZE and PTRACE_INTERRUPT, which send no
 * signal, then PTRACE_DETACH.
 *
 * The tracer is a thread that ends: the kernel detaches whatever it leaves, also when proftop is
 * killed. It detaches at the latest STOPPED_MAX_NS after the begin of the stop, also if the caller
 * hangs in the memory of the process.
 *
 * Any thread that may hang.
 */
#ifndef SAMPLER_WAITS_STOPPED_H
#define SAMPLER_WAITS_STOPPED_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "unwind/unwind.h"

/* The longest stop that is intended. A machine without a free CPU may make it longer. */
#define STOPPED_MAX_NS 4000000ULL

struct stopped {
	uint64_t regs[UNWIND_REGS_MAX]; /* as in a sample with unwind_regs_mask() */
	uint64_t sp;
	uint64_t stop_ns; /* from before the begin of the stop to its end */
	bool whole;	  /* @copy had returned before the end of the stop */
};

/* Copy what is needed of the stopped task; until @deadline_ns it does not run. */
typedef void (*stopped_copy_fn)(void *ctx, const struct stopped *s, uint64_t deadline_ns);

/*
 * Stop @tid, have @copy called on this thread, let it run again. 0; -EPERM: not permitted, or
 * traced already; -ESRCH: it has ended; -ETIME: it did not stop in time; other -errno.
 */
int stopped_read(pid_t tid, struct stopped *s, stopped_copy_fn copy, void *ctx);

#endif
