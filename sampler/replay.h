/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A recording instead of the kernel: perf.data through the same decoding,
 * unwinding and tables as live samples.
 *
 * Objects that live sampling requests from the loader, and counts as pending, are read immediately
 * (symbols_run), so that a replay is complete and the same every time. /proc is never read:
 * processes are from the recording.
 *
 * Runs on: the builder thread, a registered urcu-qsbr reader.
 */
#ifndef SAMPLER_REPLAY_H
#define SAMPLER_REPLAY_H

#include "sampler/hot/hot.h"
#include "sampler/replay_sample.h"
#include "sampler/store.h"
#include "symbols/base/base.h"

struct replay;

/* Read the file; its events go into @config. 0 or -errno with a sentence. */
int replay_open(struct replay **out, struct sampler_config *config, struct err *e);
/* Return whether all times are of the clock that JITs use in their jitdumps. */
bool replay_monotonic(const struct replay *r);
/* Return the e_machine of the recorded CPU; 0: this one's, or not known. */
uint16_t replay_machine(const struct replay *r);
/* Return one line on a recording that is cut short or damaged; "" if it is whole. Borrowed. */
const char *replay_note(const struct replay *r);
/* The kernel that it was recorded on. Borrowed. */
const struct kernel_identity *replay_kernel(const struct replay *r);
/* Return when the file was written, CLOCK_REALTIME; 0: not known, it is a pipe. */
uint64_t replay_date_ns(const struct replay *r);
/* Return whether any sample was taken in the kernel. */
bool replay_has_kernel(const struct replay *r);
/* Return whether it is a folder of --keep: slices without samples, by CLOCK_REALTIME. */
bool replay_is_kept(const struct replay *r);
/* Return the number of CPUs up to the highest with samples; 1 for a folder of --keep. */
uint32_t replay_nr_cpus(const struct replay *r);
/* Return how much of a file or folder is read; -1: not known, it is a pipe. Any thread. */
int replay_permille(const struct replay *r);
/* End walks over the records, or a folder, soon: they return -ECANCELED. Any thread. */
void replay_stop(struct replay *r);
void replay_close(struct replay *r);

/* One CPU of the recording. */
struct replay_cpu {
	int cpu;
	struct pipeline_stats samples;
	uint64_t lost, throttled, throttled_ns;
	uint64_t throttled_since;
	uint64_t lost_shown, throttled_shown; /* of them, in earlier profiles */
};

struct replay_result {
	struct replay_cpu *cpus; /* borrowed until replay_close() */
	uint32_t nr_cpus;
	uint64_t span_ns;     /* first to last sample */
	uint64_t interval_ns; /* the same since the last result */
	uint64_t nr_records;
	struct unwind_stats unwind;
	struct profile_waits waits; /* since the last result */
	bool out_of_memory;	    /* new stacks were not counted */
};

/* All records, in time order, into the tables of @st. May be called again (tables are not cleared).
 */
int replay_run(struct replay *r, struct store *st, struct replay_result *out);
/*
 * The same in steps, for a pipe (config.follow): begin; more, feed and drop while replay_more() is
 * true and once after it; result at any time; end. @idle: as for perfdata_more().
 */
int replay_begin(struct replay *r, struct store *st);
bool replay_more(struct replay *r, bool idle);
/*
 * Of a stream: the machine, foreign bytes, "" if it is not known; the age of the newest sample that
 * is counted. The clock is the recorder's: age 0 is the fastest transfer so far.
 */
const char *replay_host(const struct replay *r);
uint64_t replay_delay_ns(const struct replay *r);
int replay_feed(struct replay *r, struct store *st);
/* Return whether a sample has been counted. */
bool replay_begun(const struct replay *r);
void replay_drop(struct replay *r);
void replay_result(struct replay *r, struct store *st, struct replay_result *out);
/* The next result has only the samples and figures that follow. */
void replay_next(struct replay *r);
void replay_end(struct replay *r);
/* Return a descriptor that is readable when a pipe has more; -1: all is read. */
int replay_fd(const struct replay *r);
/* The samples one by one with their stacks, after replay_run(). @events: of the config, by slot.
 * Stops when @fn returns non-zero. */
int replay_each(struct replay *r, struct store *st, const struct event *events,
		sampler_sample_fn fn, void *ctx);
/* Get the samples that replay_each() had to leave out; after it. */
void replay_missing(const struct replay *r, struct sampler_missing *out);

#endif
