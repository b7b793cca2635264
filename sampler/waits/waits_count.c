// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The waits of a tick → counts of stacks.
 *
 * Runs on: the builder. Invariant: the counts of a task add up to the sums of its spans.
 */
#include <stdlib.h>
#include <string.h>

#include "sampler/count/moments.h"
#include "sampler/waits/waits.h"
#include "sampler/waits/waits_private.h"
#include "symbols/base/array.h"
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

/* The pieces of a time by slice. */
struct pieces {
	uint64_t begin_ns, end_ns, ns;
	uint64_t at_ns, given;
	bool whole; /* one piece: the time is in one slice */
};

/* Return the end of the next piece, *@time_ns: in its slice. */
static uint64_t piece_end(const struct pieces *p, uint64_t *time_ns)
{
	uint64_t left_ns = p->end_ns - p->at_ns;

	*time_ns = p->at_ns;
	if (p->whole)
		return p->end_ns;
	/* The time of all but the newest moments is one slice then (moments.h). */
	if (left_ns > MOMENTS_STOP_NS) {
		*time_ns += (left_ns - MOMENTS_STOP_NS / 2) / 2;
		return p->end_ns - MOMENTS_STOP_NS / 2;
	}
	return MIN((p->at_ns / COUNTS_SLICE_NS + 1) * COUNTS_SLICE_NS, p->end_ns);
}

/* Get the next piece. False: there is none. */
static bool next_piece(struct pieces *p, uint64_t *time_ns, uint64_t *ns)
{
	uint64_t to, until;

	if (p->at_ns >= p->end_ns)
		return false;
	to = piece_end(p, time_ns);
	until = (uint64_t)((unsigned __int128)p->ns * (to - p->begin_ns) /
			   (p->end_ns - p->begin_ns));
	*ns = until - p->given;
	p->given = until;
	p->at_ns = to;
	return true;
}

/* Add to the part of @task in a slice. */
static void add_part(struct waits *w, struct wait_task *task, uint32_t class, uint64_t time_ns,
		     uint64_t ns)
{
	uint32_t i = task->parts[class], id = (uint32_t)(task - w->tasks);
	struct part *last = i < w->nr_parts ? &w->parts[i] : NULL;

	if (last && last->task == id && last->class == class &&
	    (!w->nr_queues || last->time_ns / COUNTS_SLICE_NS == time_ns / COUNTS_SLICE_NS)) {
		last->ns += ns;
		return;
	}
	if (!array_reserve(&w->parts, &w->room_parts, w->nr_parts + 1ULL)) {
		w->account.lost++;
		return;
	}
	task->parts[class] = w->nr_parts;
	w->parts[w->nr_parts++] = (struct part){ id, class, time_ns, ns };
}

void waits_add_part(struct waits *w, struct wait_task *task, uint32_t class, uint64_t begin_ns,
		    uint64_t end_ns, uint64_t ns)
{
	struct pieces p = { begin_ns, end_ns, ns, begin_ns, 0, !w->nr_queues };
	uint64_t time_ns, piece;

	while (ns && next_piece(&p, &time_ns, &piece))
		if (piece)
			add_part(w, task, class, time_ns, piece);
}

/* Count a time of one slice. */
static void count_ns(struct waits *w, const struct waits_tables *t, uint32_t stack, uint32_t task,
		     uint32_t event, uint64_t ns, uint64_t time_ns)
{
	uint32_t slice = w->nr_queues ? tables_slice(time_ns) : 0;

	if (!ns || stack == STACK_NONE)
		return;
	if (!counts_add(t->counts, stack, task, event, ns, slice) && counts_grow(t->counts))
		counts_add(t->counts, stack, task, event, ns, slice);
}

/* Count a part of a wait under @stack, and add its time to the account. */
static void count_wait(struct waits *w, const struct waits_tables *t, uint32_t stack, uint32_t task,
		       uint32_t slot, const struct part *part)
{
	if (part->class == CLASS_SLEEP) {
		w->account.slept_ns += part->ns;
		w->account.cut_ns += t->chains && waits_is_cut(t, stack) ? part->ns : 0;
	}
	count_ns(w, t, stack, task, slot, part->ns, part->time_ns);
}

