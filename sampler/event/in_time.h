/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls to the kernel about a task, which end after a while.
 *
 * perf_event_open(2) waits for an exec of its task, which may wait for a file system of any user.
 * It can be interrupted by a signal, which a timer sends.
 *
 * Any thread. The signal has a handler that does nothing, and is not blocked between the calls.
 */
#ifndef SAMPLER_EVENT_IN_TIME_H
#define SAMPLER_EVENT_IN_TIME_H

#include <stdbool.h>

/*
 * From now on, interrupt calls of this thread that take longer than 50 ms, less after some that did
 * in the last seconds: they fail with EINTR.
 */
void in_time_begin(void);
/* No longer. @interrupted: the call was. */
void in_time_end(bool interrupted);

#endif
