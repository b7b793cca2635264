// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Records of a recording as steps of tasks. They are in order of time already: there are no queues.
 */
#include "sampler/replay_waits.h"

#include <linux/perf_event.h>
#include <string.h>

#include "sampler/event/waking.h"
#include "unwind/unwind.h"

bool replay_waits_is_stack(const struct perfdata_event *ev)
{
	return ev->event.type == PERF_TYPE_SOFTWARE &&
	       ev->event.config == PERF_COUNT_SW_CONTEXT_SWITCHES;
}

bool replay_waits_is_waking(const struct perfdata_event *ev, bool *alone)
{
	*alone = !(ev->layout.sample_type & (PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_STACK_USER));
	/* Where some wake-ups are missing, a run queue would begin at some of them. */
	return ev->event.type == PERF_TYPE_TRACEPOINT && ev->period == 1 &&
	       ev->layout.sample_type & PERF_SAMPLE_RAW && !strcmp(ev->event.name, WAKING_NAME);
}

int replay_waits_begin(struct replay_waits *w, struct store *st)
{
	w->account = (struct profile_waits){ 0 };
	if (w->slot < 0)
		return 0;
	if (!st->waits)
		return store_open_waits(st, 0, w->latency);
	waits_restart(st->waits);
	return 0;
}

/* Take a step of a task other than the idle one; the number of one that has exited is -1. */
static void step(struct store *st, const struct switch_note *note)
{
	const struct waits_tables t = store_waits_tables(st);

	if (note->tid > 0)
		waits_step(st->waits, &t, note);
}

static struct switch_note note_of(uint32_t pid, uint32_t tid, enum task_step step, uint64_t time_ns)
{
	return (struct switch_note){
		.time_ns = time_ns,
		.pid = (pid_t)pid,
		.tid = (pid_t)tid,
		.stack = STACK_NONE,
		.step = step,
	};
}

void replay_waits_record(struct replay_waits *w, struct store *st, const struct record *rec)
{
	enum task_step out = rec->change.preempt ? STEP_PREEMPTED : STEP_OUT;
	struct switch_note note = note_of(rec->pid, rec->tid, out, rec->time_ns);

	if (w->slot < 0 || !rec->time_ns)
		return;
	switch (rec->type) {
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		if (!rec->change.out)
			note.step = STEP_IN;
		break;
	case PERF_RECORD_FORK:
		note = note_of(rec->task.pid, rec->task.tid, STEP_BORN, rec->task.time_ns);
		/* perf makes up such records of tasks that exist already, without a time. */
		if (!rec->task.time_ns)
			return;
		break;
	case PERF_RECORD_EXIT:
		note = note_of(rec->task.pid, rec->task.tid, STEP_EXIT, rec->task.time_ns);
		break;
	case PERF_RECORD_COMM:
		if (!rec->comm.exec)
			return;
		note = note_of(rec->comm.pid, rec->comm.tid, STEP_EXEC, rec->time_ns);
		break;
	default:
		return;
	}
	step(st, &note);
}

void replay_waits_waking(struct replay_waits *w, struct store *st, const struct record_sample *s)
{
	struct switch_note note;
	uint32_t tid;

	if (w->slot < 0 || s->raw_size < WAKING_PID_OFFSET + sizeof(tid))
		return;
	memcpy(&tid, s->raw + WAKING_PID_OFFSET, sizeof(tid));
	note = note_of(0, tid, STEP_WOKEN, s->time_ns);
	w->account.waking = true;
	step(st, &note);
}

void replay_waits_stack(struct replay_waits *w, struct store *st, const struct record_sample *s,
			uint32_t stack)
{
	struct switch_note note = note_of(s->pid, s->tid, STEP_STACK, s->time_ns);

	note.stack = stack;
	note.period = (uint32_t)MIN(s->period, UINT32_MAX);
	note.generation = SWITCH_GENERATION(store_waits_tables(st).generation);
	step(st, &note);
}

void replay_waits_sample(struct replay_waits *w, struct store *st, const struct pipeline *p,
			 const struct record_sample *s)
{
	struct switch_note note = note_of(s->pid, s->tid, STEP_SAMPLE, s->time_ns);

	note.period = (uint32_t)MIN(s->period, UINT32_MAX);
	note.generation = SWITCH_GENERATION(store_waits_tables(st).generation);
	note.stack = pipeline_counted(p, &note.task);
	if (note.stack != STACK_NONE)
		step(st, &note);
}

/* Add the figures of a slice. */
static void add_account(struct profile_waits *to, const struct profile_waits *from)
{
	to->switched += from->switched;
	to->with_stack += from->with_stack;
	to->without_stack += from->without_stack;
	to->lost += from->lost;
	to->odd += from->odd;
	to->late += from->late;
	to->queue_ns += from->queue_ns;
	to->tasks = from->tasks;
}

void replay_waits_cut(struct replay_waits *w, struct store *st, uint64_t now_ns)
{
	struct profile_waits slice;
	struct waits_tables t;

	if (w->slot < 0 || !st->waits)
		return;
	t = store_waits_tables(st);
	waits_count(st->waits, &t, (uint32_t)w->slot, now_ns, &slice);
	add_account(&w->account, &slice);
}
