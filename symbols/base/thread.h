/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Starting and joining threads.
 */
#ifndef SYMBOLS_BASE_THREAD_H
#define SYMBOLS_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Start a thread that gets no signals: these are for the main thread.
 * @stack_size 0: the system's default. 0 or -errno; -ENOMEM: no address space for its stack.
 */
int thread_start(pthread_t *out, size_t stack_size, void *(*run)(void *), void *arg);

/* Join @thread, at the latest at @deadline_ns (time_now_ns()). False: detached, still running. */
bool thread_join_until(pthread_t thread, uint64_t deadline_ns);

/*
 * Join @thread while it works. False: it has waited for @wait_ms without CPU time; detached, still
 * running. Time in which this process is stopped does not count.
 */
bool thread_join_working(pthread_t thread, unsigned int wait_ms);

#endif
