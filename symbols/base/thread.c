// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Threads: start and join, wake-ups, helpers for reads that may hang, memory freed after a grace
 * period of urcu-qsbr.
 */
#include "symbols/base/base.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <urcu-qsbr.h>

#include "symbols/base/thread.h"

/* Return true if there is address space for a stack. */
static bool has_stack(const pthread_attr_t *attr)
{
	size_t size;
	void *at;

	pthread_attr_getstacksize(attr, &size);
	at = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return false;
	munmap(at, size);
	return true;
}

int thread_start(pthread_t *out, size_t stack_size, void *(*run)(void *), void *arg)
{
	assert(out && run);
	pthread_attr_t attr;
	sigset_t all, old;
	int code;

	/* An error of a mapping is of the thread that meets it. */
	sigfillset(&all);
	sigdelset(&all, SIGBUS);
	pthread_attr_init(&attr);
	if (stack_size)
		pthread_attr_setstacksize(&attr, stack_size);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	code = pthread_create(out, &attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	/* EAGAIN from pthread_create(3) is either limit. */
	if (code == EAGAIN && !has_stack(&attr))
		code = ENOMEM;
	pthread_attr_destroy(&attr);
	return -code;
}

/* Return the CPU time of a thread; 0: it has ended. */
static uint64_t cpu_ns(pthread_t thread)
{
	clockid_t clock;

	return pthread_getcpuclockid(thread, &clock) ? 0 : time_clock_ns(clock);
}

bool thread_join_working(pthread_t thread, unsigned int wait_ms)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	unsigned int nr_idle = 0;
	uint64_t last_ns = 0;

	assert(!pthread_equal(thread, pthread_self()));
	while (pthread_tryjoin_np(thread, NULL)) {
		uint64_t now_ns = cpu_ns(thread);

		nr_idle = now_ns == last_ns ? nr_idle + 1 : 0;
		last_ns = now_ns;
		if (nr_idle > wait_ms) {
			pthread_detach(thread);
			return false;
		}
		nanosleep(&nap, NULL);
	}
	return true;
}

bool thread_join_until(pthread_t thread, uint64_t deadline_ns)
{
	const struct timespec nap = { .tv_nsec = 1000000 };

	assert(!pthread_equal(thread, pthread_self()));
	/* Not a timed join: ThreadSanitizer does not see the one by the monotonic clock. */
	while (pthread_tryjoin_np(thread, NULL)) {
		if (time_now_ns() > deadline_ns) {
			pthread_detach(thread);
			return false;
		}
		nanosleep(&nap, NULL);
	}
	return true;
}

bool thread_go_first(int nice)
{
	const struct sched_param lowest = { .sched_priority = 1 };
	bool done = !sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest);

	if (!done)
		setpriority(PRIO_PROCESS, 0, nice);
	return done;
}

/*
 * Wake a thread that polls. Runs on: any thread.
 */

int wake_new(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

void wake_send(int fd)
{
	int saved = errno;

	/* Fails otherwise only when the counter is full: then a wake-up is pending already. */
	while (eventfd_write(fd, 1) && errno == EINTR)
		;
	errno = saved;
}

bool wake_clear(int fd)
{
	assert(fd >= 0);
	eventfd_t nr;
	int rc;

	do
		rc = eventfd_read(fd, &nr);
	while (rc && errno == EINTR);
	return !rc;
}

/*
 * Threads for work that may hang.
 *
 * The last user of the pool frees it: its owner, or a helper that returns after
 * the owner left. Threads are started when needed, and end with the pool.
 */

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
	assert(h->nr_idle <= h->nr_threads);
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
	assert(slot < HELPERS_MAX && job->run);
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

	assert(h->nr_threads <= HELPERS_MAX);
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

	assert(job->run && job->drop);
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
	assert(atomic_load_explicit(&job->state, memory_order_relaxed) != JOB_LEFT);
	atomic_store_explicit(&job->watch.cancel, true, memory_order_relaxed);
	/* Pairs with finish(): the second of the two frees it. */
	if (atomic_exchange_explicit(&job->state, JOB_LEFT, memory_order_acq_rel) == JOB_DONE)
		job->drop(job);
}

int helpers_call(struct helpers *h, struct job *job, uint64_t deadline_ns)
{
	int rc;

	assert(job->run && job->drop);
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

/*
 * Free memory that readers may still use.
 *
 * The list is a lock-free stack that only the thread empties, as a whole. One grace period
 * serves all entries of the list; PAUSE_MS between two lets entries gather.
 */

#define PAUSE_MS 10

static _Atomic(struct reclaim *) later;

static sem_t work; /* posted when the list is no longer empty */

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;

static atomic_bool ready; /* @work may be used */

static bool started; /* under the lock */

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

	assert(free_it);
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
