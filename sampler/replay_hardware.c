// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Branches and accesses to memory of the samples of a recording. Runs on: the thread of the replay.
 */
#include "sampler/replay_hardware.h"

#include <assert.h>
#include <linux/perf_event.h>

#include "sampler/count/pairs.h"

void replay_hardware_places(struct store *st, struct pipeline *p, const struct record_sample *s,
			    struct pipeline_branch at[static REPLAY_BRANCHES_MAX])
{
	assert(s->nr_branches <= REPLAY_BRANCHES_MAX);
	for (uint32_t i = 0; i < s->nr_branches; i++)
		at[i] = pipeline_branch(p, s, i);
	if (pipeline_take_asked(p))
		symbols_run_objects(st->symbols);
}

void replay_hardware_branches(const struct store *st, struct frames *frames,
			      const struct record_sample *s, const struct pipeline_branch *at,
			      struct sampler_branch *out)
{
	for (uint32_t i = 0; i < s->nr_branches; i++) {
		out[i].branch = record_branch(s, i);
		out[i].from = frames_of(frames, st, at[i].from, out[i].branch.from);
		out[i].to = frames_of(frames, st, at[i].to, out[i].branch.to);
	}
}

/* Calls that have not returned are callers, not branches to count. */
static void count_branches(struct store *st, struct pipeline *p, const struct record_sample *s)
{
	struct pipeline_branch at[REPLAY_BRANCHES_MAX];

	if (!s->nr_branches || s->lbr_calls)
		return;
	if (!st->branches)
		st->branches = pairs_new();
	replay_hardware_places(st, p, s, at);
	for (uint32_t i = 0; i < s->nr_branches && st->branches; i++) {
		const struct record_branch b = record_branch(s, i);
		const uint64_t figures[3] = { b.mispredicted, b.predicted, b.cycles };

		if (at[i].from != PLACE_NONE && at[i].to != PLACE_NONE)
			pairs_add(st->branches, at[i].from, at[i].to, figures);
	}
}

/* Return whether the sample is of an access to memory: others have "not available" there. */
static bool is_access(const struct record_memory *m)
{
	const union perf_mem_data_src d = { .val = m->data_src };

	return m->fields & PERF_SAMPLE_DATA_SRC && d.mem_op & ~(uint64_t)PERF_MEM_OP_NA;
}

static void count_access(struct store *st, struct pipeline *p, const struct record_sample *s)
{
	const uint64_t figures[3] = { s->memory.weight, 0, 0 };
	struct pipeline_stack stack;
	struct access_kind kind;

	if (!is_access(&s->memory))
		return;
	kind = access_kind(s->memory.data_src);
	if (!st->accesses)
		st->accesses = pairs_new();
	pipeline_stack(p, &stack);
	if (st->accesses && stack.places[0] != PLACE_NONE)
		pairs_add(st->accesses, stack.places[0], profile_access_pack(&kind), figures);
}

void replay_hardware_count(struct store *st, struct pipeline *p, const struct record_sample *s)
{
	count_branches(st, p, s);
	count_access(st, p, s);
}
