/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A recording while it is replayed. Private to replay.c, replay_walk.c and replay_each.c. One
 * thread.
 */
#ifndef SAMPLER_REPLAY_PRIVATE_H
#define SAMPLER_REPLAY_PRIVATE_H

#include "sampler/arrival.h"
#include "sampler/replay_frames.h"
#include "sampler/keep_read.h"
#include "sampler/hot/hot.h"
#include "sampler/replay_events.h"
#include "sampler/replay_language.h"
#include "sampler/replay_waits.h"
#include "sampler/store.h"

#define REPLAY_CPUS_MAX 4096
/* Bytes of a sample that are read at first: most stacks are much smaller than their copies. */
#define REPLAY_PART_MIN 2048
#define REPLAY_PART_MAX (64 << 10)

struct replay {
	struct perfdata *data; /* NULL: a folder of --keep instead */
	struct keep_read *kept;
	struct keep_read_result kept_result;
	char kept_note[200]; /* the samples that are left out; "" */
	struct replay_events events;
	struct replay_waits waits;
	size_t part; /* bytes of a sample that were enough for most stacks; 0: read all */
	struct replay_cpu *cpus;
	uint32_t nr_cpus;
	bool has_cells;	       /* up to the number of samples */
	uint64_t nr_samples;   /* for room in the tables */
	uint64_t lost_records; /* samples, from LOST records */
	uint64_t lost_samples; /* from LOST_SAMPLES: the sum, or samples that hardware dropped */
	struct deltas *deltas; /* of groups that are read with their leader's samples */
	struct frames frames;  /* for replay_each */
	struct sampler_branch *branches; /* the same */
	uint64_t nr_objects;		 /* objects that the loader was shown */
	bool out_of_memory;		 /* new stacks were not counted */
	uint32_t nr_named;		 /* places up to here have been named, for replay_each */
	struct store *store;		 /* of replay_run(); borrowed */
	uint64_t slice_ns;		 /* length of a slice of the history */
	uint64_t cut_ns;		 /* the last slice ended then */
	struct pipeline *pipeline;	 /* from replay_begin() to replay_end() */
	uint64_t nr_records;
	uint64_t lost_extra;	/* samples that no LOST record has, in the figures of CPU 0 */
	uint64_t shown_ns;	/* the last result ended then */
	uint64_t fed_ns;	/* time of the last sample that was counted */
	struct arrival arrival; /* of a stream */
	bool sliced;		/* the first slice was begun */
	bool changed;		/* maps changed since they were published: until the next sample */
	struct replay_language language;
	bool stream;		   /* it was opened as a stream; also after its end */
	atomic_bool stopped;	   /* by replay_stop() */
	_Atomic uint32_t permille; /* of the records of a file that are counted; relaxed: shown */
};

/* Called for each sample with its stack. Non-zero stops. */
typedef int (*replay_resolved_fn)(void *ctx, struct pipeline *p,
				  const struct record_sample *sample);

/* Return the slot of the event with this id, or PIPELINE_EVENT_UNKNOWN. @ctx: struct replay. */
int replay_slot_of(void *ctx, uint64_t id);
/* Get the members of the sample's group; the leader's count is its period: as perf report. */
uint32_t replay_members(struct replay *r, struct record_sample *sample, int slot,
			struct pipeline_member members[static EVENTS_MAX]);
/*
 * Walk the records in order; frames of languages are for counting only. 0, -ECANCELED after
 * replay_stop(), or the result of @fn.
 */
int replay_walk(struct replay *r, struct store *st, struct pipeline *p, bool side_band,
		replay_resolved_fn fn, void *ctx);
/* Count one sample: the replay_resolved_fn of replay_run(). @ctx: struct replay. */
int replay_count(void *ctx, struct pipeline *p, const struct record_sample *sample);
/* Choose the length of slices: a multiple of 100 ms, a small part of the recording. */
void replay_begin_slices(struct replay *r, struct store *st);
/* End the slice at @time_ns. */
void replay_cut(struct replay *r, uint64_t time_ns);

#endif
