/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames on their way from a reader to the sampler thread of its CPU: a ring of
 * slots in the order of their samples, each behind the functions in it that are new. One producer,
 * one consumer, no lock; when the ring is full the sample keeps its native frames.
 *
 * The ring is memory that both have. The sampler thread trusts nothing in it: a reader may have
 * been taken over by a process that it reads.
 */
#ifndef SAMPLER_PIPELINE_FEED_H
#define SAMPLER_PIPELINE_FEED_H

#include <stdatomic.h>

#include "symbols/base/base.h"
#include "symbols/lang/codes.h"
#include "symbols/lang/lang.h"

#define FEED_SIZE (1U << 20) /* a power of two */

/* All zero is an empty ring. */
struct feed_ring {
	_Alignas(CACHELINE) atomic_ullong head; /* producer: release; consumer: acquire */
	_Alignas(CACHELINE) atomic_ullong tail; /* consumer: release; producer: acquire */
	_Alignas(CACHELINE) uint8_t bytes[FEED_SIZE];
};

/* The end of the reader. */
struct feed_writer {
	struct feed_ring *ring;
	const struct codes *codes; /* its functions */
	uint32_t nr_sent;	   /* of them */
};

/*
 * Put a copy of @slot with its frames in, behind the functions that were not sent yet. False: it is
 * full.
 */
bool feed_put(struct feed_writer *w, const struct lang_slot *slot, const struct lang_frame *frames);

struct feed_copy;

/* The end of the sampler thread. */
struct feed {
	struct feed_ring *ring;
	struct codes *codes; /* of all; both are borrowed */
	uint64_t tail;
	uint32_t *ids; /* of the reader's functions, in @codes; CODES_MAX */
	uint32_t nr_ids;
	struct feed_copy *copy;
	atomic_uint nr_bad;  /* parts that made no sense; relaxed */
	atomic_bool refused; /* a slot had a function that found no room; relaxed */
};

/* 0 or -ENOMEM. */
int feed_init(struct feed *f, struct feed_ring *ring, struct codes *codes);
void feed_fini(struct feed *f);

/*
 * Return a copy of the slot of this sample, checked, with the ids of @f->codes; NULL: there is
 * none. Drops slots of earlier samples; valid until the next call.
 */
const struct lang_slot *feed_find(struct feed *f, uint64_t time_ns, uint32_t pid, uint32_t tid);

#endif
