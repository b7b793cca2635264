/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The past of a session: the events of its slices, and incidents in them.
 *
 * Runs on: the builder.
 */
#ifndef SAMPLER_PAST_H
#define SAMPLER_PAST_H

#include "sampler/event/event.h"

struct history;
struct profile;
struct sampler_config;

/* Events that were sampled together; slices refer to a set by its index. */
struct past_events {
	struct event events[EVENTS_MAX];
	uint32_t nr;
};

struct past {
	struct past_events *sets;
	uint32_t nr_sets;
	double hz[EVENTS_MAX]; /* wanted, at the last tick */
	bool has_hz;
};

void past_close(struct past *p);
/* The next slices are of the events that the session has now. */
void past_use_events(struct past *p, struct history *h, const struct sampler_config *config);
/* Begin the sums again at @now_ns; the slices are kept. */
void past_restart(struct past *p, struct history *h, const struct sampler_config *config,
		  uint64_t now_ns);
/* Add the incidents of the tick of @p to the newest slice: lost, throttled, a change of rate. */
void past_note(struct past *past, struct history *h, const struct profile *p);

#endif
