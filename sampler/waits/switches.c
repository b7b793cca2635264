// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The states of one task from its switches, a table of states and steps; the queue of switches from
 * a sampler thread to the builder, lock-free.
 *
 * Pure.
 */
#include "sampler/waits/internal.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

#include "symbols/base/base.h"

/* Added to a state: the record before it was lost. */
#define ODD 0x80

#define F TASK_FOUND
#define R TASK_RUNNING
#define Q TASK_RUNNABLE
#define S TASK_SLEEPING
#define G TASK_GONE

/* The state after a step. */
static const uint8_t next[STEP_NR][TASK_STATE_NR] = {
	/* from NEW, FOUND, RUNNING, RUNNABLE, SLEEPING, GONE */
	[STEP_IN] = { R, R, ODD | R, R, R, G },
	[STEP_OUT] = { S, S, S, ODD | S, ODD | S, G },
	[STEP_PREEMPTED] = { Q, Q, Q, ODD | Q, ODD | Q, G },
	[STEP_WOKEN] = { Q, F, R, Q, Q, G },
	[STEP_BORN] = { Q, Q, ODD | Q, ODD | Q, ODD | Q, Q },
	[STEP_FOUND] = { F, F, R, Q, S, G },
	[STEP_ASLEEP] = { S, S, R, Q, S, G },
	[STEP_EXIT] = { G, G, G, ODD | G, ODD | G, G },
	[STEP_EXEC] = { R, R, R, ODD | R, ODD | R, R },
};

/* Return the time of the current state up to @time_ns. */
static struct task_span span_until(struct task_time *t, enum task_state state, uint64_t time_ns)
{
	struct task_span span = { state, 0 };

	assert(time_ns >= t->since_ns);
	if (state == TASK_RUNNING || state == TASK_RUNNABLE || state == TASK_SLEEPING)
		span.ns = time_ns - t->since_ns;
	t->since_ns = time_ns;
	return span;
}

struct task_span task_time_step(struct task_time *t, enum task_step step, uint64_t time_ns)
{
	enum task_state state = t->state;
	struct task_span span;
	uint8_t to;

	assert(step < STEP_NR && state < TASK_STATE_NR);
	if (time_ns < t->step_ns) {
		t->nr_late++;
		return (struct task_span){ state, 0 };
	}
	t->step_ns = time_ns;
	time_ns = MAX(time_ns, t->since_ns);
	/* The state of the task since it was found. */
	if (state == TASK_FOUND)
		state = step == STEP_IN ? TASK_RUNNABLE : TASK_RUNNING;
	span = span_until(t, state, time_ns);
	to = next[step][t->state];
	t->nr_odd += !!(to & ODD);
	t->state = (enum task_state)(to & ~ODD);
	return span;
}

struct task_span task_time_until(struct task_time *t, uint64_t now_ns)
{
	/* The end of a task remains where it was. */
	if (now_ns < t->since_ns || t->state == TASK_NEW || t->state == TASK_GONE)
		return (struct task_span){ t->state, 0 };
	/* No switch for so long: it has its CPU. */
	if (t->state == TASK_FOUND)
		t->state = TASK_RUNNING;
	return span_until(t, t->state, now_ns);
}

void task_time_begin(struct task_time *t, uint64_t begin_ns)
{
	if (t->state != TASK_NEW && t->state != TASK_GONE)
		t->since_ns = MAX(t->since_ns, begin_ns);
}

/*
 * A ring of notes. Runs on: one sampler thread (writer), the builder (reader).
 * Invariant: tail <= head <= tail + size; notes in between are complete.
 */

struct switch_queue {
	uint32_t size;
	struct switch_note *notes;
	_Alignas(CACHELINE) atomic_uint head; /* release by the writer: the notes before it */
	atomic_ullong done_ns;		      /* release by the writer, after head */
	atomic_ullong nr_full;		      /* relaxed: a count */
	_Alignas(CACHELINE) atomic_uint tail; /* release by the reader: it has read them */
};

struct switch_queue *switch_queue_new(uint32_t nr)
{
	struct switch_queue *q = aligned_alloc(CACHELINE, sizeof(*q));

	assert(nr && !(nr & (nr - 1)));
	if (!q)
		return NULL;
	*q = (struct switch_queue){ .size = nr, .notes = calloc(nr, sizeof(*q->notes)) };
	if (q->notes)
		return q;
	free(q);
	return NULL;
}

void switch_queue_free(struct switch_queue *q)
{
	if (!q)
		return;
	free(q->notes);
	free(q);
}

static uint32_t used(const struct switch_queue *q)
{
	return atomic_load_explicit(&q->head, memory_order_relaxed) -
	       atomic_load_explicit(&q->tail, memory_order_acquire);
}

bool switch_queue_put(struct switch_queue *q, const struct switch_note *note)
{
	uint32_t head = atomic_load_explicit(&q->head, memory_order_relaxed);

	assert(used(q) <= q->size);
	if (used(q) == q->size) {
		atomic_fetch_add_explicit(&q->nr_full, 1, memory_order_relaxed);
		return false;
	}
	q->notes[head & (q->size - 1)] = *note;
	/* Release: the note; pairs with switch_queue_first(). */
	atomic_store_explicit(&q->head, head + 1, memory_order_release);
	return true;
}

void switch_queue_done(struct switch_queue *q, uint64_t time_ns)
{
	/* Release: head; pairs with switch_queue_done_ns(). */
	atomic_store_explicit(&q->done_ns, time_ns, memory_order_release);
}

uint32_t switch_queue_nr(const struct switch_queue *q)
{
	return atomic_load_explicit(&q->head, memory_order_relaxed);
}

bool switch_queue_crowded(const struct switch_queue *q)
{
	return used(q) > q->size / 2;
}

uint64_t switch_queue_done_ns(const struct switch_queue *q)
{
	return atomic_load_explicit(&q->done_ns, memory_order_acquire);
}

const struct switch_note *switch_queue_first(const struct switch_queue *q)
{
	uint32_t tail = atomic_load_explicit(&q->tail, memory_order_relaxed);

	assert(q->size && !(q->size & (q->size - 1)));
	/* Acquire: pairs with switch_queue_put(). */
	if (tail == atomic_load_explicit(&q->head, memory_order_acquire))
		return NULL;
	return &q->notes[tail & (q->size - 1)];
}

void switch_queue_drop(struct switch_queue *q)
{
	uint32_t tail = atomic_load_explicit(&q->tail, memory_order_relaxed);

	assert(used(q));
	/* Release: the note was read; pairs with the acquire in used(). */
	atomic_store_explicit(&q->tail, tail + 1, memory_order_release);
}

uint64_t switch_queue_take_full(struct switch_queue *q)
{
	return atomic_exchange_explicit(&q->nr_full, 0, memory_order_relaxed);
}
