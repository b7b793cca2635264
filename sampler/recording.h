/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --record: a perf.data file written beside the live counts.
 *
 * Threads: set-up and end by the owner, changes by the builder.
 */
#ifndef SAMPLER_RECORDING_H
#define SAMPLER_RECORDING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct codes;
struct counters;
struct err;
struct objects;
struct recorder;
struct sideband;

struct recording {
	struct recorder *recorder; /* NULL: nothing is recorded */
	const char *path;	   /* borrowed */
	bool failed;		   /* its failure was reported already */
	bool *identified;	   /* by object: its build-id is written */
	uint32_t nr_identified, max_identified;
	bool kernel_identified;
};

/* The content of a recording. */
struct sampler_recorded {
	uint64_t nr_samples;
	uint64_t nr_dropped;  /* records that arrived faster than they could be written */
	uint64_t nr_unmapped; /* processes that were there, but their mappings hang */
	uint64_t bytes;
};

/* Write "; 3 processes have no symbols: reading mappings hangs" for the user; "": @nr is 0. */
const char *recording_unmapped(uint64_t nr, char buf[static 80]);

/*
 * Create the file @path, if there is one, or keep @memory bytes of records for the files of traps;
 * the events are open. 0 or -errno with a sentence.
 */
int recording_open(struct recording *r, const char *path, size_t memory, struct counters *counters,
		   struct sideband *sideband, const struct codes *codes, struct err *e);
/* Write the running processes: before the events are enabled. 0 or -errno with a message. */
int recording_start(struct recording *r, struct err *e);
/* Note the attributes of all events: after each change of these. Builder. */
void recording_note(struct recording *r, struct counters *counters);
/*
 * Of a stream: between these two the builder may open events; no record of them is written before
 * they are noted. Builder.
 */
void recording_hold(struct recording *r);
void recording_release(struct recording *r, struct counters *counters);
/* Add tasks that are followed since @since_ns only. Builder. */
void recording_add(struct recording *r, struct counters *counters, const pid_t *tids, uint32_t nr,
		   uint64_t since_ns);
/* Write new build-ids to a stream. Builder, online for urcu-qsbr. */
void recording_identify(struct recording *r, struct objects *objects);
/* Return the -errno that ended the recording, once; else 0. Builder. */
int recording_check(struct recording *r);
/*
 * Complete the file; all threads have ended. 0, or -errno with a message: the written part is kept.
 * @nr_events: of the session now.
 */
int recording_finish(struct recording *r, struct counters *counters, uint32_t nr_events,
		     struct objects *objects, struct sampler_recorded *out, struct err *e);
void recording_close(struct recording *r);

#endif
