/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The events of a recording that are shown. Runs on: the thread that opens it.
 */
#ifndef SAMPLER_REPLAY_EVENTS_H
#define SAMPLER_REPLAY_EVENTS_H

#include "sampler/config.h"
#include "sampler/perfdata/perfdata.h"

struct replay_events {
	/* Event of the file -> slot, COUNTERS_WAKING, or PIPELINE_EVENT_UNKNOWN, _LIMIT. */
	int slots[256];
	uint32_t nr;
	/* Events of wake-ups: by their names at the start, which may change in a stream. */
	bool wakes[256];
	bool waking;   /* there is one */
	bool switches; /* there are records of switches */
	int wait;      /* the slot of waits; -1: none */
};

/*
 * Take the events of the file that have samples into @config, in the order of the file, and how
 * stacks were recorded.
 */
void replay_events_take(struct replay_events *v, const struct perfdata *data,
			struct sampler_config *config);

#endif
