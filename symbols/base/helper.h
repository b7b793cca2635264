/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads for work that may hang: reading files of others.
 *
 * A job is lent to a helper thread and uses nothing but that struct, so a
 * helper that hangs in the kernel can be abandoned: other helpers go on. Their
 * number is bounded.
 *
 * Threads: helpers_*() from one owner; job->run() on a helper.
 */
#ifndef SYMBOLS_BASE_HELPER_H
#define SYMBOLS_BASE_HELPER_H

#include <pthread.h>

#include "symbols/base/watch.h"

#define HELPERS_MAX 24U
/*
 * Nice value of the loader and its helpers: on a busy machine the first names take
 * seconds otherwise.
 */
#define HELPERS_NICE (-5)

struct job {
	/* Do the work; on a helper, or on the caller of helpers_call(). */
	void (*run)(struct job *job);
	/* Free the job: by its owner, or by the helper when the owner has left it. */
	void (*drop)(struct job *job);
	struct watch watch;
	atomic_int state; /* enum job_state */
	struct job *next; /* in the queue */
};

enum job_state { JOB_RUNS, JOB_DONE, JOB_LEFT };

struct helpers;

/*
 * Make an empty pool. Each end of a job sends a wake-up to @event, which the caller
 * closes.
 */
int helpers_new(struct helpers **out, int event);
/*
 * Stop: cancel all jobs and join the helpers. Helpers still running at @deadline_ns
 * are abandoned with their jobs; returns their number.
 */
unsigned int helpers_free(struct helpers *h, uint64_t deadline_ns);

/* Queue @job. 0, or -EAGAIN: all helpers are busy and no more can be started. */
int helpers_start(struct helpers *h, struct job *job);
/* Test whether @job has ended. Acquire: its results can be read then. */
bool helper_job_done(const struct job *job);
/* Wait for the end of @job until @deadline_ns; false: still running. */
bool helpers_wait(struct helpers *h, const struct job *job, uint64_t deadline_ns);
/* Abandon a started @job: it is freed now, or when it ends. */
void helper_job_leave(struct job *job);
/*
 * Run @job and wait until @deadline_ns: on a helper, without a pool (@h NULL) on
 * this thread. -ETIME: abandoned.
 */
int helpers_call(struct helpers *h, struct job *job, uint64_t deadline_ns);

#endif
