// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tasks by tid, and the spans of a tick from the switches of all CPUs, in order of time.
 *
 * Runs on: the builder. Invariant: the spans of a task in a tick, with and without stacks, add up
 * to its sums; these to the time since the tick before.
 */
#include "sampler/waits/waits.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/waits/waits_private.h"
#include "symbols/base/array.h"
#include "symbols/base/base.h"
#include "symbols/base/hashset.h"
#include "symbols/base/keyhash.h"

/* Of one CPU: four tenths of a second at 160,000 notes/s, on a machine too busy for the builder. */
#define QUEUE_NOTES (1u << 16)
#define TASKS_MAX   (1u << 17)

struct waits *waits_new(uint32_t nr_cpus, int latency)
{
	struct waits *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->nr_queues = nr_cpus;
	atomic_init(&w->latency, latency);
	w->queues = calloc(nr_cpus + 1ULL, sizeof(struct switch_queue *));
	for (uint32_t i = 0; w->queues && i < nr_cpus; i++) {
		w->queues[i] = switch_queue_new(QUEUE_NOTES);
		if (!w->queues[i])
			goto fail;
	}
	if (w->queues)
		return w;
fail:
	waits_free(w);
	return NULL;
}

void waits_free(struct waits *w)
{
	if (!w)
		return;
	for (uint32_t i = 0; w->queues && i < w->nr_queues; i++)
		switch_queue_free(w->queues[i]);
	free(w->queues);
	free(w->tasks);
	free(w->spans);
	free(w->parts);
	hashset_fini(&w->set);
	hashset_fini(&w->processes);
	free(w);
}

void waits_set_latency(struct waits *w, int latency)
{
	atomic_store_explicit(&w->latency, latency, memory_order_relaxed);
}

int waits_latency(const struct waits *w)
{
	return atomic_load_explicit(&w->latency, memory_order_relaxed);
}

struct switch_queue *waits_queue(struct waits *w, uint32_t cpu_index)
{
	return cpu_index < w->nr_queues ? w->queues[cpu_index] : NULL;
}

uint32_t waits_nr_notes(const struct waits *w)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < w->nr_queues; i++)
		nr += switch_queue_nr(w->queues[i]);
	return nr;
}

void waits_restart(struct waits *w)
{
	hashset_clear(&w->set);
	hashset_clear(&w->processes);
	w->nr_tasks = w->nr_spans = w->nr_parts = w->nr_running = w->nr_ran = 0;
	w->next_read = w->next_look = w->next_check = 0;
	w->estimated = w->gap = w->kinds_wanted = false;
}

struct wait_task *waits_find_task(struct waits *w, pid_t tid)
{
	uint32_t at = 0, id;

	while ((id = hashset_next(&w->set, keyhash_number((uint64_t)tid), &at)) != HASHSET_NONE)
		if (w->tasks[id].tid == tid)
			return &w->tasks[id];
	return NULL;
}

/* Find or add a task; NULL: too many, or out of memory. */
static struct wait_task *get_task(struct waits *w, pid_t pid, pid_t tid)
{
	struct wait_task *task = waits_find_task(w, tid);

	if (task || w->nr_tasks >= TASKS_MAX || hashset_reserve(&w->set, 1) ||
	    !array_reserve(&w->tasks, &w->room_tasks, w->nr_tasks + 1ULL))
		return task;
	hashset_add(&w->set, keyhash_number((uint64_t)tid), w->nr_tasks);
	task = &w->tasks[w->nr_tasks++];
	*task = (struct wait_task){ .pid = pid,
				    .tid = tid,
				    .stack = STACK_NONE,
				    .next_stack = STACK_NONE,
				    .last = { STACK_NONE, STACK_NONE } };
	waits_join(w, task);
	return task;
}

bool waits_is_long(const struct wait_task *task)
{
	return task->time.since_ns >= task->began_ns + WAIT_LONG_NS;
}

