/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The side-band: mappings, names, starts and ends of processes, from the dummy events' rings into
 * the maps. Rings of different CPUs are not ordered among themselves. Before a thread handles
 * samples it reads the head of its sample ring *first* and then drains the side-band of *all* CPUs:
 * then every mapping made before one of its samples is known. Later mappings are distinguished by
 * time. Threads: sideband_drain() from any thread that is offline for urcu-qsbr; one drains, the
 * others wait or find it done.
 */
#ifndef SAMPLER_PIPELINE_SIDEBAND_H
#define SAMPLER_PIPELINE_SIDEBAND_H

#include "sampler/event/counters.h"
#include "symbols/process/maps.h"
#include "symbols/symbols.h"

struct record;
struct recorder_lane;
struct sideband;

/* Apply one side-band record to the maps; other records are ignored. Publish afterwards. */
void sideband_apply(struct maps *maps, struct symbols *symbols, const struct record *r);

/* Both are borrowed. 0 or -ENOMEM. */
int sideband_new(struct sideband **out, struct counters *counters, struct maps *maps,
		 struct symbols *symbols);
void sideband_free(struct sideband *sb);

/* Also write records to @lane (borrowed); before any thread drains. */
void sideband_record(struct sideband *sb, struct recorder_lane *lane);

/* Apply all records that were in any side-band ring at the call. */
void sideband_drain(struct sideband *sb);

#endif
