/* SPDX-License-Identifier: GPL-2.0-or-later */
/* * The limits of this user: files, locked memory, events; and the message
 * when they are too small. Set-up only.
 */
#ifndef SAMPLER_EVENT_LIMITS_H
#define SAMPLER_EVENT_LIMITS_H

#include <sys/types.h>

#include "sampler/event/event.h"
#include "symbols/base/base.h"

/* The call that was refused. */
struct limits_refusal {
	char event[EVENT_NAME_MAX]; /* "": the events that every session needs */
	bool kernel;		    /* kernel code was requested */
	bool filter;		    /* the filter was refused, not the event */
	bool hardware, probe;	    /* as in struct event; a uprobe or kprobe */
	bool pmu;		    /* ENOENT: this machine can count cycles */
	bool cgroup;		    /* ENOENT: the event opens without the cgroup */
	pid_t tid;		    /* -1: the whole CPU; 0: there was no task at all */
	int cpu;
	uint32_t nr_fds;    /* open by us at that moment */
	uint32_t nr_wanted; /* that the whole session takes */
};

/* Raise the soft limit of open files to the hard one: events x CPUs are needed. */
void limits_raise_files(void);

/* * Give up the capabilities that proftop does not use, in this thread and its children. For good,
 * unless there is a @command to start: the kernel ends the sampling of a process that has more
 * after its exec.
 */
void limits_drop_caps(bool command, bool replay);

/* Threads that open no events and read no other process. */
enum limits_thread {
	LIMITS_UI,	/* and those it starts later: files, servers, folding */
	LIMITS_SAMPLER, /* decodes records and unwinds */
};
/* Give up, for good, the capabilities that this thread does not need. */
void limits_drop_thread_caps(enum limits_thread thread);

/* * Return the bytes of a side-band ring, and of a data ring to try first; both powers of
 * two. @want: the bytes it should hold, if permitted.
 */
size_t limits_side_ring(void);
size_t limits_wanted_ring(uint32_t nr_cpus, size_t want);
size_t limits_data_ring(uint32_t nr_cpus, size_t side_size, size_t want);

/* Return 0, or -EINVAL with a message for a rate not valid or above the kernel's limit. */
int limits_check_rate(double hz, struct err *e);

/* Set @e to the reason why perf_event_open failed with @code, and a fix. Return @code. */
int limits_explain_open(struct err *e, int code, const struct limits_refusal *r);
/* The same for the mmap of a ring. */
int limits_explain_ring(struct err *e, int code, size_t size, uint32_t nr_cpus);

#endif
