// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Starting and joining threads.
 */
#include "symbols/base/thread.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include "symbols/base/base.h"

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
	pthread_attr_t attr;
	sigset_t all, old;
	int code;

	sigfillset(&all);
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
