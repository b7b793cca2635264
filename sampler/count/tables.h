/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the sampler threads count into: stacks and cells, shared by all of
 * them, insert-only and lock-free.
 *
 * stack = sequence of places, innermost first -> dense u32 (intern.h).
 * cell = (stack, task, event) -> count and weight. Cells are swapped for an
 * empty table each tick by the builder: what it gets is that tick's
 * increments, and nobody writes to it any more (a grace period of urcu-qsbr
 * lies between).
 *
 * Threads: *_add and stacks_intern from registered urcu-qsbr threads;
 * everything else from the builder.
 */
#ifndef SAMPLER_COUNT_TABLES_H
#define SAMPLER_COUNT_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STACK_NONE	  UINT32_MAX
#define STACKS_PLACES_MAX 1024 /* of one stack; what lies further out is cut off */

struct stacks;

/* @max_memory is kept to, but for what an empty table needs (under 1 MiB). */
int stacks_new(struct stacks **out, uint32_t max_stacks, size_t max_memory);
void stacks_free(struct stacks *s);
/* Before the first stack, where stacks_crowded() is asked before each: as places_begin_small(). */
int stacks_begin_small(struct stacks *s);
/* The id of the stack, inserted if new; STACK_NONE when the table or its memory is full. */
uint32_t stacks_intern(struct stacks *s, const uint32_t *places, uint32_t nr);
/* Borrowed for the life of the table; NULL while under construction. */
const uint32_t *stacks_at(const struct stacks *s, uint32_t id, uint32_t *nr);
uint32_t stacks_nr(const struct stacks *s);
size_t stacks_memory(const struct stacks *s);
/* Bytes that its stacks fill. */
size_t stacks_used(const struct stacks *s);
/*
 * Builder, once a tick and when they are crowded: room ahead of the writers. True while there is
 * room for as much again as came since the last call.
 */
bool stacks_grow(struct stacks *s);
/* Any thread that may add: is it time for stacks_grow(), before the next tick even? */
bool stacks_crowded(const struct stacks *s);

struct counts; /* the shared, swapped table */

struct count {
	uint32_t stack;
	uint32_t task;
	uint32_t event; /* slot, < 256 */
	uint64_t count;
	uint64_t weight;
};

#define COUNTS_TASKS_MAX  (1u << 24) /* task ids that a cell can name */
#define COUNTS_EVENTS_MAX (1u << 8)

/* A cell's identity in one word; never 0, so that 0 is an empty slot. */
static inline uint64_t count_key(uint32_t stack, uint32_t task, uint32_t event)
{
	return ((uint64_t)stack | (uint64_t)task << 32 | (uint64_t)event << 56) + 1;
}

static inline uint32_t count_key_stack(uint64_t key)
{
	return (uint32_t)(key - 1);
}

static inline uint32_t count_key_task(uint64_t key)
{
	return (uint32_t)((key - 1) >> 32) & (COUNTS_TASKS_MAX - 1);
}

static inline uint32_t count_key_event(uint64_t key)
{
	return (uint32_t)((key - 1) >> 56);
}

int counts_new(struct counts **out, uint32_t nr_slots, uint32_t max_slots);
void counts_free(struct counts *c);
/*
 * False when the table is full (count the sample as dropped), and for what a
 * cell cannot name: STACK_NONE, a task or event beyond the limits above.
 */
bool counts_add(struct counts *c, uint32_t stack, uint32_t task, uint32_t event, uint64_t weight);
/*
 * Put an empty table in place, wait until no writer is in the old one, and
 * give the content of the tick: malloc'ed array of *nr cells (never NULL). The
 * new table has room for four times as many, and is smaller again when that is
 * over. 0 or -ENOMEM (nothing swapped). Caller is a registered urcu-qsbr thread.
 */
int counts_swap(struct counts *c, struct count **out, uint32_t *nr);
/* Any thread that may add: over half full, and a larger table can be had. */
bool counts_crowded(const struct counts *c);
/*
 * In the middle of a tick: a larger table in place. What was counted so far stays with the tick (a
 * cell may then be in its list more than once). False: at the limit, or no memory. As
 * counts_swap().
 */
bool counts_grow(struct counts *c);

#endif
