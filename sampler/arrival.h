/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How late the records of a stream are. The clocks of both machines differ by an unknown time: the
 * fastest transfer so far counts as 0. Zero-initialised is empty; one thread.
 */
#ifndef SAMPLER_ARRIVAL_H
#define SAMPLER_ARRIVAL_H

#include <stdint.h>

struct arrival {
	uint64_t newest_ns; /* time of the newest record; 0: none */
	int64_t least_ns;   /* the least difference between arrival and time of a record */
};

/* Note that the newest record, of @record_ns, has arrived by @now_ns. */
static inline void arrival_note(struct arrival *a, uint64_t record_ns, uint64_t now_ns)
{
	int64_t late_ns = (int64_t)(now_ns - record_ns);

	if (record_ns <= a->newest_ns)
		return;
	if (!a->newest_ns || late_ns < a->least_ns)
		a->least_ns = late_ns;
	a->newest_ns = record_ns;
}

/* Return how late a record of @record_ns is at @now_ns; 0: unknown. */
static inline uint64_t arrival_delay_ns(const struct arrival *a, uint64_t record_ns,
					uint64_t now_ns)
{
	int64_t late_ns = (int64_t)(now_ns - record_ns) - a->least_ns;

	return a->newest_ns && record_ns && late_ns > 0 ? (uint64_t)late_ns : 0;
}

#endif
