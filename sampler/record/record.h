/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recordings being made: raw records, the newest in memory, kept slices.
 *
 * The caller owes: a lane for each sampler thread; one end.
 *
 * The room does: passes records through bounded queues to a writer thread, drops and counts where
 * the disk is slow; makes records of running processes from /proc.
 *
 * Not for: the format of files (sampler/perfdata).
 */
#ifndef SAMPLER_RECORD_RECORD_H
#define SAMPLER_RECORD_RECORD_H

#include <sys/types.h>

#include "symbols/base/base.h"

struct perf_event_attr;
struct perf_event_header;
struct record;
struct recorder;
struct recorder_lane;
struct script_functions;

/*
 * A recording of the live session: raw records from the rings to a perf.data
 * file, that perf and --replay read.
 *
 * A sampler thread only copies bytes into its lane, a buffer of fixed size; a
 * writer thread takes them to the file. A lane that is full refuses records:
 * they are counted, and a LOST record says so in their place.
 *
 * Threads: recorder_put() by the one producer of a lane at a time;
 * recorder_note() and recorder_add_task() by the builder (set-up before it
 * runs); open and close by the owner, when no producer is left.
 */

struct recorder_config {
	const char *path;
	uint32_t nr_cpus;  /* a lane each, and one for the side-band */
	size_t lane_size;  /* bytes, a power of two; 0: 8 MiB, less where there are many lanes */
	const char *root;  /* of /proc: "" */
	uint64_t round_ns; /* the shortest round; 0: 2 s */
	size_t memory;	   /* not 0: keep this many bytes instead of a file; recorder_save() */
	const struct script_functions
		*codes; /* functions of scripts, recorded when found; NULL: none */
};

struct recorder_stats {
	uint64_t nr_samples;	 /* in the file */
	uint64_t nr_kernel_lost; /* by the kernel, from LOST records of data rings */
	uint64_t nr_dropped;  /* samples and other records that did not fit into a lane or queue */
	uint64_t nr_unmapped; /* processes that were there, but their mappings hang */
	uint64_t bytes;	      /* of records in the file */
};

/* The result of recorder_save(). */
struct recorder_saved {
	int64_t bytes;	      /* or -errno */
	uint64_t nr_unmapped; /* processes without mappings, which hang */
	uint64_t unsaved;     /* bytes of records since the last file, without memory */
};

/* Create the file ("-": a stream to standard output) and the lanes. 0 or -errno with a sentence. */
int recorder_open(struct recorder **out, const struct recorder_config *config, struct err *e);
/* An event and its ids, from now on; any number of times. */
void recorder_note(void *recorder, const char *name, const struct perf_event_attr *attr,
		   const uint64_t *ids, size_t nr_ids);
/*
 * Start the writer. When this returns, the kernel and all processes are in the file. The side-band
 * events, for new ones, must be open by then.
 */
int recorder_start(struct recorder *r, struct err *e);
/* @index: of a CPU; nr_cpus: of the side-band. */
struct recorder_lane *recorder_lane(struct recorder *r, uint32_t index);
/* Hot: record @h as it is; @decoded are its fields. No lock, no system call. */
void recorder_put(struct recorder_lane *lane, const struct perf_event_header *h,
		  const struct record *decoded);
/* Hot: record bytes of our own; without room they are left out. */
void recorder_put_bytes(struct recorder_lane *lane, const void *record, size_t size);
/* A task that is followed from @time_ns on, but was there before. */
void recorder_add_task(struct recorder *r, pid_t tid, uint64_t time_ns);
/* All that happened on the lane's CPU before @now_ns has been put. */
void recorder_drained(struct recorder_lane *lane, uint64_t now_ns);
/*
 * Of a stream: no records are taken for writing between the two. The builder opens events and notes
 * them there, so that they are in the stream before their records. Builder.
 */
void recorder_hold(struct recorder *r);
void recorder_release(struct recorder *r);
bool recorder_is_stream(const struct recorder *r);
/*
 * The build-id of a sampled object, as perfdata_put_build_id(): before the end; of a stream as soon
 * as it is known. Builder, or after the last record.
 */
void recorder_build_id(struct recorder *r, bool kernel, const char *name, const uint8_t *id,
		       uint8_t id_size);
/* The first failure to write, -errno; 0: none so far. Any thread. */
int recorder_error(const struct recorder *r);
/*
 * Write the remaining records, complete the file. @lost: samples that the kernel lost in all (0:
 * not known); its LOST records may miss the last ones. As perf does it, LOST_SAMPLES at the end has
 * the sum. 0 or -errno.
 */
int recorder_finish(struct recorder *r, uint64_t lost, struct recorder_stats *stats);
/*
 * With config.memory: write the records of the memory to a new file @path at @when_ns; @path is
 * taken over. -EBUSY: one is being written. Builder.
 */
int recorder_save(struct recorder *r, char *path, uint64_t when_ns);
/* Get the result of recorder_save(), once; @e: with a sentence if it failed. Builder. */
bool recorder_saved(struct recorder *r, struct recorder_saved *out, struct err *e);
/*
 * With config.memory: also write all records to a new file @path, the ones in memory first, until a
 * call with NULL, a failure or the end. -EBUSY: another one is written; @path NULL: none is.
 * Builder.
 */
int recorder_also(struct recorder *r, const char *path);
/* Get the result of recorder_also() when it has ended, once; @e: with a sentence if it failed.
 * Builder. */
bool recorder_also_ended(struct recorder *r, struct recorder_saved *out, struct err *e);
/* Return the bytes of records in the file that is being written, or was last. Any thread. */
uint64_t recorder_bytes(const struct recorder *r);
/* Free; a file that was not finished is left as it is (readable by --replay). */
void recorder_close(struct recorder *r);

#endif
