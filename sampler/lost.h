/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Samples of one CPU that the kernel did not deliver: lost because the ring was
 * full, or not taken because it throttled the event.
 *
 * A kernel from 6.0 on counts lost samples per event (PERF_FORMAT_LOST,
 * perf_event_open(2)); an older one only writes LOST records.
 *
 * Threads: the builder.
 */
#ifndef SAMPLER_LOST_H
#define SAMPLER_LOST_H

#include "sampler/pipeline/sampler_thread.h"
#include "sampler/profile/profile.h"

struct lost {
	uint64_t total, throttled_total; /* since the start */
	uint64_t seen[EVENTS_MAX];	 /* the kernel's counts at the last tick */
};

/* Return the samples of @event lost since the last tick, by the kernel's count @now. */
uint64_t lost_since(struct lost *l, uint32_t event, uint64_t now);
/* Forget the totals; @now: the kernel's counts at the start of the next tick. */
void lost_restart(struct lost *l, const uint64_t now[EVENTS_MAX]);
/*
 * Set the lost samples of the tick, and add them to the total: @nr by lost_since(), or of the LOST
 * records if the kernel does not count (rates_add_cpu()).
 */
void lost_add(struct lost *l, struct profile_cpu *cpu, uint64_t nr);
/*
 * Add the throttled samples and time of the tick, which ends @now_ns, including a pause of which
 * the end is not recorded yet.
 */
void lost_add_throttled(struct lost *l, struct sampler_thread *t,
			const struct sampler_thread_stats *stats, struct profile_cpu *cpu,
			uint64_t now_ns, uint64_t interval_ns);

#endif
