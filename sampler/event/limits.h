/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What this user may have: files, locked memory, events; and the sentence
 * when it is too little. Set-up only.
 */
#ifndef SAMPLER_EVENT_LIMITS_H
#define SAMPLER_EVENT_LIMITS_H

#include <sys/types.h>

#include "sampler/event/event.h"
#include "symbols/base/base.h"

/* The call that was refused. */
struct limits_refusal {
	char event[EVENT_NAME_MAX]; /* "": the events that every session needs */
	bool kernel;		    /* it asked for kernel code, too */
	bool filter;		    /* it was the filter */
	pid_t tid;		    /* -1: the whole CPU; 0: there was no task at all */
	int cpu;
	uint32_t nr_fds;    /* open by us at that moment */
	uint32_t nr_wanted; /* that the whole session takes */
};

/* Soft limit of open files to the hard one: a profiler takes events x CPUs of them. */
void limits_raise_files(void);

/*
 * Give up the capabilities that no part of us uses: of this thread and those it starts. For good,
 * but with a @command to start: the kernel ends the sampling of a process that has more after its
 * exec.
 */
void limits_drop_caps(bool command);

/*
 * Bytes of a side-band ring, and of a data ring to try first; both powers of
 * two. @want: what it should hold, if that is permitted.
 */
size_t limits_side_ring(void);
size_t limits_wanted_ring(uint32_t nr_cpus, size_t want);
size_t limits_data_ring(uint32_t nr_cpus, size_t side_size, size_t want);

/* -EINVAL with a sentence for a rate that cannot be, or above the kernel's limit now. */
int limits_check_rate(double hz, struct err *e);

/* Why perf_event_open failed with @code, and what to do. Returns @code. */
int limits_explain_open(struct err *e, int code, const struct limits_refusal *r);
/* The same for the mmap of a ring. */
int limits_explain_ring(struct err *e, int code, size_t size, uint32_t nr_cpus);

#endif
