/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads: start, join, wake, helpers, memory freed after a grace period.
 *
 * The caller owes: to join the threads it starts; an online urcu-qsbr reader passes quiescent
 * states.
 *
 * The room does: starts threads with all signals blocked and a name; gives reads that may hang to
 * helpers, which are left behind; frees with urcu-qsbr.
 *
 * Not for: the hot loop, which waits for nothing.
 */
#ifndef SYMBOLS_BASE_THREAD_H
#define SYMBOLS_BASE_THREAD_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <urcu-qsbr.h>

#include "symbols/base/base.h"

struct helpers;

/*
 * Start a thread that gets no signals: these are for the main thread.
 * @stack_size 0: the system's default. 0 or -errno; -ENOMEM: no address space for its stack.
 */
int thread_start(pthread_t *out, size_t stack_size, void *(*run)(void *), void *arg);
/* Join @thread, at the latest at @deadline_ns (time_now_ns()). False: detached, still running. */
bool thread_join_until(pthread_t thread, uint64_t deadline_ns);
/*
 * Give the calling thread the lowest real-time priority, for one that needs little CPU, but soon: a
 * nice value counts within one session only (sched(7), autogroup). Where that is refused, as to
 * most users, the nice value, and return false. Its children begin with neither.
 */
bool thread_go_first(int nice);
/*
 * Join @thread while it works. False: it has waited for @wait_ms without CPU time; detached, still
 * running. Time in which this process is stopped does not count.
 */
bool thread_join_working(pthread_t thread, unsigned int wait_ms);

/*
 * Wake a thread that polls: an eventfd that is readable (POLLIN) from
 * wake_send() until wake_clear(), however often it was sent. Stores before wake_send() are seen
 * after wake_clear(): the kernel orders both.
 *
 * Any thread; nothing blocks.
 */

/* Return a new descriptor, which the caller closes, or -errno. */
int wake_new(void);
/* Make @fd readable; keeps errno. */
void wake_send(int fd);
/* Make @fd unreadable; returns whether it was readable. */
bool wake_clear(int fd);

/*
 * Progress and cancellation of blocking reads: one thread reads files, another
 * watches.
 *
 * A read that hangs in the kernel cannot be interrupted, but it can be seen. All
 * figures are relaxed and independent.
 */

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

/*
 * Threads for work that may hang: reading files of others.
 *
 * A job is lent to a helper thread and uses nothing but that struct, so a
 * helper that hangs in the kernel can be abandoned: other helpers go on. Their
 * number is bounded.
 *
 * Threads: helpers_*() from one owner; job->run() on a helper.
 */

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

/*
 * ThreadSanitizer does not see the grace periods of liburcu. A lock-free reader ends
 * with grace_reader_done(table), and the writer calls grace_waited(table) after
 * waiting, before it frees. No code without SAN=thread.
 */
#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define GRACE_TSAN
#endif
#elif defined(__SANITIZE_THREAD__)
#define GRACE_TSAN
#endif

#ifdef GRACE_TSAN
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);
#define grace_reader_done(table) __tsan_release(table)
#define grace_waited(table)	 __tsan_acquire(table)
#else
#define grace_reader_done(table) ((void)(table))
#define grace_waited(table)	 ((void)(table))
#endif

/*
 * Free memory that readers of urcu-qsbr may still use, on a separate thread.
 *
 * Not by call_rcu() of liburcu: it aborts if its thread does not start.
 * ThreadSanitizer does not see the grace periods of liburcu. Look-ups end with
 * reclaim_reader_done(), the callback begins with reclaim_grace_over(); both are no code
 * without that sanitizer.
 */

#define reclaim_reader_done() grace_reader_done((void *)(uintptr_t)&urcu_qsbr_flavor)
#define reclaim_grace_over()  grace_waited((void *)(uintptr_t)&urcu_qsbr_flavor)

/* Inside the memory to be freed. */
struct reclaim {
	struct reclaim *next;
	void (*free_it)(struct reclaim *r);
};

/* Start the thread, once in a process. 0 or -errno. */
int reclaim_start(void);
/*
 * Call @free_it with @r, on the thread, when no reader can hold the object around it; in
 * the order of these calls. Any thread, no locks; before reclaim_start() the memory is kept.
 */
void reclaim_later(struct reclaim *r, void (*free_it)(struct reclaim *r));
/* Wait until all memory passed to reclaim_later() before is free. */
void reclaim_wait(void);

#endif
