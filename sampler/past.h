/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The past of a session: the events of its slices, and incidents in them.
 *
 * Runs on: the builder.
 */
#ifndef SAMPLER_PAST_H
#define SAMPLER_PAST_H

#include "sampler/event/event.h"
#include "sampler/profile/strip_make.h"

struct history;
struct profile;
struct sampler_config;

/* More sets of events in one session: the slices are dropped. */
#define PAST_SETS_MAX 64

/* Events that were sampled together; slices refer to a set by its index. */
struct past_events {
	struct event events[EVENTS_MAX];
	uint32_t nr;
};

struct past {
	struct past_events *sets;
	uint32_t nr_sets;
	struct strip_filter strip; /* the heat strip that the UI wants */
	uint64_t begin_ns, end_ns; /* the range that the UI shows; both 0: none */
	uint64_t nr_named;	   /* places with a name when it was posted */
};

/* Find for each set of events the slot of event @wanted of the newest set, in @slots. */
void past_slots(const struct past *p, const struct event *wanted, uint8_t *slots);
void past_close(struct past *p);
/* The next slices are of the events that the session has now. */
void past_use_events(struct past *p, struct history *h, const struct sampler_config *config);
/* Begin the sums again at @now_ns; the slices are kept. */
void past_restart(struct past *p, struct history *h, const struct sampler_config *config,
		  uint64_t now_ns);
/* Add the incidents of the tick of @p to the newest slice: lost, throttled. */
void past_note(struct history *h, const struct profile *p);

#endif
