/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tables that samples are resolved with and counted in.
 *
 * Tables that only grow are replaced whole by a new generation: when the stacks are full, or
 * thousands of tasks have ended, or most stacks or places are of the past, new tables take over,
 * and the entries that the history shows move along. So the memory of a session of days, in a
 * storm of forks, has a fixed cap, and no stack is refused for long.
 *
 * Threads: the builder, a registered and online urcu-qsbr thread; sampler threads see the tables
 * through @shared.
 */
#ifndef SAMPLER_STORE_H
#define SAMPLER_STORE_H

#include "sampler/config.h"
#include "sampler/count/history.h"
#include "sampler/count/count.h"
#include "sampler/pipeline/sampler_thread.h"
#include "sampler/waits/waits.h"
#include "symbols/process/maps.h"
#include "symbols/symbols.h"

/* The size at which tables are replaced. */
struct store_caps {
	uint32_t stacks;
	size_t memory; /* of the stacks */
	/* Ids; replaced at this number, or at twice the kept ones. 0 places: never. */
	uint32_t tasks, places;
	size_t used; /* bytes of stacks, the same; 0: when @memory is full */
	/* Of more tasks, ended ones that are in the total alone are merged (ended.h);
	 * 0: never. */
	uint32_t apart;
};

struct store {
	struct objects *objects;
	struct maps *maps;
	struct places *places;
	struct unwind_rows *rows;
	struct symbols *symbols;
	struct history *history;
	/* The generation in use, published in @shared; the next two are its stacks and counts. */
	struct pipeline_tables *tables;
	struct stacks *stacks;
	struct counts *counts;
	struct sampler_thread_shared *shared; /* borrowed */
	struct store_caps caps;
	struct pairs *branches, *accesses; /* of a recording that has them; else NULL */
	struct waits *waits;		   /* NULL: not measured */
	uint32_t tasks_kept, places_kept;  /* by the last change of generation */
	uint64_t places_ns;		   /* of the last change of places; 0: none */
	size_t used_kept;		   /* bytes of stacks, likewise */
};

/*
 * Return the usual caps for @nr_cpus, enough for a window of @nr_samples, each with another stack;
 * 0 CPUs: a recording, which has all its samples in one tick.
 */
struct store_caps store_choose_caps(uint32_t nr_cpus, double nr_samples);
/* Make empty tables. 0 or -errno with a sentence; store_close() in both cases. */
int store_open(struct store *st, const struct sampler_config *config, struct err *e);
/*
 * Publish the first generation to the sampler threads. @machine: e_machine of a recording, 0: this
 * one's. Samples of @own_pid are not counted; -1: all are. @chain_max: frames that the kernel
 * follows; 0: its default.
 */
void store_publish(struct store *st, struct sampler_thread_shared *shared,
		   const struct sampler_config *config, uint16_t machine, pid_t own_pid,
		   uint32_t chain_max);
void store_close(struct store *st);

/*
 * Keep room in the tables ahead of their writers: each tick, every few thousand samples of a
 * replay, and when the threads report that the stacks fill up. 0, or -ENOMEM: new stacks are not
 * counted.
 */
int store_keep_room(struct store *st);
/* Measure waits on @nr_cpus CPUs (@latency as for waits_new()): make queues, and places of the
 * kinds of waits. 0 or -ENOMEM. */
int store_open_waits(struct store *st, uint32_t nr_cpus, int latency);
/* No longer; no sampler thread runs. */
void store_close_waits(struct store *st);
/* The tables that waits are counted into now. */
struct waits_tables store_waits_tables(const struct store *st);
/* Each tick: have enough tasks ended for a new generation? Are most stacks, places of the past? */
bool store_has_old_tasks(const struct store *st);
bool store_has_old_stacks(const struct store *st);
bool store_has_old_places(const struct store *st);
/*
 * Replace stacks, counts and tasks, and places if they are old. Waits for a grace period. 0, or
 * -ENOMEM: the old ones are kept, or the history had to be emptied.
 */
int store_renew(struct store *st);
/* Make empty tables for one generation. 0, or -ENOMEM: *stacks and *counts are NULL or as before.
 */
int store_new_tables(const struct store_caps *caps, struct stacks **stacks, struct counts **counts);

#endif
