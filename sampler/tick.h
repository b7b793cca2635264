/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The end of a tick: counts become a profile.
 *
 * Runs on: the builder, online for urcu-qsbr.
 */
#ifndef SAMPLER_TICK_H
#define SAMPLER_TICK_H

#include <stdbool.h>
#include <stdint.h>

struct sampler;

/* Cut a slice of the history within a tick. */
void tick_slice(struct sampler *s, uint64_t now_ns);
/* Keep the slices that are not kept yet on disk (--keep): once a second, or at the end. */
void tick_keep(struct sampler *s, uint64_t now_ns, bool end);
/* End a tick: take the counts, make the profile, hand it over. */
void tick_end(struct sampler *s, uint64_t now_ns);
/* Grow the tables between two ticks, when the threads report that they fill up. */
void tick_make_room(struct sampler *s);
/* Forget the samples since the last tick. False: more than 1 % of them were pending. */
bool tick_skip(struct sampler *s);
/* Forget everything counted so far. */
void tick_discard(struct sampler *s);

#endif
