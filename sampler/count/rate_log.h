/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rates at which slices were sampled: an entry for each change. Runs on: the builder.
 */
#ifndef SAMPLER_COUNT_RATE_LOG_H
#define SAMPLER_COUNT_RATE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/event/event_type.h"

/* Beyond this number of changes the older half is dropped. */
#define RATE_LOG_MAX 512

struct rate_entry {
	uint64_t begin_ns;
	double hz[EVENTS_MAX]; /* 0: a fixed period, or no such event */
	uint16_t events;       /* the set of events */
};

struct rate_log {
	struct rate_entry *list;
	uint32_t nr, capacity;
};

void rate_log_fini(struct rate_log *log);
/*
 * Set the rates from @begin_ns on, of the set @events. Return true if that is a change of the rates
 * of this set. Without memory the entry is left out.
 */
bool rate_log_set(struct rate_log *log, uint64_t begin_ns, uint16_t events, const double *hz,
		  uint32_t nr);
/*
 * Return the rates of the set @events at @begin_ns; NULL: unknown. *changed: they changed before
 * @end_ns.
 */
const double *rate_log_find(const struct rate_log *log, uint64_t begin_ns, uint64_t end_ns,
			    uint16_t events, bool *changed);

#endif
