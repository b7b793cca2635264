/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where in one function its samples are. Runs on: the builder.
 */
#ifndef SAMPLER_ANNOTATE_H
#define SAMPLER_ANNOTATE_H

#include <stdatomic.h>

#include "sampler/profile/assemble_input.h"
#include "sampler/profile/profile.h"

struct annotate {
	atomic_uint function; /* to show, or SYMBOL_NONE: set by the UI, relaxed */
	uint32_t in[2];	      /* an inlined function, and the function it is shown in */
	bool waits;	      /* its code was not there at the last tick */
	bool replay;	      /* no loader thread runs beside us */
};

/* Fill p->annotate, if the UI asked for a function; without memory it stays NULL. */
void annotate_fill(struct annotate *an, struct symbols *symbols, struct profile *p,
		   const struct assemble_input *in);

/* Between ticks: is the code there that was missing in the last profile? */
bool annotate_is_due(struct annotate *an, struct symbols *symbols);

/*
 * The points of @in that are in the listing of @a, of @object, added up; of an
 * inlined function those that it has a part in. 0 or -ENOMEM.
 */
int annotate_points(struct profile_annotate *a, const struct assemble_input *in, uint32_t object);

/*
 * Into a->code_of: the function with code of its own that most samples of the
 * inlined a->function are in, or @last, if it has any; unchanged when none has.
 */
void annotate_inside(struct profile_annotate *a, const struct assemble_input *in, uint32_t last);

#endif
