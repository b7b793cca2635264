/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The events of a live session, and the threads that read their rings.
 *
 * Threads: set-up, then the builder, offline for urcu-qsbr where threads are ended.
 */
#ifndef SAMPLER_LIVE_H
#define SAMPLER_LIVE_H

#include "sampler/config.h"
#include "sampler/event/counters.h"
#include "sampler/pipeline/sampler_thread.h"
#include "sampler/pipeline/sideband.h"
#include "sampler/langreaders.h"
#include "sampler/target.h"

struct live {
	struct counters *counters; /* NULL: a recording is replayed */
	struct sideband *sideband;
	struct sampler_thread_shared *shared; /* as the threads see it */
	struct sampler_thread **threads;
	uint32_t nr_threads;
	struct langreaders readers;
	/* When the events were opened, and when the previous ones were closed; 0: none before. */
	uint64_t opened_ns, alone_ns;
	uint64_t ended_ns;		  /* CPU time of threads that ended */
	struct unwind_stats ended_unwind; /* their statistics */
	uint64_t looked_ns;		  /* when the online CPUs were last read */
	uint8_t *online;		  /* by CPU number, at that time */
};

/*
 * Open the events of @config on @t, on its CPUs or all that are online, all of them off. 0 or
 * -errno with a sentence.
 */
int live_open_counters(const struct sampler_config *config, const struct target *t,
		       struct counters **out, struct err *e);
#define LIVE_CPUS_MAX 65536 /* numbers of CPUs in the map below */
/* Return a map of the online CPUs, by number; malloc'ed. */
uint8_t *live_online(void);
/* Start a thread for each CPU. 0, or -errno with a sentence: some may run. */
int live_start_threads(struct live *l, struct err *e);
/* End the threads when their rings are empty; their counts are kept. */
void live_finish_threads(struct live *l);
/* End and free the threads. */
void live_stop_threads(struct live *l);
/* Add up how all threads unwound, since the start. */
void live_unwind_stats(const struct live *l, struct unwind_stats *out);
/* Sum of the CPU time of all threads since the start. */
uint64_t live_cpu_ns(const struct live *l);
/* Close events and side-band, free everything but the readers' part; the threads have ended. */
void live_close(struct live *l);

#endif
