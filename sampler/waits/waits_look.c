// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Waits without a sample of their switch: kinds and stacks found by looking at the tasks.
 *
 * Runs on: the builder.
 */
#include "sampler/waits/waits.h"
#include "sampler/waits/waits_private.h"
#include "symbols/base/array.h"

/* Add a look at a task that sleeps. */
static void add_look(struct waits *w, struct wait_task *task, uint32_t stack)
{
	if (!array_reserve(&w->spans, &w->room_spans, w->nr_spans + 1ULL))
		return;
	task->last[CLASS_SLEEP] = stack;
	/* By time, not by wait: each look weighs the same. */
	w->spans[w->nr_spans++] = (struct span){
		.task = (uint32_t)(task - w->tasks),
		.stack = stack,
		.period = 1,
		.class = CLASS_SLEEP,
		.is_long = waits_is_long(task),
		.ns = 1,
	};
	task->weighted[CLASS_SLEEP] += 1;
}

void waits_look(struct waits *w, const struct waits_tables *t, enum wait_kind (*kind_of)(pid_t tid),
		uint32_t max)
{
	for (uint32_t i = 0; i < w->nr_tasks && max; i++) {
		struct wait_task *task = &w->tasks[i];
		enum wait_kind kind;

		if (task->time.state != TASK_SLEEPING || task->stack != STACK_NONE)
			continue;
		max--;
		kind = kind_of(task->tid);
		if (kind)
			add_look(w, task, waits_stack_of_kind(w, t, STACK_NONE, kind));
	}
}

uint32_t waits_sleepers(struct waits *w, bool all, struct waits_sleeper *out, uint32_t max)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < w->nr_tasks && nr < max; i++) {
		struct wait_task *task = &w->tasks[w->next_look++ % w->nr_tasks];
		bool before = task->found && task->nr_looks < LOOKS_MAX;

		if (task->time.state != TASK_SLEEPING ||
		    !(before || (all && task->stack == STACK_NONE)))
			continue;
		task->nr_looks += before;
		out[nr++] = (struct waits_sleeper){ task->pid, task->tid, before };
	}
	if (w->nr_tasks)
		w->next_look %= w->nr_tasks;
	return nr;
}

void waits_slept(struct waits *w, const struct waits_sleeper *s, uint32_t stack, uint64_t time_ns)
{
	struct wait_task *task = waits_find_task(w, s->tid);

	if (!task || stack == STACK_NONE)
		return;
	if (!s->before) {
		add_look(w, task, stack);
		return;
	}
	if (!task->found || task->nr_looks >= LOOKS_MAX || task->time.state != TASK_SLEEPING ||
	    time_ns < task->began_ns)
		return;
	task->stack = task->last[CLASS_SLEEP] = stack;
	task->period = 1;
	task->nr_looks = LOOKS_MAX;
}

void waits_guess_kinds(struct waits *w, const struct waits_tables *t,
		       enum wait_kind (*kind_of)(pid_t tid), uint32_t max)
{
	for (uint32_t i = 0; i < w->nr_tasks && max; i++) {
		struct wait_task *task = &w->tasks[i];
		enum wait_kind kind;

		if (!task->ns[CLASS_SLEEP] || task->weighted[CLASS_SLEEP] > 0 ||
		    task->last[CLASS_SLEEP] != STACK_NONE)
			continue;
		max--;
		kind = kind_of(task->tid);
		if (kind)
			task->last[CLASS_SLEEP] = waits_stack_of_kind(w, t, STACK_NONE, kind);
	}
}
