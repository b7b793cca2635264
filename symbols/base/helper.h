/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads for work that may hang: reading other people's files.
 *
 * A job is lent to a helper thread and touches nothing but itself, so that a
 * helper that hangs in the kernel can be left alone: others take over, and
 * nobody waits. Their number is bounded.
 *
 * Threads: helpers_*() from one owner; job->run() on a helper.
 */
#ifndef SYMBOLS_BASE_HELPER_H
#define SYMBOLS_BASE_HELPER_H

#include <pthread.h>

#include "symbols/base/watch.h"

#define HELPERS_MAX 24U
/* Of the loader and its helpers: on a full machine first names come in seconds otherwise. */
#define HELPERS_NICE (-5)

struct job {
	/* On a helper, or by job_run_here(). */
	void (*run)(struct job *job);
	/* Free it and what it holds: the owner, or the helper of a job that was left. */
	void (*drop)(struct job *job);
	struct watch watch;
	atomic_int state; /* enum job_state */
	struct job *next; /* the queue's */
};

enum job_state { JOB_RUNS, JOB_DONE, JOB_LEFT };

struct helpers;

/* @event: an eventfd that each end of a job writes to; stays the caller's. */
int helpers_new(struct helpers **out, int event);
/*
 * End: jobs are told to cancel; helpers that do not come back until @deadline_ns are left
 * behind, with their jobs. Returns how many were.
 */
unsigned int helpers_free(struct helpers *h, uint64_t deadline_ns);

/* Lend @job out. 0, or -EAGAIN: all helpers are at work, or there can be no more. */
int helpers_start(struct helpers *h, struct job *job);
/* Acquire: what the helper wrote into it is there. */
bool job_done(const struct job *job);
/* Wait for @job until @deadline_ns. */
bool helpers_wait(struct helpers *h, const struct job *job, uint64_t deadline_ns);
/* Want no more of a started @job: it is dropped now, or when it ends. */
void job_leave(struct job *job);
/* Without helpers (@h NULL) on this thread, else as helpers_start() and _wait(). -ETIME: left. */
int helpers_call(struct helpers *h, struct job *job, uint64_t deadline_ns);

#endif
