/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A profile while it is assembled: indices of the ids that it shows, frames of places.
 *
 * Private to assemble.c, assemble_places.c and assemble_stacks.c. Runs on: the builder.
 */
#ifndef SAMPLER_PROFILE_ASSEMBLE_WORK_H
#define SAMPLER_PROFILE_ASSEMBLE_WORK_H

#include "sampler/profile/assemble_input.h"
#include "symbols/name/name.h"

/* By id, index + 1; 0: none yet. The last entry is for all ids out of range. */
struct assemble_index {
	uint32_t *of;
	uint32_t nr;
};

/* The frames of a place: one function, and the functions inlined there. */
struct assemble_spot {
	uint32_t first, nr; /* in frames; first + 1, 0: none yet */
	bool script;	    /* code of a language */
	bool interpreter;   /* code of an interpreter */
	bool kernel;	    /* code of the kernel */
	uint8_t wait;	    /* the frame of a wait: enum wait_kind */
	bool long_wait;
	struct wait_hint hint;
};

struct assemble_spot_frame {
	uint32_t function; /* index in the profile's functions */
	uint32_t line;	   /* index in its lines, or PROFILE_NO_LINE */
};

struct assemble_work {
	const struct assemble_input *in;
	struct profile *p;
	struct assemble_index stacks, tasks, processes, symbols, files;
	uint32_t max_functions, max_lines;
	struct assemble_spot *spots; /* by id of the place, as an index is */
	uint32_t nr_places;
	struct assemble_spot_frame *frames;
	uint32_t nr_frames, max_frames;
	bool has_scripts; /* a spot of a language */
};

static inline uint32_t *assemble_index_at(const struct assemble_index *index, uint32_t id)
{
	return &index->of[MIN(id, index->nr)];
}

static inline struct assemble_spot *assemble_spot_at(const struct assemble_work *w, uint32_t id)
{
	return &w->spots[MIN(id, w->nr_places)];
}

/* Get the frames of place @id. 0 or -ENOMEM. */
int assemble_spot(struct assemble_work *w, struct assemble_spot *spot, uint32_t id);
/* Fill in the stacks: all in one array of frames. 0 or -ENOMEM. */
int assemble_stacks(struct assemble_work *w);
/* Return the function that the code of a place is in. @ctx: struct assemble_work. */
uint32_t assemble_function_of(void *ctx, uint32_t place);

#endif