void waits_add_span(struct waits *w, struct wait_task *task, struct task_span s)
{
	uint32_t class = s.state == TASK_RUNNABLE ? CLASS_QUEUE : CLASS_SLEEP;
	uint64_t end_ns = task->time.since_ns, begin_ns = end_ns - s.ns;

	if (!s.ns)
		return;
	if (s.state == TASK_RUNNING) {
		*(w->estimated ? &task->seen_running_ns : &task->running_ns) += s.ns;
		if (!w->estimated)
			waits_add_part(w, task, CLASS_RUNNING, begin_ns, end_ns, s.ns);
		return;
	}
	(w->estimated ? task->seen_ns : task->ns)[class] += s.ns;
	if (task->stack == STACK_NONE ||
	    !array_reserve(&w->spans, &w->room_spans, w->nr_spans + 1ULL)) {
		if (!w->estimated)
			waits_add_part(w, task, class, begin_ns, end_ns, s.ns);
		return;
	}
	w->spans[w->nr_spans++] = (struct span){
		.task = (uint32_t)(task - w->tasks),
		.stack = task->stack,
		.period = task->period,
		.class = class,
		.is_long = class == CLASS_SLEEP && waits_is_long(task),
		.is_own = !w->estimated,
		.begin_ns = begin_ns,
		.ns = s.ns,
	};
	task->weighted[class] += (double)s.ns * task->period;
}

void waits_found(struct waits *w, pid_t pid, pid_t tid, enum task_step step, uint64_t time_ns)
{
	struct wait_task *task = get_task(w, pid, tid);

	if (!task || task->time.state != TASK_NEW)
		return;
	task_time_step(&task->time, step, time_ns);
	task->began_ns = task->switched_ns = time_ns;
	task->stack = STACK_NONE;
	task->found = true;
	task->nr_looks = 0;
	task->nr_pending = 0;
	if (step == STEP_ASLEEP)
		waits_want_kind(w, task);
}

/* Note the stack of the next switch of @task. */
static void note_stack(struct waits *w, const struct waits_tables *t,
		       const struct switch_note *note)
{
	struct wait_task *task = get_task(w, note->pid, note->tid);

	if (!task || note->generation != SWITCH_GENERATION(t->generation))
		return;
	task->next_stack = note->stack;
	task->next_period = note->period;
}

/* Take the stack of a switch out that was noted before it. */
static struct switch_note with_stack(struct wait_task *task, const struct switch_note *note,
				     uint32_t generation)
{
	struct switch_note out = *note;

	if (task->next_stack == STACK_NONE)
		return out;
	out.stack = task->next_stack;
	out.period = task->next_period;
	out.generation = SWITCH_GENERATION(generation);
	task->next_stack = STACK_NONE;
	return out;
}

/* Count a sample of a running task, its weight divided by the number of running tasks. */
static void count_latency(struct waits *w, const struct waits_tables *t,
			  const struct switch_note *note)
{
	const struct wait_task *task = waits_find_task(w, note->tid);
	/* One that was not switched since the start is running, and not known to. */
	uint32_t nr = w->nr_running + !(task && task->time.state == TASK_RUNNING);

	if (w->estimated)
		nr = MAX(nr, w->nr_ran);

	if (note->generation == SWITCH_GENERATION(t->generation))
		counts_add(t->counts, note->stack, note->task, PROFILE_LATENCY,
			   note->period / MAX(w->nr_queues ? MIN(nr, w->nr_queues) : nr, 1u),
			   w->nr_queues ? tables_slice(note->time_ns) : 0);
}

/* Note the state of @task after a change; @ran: it was running before. */
static void note_running(struct waits *w, const struct wait_task *task, bool ran)
{
	assert(!ran || w->nr_running);
	w->nr_running -= ran;
	w->nr_running += task->time.state == TASK_RUNNING;
}

void waits_set_state(struct waits *w, struct wait_task *task, enum task_state state)
{
	bool ran = task->time.state == TASK_RUNNING;

	task->time.state = state;
	note_running(w, task, ran);
}

