// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A table of states and steps. Pure.
 */
#include "sampler/waits/task_time.h"

#include <assert.h>
#include <stdbool.h>

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
