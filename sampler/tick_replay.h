/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The profile of a recording.
 *
 * Runs on: the builder, online for urcu-qsbr.
 */
#ifndef SAMPLER_TICK_REPLAY_H
#define SAMPLER_TICK_REPLAY_H

struct replay_result;
struct sampler;

/* Make the one profile of a replay, again for each window that the UI wants. */
void tick_replay(struct sampler *s, const struct replay_result *result);

#endif
