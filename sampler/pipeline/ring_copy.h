/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A copy of one record of a ring that another thread consumes: of a large stack only the first
 * bytes, until the rest is needed. Most chains need no more of it, and 16 KiB push the memory of
 * the sampled thread out of the first cache.
 *
 * Threads: one, beside the consumer. No allocation.
 */
#ifndef SAMPLER_PIPELINE_RING_COPY_H
#define SAMPLER_PIPELINE_RING_COPY_H

#include "sampler/ring/ring.h"
#include "sampler/perf/ring.h"
#include "symbols/base/base.h"

#define RING_COPY_MAX	(64U << 10)
#define RING_COPY_STACK 4096U /* bytes of the stack that are copied at first */

struct ring_copy {
	const struct ring *ring; /* borrowed */
	uint64_t pos;		 /* of the record in it */
	size_t rest_at;		 /* of the bytes left out, in the record */
	size_t rest_size;	 /* 0: none */
	bool overwritten;	 /* by the kernel, before the copy was whole: not to be used */
	_Alignas(16) uint8_t bytes[RING_COPY_MAX];
};

/* Copy @size bytes at @pos to @out. The kernel may overwrite them during it. */
void ring_copy_out(const struct ring *ring, uint64_t pos, void *out, size_t size);
/* Copy the record at @pos, of @size bytes. False: it is too large, or overwritten. */
bool ring_copy_record(struct ring_copy *c, const struct ring *ring,
		      const struct record_layout *layout, uint64_t pos, size_t size);
/* Copy the rest of the stack, once; sets overwritten. */
void ring_copy_rest(struct ring_copy *c);

#endif
