// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Free memory that readers may still use.
 *
 * The list is a lock-free stack that only the thread empties, as a whole. One grace period
 * serves all entries of the list; PAUSE_MS between two lets entries gather.
 */
#include "symbols/base/reclaim.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "symbols/base/thread.h"

#define PAUSE_MS 10

static _Atomic(struct reclaim *) later;
static sem_t work; /* posted when the list is no longer empty */
static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool ready; /* @work may be used */
static bool started;	  /* under the lock */

/* Take all entries, oldest first. */
static struct reclaim *take_all(void)
{
	/* Acquire: the entries. */
	struct reclaim *newest = atomic_exchange_explicit(&later, NULL, memory_order_acquire);
	struct reclaim *oldest = NULL;

	while (newest) {
		struct reclaim *next = newest->next;

		newest->next = oldest;
		oldest = newest;
		newest = next;
	}
	return oldest;
}

static void *run(void *arg)
{
	const struct timespec pause = { .tv_nsec = PAUSE_MS * 1000000L };

	for (;;) {
		struct reclaim *r = take_all();

		if (!r) {
			sem_wait(&work);
			continue;
		}
		synchronize_rcu();
		while (r) {
			struct reclaim *next = r->next;

			r->free_it(r);
			r = next;
		}
		nanosleep(&pause, NULL);
	}
	return arg;
}

int reclaim_start(void)
{
	pthread_t thread;
	int rc = 0;

	pthread_mutex_lock(&start_lock);
	if (!atomic_load_explicit(&ready, memory_order_relaxed)) {
		sem_init(&work, 0, 0);
		/* Release: the semaphore. Before the thread runs, or an entry is not announced. */
		atomic_store_explicit(&ready, true, memory_order_release);
	}
	if (!started) {
		rc = thread_start(&thread, 0, run, NULL);
		started = !rc;
		if (started)
			pthread_detach(thread);
	}
	pthread_mutex_unlock(&start_lock);
	return rc;
}

void reclaim_later(struct reclaim *r, void (*free_it)(struct reclaim *r))
{
	struct reclaim *head = atomic_load_explicit(&later, memory_order_relaxed);

	reclaim_reader_done(); /* for our accesses */
	r->free_it = free_it;
	do
		r->next = head;
	/* Release: the entry, and all accesses to the memory before. */
	while (!atomic_compare_exchange_weak_explicit(&later, &head, r, memory_order_release,
						      memory_order_relaxed));
	/* Acquire: the semaphore. The list was empty: the thread may wait. */
	if (!head && atomic_load_explicit(&ready, memory_order_acquire))
		sem_post(&work);
}

struct barrier {
	struct reclaim reclaim;
	sem_t done;
};

static void pass(struct reclaim *r)
{
	sem_post(&((struct barrier *)((char *)r - offsetof(struct barrier, reclaim)))->done);
}

void reclaim_wait(void)
{
	struct barrier barrier;
	bool online = rcu_read_ongoing();

	if (reclaim_start())
		return;
	sem_init(&barrier.done, 0, 0);
	reclaim_later(&barrier.reclaim, pass);
	if (online)
		rcu_thread_offline();
	while (sem_wait(&barrier.done))
		;
	if (online)
		rcu_thread_online();
	sem_destroy(&barrier.done);
}
