/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How late samples are handled: from their time stamp to their batch. The maximum, and a histogram
 * by powers of two for the median. One writer; copied as a value. In the hot path: no call, no
 * division.
 */
#ifndef SAMPLER_PIPELINE_LAG_H
#define SAMPLER_PIPELINE_LAG_H

#include <stdint.h>

#define LAG_BUCKETS 40 /* the last one: 2^38 ns, 4.6 minutes, and more */

struct lag {
	uint64_t max_ns;
	uint32_t buckets[LAG_BUCKETS]; /* by the number of bits of the ns */
};

/* Note a sample of @time_ns that is handled at @now_ns. */
static inline void lag_note(struct lag *l, uint64_t now_ns, uint64_t time_ns)
{
	/* Written after the clock was read: no delay. */
	uint64_t ns = now_ns > time_ns ? now_ns - time_ns : 0;
	unsigned int bits = ns ? 64 - (unsigned int)__builtin_clzll(ns) : 0;

	if (ns > l->max_ns)
		l->max_ns = ns;
	l->buckets[bits < LAG_BUCKETS ? bits : LAG_BUCKETS - 1]++;
}

/* Return the middle of the bucket of the median: exact to a factor of 1.5. 0: no samples. */
static inline uint64_t lag_median(const struct lag *l)
{
	uint64_t nr = 0, seen = 0;

	for (int i = 0; i < LAG_BUCKETS; i++)
		nr += l->buckets[i];
	for (int i = 0; i < LAG_BUCKETS && nr; i++) {
		seen += l->buckets[i];
		if (2 * seen >= nr)
			return i < 2 ? (uint64_t)i : 3ULL << (i - 2);
	}
	return 0;
}

#endif