/* Take a step of @task. */
static struct task_span take_step(struct waits *w, struct wait_task *task,
				  const struct switch_note *note)
{
	bool ran = task->time.state == TASK_RUNNING;
	struct task_span span = task_time_step(&task->time, note->step, note->time_ns);

	/* Begins of tasks are recorded also in a gap; their first run is not. */
	if (w->gap && task->time.state != TASK_GONE)
		task->time.state = TASK_NEW;
	note_running(w, task, ran);
	return span;
}

struct task_span waits_take_until(struct waits *w, struct wait_task *task, uint64_t now_ns)
{
	bool ran = task->time.state == TASK_RUNNING;
	struct task_span span = task_time_until(&task->time, now_ns);

	note_running(w, task, ran);
	return span;
}

/* Note the stack of a wait that begins. */
static void begin_wait(struct waits *w, const struct waits_tables *t, struct wait_task *task,
		       const struct switch_note *note, bool is_late)
{
	bool has = note->stack != STACK_NONE &&
		   note->generation == SWITCH_GENERATION(t->generation);

	w->account.switched++;
	w->account.with_stack += has;
	w->account.without_stack += !has;
	if (is_late && !has)
		return;
	task->began_ns = note->time_ns;
	task->stack = has ? note->stack : STACK_NONE;
	task->unread = false;
	task->period = MAX(note->period, 1u);
	/* A stack of the kernel is better than one from /proc. */
	task->nr_looks = has && !waits_is_cut(t, note->stack) ? LOOKS_DONE : 0;
	task->nr_pending = 0;
	if (has)
		task->last[note->step == STEP_PREEMPTED ? CLASS_QUEUE : CLASS_SLEEP] = note->stack;
}

/* Take a note that is no step of a task; false: it is one. */
static bool take_other(struct waits *w, const struct waits_tables *t,
		       const struct switch_note *note)
{
	if (note->step == STEP_SAMPLE)
		count_latency(w, t, note);
	else if (note->step == STEP_STACK)
		note_stack(w, t, note);
	else
		return false;
	return true;
}

/* Add times from when a task was read last to @now_ns to its sums. */
static void add_times(struct waits *w, struct wait_task *task, uint64_t now_ns, uint64_t running,
		      uint64_t queue, uint64_t sleep)
{
	task->running_ns += running;
	task->ns[CLASS_QUEUE] += queue;
	task->ns[CLASS_SLEEP] += sleep;
	waits_add_part(w, task, CLASS_RUNNING, task->read_ns, now_ns, running);
	waits_add_part(w, task, CLASS_QUEUE, task->read_ns, now_ns, queue);
	waits_add_part(w, task, CLASS_SLEEP, task->read_ns, now_ns, sleep);
}

/* Add the time since a task was read last, by the sums of its switches. */
static void share_time(struct waits *w, struct wait_task *task, uint64_t now_ns)
{
	uint64_t span_ns = now_ns - task->read_ns;
	double seen = (double)task->seen_running_ns + (double)task->seen_ns[CLASS_QUEUE] +
		      (double)task->seen_ns[CLASS_SLEEP];
	uint64_t queue, sleep;

	if (seen < 1) {
		add_times(w, task, now_ns, span_ns, 0, 0);
		return;
	}
	queue = (uint64_t)((double)task->seen_ns[CLASS_QUEUE] / seen * (double)span_ns);
	sleep = (uint64_t)((double)task->seen_ns[CLASS_SLEEP] / seen * (double)span_ns);
	queue = MIN(queue, span_ns);
	sleep = MIN(sleep, span_ns - queue);
	add_times(w, task, now_ns, span_ns - queue - sleep, queue, sleep);
}

/* Note the begin or the end of a task, which has no later times to read. */
static void note_life(struct waits *w, struct wait_task *task, const struct switch_note *note)
{
	if (note->step == STEP_BORN) {
		task->read_ns = note->time_ns;
		task->read = (struct waits_times){ 0 };
	} else if (note->step == STEP_EXIT && task->read_ns) {
		if (note->time_ns > task->read_ns)
			share_time(w, task, note->time_ns);
		task->read_ns = 0;
	} else {
		return;
	}
	task->seen_running_ns = task->seen_ns[CLASS_QUEUE] = task->seen_ns[CLASS_SLEEP] = 0;
}

