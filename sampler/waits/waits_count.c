// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The waits of a tick → counts of stacks.
 *
 * Runs on: the builder. Invariant: the counts of a task add up to the sums of its spans.
 */
#include <stdlib.h>
#include <string.h>

#include "sampler/waits/waits.h"
#include "sampler/waits/waits_private.h"
#include "symbols/base/hashset.h"
#include "symbols/base/keyhash.h"

#define NO_TASK UINT32_MAX
/* A task that has exited is kept: its last switch may follow. */
#define KEEP_NS 1000000000ULL
/* Ticks that the time of a task waits for its process to be read. */
#define UNKNOWN_TICKS 3

bool waits_is_cut(const struct waits_tables *t, uint32_t stack)
{
	uint32_t nr = 0;
	const uint32_t *places = stack == STACK_NONE ? NULL : stacks_at(t->stacks, stack, &nr);

	if (!places || !nr)
		return true;
	return nr == 1 ? places[0] != t->kinds[WAIT_KTHREAD] : places[nr - 1] == t->kinds[WAIT_CUT];
}

uint32_t waits_stack_of_kind(struct waits *w, const struct waits_tables *t, uint32_t stack,
			     enum wait_kind kind)
{
	uint32_t nr = 0;
	const uint32_t *places = stack == STACK_NONE ? NULL : stacks_at(t->stacks, stack, &nr);

	if (places && nr)
		memcpy(w->places, places, nr * sizeof(*places));
	else
		nr = 1;
	w->places[0] = t->kinds[kind];
	return stacks_intern(t->stacks, w->places, nr);
}

/* Intern @stack as one of a long wait. A known kind, found in /proc, remains its second frame. */
static uint32_t stack_of_long(struct waits *w, const struct waits_tables *t, uint32_t stack)
{
	uint32_t nr = 0;
	const uint32_t *places = stack == STACK_NONE ? NULL : stacks_at(t->stacks, stack, &nr);
	bool known = nr && places[0] != t->kinds[WAIT_ASLEEP];

	if (!places || !nr || nr + known > STACKS_PLACES_MAX)
		return stack;
	memcpy(w->places + known, places, nr * sizeof(*places));
	w->places[0] = t->kinds[WAIT_LONG];
	return stacks_intern(t->stacks, w->places, nr + known);
}

/* Intern the stack of a wait of which nothing is known. */
static uint32_t stack_of_none(struct waits *w, const struct waits_tables *t)
{
	w->places[0] = t->kinds[WAIT_OTHER];
	w->places[1] = t->kinds[WAIT_CUT];
	return stacks_intern(t->stacks, w->places, 1 + t->chains);
}

/* Add the time of a sleep to the account. */
static void account_sleep(struct waits *w, const struct waits_tables *t, uint32_t stack,
			  uint64_t ns)
{
	w->account.slept_ns += ns;
	w->account.cut_ns += t->chains && waits_is_cut(t, stack) ? ns : 0;
}

static void count_ns(const struct waits_tables *t, uint32_t stack, uint32_t task, uint32_t slot,
		     uint64_t ns)
{
	if (ns)
		counts_add(t->counts, stack, task, slot, ns);
}

/* Count the waits of a class without any stack in this tick: as the last one that had one. */
static void count_bare(struct waits *w, const struct waits_tables *t, struct wait_task *task,
		       uint32_t id, uint32_t class, uint32_t slot)
{
	uint32_t stack = task->last[class];

	if (class == CLASS_QUEUE)
		stack = waits_stack_of_kind(w, t, stack, WAIT_QUEUE);
	else if (stack == STACK_NONE) {
		stack = stack_of_none(w, t);
		/* Of the switches only some have a stack then. */
		if (w->estimated || task->unread)
			waits_want_kind(w, task);
	} else if (w->estimated ? !task->running_ns && task->ns[CLASS_SLEEP] >= WAIT_LONG_NS
				: task->time.state == TASK_SLEEPING && waits_is_long(task))
		stack = stack_of_long(w, t, stack);
	if (class == CLASS_SLEEP)
		account_sleep(w, t, stack, task->ns[class]);
	count_ns(t, stack, id, slot, task->ns[class]);
}

/* Return the id of the task in the counts; NO_TASK: its process is not read yet. */
static uint32_t find_id(struct waits *w, const struct waits_tables *t, struct wait_task *task,
			uint64_t now_ns)
{
	uint64_t time_ns = task->time.state == TASK_GONE ? task->time.since_ns : now_ns;
	struct maps_hit hit;

	maps_find(t->maps, t->tasks, task->pid, task->tid, time_ns, &hit);
	if ((hit.known && !hit.ask) || t->recorded)
		return hit.task;
	w->asked |= maps_ask(t->maps, task->pid, time_ns);
	return task->unknown_ticks++ < UNKNOWN_TICKS ? NO_TASK : hit.task;
}

static void clear_tick(struct waits *w, struct wait_task *task)
{
	w->account.queue_ns += task->ns[CLASS_QUEUE];
	task->running_ns = 0;
	task->unknown_ticks = 0;
	for (int i = 0; i < CLASS_NR; i++) {
		task->ns[i] = 0;
		task->weighted[i] = task->given[i] = 0;
	}
}

