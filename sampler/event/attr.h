/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The perf_event_attr of our three kinds of events: sampling, side-band, and owner of a ring. Pure.
 */
#ifndef SAMPLER_EVENT_ATTR_H
#define SAMPLER_EVENT_ATTR_H

#include <linux/perf_event.h>

#include "sampler/event/event.h"
#include "symbols/base/base.h"

/* The fields in the id block of side-band records. */
#define ATTR_SIDE_TYPE                                                                             \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)

/* The fields of samples of wake-ups. */
#define ATTR_WAKING_TYPE (ATTR_SIDE_TYPE | PERF_SAMPLE_RAW)

struct attr_config {
	bool tasks; /* of tasks, inherited by their children; else of a CPU */
	bool no_inherit;
	bool enable_on_exec;
	bool exclude_idle; /* clocks only */
	bool data_maps;	   /* side-band: also mappings without code */
	uint32_t stack_size;
	uint64_t regs_mask;
	bool no_chain;	 /* no call chains: without a stack copy a sample has only its address */
	uint64_t period; /* 0: by rate */
};

/* PERF_SAMPLE_* of a sampling event. */
uint64_t attr_sample_type(const struct attr_config *config);
/* A sampling event. PERF_FORMAT_LOST is in; EINVAL on kernels before 6.0. */
void attr_sample(struct perf_event_attr *attr, const struct attr_config *config,
		 const struct event *ev, double hz);
/* Set up the dummy that records mmap, comm, fork and exit from the moment it is opened. */
void attr_side(struct perf_event_attr *attr, bool tasks, size_t ring_size);
/*
 * Set up the event of wake-ups, of a whole CPU: an event of a task misses wake-ups while it
 * sleeps (seen on 6.18).
 */
void attr_waking(struct perf_event_attr *attr, const struct event *ev);
/* The dummy that records switches, of a whole CPU. */
void attr_switches(struct perf_event_attr *attr);
/* The dummy that never counts and owns a ring; it wakes at @watermark bytes. */
void attr_leader(struct perf_event_attr *attr, size_t watermark);

/* Return the value of PERF_EVENT_IOC_PERIOD for @hz: ns for clocks, Hz for the rest. */
uint64_t attr_rate(const struct event *ev, double hz);

/* The largest record a sampling event can write, in bytes. */
size_t attr_sample_max(const struct attr_config *config);

#endif
