// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Generations of stacks and cells.
 *
 * A batch uses the tables it found at its start; after a grace period nobody
 * uses the old ones. Their last cells go into the history, whose stacks are
 * then interned anew.
 */
#include "sampler/generation.h"

#include <errno.h>
#include <stdlib.h>
#include <urcu-qsbr.h>

#include "sampler/session.h"
#include "symbols/intern.h"

#define STACKS_MAX    (1u << 20)
#define STACKS_MEMORY ((size_t)128 << 20)
#define CELLS_START   (1u << 16)
#define CELLS_MAX     (1u << 19)	/* of one tick */
/* What the window moves on: it must not fill the new tables at once. */
#define MOVED_MAX     (STACKS_MAX / 4)

int generation_new(struct stacks **stacks, struct cells **cells)
{
	int code = stacks_new(stacks, STACKS_MAX, STACKS_MEMORY);

	if (code)
		return code;
	code = cells_new(cells, CELLS_START, CELLS_MAX);
	if (code)
		stacks_free(*stacks);
	return code;
}

struct move {
	const struct stacks *from;
	struct stacks *to;
};

/* The same stack in the new table. */
static uint32_t move_stack(void *ctx, uint32_t stack)
{
	const struct move *move = ctx;
	uint32_t nr, id;
	const uint32_t *places = stacks_at(move->from, stack, &nr);

	if (!places || !nr)
		return STACK_NONE;
	id = stacks_intern(move->to, places, nr);
	if (id != STACK_NONE)
		return id;
	/* Its room is made a chunk at a time. */
	stacks_grow(move->to);
	return stacks_intern(move->to, places, nr);
}

int generation_next(struct sampler *s)
{
	struct pipeline_tables *tables = malloc(sizeof(*tables)), *old = s->tables;
	struct move move = { .from = old->stacks };
	struct cell *cells = NULL;
	uint32_t nr = 0;
	int code;

	if (!tables)
		return -ENOMEM;
	*tables = *old;
	code = generation_new(&tables->stacks, &tables->cells);
	if (code) {
		free(tables);
		return code;
	}
	/* Release: the new tables are there; pairs with thread_tables(). */
	atomic_store_explicit(&s->shared->tables, tables, memory_order_release);
	synchronize_rcu();
	grace_waited(s->shared);
	if (!cells_swap(old->cells, &cells, &nr))
		code = history_add(s->history, cells, nr, 0);
	move.to = tables->stacks;
	history_shrink(s->history, MOVED_MAX);
	if (!code)
		code = history_remap(s->history, move_stack, &move);
	s->tables = tables;
	s->stacks = tables->stacks;
	s->cells = tables->cells;
	stacks_free(old->stacks);
	cells_free(old->cells);
	free(old);
	return code;
}
