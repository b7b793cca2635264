/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of a profile, filled from the tables and the threads of a session.
 *
 * Runs on: the builder, online for urcu-qsbr.
 */
#ifndef SAMPLER_TICK_FILL_H
#define SAMPLER_TICK_FILL_H

#include "sampler/hot/hot.h"
#include "sampler/profile/assemble.h"

struct sampler;

/* Sums of one tick over all CPUs. */
struct tick_sums {
	struct pipeline_stats all;
	uint64_t lost;
};

/* Take the stats of @epoch of each CPU, and add them to @sums. */
void tick_fill_cpus(struct sampler *s, struct profile *p, unsigned int epoch,
		    struct tick_sums *sums, uint64_t now_ns);
/* Fill the account of all samples: taken = sum of the outcomes. Lost samples are counted here. */
void tick_fill_account(struct sampler *s, struct profile *p, const struct tick_sums *sums);
/* Fill the events with their rates. */
void tick_fill_events(struct sampler *s, struct profile *p);
/* Fill the fields that do not depend on the counts. */
void tick_fill_state(struct sampler *s, struct profile *p, uint64_t now_ns);
void tick_fill_unwind(struct profile *p, const struct unwind_stats *st);
/* Fill the CPU time and memory of proftop, by kind of thread. */
void tick_fill_self(struct sampler *s, struct profile *p);
/* Return the tables of the session, without counts. */
struct assemble_input tick_fill_tables(const struct sampler *s);
/* Fill stacks, functions and tasks from @counts, which are freed. 0 or -ENOMEM. */
int tick_fill_from(struct sampler *s, struct profile *p, struct history_cell *counts, uint32_t nr);
/* Fill stacks, functions and tasks from the counts of the window. 0 or -ENOMEM. */
int tick_fill_counts(struct sampler *s, struct profile *p);

#endif
