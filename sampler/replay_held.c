// SPDX-License-Identifier: GPL-2.0-or-later
/* Samples that wait for names. Runs on: the thread of the replay. */
#include "sampler/replay_held.h"
#include "unwind/unwind.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct held *held_new(void)
{
	struct held *h = xrealloc_array(NULL, 1, sizeof(*h));

	h->nr = h->nr_frames = 0;
	h->places = xrealloc_array(NULL, HELD_MAX * STACKS_PLACES_MAX, sizeof(*h->places));
	h->ips = xrealloc_array(NULL, HELD_MAX * STACKS_PLACES_MAX, sizeof(*h->ips));
	h->ids = xrealloc_array(NULL, STACKS_PLACES_MAX, sizeof(*h->ids));
	return h;
}

void held_free(struct held *h)
{
	free(h->places);
	free(h->ips);
	free(h->ids);
	free(h);
}

void held_add(struct held *h, const struct sampler_sample *out, const struct pipeline_stack *stack,
	      const struct held_event *events, uint32_t nr_events)
{
	struct held_sample *s = &h->samples[h->nr++];

	assert(h->nr <= HELD_MAX && stack->nr <= STACKS_PLACES_MAX);
	s->out = *out;
	s->memory = *out->memory;
	s->out.memory = &s->memory;
	s->out.nr_frames = stack->nr;
	s->first = h->nr_frames;
	memcpy(h->places + s->first, stack->places, stack->nr * sizeof(*h->places));
	memcpy(h->ips + s->first, stack->ips, stack->nr * sizeof(*h->ips));
	h->nr_frames += stack->nr;
	s->nr_events = nr_events;
	memcpy(s->events, events, nr_events * sizeof(*events));
}

static int show(struct held *h, struct held_sample *s, struct frames *frames,
		const struct store *st, sampler_sample_fn fn, void *ctx)
{
	const uint64_t *ips = h->ips + s->first;
	int code = 0;

	for (uint32_t i = 0; i < s->out.nr_frames; i++)
		h->ids[i] = frames_of(frames, st, h->places[s->first + i], ips[i]);
	s->out.known = frames->known;
	s->out.frames = h->ids;
	s->out.ips = ips;
	for (uint32_t i = 0; i < s->nr_events && !code; i++) {
		s->out.event = s->events[i].name;
		s->out.period = s->events[i].period;
		code = fn(ctx, &s->out);
	}
	return code;
}

int held_show(struct held *h, struct frames *frames, const struct store *st, sampler_sample_fn fn,
	      void *ctx)
{
	int code = 0;

	for (uint32_t i = 0; i < h->nr && !code; i++)
		code = show(h, &h->samples[i], frames, st, fn, ctx);
	h->nr = h->nr_frames = 0;
	return code;
}
