/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts that come with samples, of events that are only counted: since their
 * event was opened -> since the sample before. One thread; no malloc after
 * deltas_new().
 */
#ifndef SAMPLER_PIPELINE_DELTAS_H
#define SAMPLER_PIPELINE_DELTAS_H

#include "sampler/pipeline/pipeline.h"
#include "symbols/base/base.h"

struct deltas;

/* For at least @nr events, by their ids. NULL: no memory. */
struct deltas *deltas_new(uint32_t nr);
void deltas_free(struct deltas *d);
/* How much more @value is than at the last call with @id; at first all of it. 0 when there is no
 * room. */
uint64_t deltas_take(struct deltas *d, uint64_t id, uint64_t value);

/* Event slot of an id, or -1. */
typedef int (*deltas_slot_fn)(void *ctx, uint64_t id);
/* What happened to the members of the group that @s was sampled for, its leader's first. Returns
 * how many. */
uint32_t deltas_of_sample(struct deltas *d, const struct record_sample *s, deltas_slot_fn slot,
			  void *ctx, struct pipeline_member out[static EVENTS_MAX]);

#endif
