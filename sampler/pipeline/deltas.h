/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts in samples of events that are only counted: from totals since the event was opened to
 * increments since the previous sample. One thread; memory is allocated by deltas_new() and
 * deltas_reserve() alone.
 */
#ifndef SAMPLER_PIPELINE_DELTAS_H
#define SAMPLER_PIPELINE_DELTAS_H

#include "sampler/hot/hot.h"
#include "symbols/base/base.h"

struct deltas;

/* Make a table for the counts of at least @nr event ids. NULL: out of memory. */
struct deltas *deltas_new(uint32_t nr);
void deltas_free(struct deltas *d);
/*
 * Return a table with space for @nr more counts in place of @d: @d if it has the space, is as large
 * as tables get, or memory is short.
 */
struct deltas *deltas_reserve(struct deltas *d, uint32_t nr);
/*
 * Return the increase of @value since the last call with @id and @tid; at first @value. 0: the
 * table is full.
 */
uint64_t deltas_take(struct deltas *d, uint64_t id, uint32_t tid, uint64_t value);

/* Return the event slot of an id, or -1. */
typedef int (*deltas_slot_fn)(void *ctx, uint64_t id);
/*
 * Get the increments of all members of the group of @s, the leader first. Returns how many. @tid:
 * of the task whose counts they are; 0: of all tasks of the event.
 */
uint32_t deltas_of_sample(struct deltas *d, const struct record_sample *s, uint32_t tid,
			  deltas_slot_fn slot, void *ctx,
			  struct pipeline_member out[static EVENTS_MAX]);

#endif
