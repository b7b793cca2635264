/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Generations of stacks, cells and tasks: full is a normal state. When stacks
 * have no more room, or tasks have come and gone by the thousand, new tables
 * take over, and what the history still shows moves with it; everything else is
 * forgotten. So a profiler that stays open for days, in a storm of forks, has a
 * fixed cap of memory, and no stack is refused for long.
 *
 * Runs on: the builder, a registered and online urcu-qsbr thread.
 */
#ifndef SAMPLER_GENERATION_H
#define SAMPLER_GENERATION_H

#include "sampler/count/tables.h"

struct sampler;

struct generation_caps {
	uint32_t stacks;
	size_t memory;	/* of the stacks */
	uint32_t tasks; /* ids; given anew after as many, or twice those kept */
};

/*
 * What is usual for @nr_cpus and enough for a window of @nr_samples, each on
 * another stack; no CPUs: a recording, which has all its samples at once.
 */
struct generation_caps generation_caps(uint32_t nr_cpus, double nr_samples);
/* Make empty tables. 0, or -ENOMEM: *stacks and *counts are NULL or as before. */
int generation_new(const struct generation_caps *caps, struct stacks **stacks,
		   struct counts **counts);
/* Each tick: is it time for the next one, because of the tasks? */
bool generation_is_due(const struct sampler *s);
/*
 * Put new tables in place of the ones in use. Waits for a grace period. 0 or
 * -ENOMEM: the old ones stay, or the history had to be emptied.
 */
int generation_next(struct sampler *s);

#endif
