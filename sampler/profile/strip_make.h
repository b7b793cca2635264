/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Slices and tables -> a heat strip. The amount of each slice is computed once for a query and kept
 * with the slice, so that a strip costs no more than the slices that are new.
 *
 * Runs on: the builder.
 */
#ifndef SAMPLER_PROFILE_STRIP_MAKE_H
#define SAMPLER_PROFILE_STRIP_MAKE_H

#include "sampler/count/slices.h"
#include "sampler/profile/assemble_input.h"
#include "sampler/profile/strip.h"

#define STRIP_NO_EVENT 255

/* Which samples count for a query, by id: 0 not known yet, 1 no, 2 yes. */
struct strip_filter {
	struct strip_query *query;		  /* owned; NULL: none */
	uint32_t seq;				  /* of the query; kept with each computed slice */
	uint8_t *stacks, *places, *tasks, *names; /* names: of tasks */
	uint32_t nr_stacks, nr_places, nr_tasks, nr_names;
	void *made;	   /* the filter of the query, by its matcher; NULL: none */
	uint32_t of;	   /* stacks_serial() of the tables that these ids are of; 0: none */
	uint64_t nr_named; /* places with a name then */
};

void strip_filter_fini(struct strip_filter *f);
/* Set the query, which is taken over. */
void strip_filter_set(struct strip_filter *f, struct strip_query *query);

struct strip_input {
	struct slices *slices;
	const struct assemble_input *tables; /* without counts */
	const uint8_t *events; /* by set of events: the slot of the queried event, or NO_EVENT */
	uint32_t nr_events;
	uint64_t nr_named; /* places */
};

/* Make the strip of the query; malloc'ed. NULL: no query, no slices or no memory. */
struct strip *strip_make(struct strip_filter *f, const struct strip_input *in);

#endif
