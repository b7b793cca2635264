/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rates: wanted, as opened, and measured from the counters of each tick.
 *
 * Runs on: the builder.
 */
#ifndef SAMPLER_RATES_H
#define SAMPLER_RATES_H

#include <stdatomic.h>

#include "sampler/config.h"
#include "sampler/event/counters.h"
#include "sampler/event/governor.h"
#include "sampler/event/procstat.h"
#include "sampler/lost.h"
#include "sampler/pipeline/sampler_thread.h"
#include "sampler/profile/profile.h"

/* A got rate in the making. */
struct rates_sum {
	double got;	   /* samples the kernel took, lost ones included */
	double seconds;	   /* of busy CPU time that they were taken in */
	uint64_t since_ns; /* begin of the stretch */
};

/* One CPU, between two ticks. */
struct rates_cpu {
	struct lost lost;
	/* At the last tick. */
	uint64_t running_seen[EVENTS_MAX], enabled_seen[EVENTS_MAX], count_seen[EVENTS_MAX];
	struct counters_value now[EVENTS_MAX]; /* at the end of this tick */
	bool known[EVENTS_MAX];		       /* they could be read */
	uint64_t written;		       /* bytes of the ring, at the same time */
	uint64_t handled;		       /* handled bytes */
	double bytes_a_sample;		       /* 0: not known yet */
	double queued[EVENTS_MAX]; /* samples taken when these were read, not handled yet */
	struct rates_sum sums[EVENTS_MAX];
	double got_hz[EVENTS_MAX]; /* NAN: not known */
};

struct rates {
	double hz[EVENTS_MAX];	     /* wanted; 0: a fixed period */
	double asked_hz[EVENTS_MAX]; /* before the governor lowered it */
	double got_hz[EVENTS_MAX];   /* NAN: not known */
	bool enabled, off[EVENTS_MAX];
	struct governor governor;
	struct procstat *procstat;
	uint64_t procstat_ns;					 /* when it was last read */
	struct rates_cpu *cpus;					 /* in the order of the counters' */
	uint64_t enabled_ns[EVENTS_MAX], running_ns[EVENTS_MAX]; /* all CPUs, now */
	double count[EVENTS_MAX]; /* of the events in the tick, on all CPUs */
	struct rates_sum sums[EVENTS_MAX];
	bool mixed;	      /* the sampling was changed in the current stretch */
	atomic_ullong max_hz; /* kernel.perf_event_max_sample_rate */
	uint64_t max_hz_top;  /* the highest seen */
};

/* The events sampled in this tick. */
struct rates_tick {
	uint32_t nr_events;
	size_t ring_size; /* of each CPU, bytes */
	bool is_part;	  /* target_is_part() */
	bool is_tasks;	  /* single tasks are sampled */
	bool lost_known;  /* the kernel counts lost samples */
};

/* Set the wanted rates of @config; nothing is measured. */
void rates_init(struct rates *r, const struct sampler_config *config);
/* Return the highest requested rate; 0: only periods. */
double rates_fastest(const struct rates *r, uint32_t nr_events);
/* Start the governor again for the requested rates. */
void rates_govern(struct rates *r, const struct sampler_config *config);
/* 0 or -errno with a sentence. */
int rates_open(struct rates *r, struct err *e);
void rates_close(struct rates *r);
/* Return @nr CPUs of which nothing is known yet; malloc'ed. */
struct rates_cpu *rates_new_cpus(uint32_t nr);
/* The sampling changes now: the rates of this stretch say nothing. */
void rates_mix(struct rates *r);
/* Begin to measure again, at @now_ns. */
void rates_restart(struct rates *r, uint64_t now_ns);
/* Forget the counters of the last tick. */
void rates_begin_tick(struct rates *r);
/* Read the counters of CPU @index, and how much of its ring is written. */
void rates_read(struct rates *r, struct counters *counters, uint32_t index, uint32_t nr_events);
/* Read /proc/stat where that says something by now. */
void rates_read_busy(struct rates *r, uint64_t now_ns);
/* Add the counts of CPU @index to @cpu, and to its @events. */
void rates_add_cpu(struct rates *r, const struct rates_tick *t, uint32_t index,
		   const struct sampler_thread_stats *stats, struct profile_cpu *cpu,
		   struct profile_cpu_event *events);
/*
 * Compute the got rates that have enough samples and busy time behind them; others keep their value
 * for a while, then NAN.
 */
void rates_update(struct rates *r, uint64_t now_ns, uint32_t nr_events, uint32_t nr_cpus);
/*
 * Fill @ev with the state of event @index. @nr_fds: the event of a task has one fd a CPU; each is
 * enabled all the time that the task is, and runs on one CPU only. Else 1.
 */
void rates_fill_event(const struct rates *r, uint32_t index, uint32_t nr_fds,
		      struct profile_event *ev);
/* Read the kernel's limit again. Returns the one before if it fell; else 0. */
uint64_t rates_read_limit(struct rates *r);
/* Take the counters as they are now as the start of the next tick. */
void rates_rebase(struct rates *r, struct counters *counters, uint32_t index, uint32_t nr_events);

#endif
