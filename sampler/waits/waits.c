// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tasks by tid, and their spans of waiting from the switches of all CPUs in order of time; counts
 * weighted with nanoseconds; waits without a sample of their switch.
 *
 * Runs on: the builder. Invariant: the spans of a task in a tick, with and without stacks, add up
 * to its sums; these to the time since the tick before.
 */
#include "sampler/waits/waits.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/table.h"
#include "symbols/image/image.h"
#include "symbols/name/name.h"
#include "symbols/process/process.h"

/*
 * The states of one task from its switches, a table of states and steps; the queue of switches from
 * a sampler thread to the builder, lock-free.
 *
 * Pure.
 */

/* Added to a state: the record before it was lost. */
#define ODD 0x80

#define F TASK_FOUND
#define R TASK_RUNNING
#define Q TASK_RUNNABLE
#define S TASK_SLEEPING
#define G TASK_GONE

/* The state after a step. */
static const uint8_t next_state[STEP_NR][TASK_STATE_NR] = {
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

/* Time spent in a state. */
struct task_span {
	enum task_state state; /* RUNNING, RUNNABLE or SLEEPING; else @ns is 0 */
	uint64_t ns;
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

/* Take a step; return the state that ends and how long it lasted since the last call. */
static struct task_span task_time_step(struct task_time *t, enum task_step step, uint64_t time_ns)
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
	to = next_state[step][t->state];
	t->nr_odd += !!(to & ODD);
	t->state = (enum task_state)(to & ~ODD);
	return span;
}

/* Return the current state and its time up to @now_ns, which counts as returned. */
static struct task_span task_time_until(struct task_time *t, uint64_t now_ns)
{
	/* The end of a task remains where it was. */
	if (now_ns < t->since_ns || t->state == TASK_NEW || t->state == TASK_GONE)
		return (struct task_span){ t->state, 0 };
	/* No switch for so long: it has its CPU. */
	if (t->state == TASK_FOUND)
		t->state = TASK_RUNNING;
	return span_until(t, t->state, now_ns);
}

/* Let all time before @begin_ns count as returned. The next step may be before it. */
static void task_time_begin(struct task_time *t, uint64_t begin_ns)
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

/* Make a queue of @nr notes (a power of two). NULL: out of memory. */
static struct switch_queue *switch_queue_new(uint32_t nr)
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

/* Make a queue of @nr notes (a power of two). NULL: out of memory. */
static void switch_queue_free(struct switch_queue *q)
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

/* Any thread: return the number of notes that were appended, modulo 2^32. */
static uint32_t switch_queue_nr(const struct switch_queue *q)
{
	return atomic_load_explicit(&q->head, memory_order_relaxed);
}

bool switch_queue_crowded(const struct switch_queue *q)
{
	return used(q) > q->size / 2;
}

/* Reader: the time of the last switch_queue_done(). Before the first switch_queue_first(). */
static uint64_t switch_queue_done_ns(const struct switch_queue *q)
{
	return atomic_load_explicit(&q->done_ns, memory_order_acquire);
}

/* Reader: the oldest note, borrowed; NULL: empty. */
static const struct switch_note *switch_queue_first(const struct switch_queue *q)
{
	uint32_t tail = atomic_load_explicit(&q->tail, memory_order_relaxed);

	assert(q->size && !(q->size & (q->size - 1)));
	/* Acquire: pairs with switch_queue_put(). */
	if (tail == atomic_load_explicit(&q->head, memory_order_acquire))
		return NULL;
	return &q->notes[tail & (q->size - 1)];
}

/* Reader: remove the oldest note. */
static void switch_queue_drop(struct switch_queue *q)
{
	uint32_t tail = atomic_load_explicit(&q->tail, memory_order_relaxed);

	assert(used(q));
	/* Release: the note was read; pairs with the acquire in used(). */
	atomic_store_explicit(&q->tail, tail + 1, memory_order_release);
}

/* Reader: return and reset the number of notes that did not fit. */
static uint64_t switch_queue_take_full(struct switch_queue *q)
{
	return atomic_exchange_explicit(&q->nr_full, 0, memory_order_relaxed);
}

/* ---- waits of tasks ---- */

/*
 * The tasks of struct waits, for its files.
 */

/* Looks at a task that slept before the start, that found no stack. */
#define LOOKS_MAX 60

/* Looks that are not among these, as its process was not read yet: it may never be. */
#define LOOKS_PENDING_MAX 1200

/* None is to follow: it has one. */
#define LOOKS_DONE UINT8_MAX

/* The two classes of waits, with separate sums; and the rest of the time of a task. */
enum wait_class { CLASS_QUEUE, CLASS_SLEEP, CLASS_NR, CLASS_RUNNING = CLASS_NR, CLASS_ALL };

struct wait_task {
	pid_t pid, tid;
	uint32_t next, prev; /* in the ring of its process */
	bool in_ring;	     /* tasks that are gone may have left it */
	struct task_time time;
	uint32_t stack; /* of the current wait; STACK_NONE: it has none */
	uint32_t period;
	uint32_t next_stack, next_period; /* of the next one, by STEP_STACK */
	uint64_t began_ns;		  /* the current wait */
	bool found;			  /* asleep in /proc: the switch before may still follow */
	uint8_t nr_looks;		  /* for its stack, while it is found asleep */
	uint16_t nr_pending;		  /* looks that are not among them */
	bool wants_kind;		  /* that of its wait, which has no stack */
	bool unread; /* its switch left no stack, or a cut one, and its wait lasts: it is read
			as one found asleep */
	uint32_t unknown_ticks;
	uint64_t switched_ns; /* its last step but wake-ups */
	uint64_t doubted_ns;  /* that of the time when /proc had another state */
	bool unseen;	      /* it sleeps, by /proc: switches since switched_ns have no record */
	/* Of the tick. */
	uint64_t running_ns;
	uint64_t ns[CLASS_NR];	   /* with and without stack */
	double weighted[CLASS_NR]; /* sum of ns * period of the spans */
	uint32_t parts[CLASS_ALL]; /* the last one of each */
	/* The stack of the last wait that had one, for waits without. */
	uint32_t last[CLASS_NR];
	/* While times are estimated: the times read last, and the sums of its switches since then.
	 */
	uint64_t read_ns; /* 0: never */
	struct waits_times read;
	uint64_t seen_running_ns, seen_ns[CLASS_NR];
};

/* A part of a wait with a stack, in this tick. */
struct span {
	uint32_t task; /* index */
	uint32_t stack;
	uint32_t period;
	uint32_t class;
	bool is_long;	   /* the wait, WAIT_LONG_NS and more */
	bool is_own;	   /* this time has this stack; else it is a weight alone */
	uint64_t begin_ns; /* if it is its own */
	uint64_t ns;
	double more; /* while they are counted: its part of the time without a stack */
};

/* Time of a task without a stack, in one slice: of one class. */
struct part {
	uint32_t task; /* index */
	uint32_t class;
	uint64_t time_ns; /* in the slice */
	uint64_t ns;
};

struct waits {
	uint32_t nr_queues;
	atomic_int latency;  /* relaxed: a number */
	uint32_t nr_running; /* tasks */
	uint32_t nr_ran;     /* at the last interruption */
	struct switch_queue **queues;
	struct wait_task *tasks;
	uint32_t nr_tasks, room_tasks;
	struct hashset set;	  /* index of the task by tid */
	struct hashset processes; /* index of one task of each ring, by pid */
	struct span *spans;
	uint32_t nr_spans, room_spans;
	struct part *parts;
	uint32_t nr_parts, room_parts;
	uint64_t counted_ns; /* all is counted up to here */
	bool asked;	     /* the loader has a request */
	bool estimated;
	bool gap;	    /* switches are not recorded now */
	uint32_t next_read; /* index of the task to read next */
	uint32_t next_look; /* the same, of sleepers */
	uint32_t next_check;
	bool kinds_wanted; /* by some task */
	bool has_unread;   /* some became so since waits_take_unread() */
	struct profile_waits account;
	/* Scratch: the places of a stack, for another kind. */
	uint32_t places[STACKS_PLACES_MAX];
};

/* Of one CPU: four tenths of a second at 160,000 notes/s, on a machine too busy for the builder. */
#define QUEUE_NOTES (1u << 16)

#define TASKS_MAX (1u << 17)

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

/* Find a task; NULL: unknown. */
static struct wait_task *waits_find_task(struct waits *w, pid_t tid)
{
	uint32_t at = 0, id;

	while ((id = hashset_next(&w->set, keyhash_number((uint64_t)tid), &at)) != HASHSET_NONE)
		if (w->tasks[id].tid == tid)
			return &w->tasks[id];
	return NULL;
}

static void waits_join(struct waits *w, struct wait_task *task);

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

/* Report whether the wait of @task was long when its time was taken last. */
static bool waits_is_long(const struct wait_task *task)
{
	return task->time.since_ns >= task->began_ns + WAIT_LONG_NS;
}

static void waits_add_part(struct waits *w, struct wait_task *task, uint32_t class,
			   uint64_t begin_ns, uint64_t end_ns, uint64_t ns);

/* Add @s to the sums of @task; without memory the span counts as one without a stack. */
static void waits_add_span(struct waits *w, struct wait_task *task, struct task_span s)
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

static void waits_want_kind(struct waits *w, struct wait_task *task);

void waits_found(struct waits *w, pid_t pid, pid_t tid, enum task_step step, uint64_t time_ns)
{
	struct wait_task *task = get_task(w, pid, tid);

	assert(step < STEP_NR);
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

/* Set the state of @task, TASK_NEW or TASK_GONE, without a step. */
static void waits_set_state(struct waits *w, struct wait_task *task, enum task_state state)
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

/* Return the time of @task up to @now_ns, which counts as taken. */
static struct task_span waits_take_until(struct waits *w, struct wait_task *task, uint64_t now_ns)
{
	bool ran = task->time.state == TASK_RUNNING;
	struct task_span span = task_time_until(&task->time, now_ns);

	note_running(w, task, ran);
	return span;
}

static bool waits_is_cut(const struct waits_tables *t, uint32_t stack);

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

static uint32_t waits_ring(const struct waits *w, pid_t pid);
static void waits_leave(struct waits *w, struct wait_task *task);

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

static void waits_set_process(struct waits *w, struct wait_task *task, pid_t pid);

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
	assert(read);
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

/*
 * The tasks of one process, as a ring: an exec ends them, and there may be a hundred thousand
 * others.
 *
 * Runs on: the builder.
 */

/* Return the index of one task of the ring of @pid; HASHSET_NONE: there is none. */
static uint32_t waits_ring(const struct waits *w, pid_t pid)
{
	uint32_t at = 0, id;

	do
		id = hashset_next(&w->processes, keyhash_number((uint64_t)pid), &at);
	while (id != HASHSET_NONE && w->tasks[id].pid != pid);
	return id;
}

/* Put @task, which is in no ring, into that of its process. */
static void waits_join(struct waits *w, struct wait_task *task)
{
	uint32_t id = (uint32_t)(task - w->tasks), ring = waits_ring(w, task->pid);

	assert(!task->in_ring);
	if (ring == HASHSET_NONE) {
		/* Out of memory: an exec of another thread does not end this one. */
		if (hashset_reserve(&w->processes, 1))
			return;
		hashset_add(&w->processes, keyhash_number((uint64_t)task->pid), id);
		task->next = task->prev = id;
	} else {
		task->next = ring;
		task->prev = w->tasks[ring].prev;
		w->tasks[task->prev].next = w->tasks[ring].prev = id;
	}
	task->in_ring = true;
}

/* Take @task out of its ring. */
static void waits_leave(struct waits *w, struct wait_task *task)
{
	uint32_t id = (uint32_t)(task - w->tasks);
	uint64_t hash = keyhash_number((uint64_t)task->pid);

	if (task->next == id)
		hashset_remove(&w->processes, hash, id);
	else if (waits_ring(w, task->pid) == id)
		hashset_replace(&w->processes, hash, id, task->next);
	w->tasks[task->prev].next = task->next;
	w->tasks[task->next].prev = task->prev;
	task->in_ring = false;
}

/* Set the process of @task, which is then in its ring; @pid 0: as before. */
static void waits_set_process(struct waits *w, struct wait_task *task, pid_t pid)
{
	if (pid <= 0)
		pid = task->pid;
	if (task->in_ring && task->pid == pid)
		return;
	if (task->in_ring)
		waits_leave(w, task);
	task->pid = pid;
	waits_join(w, task);
}

/*
 * The waits of a tick → counts of stacks.
 *
 * Runs on: the builder. Invariant: the counts of a task add up to the sums of its spans.
 */

#define NO_TASK UINT32_MAX

/* A task that has exited is kept: its last switch may follow. */
#define KEEP_NS 1000000000ULL

/* Ticks that the time of a task waits for its process to be read. */
#define UNKNOWN_TICKS 3

/* Report whether the callers of a wait are not known: it has a kind alone, or the mark. */
static bool waits_is_cut(const struct waits_tables *t, uint32_t stack)
{
	struct stacks_room room;
	uint32_t nr = 0;
	const uint32_t *places = stack == STACK_NONE ? NULL
						     : stacks_at(t->stacks, stack, &room, &nr);

	if (!places || !nr)
		return true;
	return nr == 1 ? places[0] != t->kinds[WAIT_KTHREAD] : places[nr - 1] == t->kinds[WAIT_CUT];
}

/* Intern the frame of @kind, alone or in the place of the innermost one of @stack. */
static uint32_t waits_stack_of_kind(struct waits *w, const struct waits_tables *t, uint32_t stack,
				    enum wait_kind kind)
{
	struct stacks_room room;
	uint32_t nr = 0;
	const uint32_t *places = stack == STACK_NONE ? NULL
						     : stacks_at(t->stacks, stack, &room, &nr);

	assert((unsigned int)kind < WAIT_NR);
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
	struct stacks_room room;
	uint32_t nr = 0;
	const uint32_t *places = stack == STACK_NONE ? NULL
						     : stacks_at(t->stacks, stack, &room, &nr);
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
	/* The time of all but the newest moments is one slice then (history.c). */
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

	assert(class < CLASS_ALL && task >= w->tasks);
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

/* Spread @ns of @class, which have no stack, evenly over the slices of @begin_ns to @end_ns. */
static void waits_add_part(struct waits *w, struct wait_task *task, uint32_t class,
			   uint64_t begin_ns, uint64_t end_ns, uint64_t ns)
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

	assert(class < CLASS_NR);
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

/*
 * Waits without a sample of their switch: kinds and stacks found by looking at the tasks.
 *
 * Runs on: the builder.
 */

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

/* Have @task returned by waits_sleepers() for LOOK_KIND, until its kind is known. */
static void waits_want_kind(struct waits *w, struct wait_task *task)
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
	assert(nr <= max);
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
	struct stacks_room room;
	uint32_t nr = 0, nr_was = 0;

	if (was == STACK_NONE || !waits_is_cut(t, found))
		return true;
	stacks_at(t->stacks, found, &room, &nr);
	stacks_at(t->stacks, was, &room, &nr_was);
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

	assert(state_of);
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
