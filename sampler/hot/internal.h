/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of sampler/hot/, and by tests; no other room includes it. */
#ifndef SAMPLER_HOT_INTERNAL_H
#define SAMPLER_HOT_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sampler/hot/hot.h"
#include "sampler/perfdata/perfdata.h"
#include "sampler/waits/waits.h"
#include "symbols/base/base.h"

struct broken_objects;
struct deltas;
struct held_samples;
struct lag;
struct langreader;
struct perf_event_header;
struct pipeline;
struct pipeline_stats;
struct recorder_lane;
struct sampler_thread_shared;
struct sampler_thread_stats;
struct switch_note;
struct switch_queue;

/* Count a stack that ends in @object. */
void broken_objects_note(struct broken_objects *e, uint32_t object);
/* Add the counts of another CPU. */
void broken_objects_add(struct broken_objects *sum, const struct broken_objects *add);

/* Note a sample of @time_ns that is handled at @now_ns. */
static inline void lag_note(struct lag *l, uint64_t now_ns, uint64_t time_ns)
{
	/* Written after the clock was read: no delay. */
	uint64_t ns = now_ns > time_ns ? now_ns - time_ns : 0;
	unsigned int bits = ns ? 64 - (unsigned int)__builtin_clzll(ns) : 0;

	if (ns > l->max_ns)
		l->max_ns = ns;
	l->buckets[bits < LAG_BUCKETS ? bits : LAG_BUCKETS - 1]++;
}

/* Return the second copy of the stack of the last sample; borrowed until the next one. */
const struct unwind_interrupted *pipeline_other(const struct pipeline *p);
/*
 * Copy the user chain of @tid with the number @cookie, which was in a side-band ring: up to @max
 * addresses. Return how many; -1: it is not there yet, or no more. Any thread, without a lock.
 */
int sideband_chain(const struct sideband *sb, uint32_t tid, uint64_t cookie, uint64_t *ips,
		   uint32_t max);

/*
 * Live: get the frames of the sample that was resolved last, @s, for a recording. False: it is
 * of no interpreter.
 */
bool pipeline_get_frames(const struct pipeline *p, const struct record_sample *s,
			 struct lang_frames *out);

/* Until the next call: the frames that the reader of this CPU finds; NULL: there is none. */
void pipeline_set_reader(struct pipeline *p, struct langreader *reader);

#define PIPELINE_EVENT_GONE (-3)

/*
 * Count @s; @event is its slot, or one of the above. @regs_mask as in the record's layout.
 * @may_wait: do not count it, and return false, if its process or its code is being read.
 */
bool pipeline_sample(struct pipeline *p, struct pipeline_stats *stats,
		     const struct record_sample *s, int event, uint64_t regs_mask, bool may_wait);
/* The same, and resolve it before. */
uint32_t pipeline_wait(struct pipeline *p, struct pipeline_stats *stats,
		       const struct record_sample *s, int event, uint64_t regs_mask);
/* Count @s as one that is not shown, in @outcome of @stats. */
void pipeline_leave_out(struct pipeline *p, struct pipeline_stats *stats,
			const struct record_sample *s, int event, uint64_t *outcome);

/*
 * One record of a ring: into the pipeline, the statistics, the queue of switches, the recording.
 *
 * Private to sampler threads; each function runs on the thread of its struct.
 */

/* Of a chain with its deferred part: more than the kernel writes. */
#define SAMPLER_THREAD_JOINED 1024u

struct sampler_thread {
	struct sampler_thread_shared *shared;
	struct counters_cpu *cpu;
	uint32_t cpu_index;
	struct pipeline *pipeline;
	struct deltas *deltas;
	struct held_samples *held_samples;
	unsigned int quick;	    /* short waits left */
	unsigned int calm;	    /* batches since the last request to the loader */
	struct recorder_lane *lane; /* NULL: nothing is recorded */
	struct frame_notes {
		struct lang_frames frames;
		uint8_t bytes[LANG_RECORD_MAX];
	} * notes;		    /* for the lane; NULL: no memory */
	struct switch_queue *queue; /* NULL: waits are not measured; of this batch */
	int latency;		    /* the event with samples for it */
	uint64_t waits_since_ns;    /* begin of the time in which stacks of waits are counted */
	uint32_t nr_waits;	    /* since then */
	uint32_t most_waits;	    /* in such a time, since the last batch */
	struct switch_note wait;    /* the stack of the switch that follows; tid 0: none */
	pid_t own_pid, guard;
	bool filtered;				/* the last sample was */
	uint64_t joined[SAMPLER_THREAD_JOINED]; /* a chain in two records */
	int stop_fd;
	int kick_fd;	    /* eventfd: the reader says that the ring fills */
	atomic_bool barred; /* a process was; release, acquire */
	atomic_bool wish;   /* relaxed: a reader is wanted here */
	uint64_t asked_ns;  /* time of the last call of the builder for the reader */
	_Atomic(struct langreader *)
		reader;			 /* release by the builder, acquire at a batch's begin */
	struct langreader *batch_reader; /* the same, in this batch */
	pthread_t id;
	bool finished;
	uint32_t generation; /* of the tables of this batch */
	uint64_t paused_ns;  /* end of its last pause */
	bool first;	     /* with a real-time priority */
	uint64_t now_ns;     /* the clock, as last read in this batch */
	uint64_t cpu_ns;     /* written by the thread at its end, read when it is joined */

	_Alignas(CACHELINE) struct sampler_thread_stats stats[2];
	/*
	 * By set: the position up to which the ring was handled. Relaxed: the grace period orders
	 * it.
	 */
	atomic_ullong handled[2];
	atomic_ullong done_ns;	       /* release: the counts of all samples before it */
	atomic_ullong throttled_since; /* relaxed: a gauge for the builder */
	atomic_ullong ring_high_ppm;   /* relaxed: a gauge for the builder */
};

#endif