/*
 * End the other threads of a process that called exec. Each has an EXIT record but the one that
 * called it: that one has the id of the first thread now.
 */
static void end_threads(struct waits *w, pid_t pid, pid_t tid, uint64_t time_ns)
{
	const struct switch_note end = { .step = STEP_EXIT, .time_ns = time_ns };

	uint32_t next = waits_ring(w, pid), last, id;

	if (next == HASHSET_NONE)
		return;
	last = w->tasks[next].prev;
	do {
		struct wait_task *task = &w->tasks[id = next];

		next = task->next;
		if (task->tid == tid)
			continue;
		if (task->time.state != TASK_GONE) {
			waits_add_span(w, task, take_step(w, task, &end));
			if (w->estimated)
				note_life(w, task, &end);
		}
		/* So that the next exec does not pass it again. */
		if (task->time.state == TASK_GONE)
			waits_leave(w, task);
	} while (id != last);
}

int waits_step(struct waits *w, const struct waits_tables *t, const struct switch_note *note)
{
	bool woken = note->step == STEP_WOKEN, is_late;
	struct wait_task *task;
	uint32_t odd, late;

	if (take_other(w, t, note))
		return 0;
	/* Tasks of others are woken also. */
	task = woken ? waits_find_task(w, note->tid) : get_task(w, note->pid, note->tid);
	if (!task && woken)
		return 0;
	if (!task) {
		w->account.lost++;
		return -ENOMEM;
	}
	if (woken && task->unseen)
		return 0;
	if (!woken) {
		task->unseen = false;
		task->switched_ns = note->time_ns;
	}
	odd = task->time.nr_odd;
	late = task->time.nr_late;
	/* The caller runs: if it was the first thread there are no others with a lost end. */
	if (note->step == STEP_EXEC && task->time.state != TASK_RUNNING)
		end_threads(w, note->pid, note->tid, note->time_ns);
	waits_set_process(w, task, note->pid);
	waits_add_span(w, task, take_step(w, task, note));
	if (w->estimated)
		note_life(w, task, note);
	w->account.odd += task->time.nr_odd - odd;
	w->account.late += task->time.nr_late - late;
	if (note->step == STEP_BORN || note->step == STEP_EXEC)
		task->stack = STACK_NONE;
	is_late = task->time.nr_late != late;
	if ((note->step == STEP_OUT || note->step == STEP_PREEMPTED) && (!is_late || task->found)) {
		const struct switch_note out = with_stack(task, note, t->generation);

		begin_wait(w, t, task, &out, is_late);
	}
	task->found &= is_late;
	return 0;
}

/* Make all tasks new. */
static void forget_states(struct waits *w)
{
	for (uint32_t i = 0; i < w->nr_tasks; i++)
		if (w->tasks[i].time.state != TASK_GONE)
			w->tasks[i].time.state = TASK_NEW;
	w->nr_ran = w->nr_running;
	w->nr_running = 0;
}

void waits_interrupt(struct waits *w, const struct waits_tables *t, bool gap, uint64_t now_ns)
{
	now_ns = waits_take(w, t, now_ns);
	for (uint32_t i = 0; i < w->nr_tasks; i++)
		waits_add_span(w, &w->tasks[i], waits_take_until(w, &w->tasks[i], now_ns));
	forget_states(w);
	w->gap = gap;
}

void waits_estimate(struct waits *w, const struct waits_tables *t, bool on, uint64_t now_ns)
{
	if (on == w->estimated)
		return;
	waits_interrupt(w, t, false, now_ns);
	w->estimated = on;
	for (uint32_t i = 0; i < w->nr_tasks; i++)
		w->tasks[i].read_ns = 0;
}

bool waits_estimated(const struct waits *w)
{
	return w->estimated;
}

