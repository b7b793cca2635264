/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts and tables that a profile is made from.
 *
 * Borrowed during assemble(). Runs on: the builder.
 */
#ifndef SAMPLER_PROFILE_ASSEMBLE_INPUT_H
#define SAMPLER_PROFILE_ASSEMBLE_INPUT_H

#include "sampler/count/history.h"
#include "sampler/count/count.h"
#include "sampler/profile/profile.h"
#include "symbols/name/places.h"
#include "symbols/image/image.h"
#include "symbols/process/details.h"
#include "symbols/process/maps.h"
#include "symbols/symbols.h"

/* Set in the id of a function that is a place; the rest is the place's id. */
#define ASSEMBLE_PLACE (1u << 31)

/* Elements of the last profile, that the next one starts with: arrays that grow leave holes. */
struct assemble_sizes {
	uint32_t functions, lines, frames; /* frames of places */
};

struct assemble_input { /* all borrowed */
	const struct history_cell *counts;
	uint32_t nr_counts;
	const struct stacks *stacks;
	const struct places *places;
	const struct symbols *symbols;
	const struct maps *maps;
	const struct objects *objects;
	enum profile_frames shown_frames;
	uint32_t wait;				 /* the object of the kinds of waits */
	const uint32_t *wait_places;		 /* by enum wait_kind; NULL: no waits */
	const struct pairs *branches, *accesses; /* NULL: none */
	struct details *details;		 /* NULL: a recording */
	bool kept;				 /* names of --keep, without objects */
	struct assemble_sizes *sizes;		 /* NULL: not known */
};

#endif
