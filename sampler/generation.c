// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Generations of stacks, cells and tasks.
 *
 * A batch uses the tables it found at its start; after a grace period nobody
 * uses the old ones. Their last cells go into the history, whose stacks are
 * then interned anew, and whose tasks get other ids.
 */
#include "sampler/generation.h"

#include <errno.h>
#include <stdlib.h>
#include <urcu-qsbr.h>

#include "sampler/session.h"
#include "symbols/base/intern.h"

#define STACKS_MAX     (1u << 20)
#define MEMORY_MAX     ((size_t)128 << 20)
#define MEMORY_LIVE    ((size_t)32 << 20)
#define MEMORY_PER_CPU ((size_t)1 << 20)
/* Four stacks of 30 frames: a quarter of the room is the window's when new tables take over. */
#define MEMORY_PER_SAMPLE 640
#define TASKS_RENEWED	  (1u << 15)
#define CELLS_START	  (1u << 16)
#define CELLS_MAX	  (1u << 19) /* of one tick */

struct generation_caps generation_caps(uint32_t nr_cpus, double nr_samples)
{
	struct generation_caps caps = { STACKS_MAX, MEMORY_MAX, TASKS_RENEWED };
	double memory = MAX((double)(MEMORY_LIVE + nr_cpus * MEMORY_PER_CPU),
			    MEMORY_PER_SAMPLE * nr_samples);

	if (nr_cpus)
		caps.memory = (size_t)MIN(memory, (double)MEMORY_MAX);
	return caps;
}

int generation_new(const struct generation_caps *caps, struct stacks **stacks,
		   struct counts **counts)
{
	int code = stacks_new(stacks, caps->stacks, caps->memory);

	if (code)
		return code;
	code = counts_new(counts, CELLS_START, CELLS_MAX);
	if (code) {
		stacks_free(*stacks);
		*stacks = NULL; /* the caller frees its members on any failure */
	}
	return code;
}

bool generation_is_due(const struct sampler *s)
{
	return maps_nr_tasks(s->maps) >=
	       MIN(MAX(s->caps.tasks, 2 * s->tasks_kept), maps_max_tasks(s->maps) / 8 * 7);
}

struct move {
	const struct pipeline_tables *from;
	struct pipeline_tables *to;
	uint32_t *tasks; /* by old id the new one; 0: not moved yet */
	uint32_t nr_tasks;
};

/* The same stack in the new table. */
static uint32_t move_stack(void *ctx, uint32_t stack)
{
	const struct move *move = ctx;
	uint32_t nr, id;
	const uint32_t *places = stacks_at(move->from->stacks, stack, &nr);

	if (!places || !nr)
		return STACK_NONE;
	id = stacks_intern(move->to->stacks, places, nr);
	if (id != STACK_NONE)
		return id;
	/* Its room is made a chunk at a time. */
	stacks_grow(move->to->stacks);
	return stacks_intern(move->to->stacks, places, nr);
}

static uint32_t move_task(void *ctx, uint32_t task)
{
	const struct move *move = ctx;

	if (task >= move->nr_tasks)
		return TASK_UNKNOWN;
	if (!move->tasks[task])
		move->tasks[task] = maps_move_task(move->to->maps, move->from->tasks, task);
	return move->tasks[task];
}

/* How many cells may move: their stacks, if they are like the old ones, fill half of the new table.
 */
static uint32_t cells_kept(const struct sampler *s, const struct stacks *old)
{
	size_t each = stacks_used(old) / MAX(stacks_nr(old), 1u) + 1;
	uint32_t keep = (uint32_t)MIN(s->caps.memory / 2 / each, s->caps.stacks / 2);

	/* All of them fit: many cells have few stacks. */
	return stacks_nr(old) <= keep ? UINT32_MAX : keep;
}

/* The history moves to the new tables; half of what there is room for is the window's. */
static int move_history(struct sampler *s, const struct pipeline_tables *old)
{
	struct move move = { .from = old, .to = s->tables, .nr_tasks = tasks_nr(old->tasks) };
	const struct history_ids ids = { move_stack, move_task, &move };
	uint32_t keep = cells_kept(s, old->stacks);
	int code;

	move.tasks = calloc(move.nr_tasks, sizeof(*move.tasks));
	if (!move.tasks) {
		history_reset(s->history);
		return -ENOMEM;
	}
	history_shrink(s->history, keep / 2);
	code = history_remap(s->history, keep / 4, &ids);
	s->tasks_kept = 0;
	for (uint32_t i = 0; i < move.nr_tasks; i++)
		s->tasks_kept += move.tasks[i] != TASK_UNKNOWN;
	free(move.tasks);
	return code;
}

/* New tables, beside those in use; NULL when memory is out. */
static struct pipeline_tables *new_tables(const struct sampler *s)
{
	struct pipeline_tables *tables = malloc(sizeof(*tables));

	if (!tables)
		return NULL;
	*tables = *s->tables;
	if (generation_new(&s->caps, &tables->stacks, &tables->counts)) {
		free(tables);
		return NULL;
	}
	if (!maps_renew_tasks(s->maps)) {
		stacks_free(tables->stacks);
		counts_free(tables->counts);
		free(tables);
		return NULL;
	}
	tables->tasks = maps_tasks(s->maps);
	return tables;
}

int generation_next(struct sampler *s)
{
	struct pipeline_tables *old = s->tables, *tables = new_tables(s);
	struct count *counts = NULL;
	uint32_t nr = 0;
	int code = 0;

	if (!tables)
		return -ENOMEM;
	/* Release: the new tables are there; pairs with sampler_thread_tables(). */
	atomic_store_explicit(&s->shared->tables, tables, memory_order_release);
	synchronize_rcu();
	grace_waited(s->shared);
	s->tables = tables;
	s->stacks = tables->stacks;
	s->counts = tables->counts;
	if (!counts_swap(old->counts, &counts, &nr))
		code = history_add(s->history, counts, nr, 0);
	if (!code)
		code = move_history(s, old);
	else
		history_reset(s->history);
	stacks_free(old->stacks);
	counts_free(old->counts);
	maps_drop_tasks(old->tasks);
	free(old);
	return code;
}
