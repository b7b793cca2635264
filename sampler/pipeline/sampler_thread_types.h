/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Definitions shared by the sampler threads and the builder.
 */
#ifndef SAMPLER_PIPELINE_SAMPLER_THREAD_TYPES_H
#define SAMPLER_PIPELINE_SAMPLER_THREAD_TYPES_H

#include <stdatomic.h>

#include "sampler/event/counters.h"
#include "sampler/pipeline/lag.h"
#include "sampler/hot/hot.h"
#include "sampler/record/record.h"
#include "sampler/pipeline/sideband.h"
#include "sampler/waits/waits.h"
#include "symbols/symbols.h"

/* Shared by all sampler threads. Everything is borrowed. */
struct sampler_thread_shared {
	struct counters *counters;
	struct sideband *sideband;
	struct symbols *symbols;
	struct recorder *recorder; /* NULL: nothing is recorded */
	/*
	 * The generation of tables to count into: read once a batch (acquire),
	 * replaced by the builder (release) when the stacks are full.
	 */
	_Atomic(const struct pipeline_tables *) tables;
	/*
	 * The tables fill up before the next tick: set by a thread (relaxed), which then writes to
	 * the builder's eventfd; reset by the builder.
	 */
	int builder_fd;
	_Atomic(struct waits *) waits; /* NULL: not measured; release by the builder */
	/*
	 * Stacks of waits on one CPU in a tenth of a second that are too many; set and read
	 * relaxed. A thread that sees more wakes the builder.
	 */
	atomic_uint waits_max;
	atomic_bool waits_flood;
	_Alignas(CACHELINE) atomic_bool room_wanted;
	atomic_bool goes_first; /* the threads have a real-time priority; relaxed */
	/*
	 * Which of the two sets of stats a batch counts into (lowest bit). The
	 * builder flips it (release), waits for a grace period, and then owns the
	 * other set: a tick's account is exact.
	 */
	_Alignas(CACHELINE) atomic_uint epoch;
	/*
	 * The threads look at their rings a little before the builder cuts a slice: at this time
	 * and every SAMPLER_THREAD_POLL_MS or SAMPLER_THREAD_CALM_MS after it. Relaxed: a thread
	 * that sees it late only has samples in the next slice. 0: at any time.
	 */
	atomic_ullong grid_ns;
};

/* Samples are queued at most this long when the watermark is not reached. */
#define SAMPLER_THREAD_POLL_MS 50
/* The same while no process and no object is new. */
#define SAMPLER_THREAD_CALM_MS 100

static inline const struct pipeline_tables *
sampler_thread_tables(struct sampler_thread_shared *shared)
{
	return atomic_load_explicit(&shared->tables, memory_order_acquire);
}

/* Outcomes of the samples of one tick on one CPU. Written by its thread only. */
struct sampler_thread_stats {
	struct pipeline_stats samples;
	uint64_t lost_records; /* by LOST records */
	uint64_t throttled, throttled_ns;
	uint64_t handled; /* bytes of the ring, since it was opened; sampler_thread_take_stats() */
	struct lag lag;
};

#endif
