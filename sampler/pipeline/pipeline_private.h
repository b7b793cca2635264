/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state of a pipeline. For pipeline*.c only; one thread.
 */
#ifndef SAMPLER_PIPELINE_PIPELINE_PRIVATE_H
#define SAMPLER_PIPELINE_PIPELINE_PRIVATE_H

#include "sampler/reader/reader.h"
#include "sampler/pipeline/pipeline_types.h"
#include "unwind/unwind.h"

/* Kernel frames kept; the kernel's own limit is 127 by default. */
#define PIPELINE_KERNEL_MAX 256
#define PIPELINE_FRAMES_MAX (PIPELINE_KERNEL_MAX + MERGE_FRAMES_MAX)
_Static_assert(PIPELINE_FRAMES_MAX <= STACKS_PLACES_MAX, "a stack is interned whole");

/* Recent kernel places: kernel addresses are the same in all processes. */
#define KERNEL_RECENT 2048 /* a power of two */

struct kernel_recent {
	uint64_t ip; /* 0: empty */
	uint32_t place;
};

struct pipeline {
	const struct pipeline_tables *tables;
	struct unwinder *unwinder;
	bool asked;		      /* the loader has a request */
	struct langreader *reader;    /* NULL: this CPU has none */
	const struct lang_slot *slot; /* instead of the reader's; NULL: none */

	/* The current sample. */
	struct unwind_result user;
	struct merge_result merged;
	enum pipeline_lang lang;
	enum lang_none lang_none;
	enum lang_kind lang_kind;
	const struct lang_frames *recorded; /* in a replay, of the next sample; NULL: none */
	enum unwind_stop stop;
	uint32_t task;
	uint32_t counted; /* the stack of the last sample; STACK_NONE: it was not counted */
	uint32_t slice;	  /* of its time; 0 in a replay, which swaps the counts of each slice */
	bool nameless;	  /* the task table is full */
	struct maps_hit hit;
	uint32_t nr, nr_kernel;
	uint32_t frames[PIPELINE_FRAMES_MAX];
	uint32_t wait[PIPELINE_FRAMES_MAX]; /* the same below the frame of a wait */
	uint64_t ips[PIPELINE_FRAMES_MAX];  /* raw addresses; of unwound frames by pipeline_stack()
					       only */

	struct kernel_recent kernel[KERNEL_RECENT];
};

#endif
