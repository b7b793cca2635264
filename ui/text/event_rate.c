// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which rate of an event to show. Runs on: the main thread.
 */
#include "ui/text/event_rate.h"

#include <linux/perf_event.h>
#include <math.h>

bool event_rate_is_frequency(const struct profile_event *ev)
{
	const struct event *e = &ev->event;

	return ev->want_hz > 0 && e->type != PERF_TYPE_TRACEPOINT &&
	       e->type != PERF_TYPE_BREAKPOINT && (e->type != PERF_TYPE_SOFTWARE || e->clock);
}

double event_rate_per_s(const struct profile *p, uint32_t index)
{
	uint64_t nr = 0;

	if (!p->cpu_events || !p->interval_ns)
		return NAN;
	for (uint32_t i = 0; i < p->nr_cpus; i++)
		nr += p->cpu_events[i * p->nr_events + index].samples;
	return (double)nr * 1e9 / (double)p->interval_ns;
}
