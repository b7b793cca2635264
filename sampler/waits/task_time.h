/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The time of one task by state, from the records of its switches. Pure; one owner.
 *
 * Steps are in order of time; a step before the last one is ignored. A step before a time that was
 * returned already, after task_time_until(), counts from that time on. Every nanosecond from the
 * first step on belongs to exactly one state, so the states add up to the life of the task.
 */
#ifndef SAMPLER_WAITS_TASK_TIME_H
#define SAMPLER_WAITS_TASK_TIME_H

#include <stdint.h>

enum task_state {
	TASK_NEW,      /* not seen yet */
	TASK_FOUND,    /* in /proc: running or runnable; the next step shows which */
	TASK_RUNNING,  /* on a CPU */
	TASK_RUNNABLE, /* preempted, woken, or not started yet: in a run queue */
	TASK_SLEEPING,
	TASK_GONE, /* exited */
	TASK_STATE_NR,
};

enum task_step {
	STEP_IN,	/* switched in */
	STEP_OUT,	/* switched out to sleep */
	STEP_PREEMPTED, /* switched out while runnable */
	STEP_WOKEN,
	STEP_BORN,   /* forked: waits for its first run */
	STEP_FOUND,  /* in /proc, state R */
	STEP_ASLEEP, /* in /proc, any other state */
	STEP_EXIT,
	STEP_EXEC, /* another program, by the first thread or one that has its id now */
	STEP_NR,
	/* No steps: a sample of a running task; of a recording, the stack of the next switch. */
	STEP_SAMPLE = STEP_NR,
	STEP_STACK,
};

struct task_time {
	uint64_t since_ns; /* begin of the state, or of its part that was not returned yet */
	uint64_t step_ns;  /* of the last step */
	enum task_state state;
	uint32_t nr_odd;  /* steps that do not follow the state: records were lost */
	uint32_t nr_late; /* ignored steps */
};

/* Time spent in a state. */
struct task_span {
	enum task_state state; /* RUNNING, RUNNABLE or SLEEPING; else @ns is 0 */
	uint64_t ns;
};

/* Times that the kernel has counted since the start of a task. */
struct waits_times {
	uint64_t running_ns, queue_ns;
};

/* Take a step; return the state that ends and how long it lasted since the last call. */
struct task_span task_time_step(struct task_time *t, enum task_step step, uint64_t time_ns);
/* Return the current state and its time up to @now_ns, which counts as returned. */
struct task_span task_time_until(struct task_time *t, uint64_t now_ns);
/* Let all time before @begin_ns count as returned. The next step may be before it. */
void task_time_begin(struct task_time *t, uint64_t begin_ns);

#endif
