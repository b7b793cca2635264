// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Waits without a sample of their switch: kinds and stacks found by looking at the tasks.
 *
 * Runs on: the builder.
 */
#include "sampler/waits/waits.h"
#include "sampler/waits/waits_private.h"
#include "symbols/base/array.h"

/* A task without a switch for so long is checked. */
#define STALE_NS 1000000000ULL

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
		struct wait_task *task = &w->tasks[w->next_kind++ % w->nr_tasks];
		enum wait_kind kind;

		if (task->time.state != TASK_SLEEPING || task->stack != STACK_NONE)
			continue;
		max--;
		kind = kind_of(task->tid);
		if (kind)
			add_look(w, task, waits_stack_of_kind(w, t, STACK_NONE, kind));
	}
	if (w->nr_tasks)
		w->next_kind %= w->nr_tasks;
}

void waits_bar(struct waits *w, pid_t pid)
{
	w->barred[w->nr_barred++ % BARRED_MAX] = pid;
}

static bool is_barred(const struct waits *w, pid_t pid)
{
	for (uint32_t i = 0; i < MIN(w->nr_barred, BARRED_MAX); i++)
		if (w->barred[i] == pid)
			return true;
	return false;
}

uint32_t waits_sleepers(struct waits *w, bool all, struct waits_sleeper *out, uint32_t max)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < w->nr_tasks && nr < max; i++) {
		struct wait_task *task = &w->tasks[w->next_look++ % w->nr_tasks];
		bool before = task->found && task->nr_looks < LOOKS_MAX;

		if (task->time.state != TASK_SLEEPING ||
		    !(before || (all && task->stack == STACK_NONE)) || is_barred(w, task->pid))
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

uint32_t waits_check(struct waits *w, const struct waits_tables *t, waits_state_fn state_of,
		     uint32_t max, uint64_t now_ns)
{
	uint32_t nr_changed = 0;

	for (uint32_t i = 0; i < w->nr_tasks && max; i++) {
		struct wait_task *task = &w->tasks[w->next_check++ % w->nr_tasks];
		enum wait_kind kind = WAIT_NO;
		enum task_step step;

		if ((task->time.state != TASK_RUNNING && task->time.state != TASK_RUNNABLE) ||
		    now_ns < task->switched_ns + STALE_NS)
			continue;
		max--;
		step = state_of(task->pid, task->tid, &kind);
		if (step == STEP_FOUND)
			continue;
		/* The record of its switch may be in a ring; the next call is a tick later. */
		if (task->doubted_ns != task->switched_ns) {
			task->doubted_ns = task->switched_ns;
			continue;
		}
		waits_set_state(w, task, step == STEP_EXIT ? TASK_GONE : TASK_NEW);
		if (step != STEP_EXIT)
			waits_found(w, t, task->pid, task->tid, step, kind, now_ns);
		task->unseen = step != STEP_EXIT;
		w->account.odd++;
		nr_changed++;
	}
	if (w->nr_tasks)
		w->next_check %= w->nr_tasks;
	return nr_changed;
}

void waits_guess_kinds(struct waits *w, const struct waits_tables *t,
		       enum wait_kind (*kind_of)(pid_t tid), uint32_t max)
{
	for (uint32_t i = 0; i < w->nr_tasks && max; i++) {
		struct wait_task *task = &w->tasks[w->next_guess++ % w->nr_tasks];
		enum wait_kind kind;

		if (!task->ns[CLASS_SLEEP] || task->weighted[CLASS_SLEEP] > 0 ||
		    task->last[CLASS_SLEEP] != STACK_NONE)
			continue;
		max--;
		kind = kind_of(task->tid);
		if (kind)
			task->last[CLASS_SLEEP] = waits_stack_of_kind(w, t, STACK_NONE, kind);
	}
	if (w->nr_tasks)
		w->next_guess %= w->nr_tasks;
}
