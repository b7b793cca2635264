/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The hot loop: one thread per CPU moves that CPU's samples from the ring to the tables. No lock,
 * malloc, file or string per sample. Threads: start and stop by the owner; stats by the builder.
 */
#ifndef SAMPLER_PIPELINE_SAMPLER_THREAD_H
#define SAMPLER_PIPELINE_SAMPLER_THREAD_H

#include <stdatomic.h>

#include "sampler/event/counters.h"
#include "sampler/pipeline/lag.h"
#include "sampler/pipeline/pipeline.h"
#include "sampler/file/recorder.h"
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
	 * and every SAMPLER_THREAD_POLL_MS after it. Relaxed: a thread that sees it late only has
	 * samples in the next slice. 0: at any time.
	 */
	atomic_ullong grid_ns;
};

/* Samples are queued at most this long when the watermark is not reached. */
#define SAMPLER_THREAD_POLL_MS 50

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

struct sampler_thread;

/* Builder: have the ring read now, not at the watermark. */
void sampler_thread_kick(struct sampler_thread *t);
int sampler_thread_start(struct sampler_thread **out, struct sampler_thread_shared *shared,
			 uint32_t cpu_index, struct err *e);
/* Handle the rest of the ring, end and join; the stats are kept. Caller: offline for urcu-qsbr. */
void sampler_thread_finish(struct sampler_thread *t);
/* Finish and free. */
void sampler_thread_stop(struct sampler_thread *t);

/* Take and clear the set of @epoch, after the epoch was flipped and a grace period. */
void sampler_thread_take_stats(struct sampler_thread *t, unsigned int epoch,
			       struct sampler_thread_stats *out);
struct langreader;
/*
 * Builder: from the next batch on use the frames of @reader (NULL: none); with one, the thread
 * checks the ring periodically and when its eventfd is written to. The previous reader is in use
 * for a grace period.
 */
void sampler_thread_set_reader(struct sampler_thread *t, struct langreader *reader);
struct langreader *sampler_thread_reader(const struct sampler_thread *t);
/* Builder: test and clear the wish for a reader. */
bool sampler_thread_take_wish(struct sampler_thread *t);
int sampler_thread_kick_fd(const struct sampler_thread *t);
/* Get the statistics of its unwinder since the start. */
void sampler_thread_unwind_stats(const struct sampler_thread *t, struct unwind_stats *out);
/* Return the time since which the CPU's event is throttled; 0: it is not. */
uint64_t sampler_thread_throttled_since(const struct sampler_thread *t);
/* Return the CPU time of the thread, also after its end. */
uint64_t sampler_thread_cpu_ns(const struct sampler_thread *t);
/* Return how full the data ring was at most, 0..1, since the last call. */
double sampler_thread_take_ring_high(struct sampler_thread *t);

#endif
