/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The frames of a replay as perf script prints them, each made once. Runs on: the thread of the
 * replay. Invariant: a frame never changes; a place that gets another name is another frame.
 */
#ifndef SAMPLER_REPLAY_FRAMES_H
#define SAMPLER_REPLAY_FRAMES_H

#include "sampler/replay_sample.h"
#include "sampler/store.h"
#include "symbols/name/places.h"

/* A place occurs at its address, at the next one (of a caller), or elsewhere. */
#define FRAMES_WAYS 3

struct frames {
	struct sampler_frame *known; /* by frame id; 0 is the unknown one */
	uint32_t nr, room;
	struct frames_of_place {
		const struct place *place; /* NULL: did not occur yet */
		struct {
			uint32_t symbol, frame;
		} way[FRAMES_WAYS]; /* frame 0: not here */
	} * places;		    /* by place id */
	uint32_t room_places;
};

void frames_init(struct frames *f);
void frames_fini(struct frames *f);
/* A place is the look-up pc: of a caller, one byte before its return address. */
static inline uint64_t frames_gap(const struct place *place, uint64_t ip)
{
	return (ip - place->offset) & 0xfff;
}

static inline uint32_t frames_way(const struct place *place, uint64_t ip)
{
	uint64_t gap = frames_gap(place, ip);

	return gap < FRAMES_WAYS - 1 ? (uint32_t)gap : FRAMES_WAYS - 1;
}

/* Return the id of a frame that is new, or has another name by now. */
uint32_t frames_meet(struct frames *f, const struct store *st, uint32_t place, uint64_t ip);

/* Return the id of the frame at @ip, in @place. */
static inline uint32_t frames_of(struct frames *f, const struct store *st, uint32_t place,
				 uint64_t ip)
{
	const struct frames_of_place *slot = place < f->room_places ? &f->places[place] : NULL;

	if (slot && slot->place) {
		uint32_t way = frames_way(slot->place, ip);

		/* Relaxed: only a change matters. */
		if (slot->way[way].frame &&
		    slot->way[way].symbol ==
			    atomic_load_explicit(&slot->place->symbol, memory_order_relaxed))
			return slot->way[way].frame;
	}
	return frames_meet(f, st, place, ip);
}

#endif
