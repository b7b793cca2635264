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

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/ring/ring.h"
#include "symbols/base/base.h"

struct script_functions;
struct perf_event_attr;
struct perf_event_header;
struct recorder;
struct recorder_lane;

/*
 * The segments of --keep: slices with the stacks, functions and tasks that they refer to. A segment
 * is a header and records, each with its size and a checksum, only ever appended to: one that was
 * cut short is read as far as it goes. A later record with the same id replaces the one
 * before. Reading treats all bytes as hostile.
 *
 * Pure; any thread.
 */

#define KEEPFILE_DEPTH_MAX 4096 /* functions of a stack */

/* Bytes that grow. Zero-initialised is empty. */
struct keepfile_out {
	uint8_t *bytes;
	size_t size, capacity;
	size_t begin; /* of the record that is written */
	bool failed;  /* no memory: the bytes are incomplete */
};

void keepfile_fini(struct keepfile_out *out);

struct keepfile_text {
	const char *str;
	size_t size;
};

/* One event of the slices that follow. */
struct keepfile_event {
	struct keepfile_text name;
	double hz;
	bool clock;
};

struct keepfile_function {
	uint32_t id;
	char kind; /* of the profile: u k j v ? ... */
	bool inlined, made_up;
	struct keepfile_text name, module;
};

struct keepfile_task {
	uint32_t id;
	uint32_t pid, tid;
	struct keepfile_text comm, process_comm;
	uint32_t uid; /* UINT32_MAX: unknown */
};

void keepfile_header(struct keepfile_out *out);
void keepfile_put_events(struct keepfile_out *out, const struct keepfile_event *events,
			 uint32_t nr);
void keepfile_put_function(struct keepfile_out *out, const struct keepfile_function *f);
/* The functions of @module are of an interpreter. */
void keepfile_put_interpreter(struct keepfile_out *out, struct keepfile_text module);
void keepfile_put_stack(struct keepfile_out *out, uint32_t id, const uint32_t *functions,
			uint32_t nr);
void keepfile_put_task(struct keepfile_out *out, const struct keepfile_task *t);
/* @slice: times are CLOCK_REALTIME. False: it is too large for a record, and left out. */
bool keepfile_put_slice(struct keepfile_out *out, const struct slice *slice);

/* Called for each record of a segment; texts and arrays are borrowed. */
struct keepfile_reader {
	void (*events)(void *ctx, const struct keepfile_event *events, uint32_t nr);
	void (*function)(void *ctx, const struct keepfile_function *f);
	void (*stack)(void *ctx, uint32_t id, const uint32_t *functions, uint32_t nr);
	void (*interpreter)(void *ctx, struct keepfile_text module);
	void (*task)(void *ctx, const struct keepfile_task *t);
	/* Its bytes were checked: the counts are in order, and their number is @slice->nr. */
	void (*slice)(void *ctx, const struct slice *slice);
	void *ctx;
	/* Called before each record: true ends the reading. NULL: it is read to the end. */
	bool (*stopped)(void *ctx);
};

/*
 * Read a segment up to its end, the first damaged record, or where @reader stops. Return the bytes
 * that were read; -EINVAL: it is no segment.
 */
int64_t keepfile_read(const uint8_t *bytes, size_t size, const struct keepfile_reader *reader);

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
