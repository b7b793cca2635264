// SPDX-License-Identifier: GPL-2.0-or-later
/* Look-ups in a heat strip, and queries for one. Pure; any thread. */
#include "sampler/profile/strip.h"

#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"

#define PEAK 1.5 /* times the mean of the columns */

uint32_t strip_column_at(const struct strip *s, uint64_t time_ns)
{
	uint64_t at;

	if (!s->nr || time_ns < s->begin_ns)
		return 0;
	at = (time_ns - s->begin_ns) / s->column_ns;
	return (uint32_t)MIN(at, s->nr - 1ULL);
}

static double peak_at(const struct strip *s, uint32_t i)
{
	return i < s->nr ? s->columns[i].peak : 0;
}

/* Return the least amount of a peak: far above the mean, or an even load has peaks of noise. */
static double least_peak(const struct strip *s)
{
	uint32_t nr = 0;
	double sum = 0;

	for (uint32_t i = 0; i < s->nr; i++) {
		sum += s->columns[i].peak;
		nr += s->columns[i].end_ns > 0;
	}
	return MAX(s->max / 2, nr ? PEAK * sum / nr : 0);
}

static bool is_peak(const struct strip *s, uint32_t i, double least)
{
	double peak = peak_at(s, i);

	return peak > 0 && peak >= least && peak >= peak_at(s, i - 1) && peak > peak_at(s, i + 1);
}

uint32_t strip_peak(const struct strip *s, uint64_t time_ns, bool later)
{
	double least = least_peak(s);

	if (later) {
		for (uint32_t i = 0; i < s->nr; i++)
			if (is_peak(s, i, least) && s->columns[i].begin_ns > time_ns)
				return i;
		return s->nr;
	}
	for (uint32_t i = s->nr; i-- > 0;)
		if (is_peak(s, i, least) && s->columns[i].end_ns < time_ns)
			return i;
	return s->nr;
}

struct strip_query *strip_copy_query(const struct strip_query *q)
{
	struct strip_query *copy = malloc(sizeof(*copy));

	return copy ? memcpy(copy, q, sizeof(*q)) : NULL;
}

bool strip_same_samples(const struct strip_query *a, const struct strip_query *b)
{
	return a->event == b->event && a->process == b->process && a->thread == b->thread &&
	       a->function == b->function && !strcmp(a->filter, b->filter) &&
	       a->matcher == b->matcher && a->inverted == b->inverted &&
	       a->only_tasks == b->only_tasks;
}

bool strip_same_query(const struct strip_query *a, const struct strip_query *b)
{
	return a->columns == b->columns && a->span_ns == b->span_ns && strip_same_samples(a, b);
}
