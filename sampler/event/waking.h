/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The event of wake-ups, sched:sched_waking: with it the time from a wake-up to the switch in is
 * run-queue time, not sleep. Any thread; reads tracefs.
 */
#ifndef SAMPLER_EVENT_WAKING_H
#define SAMPLER_EVENT_WAKING_H

#include "sampler/event/event_type.h"
#include "symbols/base/base.h"

#define WAKING_NAME "sched:sched_waking"
/* The offset of the woken task in the bytes of a sample, on all kernels since 2.6.30. */
#define WAKING_PID_OFFSET 24

/*
 * Fill in the event. 0, or -errno: its format is unreadable or unknown, or tasks have numbers of
 * another pid namespace than ours.
 */
int waking_event(struct event *ev);

#endif
