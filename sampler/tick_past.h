/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Profiles of ranges of the past, and the heat strip: made of the slices of the history.
 *
 * Runs on: the builder, online for urcu-qsbr.
 */
#ifndef SAMPLER_TICK_PAST_H
#define SAMPLER_TICK_PAST_H

#include <stdbool.h>
#include <stdint.h>

struct sampler;

/* Post the heat strip that the UI wants; nothing if it wants none. */
void tick_past_strip(struct sampler *s, bool answer);
/* Post the range of the past that the UI shows; nothing if it shows none. */
void tick_past_post(struct sampler *s);
/* Post both again at the end of a tick: a strip moves, names of a range arrive. */
void tick_past_renew(struct sampler *s);
/* Make a profile of the slices from @begin_ns to @end_ns, and hand it over as collected. */
void tick_past_collect(struct sampler *s, uint64_t begin_ns, uint64_t end_ns);

#endif
