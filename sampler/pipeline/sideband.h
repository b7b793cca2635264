/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The side-band: mappings, names, births and deaths of processes, from the
 * dummy events' rings into the maps.
 *
 * Rings of different CPUs are not ordered among themselves. A thread that is
 * about to handle samples reads its sample ring's head *first* and drains the
 * side-band of *all* CPUs then: every mapping made before one of those samples
 * is known by that time. What came later is kept apart by its time stamp.
 *
 * Threads: sideband_drain() from any thread that is offline for urcu-qsbr; one
 * drains, the others wait or find it done.
 */
#ifndef SAMPLER_PIPELINE_SIDEBAND_H
#define SAMPLER_PIPELINE_SIDEBAND_H

#include "sampler/event/counters.h"
#include "symbols/process/maps.h"
#include "symbols/symbols.h"

struct record;
struct recorder_lane;
struct sideband;

/* Tell the maps what one side-band record says; others are ignored. Publish afterwards. */
void sideband_apply(struct maps *maps, struct symbols *symbols, const struct record *r);

/* Both are borrowed. 0 or -ENOMEM. */
int sideband_new(struct sideband **out, struct counters *counters, struct maps *maps,
		 struct symbols *symbols);
void sideband_free(struct sideband *sb);

/* Record from now on what comes, too; before any thread drains. @lane is borrowed. */
void sideband_record(struct sideband *sb, struct recorder_lane *lane);

/* Take everything that was in any side-band ring when this was called. */
void sideband_drain(struct sideband *sb);

struct sideband_stats {
	uint64_t nr_records, nr_bad;
	uint64_t nr_lost; /* side-band records the kernel lost: maps are re-read */
};
void sideband_stats(const struct sideband *sb, struct sideband_stats *out);

#endif
