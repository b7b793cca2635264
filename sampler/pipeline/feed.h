/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames on their way from a reader to the sampler thread of its CPU: a ring of
 * slots in the order of their samples. One producer, one consumer, no lock;
 * when the ring is full the sample keeps its native frames.
 */
#ifndef SAMPLER_PIPELINE_FEED_H
#define SAMPLER_PIPELINE_FEED_H

#include <stdatomic.h>

#include "symbols/base/base.h"
#include "symbols/lang/lang.h"

#define FEED_SIZE (1U << 20) /* a power of two */

struct feed {
	uint8_t *bytes;
	_Alignas(CACHELINE) atomic_ullong head; /* producer: release; consumer: acquire */
	_Alignas(CACHELINE) atomic_ullong tail; /* consumer: release; producer: acquire */
};

/* 0 or -ENOMEM. */
int feed_init(struct feed *f);
void feed_fini(struct feed *f);

/* Producer: put a copy of @slot with its frames in; false: it is full. */
bool feed_put(struct feed *f, const struct lang_slot *slot, const struct lang_frame *frames);
/*
 * Consumer: the slot of this sample, or NULL. Drops slots of earlier samples; the
 * result is valid until the next call.
 */
const struct lang_slot *feed_find(struct feed *f, uint64_t time_ns, uint32_t pid, uint32_t tid);

#endif