/* Report whether @task has time in this tick. */
static bool has_time(const struct wait_task *task)
{
	return task->running_ns || task->ns[CLASS_QUEUE] || task->ns[CLASS_SLEEP];
}

/* Note that the wait of @task has no stack, or a cut one, and lasts: a look may find it. */
static void note_unread(struct waits *w, const struct waits_tables *t, struct wait_task *task)
{
	if (task->found || task->unread || task->time.state != TASK_SLEEPING ||
	    task->nr_looks >= LOOKS_MAX || !waits_is_long(task) || !waits_is_cut(t, task->stack))
		return;
	task->unread = w->has_unread = true;
}

/* Count running time and waits without stacks of each task. @ids: by index, of its task. */
static void count_tasks(struct waits *w, const struct waits_tables *t, uint32_t slot,
			uint64_t now_ns, uint32_t *ids)
{
	uint32_t running = waits_stack_of_kind(w, t, STACK_NONE, WAIT_RUNNING);

	for (uint32_t i = 0; i < w->nr_tasks; i++) {
		struct wait_task *task = &w->tasks[i];

		waits_add_span(w, task, waits_take_until(w, task, now_ns));
		note_unread(w, t, task);
		ids[i] = NO_TASK;
		if (!has_time(task))
			continue;
		ids[i] = find_id(w, t, task, now_ns);
		if (ids[i] == NO_TASK)
			continue;
		count_ns(t, running, ids[i], PROFILE_RUNNING, task->running_ns);
		for (uint32_t class = 0; class < CLASS_NR; class ++)
			if (task->ns[class] && !(task->weighted[class] > 0))
				count_bare(w, t, task, ids[i], class, slot);
	}
}

/* Return @share of @ns, rounded. */
static uint64_t part(uint64_t ns, double share)
{
	return (uint64_t)((double)ns * MIN(share, 1.0) + 0.5);
}

/* Count the spans; keep spans of unknown processes. */
static void count_spans(struct waits *w, const struct waits_tables *t, uint32_t slot,
			const uint32_t *ids)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < w->nr_spans; i++) {
		struct span s = w->spans[i];
		struct wait_task *task = &w->tasks[s.task];
		double before = task->given[s.class];
		uint32_t stack = s.stack;
		uint64_t ns;

		if (ids[s.task] == NO_TASK) {
			/* One without time was not read. */
			if (has_time(task))
				w->spans[kept++] = s;
			continue;
		}
		if (s.class == CLASS_QUEUE)
			stack = waits_stack_of_kind(w, t, stack, WAIT_QUEUE);
		else if (s.is_long)
			stack = stack_of_long(w, t, stack);
		/* Rounded so that the sum is exact. */
		task->given[s.class] += (double)s.ns * s.period / task->weighted[s.class];
		ns = part(task->ns[s.class], task->given[s.class]) -
		     part(task->ns[s.class], before);
		if (s.class == CLASS_SLEEP)
			account_sleep(w, t, stack, ns);
		count_ns(t, stack, ids[s.task], slot, ns);
	}
	w->nr_spans = kept;
}

/* Move the last task to the place of one that is forgotten. */
static void forget_old(struct waits *w, uint64_t now_ns)
{
	uint32_t kept = 0;

	/* Spans that were kept have indices of tasks: these wait for the next tick. */
	if (w->nr_spans)
		return;
	for (uint32_t i = 0; i < w->nr_tasks; i++)
		if (w->tasks[i].time.state != TASK_GONE || w->tasks[i].running_ns ||
		    w->tasks[i].time.since_ns + KEEP_NS > now_ns)
			w->tasks[kept++] = w->tasks[i];
	if (kept == w->nr_tasks)
		return;
	w->nr_tasks = kept;
	hashset_clear(&w->set);
	hashset_clear(&w->processes);
	for (uint32_t i = 0; i < kept; i++) {
		hashset_add(&w->set, keyhash_number((uint64_t)w->tasks[i].tid), i);
		w->tasks[i].in_ring = false;
		if (w->tasks[i].time.state != TASK_GONE)
			waits_join(w, &w->tasks[i]);
	}
}

void waits_count(struct waits *w, const struct waits_tables *t, uint32_t slot, uint64_t now_ns,
		 struct profile_waits *out)
{
	uint32_t *ids;

	now_ns = waits_take(w, t, now_ns);
	ids = malloc((w->nr_tasks + 1ULL) * sizeof(*ids));
	if (ids) {
		count_tasks(w, t, slot, now_ns, ids);
		count_spans(w, t, slot, ids);
		for (uint32_t i = 0; i < w->nr_tasks; i++)
			if (ids[i] != NO_TASK || !has_time(&w->tasks[i]))
				clear_tick(w, &w->tasks[i]);
	}
	free(ids);
	forget_old(w, now_ns);
	w->account.tasks = w->nr_tasks;
	*out = w->account;
	w->account = (struct profile_waits){ 0 };
}

void waits_discard(struct waits *w, uint64_t begin_ns)
{
	for (uint32_t i = 0; i < w->nr_tasks; i++) {
		struct wait_task *task = &w->tasks[i];

		task_time_begin(&task->time, begin_ns);
		if (task->read_ns)
			task->read_ns = MAX(task->read_ns, begin_ns);
		clear_tick(w, task);
	}
	w->nr_spans = 0;
	w->account = (struct profile_waits){ 0 };
}
