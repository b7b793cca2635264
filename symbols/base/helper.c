// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Threads for work that may hang.
 *
 * The last user of the pool frees it: its owner, or a helper that returns after
 * the owner left. Threads are started when needed, and end with the pool.
 */
#include "symbols/base/helper.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "symbols/base/thread.h"
#include "symbols/base/wake.h"

#define STACK_SIZE (1UL << 20)

struct helpers {
	pthread_mutex_t lock; /* never held while a job runs */
	pthread_cond_t work, ends;
	struct job *queue, **tail;
	struct job *running[HELPERS_MAX];
	pthread_t threads[HELPERS_MAX];
	unsigned int nr_threads, nr_idle, nr_queued;
	unsigned int nr_gone; /* threads that have ended */
	bool stop;
	bool orphan; /* the owner has left: the last thread frees the pool */
	int event;
};

int helpers_new(struct helpers **out, int event)
{
	struct helpers *h = calloc(1, sizeof(*h));
	pthread_condattr_t attr;

	if (!h)
		return -ENOMEM;
	pthread_mutex_init(&h->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&h->work, &attr);
	pthread_cond_init(&h->ends, &attr);
	pthread_condattr_destroy(&attr);
	h->tail = &h->queue;
	h->event = event;
	*out = h;
	return 0;
}

static void destroy(struct helpers *h)
{
	pthread_cond_destroy(&h->work);
	pthread_cond_destroy(&h->ends);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

/* Wait for a job; NULL: stop. Under the lock. */
static struct job *next_job(struct helpers *h)
{
	struct job *job;

	h->nr_idle++;
	while (!h->queue && !h->stop)
		pthread_cond_wait(&h->work, &h->lock);
	h->nr_idle--;
	job = h->queue;
	if (!job)
		return NULL;
	h->queue = job->next;
	if (!h->queue)
		h->tail = &h->queue;
	assert(h->nr_queued);
	h->nr_queued--;
	return job;
}

/* Give @job back to its owner; free it when the owner has left it. */
static void finish(struct job *job)
{
	/* Release: the results of the job; pairs with helper_job_done() and helper_job_leave(). */
	if (atomic_exchange_explicit(&job->state, JOB_DONE, memory_order_acq_rel) == JOB_LEFT)
		job->drop(job);
}

static void run_one(struct helpers *h, struct job *job, unsigned int slot)
{
	assert(!h->running[slot]);
	h->running[slot] = job;
	if (h->stop)
		atomic_store_explicit(&job->watch.cancel, true, memory_order_relaxed);
	pthread_mutex_unlock(&h->lock);
	job->run(job);
	pthread_mutex_lock(&h->lock);
	h->running[slot] = NULL;
	finish(job);
	pthread_cond_broadcast(&h->ends);
	if (!h->orphan)
		wake_send(h->event);
}

static void *helper_main(void *arg)
{
	struct helpers *h = arg;
	unsigned int slot = 0;
	struct job *job;
	bool last;

	pthread_setname_np(pthread_self(), "proftop/read");
	setpriority(PRIO_PROCESS, 0, HELPERS_NICE); /* needs CAP_SYS_NICE */
	pthread_mutex_lock(&h->lock);
	while (!pthread_equal(h->threads[slot], pthread_self()))
		slot++;
	while ((job = next_job(h)))
		run_one(h, job, slot);
	last = ++h->nr_gone == h->nr_threads && h->orphan;
	pthread_mutex_unlock(&h->lock);
	if (last)
		destroy(h);
	return NULL;
}

/* Start one more thread. Under the lock. */
static int add_thread(struct helpers *h)
{
	int rc;

	if (h->nr_threads == HELPERS_MAX)
		return -EAGAIN;
	rc = thread_start(&h->threads[h->nr_threads], STACK_SIZE, helper_main, h);
	if (!rc)
		h->nr_threads++;
	return rc ? -EAGAIN : 0;
}

int helpers_start(struct helpers *h, struct job *job)
{
	int rc = 0;

	job->next = NULL;
	atomic_store_explicit(&job->state, JOB_RUNS,
			      memory_order_relaxed); /* published by the lock */
	pthread_mutex_lock(&h->lock);
	if (h->nr_idle <= h->nr_queued)
		rc = add_thread(h);
	if (!rc) {
		*h->tail = job;
		h->tail = &job->next;
		h->nr_queued++;
		pthread_cond_signal(&h->work);
	}
	pthread_mutex_unlock(&h->lock);
	return rc;
}

bool helper_job_done(const struct job *job)
{
	/* Pairs with finish(). */
	return atomic_load_explicit(&job->state, memory_order_acquire) == JOB_DONE;
}

bool helpers_wait(struct helpers *h, const struct job *job, uint64_t deadline_ns)
{
	const struct timespec until = time_deadline(deadline_ns);

	pthread_mutex_lock(&h->lock);
	while (!helper_job_done(job) &&
	       pthread_cond_timedwait(&h->ends, &h->lock, &until) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&h->lock);
	return helper_job_done(job);
}

void helper_job_leave(struct job *job)
{
	atomic_store_explicit(&job->watch.cancel, true, memory_order_relaxed);
	/* Pairs with finish(): the second of the two frees it. */
	if (atomic_exchange_explicit(&job->state, JOB_LEFT, memory_order_acq_rel) == JOB_DONE)
		job->drop(job);
}

int helpers_call(struct helpers *h, struct job *job, uint64_t deadline_ns)
{
	int rc;

	if (!h) {
		job->run(job);
		atomic_store_explicit(&job->state, JOB_DONE, memory_order_relaxed);
		return 0;
	}
	rc = helpers_start(h, job);
	if (rc) {
		job->drop(job);
		return rc;
	}
	if (helpers_wait(h, job, deadline_ns))
		return 0;
	helper_job_leave(job);
	return -ETIME;
}

/* Join the threads that end in time; return the number of running ones. */
static unsigned int join(struct helpers *h, unsigned int nr, uint64_t deadline_ns)
{
	unsigned int nr_left = 0;

	for (unsigned int i = 0; i < nr; i++)
		nr_left += !thread_join_until(h->threads[i], deadline_ns);
	return nr_left;
}

unsigned int helpers_free(struct helpers *h, uint64_t deadline_ns)
{
	unsigned int nr, nr_left;
	bool last;

	if (!h)
		return 0;
	pthread_mutex_lock(&h->lock);
	h->stop = true;
	for (unsigned int i = 0; i < h->nr_threads; i++)
		if (h->running[i])
			atomic_store_explicit(&h->running[i]->watch.cancel, true,
					      memory_order_relaxed);
	pthread_cond_broadcast(&h->work);
	nr = h->nr_threads;
	pthread_mutex_unlock(&h->lock);
	nr_left = join(h, nr, deadline_ns);
	pthread_mutex_lock(&h->lock);
	h->orphan = true;
	last = h->nr_gone == h->nr_threads;
	pthread_mutex_unlock(&h->lock);
	if (last)
		destroy(h);
	return nr_left;
}
