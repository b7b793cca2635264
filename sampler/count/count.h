/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tables that sampler threads count into: stacks and counts, shared by all threads, insert-only
 * and lock-free. stack = sequence of places, innermost first -> dense u32 (intern.h). count =
 * (stack, task, event, slice of its time) -> samples and weight. Each tick the builder swaps the
 * counts for an empty table; after a grace period of urcu-qsbr the old table has no writer, and has
 * the increments of that tick. Threads: *_add and stacks_intern from registered urcu-qsbr threads;
 * everything else from the builder.
 */
#ifndef SAMPLER_COUNT_TABLES_H
#define SAMPLER_COUNT_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STACK_NONE	  UINT32_MAX
#define STACKS_PLACES_MAX 1024 /* of one stack; outer ones are cut off */

struct stacks;

/* Make a table that takes @max_memory at most, or the minimum of an empty one (under 1 MiB). */
int stacks_new(struct stacks **out, uint32_t max_stacks, size_t max_memory);
void stacks_free(struct stacks *s);
/* Start with a small table, before the first stack, if stacks_crowded() is checked before each: as
 * places_begin_small(). */
int stacks_begin_small(struct stacks *s);
/* Return the id of the stack, inserted if new; STACK_NONE: table or memory is full. */
uint32_t stacks_intern(struct stacks *s, const uint32_t *places, uint32_t nr);
/* Return the places of a stack, borrowed for the life of the table; NULL while it is inserted. */
const uint32_t *stacks_at(const struct stacks *s, uint32_t id, uint32_t *nr);
uint32_t stacks_nr(const struct stacks *s);
/* Return a number, from 1, that no other table of the process has; its address another may get. */
uint32_t stacks_serial(const struct stacks *s);
size_t stacks_memory(const struct stacks *s);
/* Return the bytes filled by stacks. */
size_t stacks_used(const struct stacks *s);
/*
 * Grow ahead of the writers: each tick, and when crowded. Builder. True while the reserve is at
 * least the use since the last call.
 */
bool stacks_grow(struct stacks *s);
/* Report whether stacks_grow() is needed before the next tick. Any thread that may add. */
bool stacks_crowded(const struct stacks *s);

struct counts; /* the shared, swapped table */

struct count {
	uint32_t stack;
	uint32_t task;
	uint32_t event; /* slot, < 256 */
	uint64_t count;
	uint64_t weight;
	uint32_t slice; /* of counts_swap(): tables_slice() of its time; elsewhere unused */
};

#define COUNTS_TASKS_MAX  (1u << 24) /* task ids in a count */
#define COUNTS_EVENTS_MAX (1u << 8)

/* The table is of smaller numbers: what it cannot name is not counted. */
#define COUNTS_TABLE_STACKS (1u << 22)
#define COUNTS_TABLE_TASKS  (1u << 20)
#define COUNTS_TABLE_EVENTS (1u << 4)
/* Slices of time, numbered from 0 again after seven hours: longer than a sample is on its way. */
#define COUNTS_SLICE_NS 100000000ULL
#define COUNTS_SLICES	(1u << 18)

/* Return the number of the slice of @time_ns. */
static inline uint32_t tables_slice(uint64_t time_ns)
{
	return (uint32_t)(time_ns / COUNTS_SLICE_NS) & (COUNTS_SLICES - 1);
}

/* Return the key of a count in one word; never 0, which is an empty slot. */
static inline uint64_t tables_count_key(uint32_t stack, uint32_t task, uint32_t event)
{
	return ((uint64_t)stack | (uint64_t)task << 32 | (uint64_t)event << 56) + 1;
}

static inline uint32_t tables_count_key_stack(uint64_t key)
{
	return (uint32_t)(key - 1);
}

static inline uint32_t tables_count_key_task(uint64_t key)
{
	return (uint32_t)((key - 1) >> 32) & (COUNTS_TASKS_MAX - 1);
}

static inline uint32_t tables_count_key_event(uint64_t key)
{
	return (uint32_t)((key - 1) >> 56);
}

int counts_new(struct counts **out, uint32_t nr_slots, uint32_t max_slots);
void counts_free(struct counts *c);
/*
 * Add a sample of the slice of its time: tables_slice(), or 0 where all that is swapped is of one
 * slice. False: the table is full (the sample is dropped), or the stack is STACK_NONE, or stack,
 * task or event exceed the limits of the table.
 */
bool counts_add(struct counts *c, uint32_t stack, uint32_t task, uint32_t event, uint64_t weight,
		uint32_t slice);
/*
 * Swap in an empty table, wait until the old one has no writer, and return its content: malloc'ed
 * array of *nr counts (never NULL). The new table holds four times the counts of this tick,
 * and shrinks again later. 0 or -ENOMEM (nothing swapped). Caller is a registered urcu-qsbr thread.
 */
int counts_swap(struct counts *c, struct count **out, uint32_t *nr);
/* Report whether the table is over half full and may grow. Any thread that may add. */
bool counts_crowded(const struct counts *c);
/*
 * Swap in a larger table during a tick. Earlier counts are kept for the tick (a key may then be in
 * its list more than once). False: at the limit, or out of memory. As counts_swap().
 */
bool counts_grow(struct counts *c);

#endif
