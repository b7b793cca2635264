/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The samples of one function by address. Runs on: the builder. */
#ifndef SAMPLER_ANNOTATE_H
#define SAMPLER_ANNOTATE_H

#include <stdatomic.h>

#include "sampler/profile/assemble_input.h"
#include "sampler/profile/profile.h"
#include "symbols/code/code.h"

struct annotate {
	atomic_uint function; /* to show, or SYMBOL_NONE: set by the UI, relaxed */
	uint32_t in[2];	      /* an inlined function, and the function it is shown in */
	/* A place to show, the table that its id is of, and its function then. */
	struct annotate_place {
		uint32_t function, serial, symbol;
	} place;
	struct listing_instance at; /* of a function of many processes: the one that is shown */
	bool waits;		    /* its code was not there at the last tick */
	bool replay;		    /* there is no loader thread */
};

/* Fill p->annotate, if the UI requested a function; NULL without memory. */
void annotate_fill(struct annotate *an, struct symbols *symbols, struct profile *p,
		   const struct assemble_input *in);

/* Between ticks: report whether code that was missing in the last profile is read. */
bool annotate_is_due(struct annotate *an, struct symbols *symbols);

#endif
