/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One event of a recording that is read.
 */
#ifndef SAMPLER_FILE_PERFDATA_EVENT_H
#define SAMPLER_FILE_PERFDATA_EVENT_H

#include "sampler/event/event.h"
#include "sampler/ring/ring.h"
#include "symbols/base/base.h"

#define PERFDATA_MACHINE_MAX 32
#define PERFDATA_NOTE_MAX    120
#define PERFDATA_HOST_MAX    65

/* Later times count as this one, so that sums of times fit into 64 bits. */
#define PERFDATA_TIME_MAX (UINT64_MAX / 4)
/*
 * Samples from this time on have none: perf record --off-cpu gives such times to its sums, which it
 * writes behind all other records. They have the time of the newest record.
 */
#define PERFDATA_TIME_NONE (~0ULL << 32)

struct perfdata_event {
	struct event event; /* name from the file's EVENT_DESC, else from type and config */
	struct record_layout layout;
	double hz; /* 0: a fixed period */
	uint64_t period;
	uint64_t nr_samples; /* in the file */
	uint32_t stack_size; /* of a stack copy, in bytes; 0: none */
	bool user_chain;     /* the kernel followed the frame pointers of user code */
	bool dummy;	     /* side-band only */
	bool switches;	     /* with records of switches */
	bool by_task;	     /* counts in samples are of the sampled task alone */
	bool monotonic;	     /* times are of CLOCK_MONOTONIC, as live */
};

#endif
