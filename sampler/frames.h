/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The frames of a replay as perf script prints them: each made once, for most
 * are met again and again.
 *
 * One thread, that of the replay. Invariant: a frame never changes; a place
 * that gets another name is another frame.
 */
#ifndef SAMPLER_FRAMES_H
#define SAMPLER_FRAMES_H

#include "sampler/sampler.h"

/* A place is met at its own address, at the one behind it (of a caller), or elsewhere. */
#define FRAMES_WAYS 3

struct frames {
	struct sampler_frame *known;	/* by frame id; 0 is the unknown one */
	uint32_t nr, room;
	struct frames_of_place {
		struct { uint32_t symbol, frame; } way[FRAMES_WAYS];	/* frame 0: not met yet */
	} *places;			/* by place id */
	uint32_t room_places;
};

void frames_init(struct frames *f);
void frames_fini(struct frames *f);
/* The id of the frame at @ip, which lies in @place. */
uint32_t frames_of(struct frames *f, const struct sampler *s, uint32_t place, uint64_t ip);

#endif
