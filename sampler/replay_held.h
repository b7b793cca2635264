/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Samples of a replay that wait for names, so that the loader names the places of many together.
 *
 * Runs on: the thread of the replay.
 */
#ifndef SAMPLER_REPLAY_HELD_H
#define SAMPLER_REPLAY_HELD_H

#include "sampler/event/event.h"
#include "sampler/replay_frames.h"
#include "sampler/hot/hot.h"

#define HELD_MAX 64U

struct held_event {
	const char *name;
	uint64_t period;
};

struct held_sample {
	struct sampler_sample out; /* without frames */
	struct record_memory memory;
	uint32_t first; /* of its frames */
	uint32_t nr_events;
	struct held_event events[EVENTS_MAX + 1];
};

struct held {
	uint32_t nr, nr_frames;
	uint32_t *places; /* by frame */
	uint64_t *ips;
	uint32_t *ids; /* of the sample in hand */
	struct held_sample samples[HELD_MAX];
};

/* Memory must not run out: it ends the program. */
struct held *held_new(void);
void held_free(struct held *h);
/*
 * Add a sample; not when held_is_full(). @out: event, period, frames are not used; branches are
 * borrowed until held_show().
 */
void held_add(struct held *h, const struct sampler_sample *out, const struct pipeline_stack *stack,
	      const struct held_event *events, uint32_t nr_events);
static inline bool held_is_full(const struct held *h)
{
	return h->nr == HELD_MAX;
}
/* Call @fn for each event of each sample, and forget them. Non-zero: @fn stopped. */
int held_show(struct held *h, struct frames *frames, const struct store *st, sampler_sample_fn fn,
	      void *ctx);

#endif
