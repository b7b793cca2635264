// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The rates at which slices were sampled.
 *
 * Runs on: the builder.
 */
#include "sampler/count/rate_log.h"

#include <stdlib.h>
#include <string.h>

#include "symbols/base/array.h"
#include "symbols/base/base.h"

void rate_log_fini(struct rate_log *log)
{
	free(log->list);
	*log = (struct rate_log){ .list = NULL };
}

/* Find the last entry of the set that begins at @time_ns at the latest. */
static const struct rate_entry *last_of(const struct rate_log *log, uint64_t time_ns,
					uint16_t events)
{
	for (uint32_t i = log->nr; i-- > 0;)
		if (log->list[i].events == events && log->list[i].begin_ns <= time_ns)
			return &log->list[i];
	return NULL;
}

static struct rate_entry *add(struct rate_log *log)
{
	uint32_t half = log->nr / 2;

	if (log->nr == RATE_LOG_MAX) {
		log->nr -= half;
		memmove(log->list, log->list + half, log->nr * sizeof(*log->list));
	}
	if (!array_reserve(&log->list, &log->capacity, log->nr + 1ULL))
		return NULL;
	return &log->list[log->nr++];
}

bool rate_log_set(struct rate_log *log, uint64_t begin_ns, uint16_t events, const double *hz,
		  uint32_t nr)
{
	const struct rate_entry *last = last_of(log, UINT64_MAX, events);
	struct rate_entry next = { .begin_ns = begin_ns, .events = events }, *entry;
	bool changed;

	memcpy(next.hz, hz, MIN(nr, (uint32_t)EVENTS_MAX) * sizeof(*hz));
	changed = last && memcmp(last->hz, next.hz, sizeof(next.hz)) != 0;
	if (last && !changed)
		return false;
	entry = add(log);
	if (entry)
		*entry = next;
	return changed;
}

const double *rate_log_find(const struct rate_log *log, uint64_t begin_ns, uint64_t end_ns,
			    uint16_t events, bool *changed)
{
	const struct rate_entry *first = last_of(log, begin_ns, events);
	const struct rate_entry *last = last_of(log, end_ns ? end_ns - 1 : 0, events);

	*changed = first && last != first;
	return first ? first->hz : NULL;
}
