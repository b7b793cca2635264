/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ratios of events that are sampled together, under the names of perf's metrics: instructions per
 * cycle, miss rates, the top-down method's level 1. Pure; any thread.
 */
#ifndef SAMPLER_PROFILE_RATIOS_H
#define SAMPLER_PROFILE_RATIOS_H

#include "sampler/profile/fold.h"

#define RATIOS_MAX 4 /* shown of one profile */

/* scale * (part - minus) / (whole + plus); the names are of events. */
struct ratio {
	const char *key;   /* of perf: "insn_per_cycle" */
	const char *title; /* of a column, and in the header: "IPC" */
	const char *help;
	const char *part, *minus, *whole, *plus; /* @minus and @plus may be NULL */
	double scale;
	uint8_t digits; /* behind the point */
};

/* A metric that the events of a profile give. */
struct ratio_use {
	const struct ratio *ratio;
	uint8_t part, minus, whole, plus; /* indices in events; RATIO_NONE: none */
};
#define RATIO_NONE UINT8_MAX

/* Find the metrics of these events, the first RATIOS_MAX of the table. Returns how many. */
uint32_t ratios_find(const struct profile_event *events, uint32_t nr,
		     struct ratio_use uses[static RATIOS_MAX]);
/* Return whether event @index is part of one of @uses. */
bool ratios_has_event(const struct ratio_use *uses, uint32_t nr, uint32_t index);
/* Return the metric of the tick, by the counters of all CPUs. NAN: not known. */
double ratios_of_tick(const struct profile *p, const struct ratio_use *use);
/*
 * Compute the metrics of each function, of the samples in the function itself that pass @f, under
 * any event: @values[function * RATIOS_MAX + use]. NAN: too few samples, or none.
 */
void ratios_fold(const struct profile *p, const struct fold_filter *f, const struct ratio_use *uses,
		 uint32_t nr, double *values);
/* Set the counts of the events to the sums over the profile's samples: a recording has no counters.
 */
void ratios_count_samples(struct profile *p);

#endif
