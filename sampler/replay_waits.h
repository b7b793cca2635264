/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Waits of a recording: its records of switches and wake-ups, and stacks of context-switches, into
 * the same counts as live. Runs on: the thread that replays.
 */
#ifndef SAMPLER_REPLAY_WAITS_H
#define SAMPLER_REPLAY_WAITS_H

#include "sampler/file/perfdata_event.h"
#include "sampler/ring/ring.h"
#include "sampler/hot/hot.h"
#include "sampler/store.h"

struct replay_waits {
	int slot;		      /* of the event of waits; -1: they are not measured */
	int latency;		      /* the event with samples for PROFILE_LATENCY, or -1 */
	struct profile_waits account; /* since it was last cleared */
};

/* Return whether the samples of this event are the stacks of switches. */
bool replay_waits_is_stack(const struct perfdata_event *ev);
/* Return whether the samples of this event are wake-ups. *@alone: they show nothing else. */
bool replay_waits_is_waking(const struct perfdata_event *ev, bool *alone);

/* Begin, with no task known. 0 or -ENOMEM. */
int replay_waits_begin(struct replay_waits *w, struct store *st);
/* Take a record that is no sample. */
void replay_waits_record(struct replay_waits *w, struct store *st, const struct record *rec);
/* Take a wake-up. */
void replay_waits_waking(struct replay_waits *w, struct store *st, const struct record_sample *s);
/* Take the stack of the switch that follows; STACK_NONE: it could not be counted. */
void replay_waits_stack(struct replay_waits *w, struct store *st, const struct record_sample *s,
			uint32_t stack);
/* Take the sample of a running task that @p has counted. */
void replay_waits_sample(struct replay_waits *w, struct store *st, const struct pipeline *p,
			 const struct record_sample *s);
/* Before the counts of a slice are taken: add the times up to @now_ns. */
void replay_waits_cut(struct replay_waits *w, struct store *st, uint64_t now_ns);

#endif
