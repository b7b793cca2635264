// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One job at a time: copies of a few stacks, which the builder unwinds with a pipeline, or kinds of
 * waits alone.
 *
 * Runs on: the builder, online for urcu-qsbr. A stack is unwound from two registers, so it ends at
 * the first frame that needs another one.
 */
#include "sampler/sleepers.h"

#include <assert.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/session.h"
#include "sampler/waits/asleep.h"
#include "sampler/waits/sleep_reader.h"
#include "unwind/unwind.h"

struct sleepers {
	struct sleep_reader *reader;
	struct pipeline *pipeline;
	uint32_t places[STACKS_PLACES_MAX]; /* scratch */
};

/* Make the reader and the pipeline; NULL: out of memory. */
static struct sleepers *get_sleepers(struct sampler *s)
{
	struct sleepers *l = s->waiting.sleepers;
	struct err e;

	if (l)
		return l;
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->reader = sleep_reader_new((struct sleep_reader_calls){ asleep_read, asleep_kind });
	if (!l->reader || pipeline_new(&l->pipeline, sampler_thread_tables(s->live.shared), &e)) {
		sleepers_free(l);
		return NULL;
	}
	s->waiting.sleepers = l;
	return l;
}

void sleepers_free(struct sleepers *l)
{
	if (!l)
		return;
	sleep_reader_free(l->reader);
	pipeline_free(l->pipeline);
	free(l);
}

/*
 * Unwind a copy, with @cut as outermost place if it has no root. Return the number of places;
 * *@pending: its process is not read yet.
 */
static uint32_t unwind_copy(struct sleepers *l, const struct asleep *a, uint32_t cut, bool *pending)
{
	const uint64_t regs[] = { a->sp, a->pc };
	const struct record_sample sample = {
		.ip = a->pc,
		.time_ns = a->time_ns,
		.pid = (uint32_t)a->pid,
		.tid = (uint32_t)a->tid,
		.cpumode = PERF_RECORD_MISC_USER,
		.regs_abi = PERF_SAMPLE_REGS_ABI_64,
		.regs = (const uint8_t *)regs,
		.stack = a->stack,
		.stack_size = sizeof(a->stack),
		.stack_dyn = a->size,
	};
	struct pipeline_stack stack;
	uint32_t nr;

	pipeline_resolve(l->pipeline, &sample, unwind_regs_mask_of_stack());
	pipeline_stack(l->pipeline, &stack);
	*pending = !stack.nr || stack.stop == UNWIND_PENDING;
	if (*pending)
		return 0;
	nr = MIN(stack.nr, STACKS_PLACES_MAX - 3);
	memcpy(l->places + 2, stack.places, nr * sizeof(*l->places));
	if (stack.stop != UNWIND_COMPLETE && stack.stop != UNWIND_NO_USER)
		l->places[2 + nr++] = cut;
	return nr;
}

/* Report whether a wait of this kind is of a program, with callers. */
static bool has_callers(enum wait_kind kind)
{
	return kind != WAIT_KTHREAD;
}

/* Count a copy: kind, mark, functions of the program. */
static void count_copy(struct sampler *s, struct sleepers *l, const struct waits_sleeper *task,
		       const struct asleep *a)
{
	const struct waits_tables t = store_waits_tables(&s->store);
	bool pending = false;
	uint32_t nr = a->size ? unwind_copy(l, a, t.kinds[WAIT_CUT], &pending) : 0;
	bool before = task->look == LOOK_BEFORE;
	uint32_t *first = l->places + !before;

	if (pending && before) {
		waits_look_again(s->store.waits, task);
		return;
	}
	if (!nr && has_callers(a->kind))
		l->places[2 + nr++] = t.kinds[WAIT_CUT];
	l->places[1] = t.kinds[WAIT_FOUND];
	first[0] = t.kinds[a->kind];
	waits_slept(s->store.waits, &t, task,
		    stacks_intern(t.stacks, first, nr ? nr + 1 + before : 1), a->time_ns);
}

/* Count the kind of the wait of a task, of which nothing else is known. */
static void count_kind(struct sampler *s, const struct sleep_copy *c)
{
	const struct waits_tables t = store_waits_tables(&s->store);
	const uint32_t places[] = { t.kinds[c->kind], t.kinds[WAIT_CUT] };
	bool cut = s->config.call_graph != CALL_GRAPH_OFF && has_callers(c->kind);

	waits_slept(s->store.waits, &t, &c->task,
		    c->kind ? stacks_intern(t.stacks, places, 1 + cut) : STACK_NONE, c->time_ns);
}

/* Take the results of a job that has ended, or hangs. */
static void take_job(struct sampler *s, struct sleepers *l)
{
	uint32_t nr;
	const struct sleep_copy *copies = sleep_reader_copies(l->reader, &nr);

	pipeline_use(l->pipeline, sampler_thread_tables(s->live.shared));
	for (uint32_t i = 0; i < nr; i++)
		if (!copies[i].copy)
			count_kind(s, &copies[i]);
		else if (copies[i].kind)
			count_copy(s, l, &copies[i].task, copies[i].copy);
	if (pipeline_take_asked(l->pipeline))
		symbols_wake(s->store.symbols);
	sleep_reader_drop(l->reader);
}

/* Start a job for the next tasks, of an unknown kind first; false: there are none. */
static bool start_job(struct sampler *s, struct sleepers *l, bool all, bool stacks)
{
	struct waits_sleeper tasks[SLEEP_READER_KINDS];
	const struct waits_barred hung = sleep_reader_hung(l->reader);
	uint32_t nr = waits_sleepers(s->store.waits, LOOK_KIND, &hung, tasks, SLEEP_READER_KINDS);

	if (nr)
		return sleep_reader_start(l->reader, tasks, nr, false);
	nr = waits_sleepers(s->store.waits, all ? LOOK_NOW : LOOK_BEFORE, &hung, tasks,
			    stacks ? SLEEP_READER_TASKS : SLEEP_READER_KINDS);
	return sleep_reader_start(l->reader, tasks, nr, stacks);
}

bool sleepers_look(struct sampler *s, bool all, bool stacks)
{
	struct sleepers *l = get_sleepers(s);

	if (!l)
		return false;
	switch (sleep_reader_look(l->reader, time_now_ns())) {
	case SLEEP_READER_BUSY:
	case SLEEP_READER_STOPPED:
		return true;
	case SLEEP_READER_HUNG:
	case SLEEP_READER_DONE:
		take_job(s, l);
		break;
	case SLEEP_READER_IDLE:
		break;
	}
	return start_job(s, l, all, stacks) || sleep_reader_stopped(l->reader);
}

bool sleepers_barred(const struct sleepers *l)
{
	return l && sleep_reader_hung(l->reader).nr;
}

pid_t sleepers_hung(const struct sleepers *l)
{
	struct waits_barred hung;

	if (!l || !sleep_reader_stopped(l->reader))
		return 0;
	hung = sleep_reader_hung(l->reader);
	return hung.pids[hung.nr - 1];
}
