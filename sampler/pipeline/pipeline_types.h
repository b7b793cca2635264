/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The input and the result of finding the frames of a sample.
 */
#ifndef SAMPLER_PIPELINE_PIPELINE_TYPES_H
#define SAMPLER_PIPELINE_PIPELINE_TYPES_H

#include <sys/types.h>

#include "sampler/profile/profile.h"
#include "sampler/ring/ring.h"
#include "sampler/count/count.h"
#include "symbols/cage/cage.h"
#include "symbols/cage/cage_memory.h"
#include "symbols/name/places.h"
#include "symbols/name/name.h"
#include "symbols/symbols.h"
#include "unwind/unwind.h"

/* Default of kernel.perf_event_max_stack. */
#define PIPELINE_CHAIN_MAX 127

/* The tables that samples go into. Everything is borrowed and shared by all threads. */
struct pipeline_tables {
	struct objects *objects;
	struct maps *maps;
	struct tasks *tasks; /* the ids of counts are of this table */
	struct places *places;
	struct stacks *stacks;
	struct counts *counts;
	struct unwind_config unwind; /* its rows are shared by all threads */
	pid_t own_pid; /* pid of samples that are not counted (and all of the cage); -1: none */
	bool recorded; /* no process is read later: unknown ones are [unknown] */
	uint32_t chain_max;	   /* frames that the kernel follows; 0: PIPELINE_CHAIN_MAX */
	const struct codes *codes; /* functions of interpreters */
	uint32_t script;	   /* the object of all code of interpreters (symbols_script()) */
	uint32_t languages;	   /* interpreted languages to show: lang_bit() */
	uint32_t wait;		   /* the object of the kinds of waits (symbols_wait()) */
	/* By enum wait_kind: the place of its frame; PLACE_NONE: not made. */
	uint32_t wait_places[WAIT_NR];
	uint32_t generation; /* of stacks, counts and tasks; places are replaced with some */
};

/* Return whether samples of @pid are of proftop: of @own_pid, its cage, or its readers. */
static inline bool pipeline_is_own(pid_t own_pid, pid_t pid)
{
	return pid == own_pid || (own_pid >= 0 && (cage_has(pid) || cage_memory_has(pid)));
}

/* The result of pipeline_resolve(); borrowed until the next sample. */
struct pipeline_stack {
	const uint32_t *places; /* innermost first, kernel before user */
	const uint64_t *ips;	/* raw addresses, one for each place */
	uint32_t nr, nr_kernel; /* at most STACKS_PLACES_MAX */
	uint32_t task;
	enum unwind_stop stop;
	uint32_t nr_guessed; /* of the user frames */
	enum pipeline_lang {
		PIPELINE_LANG_NO, /* no interpreter */
		PIPELINE_LANG_CERTAIN,
		PIPELINE_LANG_GUESSED,
		PIPELINE_LANG_NONE, /* an interpreter, but no frames of its language: see lang_none
				     */
	} lang;
	enum lang_none lang_none;
	uint32_t doubts; /* of guessed ones: enum merge_doubt */
};

/* The places of both ends of a branch. */
struct pipeline_branch {
	uint32_t from, to; /* PLACE_NONE: table full */
};

#endif
