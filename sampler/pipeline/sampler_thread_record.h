/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One record of a ring: into the pipeline, the statistics, the queue of switches, the recording.
 *
 * Private to sampler threads; each function runs on the thread of its struct.
 */
#ifndef SAMPLER_PIPELINE_SAMPLER_THREAD_RECORD_H
#define SAMPLER_PIPELINE_SAMPLER_THREAD_RECORD_H

#include <pthread.h>

#include "sampler/pipeline/deltas.h"
#include "sampler/pipeline/unread.h"
#include "sampler/reader/reader.h"
#include "sampler/pipeline/sampler_thread_types.h"

struct sampler_thread {
	struct sampler_thread_shared *shared;
	struct counters_cpu *cpu;
	uint32_t cpu_index;
	struct pipeline *pipeline;
	struct deltas *deltas;
	struct unread *unread;
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
	pid_t own_pid;
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
	uint64_t shared_ns;  /* begin of sharing */
	bool shares;	     /* the CPU, instead of a real-time priority */
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

/* Handle the record @h, in place: no lock, malloc, file or string. */
void sampler_thread_record(struct sampler_thread *t, struct sampler_thread_stats *stats,
			   const struct perf_event_header *h);
/* Handle the held samples again. @last: all of them are counted. */
void sampler_thread_again(struct sampler_thread *t, struct sampler_thread_stats *stats, bool last);

#endif