/* Add the time of a task since it was read last. */
static void read_task(struct waits *w, struct wait_task *task, waits_times_fn read)
{
	struct waits_times now;
	uint64_t now_ns = time_now_ns(), span, running, queue;

	if (task->time.state == TASK_GONE || !read(task->pid, task->tid, &now))
		return;
	if (task->read_ns && now_ns > task->read_ns) {
		span = now_ns - task->read_ns;
		running = now.running_ns - MIN(task->read.running_ns, now.running_ns);
		queue = now.queue_ns - MIN(task->read.queue_ns, now.queue_ns);
		/* The kernel counts at switches and at its ticks: both may be early or late. */
		running = MIN(running, span);
		queue = MIN(queue, span - running);
		add_times(w, task, now_ns, running, queue, span - running - queue);
	}
	task->read_ns = now_ns;
	task->read = now;
	task->seen_running_ns = task->seen_ns[CLASS_QUEUE] = task->seen_ns[CLASS_SLEEP] = 0;
}

void waits_read_times(struct waits *w, waits_times_fn read, uint32_t max)
{
	for (uint32_t i = 0; i < MIN(max, w->nr_tasks); i++) {
		w->next_read = w->next_read < w->nr_tasks ? w->next_read : 0;
		read_task(w, &w->tasks[w->next_read++], read);
	}
}

bool waits_complete(const struct waits *w, uint64_t until_ns)
{
	for (uint32_t i = 0; i < w->nr_queues; i++)
		if (switch_queue_done_ns(w->queues[i]) < until_ns)
			return false;
	return true;
}

/*
 * Return the queue with the oldest note up to @until_ns; NULL: there is none. *@next_ns: the others
 * have none up to then.
 */
static struct switch_queue *find_first(struct waits *w, uint64_t until_ns, uint64_t *next_ns)
{
	struct switch_queue *from = NULL;
	uint64_t first_ns = UINT64_MAX;

	*next_ns = until_ns;
	for (uint32_t i = 0; i < w->nr_queues; i++) {
		const struct switch_note *n = switch_queue_first(w->queues[i]);

		if (!n || n->time_ns > until_ns)
			continue;
		if (n->time_ns < first_ns) {
			*next_ns = MIN(*next_ns, first_ns);
			first_ns = n->time_ns;
			from = w->queues[i];
		} else {
			*next_ns = MIN(*next_ns, n->time_ns);
		}
	}
	return from;
}

/* Take the notes of a queue up to @until_ns, one at least. */
static void take_run(struct waits *w, const struct waits_tables *t, struct switch_queue *q,
		     uint64_t until_ns)
{
	const struct switch_note *n = switch_queue_first(q);

	do {
		waits_step(w, t, n);
		switch_queue_drop(q);
		n = switch_queue_first(q);
	} while (n && n->time_ns <= until_ns);
}

uint64_t waits_take(struct waits *w, const struct waits_tables *t, uint64_t until_ns)
{
	struct switch_queue *from;
	uint64_t next_ns;

	/* First the times, then the notes: these are then complete. */
	for (uint32_t i = 0; i < w->nr_queues; i++)
		until_ns = MIN(until_ns, switch_queue_done_ns(w->queues[i]));
	while ((from = find_first(w, until_ns, &next_ns)))
		take_run(w, t, from, next_ns);
	for (uint32_t i = 0; i < w->nr_queues; i++)
		w->account.lost += switch_queue_take_full(w->queues[i]);
	return until_ns;
}

bool waits_take_asked(struct waits *w)
{
	bool asked = w->asked;

	w->asked = false;
	return asked;
}

static uint32_t moved(const struct history_ids *ids, uint32_t stack)
{
	return stack == STACK_NONE ? STACK_NONE : ids->stack(ids->ctx, stack);
}

void waits_remap(struct waits *w, const struct history_ids *ids)
{
	for (uint32_t i = 0; i < w->nr_tasks; i++) {
		struct wait_task *task = &w->tasks[i];

		task->stack = moved(ids, task->stack);
		task->next_stack = moved(ids, task->next_stack);
		for (int class = 0; class < CLASS_NR; class ++)
			task->last[class] = moved(ids, task->last[class]);
	}
	for (uint32_t i = 0; i < w->nr_spans; i++)
		w->spans[i].stack = moved(ids, w->spans[i].stack);
}