/* Return the stack for waits of a class without any in this tick: as the last one that had one. */
static uint32_t bare_stack(struct waits *w, const struct waits_tables *t, struct wait_task *task,
			   uint32_t class)
{
	uint32_t stack = task->last[class];

	if (class == CLASS_QUEUE)
		return waits_stack_of_kind(w, t, stack, WAIT_QUEUE);
	if (stack == STACK_NONE) {
		/* Of the switches only some have a stack then. */
		if (w->estimated || task->unread)
			waits_want_kind(w, task);
		return stack_of_none(w, t);
	}
	if (w->estimated ? !task->running_ns && task->ns[CLASS_SLEEP] >= WAIT_LONG_NS
			 : task->time.state == TASK_SLEEPING && waits_is_long(task))
		return stack_of_long(w, t, stack);
	return stack;
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
		task->weighted[i] = 0;
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

/* End the time of each task. @ids: by index, of its task. */
static void end_times(struct waits *w, const struct waits_tables *t, uint64_t now_ns, uint32_t *ids)
{
	for (uint32_t i = 0; i < w->nr_tasks; i++) {
		struct wait_task *task = &w->tasks[i];

		waits_add_span(w, task, waits_take_until(w, task, now_ns));
		note_unread(w, t, task);
		ids[i] = has_time(task) ? find_id(w, t, task, now_ns) : NO_TASK;
	}
}

/*
 * Count a span in the slices of its time. Its part of the time of its task beyond that, which has
 * no stack, is counted with the parts.
 */
static void count_span(struct waits *w, const struct waits_tables *t, uint32_t slot, uint32_t id,
		       struct span *s)
{
	const struct wait_task *task = &w->tasks[s->task];
	struct pieces p = {
		s->begin_ns, s->begin_ns + s->ns, s->ns, s->begin_ns, 0, !w->nr_queues
	};
	struct part part = { .class = s->class };
	double whole;

	if (s->class == CLASS_QUEUE)
		s->stack = waits_stack_of_kind(w, t, s->stack, WAIT_QUEUE);
	else if (s->is_long)
		s->stack = stack_of_long(w, t, s->stack);
	while (s->is_own && next_piece(&p, &part.time_ns, &part.ns))
		count_wait(w, t, s->stack, id, slot, &part);
	whole = (double)task->ns[s->class] * ((double)s->ns * s->period / task->weighted[s->class]);
	s->more = MAX(whole - (s->is_own ? (double)s->ns : 0), 0.0);
}

/* The spans of one task and class, in the order of counting. */
struct span_group {
	uint32_t first, nr;
	double more; /* sum of the spans */
};

/* Count a part of a wait as the spans of its task and class; @order: their indices. */
static void share_part(struct waits *w, const struct waits_tables *t, uint32_t slot, uint32_t id,
		       const struct part *part, const struct span_group *g, const uint32_t *order)
{
	struct part share = *part;
	uint64_t given = 0, until;
	double sum = 0;

	/* Rounded so that the sum is exact. */
	for (uint32_t i = 0; i < g->nr; i++) {
		const struct span *s = &w->spans[order[g->first + i]];

		sum += s->more;
		until = i + 1 == g->nr ? part->ns
				       : MIN((uint64_t)((double)part->ns * (sum / g->more) + 0.5),
					     part->ns);
		share.ns = until - MIN(given, until);
		count_wait(w, t, s->stack, id, slot, &share);
		given = MAX(given, until);
	}
}

/* Put the indices of the spans in the order of their tasks and classes, and count them. */
static void count_spans(struct waits *w, const struct waits_tables *t, uint32_t slot,
			const uint32_t *ids, struct span_group *groups, uint32_t *order)
{
	uint32_t first = 0;

	for (uint32_t i = 0; i < w->nr_spans; i++)
		if (ids[w->spans[i].task] != NO_TASK)
			groups[w->spans[i].task * CLASS_NR + w->spans[i].class].nr++;
	for (uint32_t i = 0; i < w->nr_tasks * CLASS_NR; i++) {
		groups[i].first = first;
		first += groups[i].nr;
		groups[i].nr = 0;
	}
	for (uint32_t i = 0; i < w->nr_spans; i++) {
		struct span *s = &w->spans[i];
		struct span_group *g = &groups[s->task * CLASS_NR + s->class];

		if (ids[s->task] == NO_TASK)
			continue;
		count_span(w, t, slot, ids[s->task], s);
		order[g->first + g->nr++] = i;
		g->more += s->more;
	}
}

/* Count the time that has no stack. */
static void count_parts(struct waits *w, const struct waits_tables *t, uint32_t slot,
			const uint32_t *ids, const struct span_group *groups, const uint32_t *order)
{
	uint32_t running = waits_stack_of_kind(w, t, STACK_NONE, WAIT_RUNNING);

	for (uint32_t i = 0; i < w->nr_parts; i++) {
		const struct part *part = &w->parts[i];
		struct wait_task *task = &w->tasks[part->task];
		uint32_t id = ids[part->task];

		if (id == NO_TASK)
			continue;
		if (part->class == CLASS_RUNNING) {
			count_ns(w, t, running, id, PROFILE_RUNNING, part->ns, part->time_ns);
		} else {
			const struct span_group *g = &groups[part->task * CLASS_NR + part->class];

			if (g->more > 0)
				share_part(w, t, slot, id, part, g, order);
			else
				count_wait(w, t, bare_stack(w, t, task, part->class), id, slot,
					   part);
		}
	}
}

/* Keep the time of unknown processes; one without time was not read. */
static void keep_unknown(struct waits *w, const uint32_t *ids)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < w->nr_spans; i++)
		if (ids[w->spans[i].task] == NO_TASK && has_time(&w->tasks[w->spans[i].task]))
			w->spans[kept++] = w->spans[i];
	w->nr_spans = kept;
	kept = 0;
	for (uint32_t i = 0; i < w->nr_parts; i++)
		if (ids[w->parts[i].task] == NO_TASK)
			w->parts[kept++] = w->parts[i];
	w->nr_parts = kept;
	for (uint32_t i = 0; i < w->nr_tasks; i++)
		if (ids[i] != NO_TASK || !has_time(&w->tasks[i]))
			clear_tick(w, &w->tasks[i]);
}

