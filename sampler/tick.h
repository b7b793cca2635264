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

struct replay_result;
struct sampler;

/* Cut a slice of the history within a tick. */
void tick_slice(struct sampler *s, uint64_t now_ns);
/* End a tick: take the counts, make the profile, hand it over. */
void tick_end(struct sampler *s, uint64_t now_ns);
/* Post the heat strip that the UI wants; nothing if it wants none. */
void tick_strip(struct sampler *s, bool answer);
/* Post the range of the past that the UI shows; nothing if it shows none. */
void tick_past(struct sampler *s);
/* Make a profile of the slices from @begin_ns to @end_ns, and hand it over as collected. */
void tick_collect(struct sampler *s, uint64_t begin_ns, uint64_t end_ns);
/* Make the one profile of a replay, again for each window that the UI wants. */
void tick_replay(struct sampler *s, const struct replay_result *result);
/* Grow the tables between two ticks, when the threads report that they fill up. */
void tick_make_room(struct sampler *s);
/* Forget the samples since the last tick. False: more than 1 % of them were pending. */
bool tick_skip(struct sampler *s);
/* Forget everything counted so far. */
void tick_discard(struct sampler *s);

#endif
