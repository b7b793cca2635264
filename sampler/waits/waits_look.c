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

static bool is_barred(const struct waits_barred *barred, pid_t pid)
{
	for (uint32_t i = 0; i < barred->nr; i++)
		if (barred->pids[i] == pid)
			return true;
	return false;
}

bool waits_wants_kinds(const struct waits *w)
{
	return w->kinds_wanted;
}

void waits_want_kind(struct waits *w, struct wait_task *task)
{
	task->wants_kind = w->kinds_wanted = true;
}

bool waits_take_unread(struct waits *w)
{
	bool any = w->has_unread;

	w->has_unread = false;
	return any;
}

/* Test whether there is a reason to look at @task now, and set it. */
static bool is_due(const struct wait_task *task, enum waits_look *look)
{
	bool before = (task->found || task->unread) && task->nr_looks < LOOKS_MAX;

	if (*look == LOOK_KIND)
		return task->wants_kind && task->time.state != TASK_GONE;
	if (task->time.state != TASK_SLEEPING ||
	    !(before || (*look == LOOK_NOW && task->stack == STACK_NONE)))
		return false;
	*look = before ? LOOK_BEFORE : LOOK_NOW;
	return true;
}

uint32_t waits_sleepers(struct waits *w, enum waits_look look, const struct waits_barred *barred,
			struct waits_sleeper *out, uint32_t max)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < w->nr_tasks && nr < max; i++) {
		struct wait_task *task = &w->tasks[w->next_look++ % w->nr_tasks];
		enum waits_look what = look;

		if (!is_due(task, &what) || is_barred(barred, task->pid))
			continue;
		task->nr_looks += what == LOOK_BEFORE;
		out[nr++] = (struct waits_sleeper){ task->pid, task->tid, what };
	}
	if (w->nr_tasks)
		w->next_look %= w->nr_tasks;
	/* After a look that hangs, the missing kinds are wanted again, but for one process. */
	if (look == LOOK_KIND)
		w->kinds_wanted = nr;
	return nr;
}

/* Use @stack, a kind alone, for the wait that @task was found in, and for later ones without any.
 */
static void set_kind(struct wait_task *task, uint32_t stack, uint64_t time_ns)
{
	task->wants_kind = false;
	if (stack == STACK_NONE)
		return;
	if (task->last[CLASS_SLEEP] == STACK_NONE)
		task->last[CLASS_SLEEP] = stack;
	if ((task->found || task->unread) && task->time.state == TASK_SLEEPING &&
	    task->stack == STACK_NONE && time_ns >= task->began_ns) {
		task->stack = stack;
		task->period = 1;
	}
}

/* Report whether a stack that a look found is better than the one of the switch. */
static bool is_better(const struct waits_tables *t, uint32_t found, uint32_t was)
{
	uint32_t nr = 0, nr_was = 0;

	if (was == STACK_NONE || !waits_is_cut(t, found))
		return true;
	stacks_at(t->stacks, found, &nr);
	stacks_at(t->stacks, was, &nr_was);
	return nr > nr_was;
}

void waits_slept(struct waits *w, const struct waits_tables *t, const struct waits_sleeper *s,
		 uint32_t stack, uint64_t time_ns)
{
	struct wait_task *task = waits_find_task(w, s->tid);

	if (task && s->look == LOOK_KIND) {
		set_kind(task, stack, time_ns);
		return;
	}
	if (!task || stack == STACK_NONE)
		return;
	if (s->look == LOOK_NOW) {
		add_look(w, task, stack);
		return;
	}
	if (!(task->found || task->unread) || task->nr_looks == LOOKS_DONE ||
	    task->time.state != TASK_SLEEPING || time_ns < task->began_ns)
		return;
	task->nr_looks = LOOKS_DONE;
	task->unread = false;
	if (!is_better(t, stack, task->stack))
		return;
	task->stack = task->last[CLASS_SLEEP] = stack;
	task->period = 1;
}

void waits_look_again(struct waits *w, const struct waits_sleeper *s)
{
	struct wait_task *task = waits_find_task(w, s->tid);

	if (!task || s->look != LOOK_BEFORE || !task->nr_looks || task->nr_looks == LOOKS_DONE ||
	    task->nr_pending == LOOKS_PENDING_MAX)
		return;
	task->nr_looks--;
	task->nr_pending++;
}

uint32_t waits_check(struct waits *w, waits_state_fn state_of, uint32_t max, uint64_t now_ns)
{
	uint32_t nr_changed = 0;

	for (uint32_t i = 0; i < w->nr_tasks && max; i++) {
		struct wait_task *task = &w->tasks[w->next_check++ % w->nr_tasks];
		enum task_step step;

		if ((task->time.state != TASK_RUNNING && task->time.state != TASK_RUNNABLE) ||
		    now_ns < task->switched_ns + STALE_NS)
			continue;
		max--;
		step = state_of(task->pid, task->tid);
		if (step == STEP_FOUND)
			continue;
		/* The record of its switch may be in a ring; the next call is a tick later. */
		if (task->doubted_ns != task->switched_ns) {
			task->doubted_ns = task->switched_ns;
			continue;
		}
		waits_set_state(w, task, step == STEP_EXIT ? TASK_GONE : TASK_NEW);
		if (step != STEP_EXIT)
			waits_found(w, task->pid, task->tid, step, now_ns);
		task->unseen = step != STEP_EXIT;
		w->account.odd++;
		nr_changed++;
	}
	if (w->nr_tasks)
		w->next_check %= w->nr_tasks;
	return nr_changed;
}