/* Move the last task to the place of one that is forgotten. */
static void forget_old(struct waits *w, uint64_t now_ns)
{
	uint32_t kept = 0;

	/* Spans that were kept have indices of tasks: these wait for the next tick. */
	if (w->nr_spans || w->nr_parts)
		return;
	for (uint32_t i = 0; i < w->nr_tasks; i++)
		if (w->tasks[i].time.state != TASK_GONE ||
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
	struct span_group *groups;
	uint32_t *ids, *order;

	now_ns = waits_take(w, t, now_ns);
	ids = malloc((w->nr_tasks + 1ULL) * sizeof(*ids));
	groups = calloc(w->nr_tasks * (uint64_t)CLASS_NR + 1, sizeof(*groups));
	/* A task has one more span at most at the end of its time. */
	order = malloc((w->nr_spans + (uint64_t)w->nr_tasks + 1) * sizeof(*order));
	if (ids && groups && order) {
		end_times(w, t, now_ns, ids);
		count_spans(w, t, slot, ids, groups, order);
		count_parts(w, t, slot, ids, groups, order);
		keep_unknown(w, ids);
		w->counted_ns = now_ns;
	}
	free(ids);
	free(groups);
	free(order);
	forget_old(w, now_ns);
	w->account.tasks = w->nr_tasks;
	if (!out)
		return;
	*out = w->account;
	w->account = (struct profile_waits){ 0 };
}

uint64_t waits_counted_ns(const struct waits *w)
{
	return w->counted_ns;
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
	w->nr_spans = w->nr_parts = 0;
	w->account = (struct profile_waits){ 0 };
}
