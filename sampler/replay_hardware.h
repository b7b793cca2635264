/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Branches and accesses to memory of the samples of a recording. Runs on: the thread of the replay.
 */
#ifndef SAMPLER_REPLAY_HARDWARE_H
#define SAMPLER_REPLAY_HARDWARE_H

#include "sampler/replay_frames.h"
#include "sampler/hot/hot.h"
#include "sampler/replay_sample.h"
#include "sampler/store.h"

/* The most branches that fit in a record. */
#define REPLAY_BRANCHES_MAX (UINT16_MAX / 24)

/* Count the branches and the access of a sample that was resolved. */
void replay_hardware_count(struct store *st, struct pipeline *p, const struct record_sample *s);
/* Find the places of both ends of each branch; load missing objects. */
void replay_hardware_places(struct store *st, struct pipeline *p, const struct record_sample *s,
			    struct pipeline_branch at[static REPLAY_BRANCHES_MAX]);
/* The branches with frames, after their places are named. */
void replay_hardware_branches(const struct store *st, struct frames *frames,
			      const struct record_sample *s, const struct pipeline_branch *at,
			      struct sampler_branch *out);

#endif
