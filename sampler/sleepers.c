// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One job at a time: copies of a few stacks, which the builder unwinds with a pipeline.
 *
 * Runs on: the builder, online for urcu-qsbr; read_all() on a helper. A stack is unwound from two
 * registers, so it ends at the first frame that needs another one.
 */
#include "sampler/sleepers.h"

#include <assert.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/session.h"
#include "sampler/waits/asleep.h"
#include "symbols/base/helper.h"

/* Tasks of a job. */
#define JOB_TASKS 16
/* A read that takes longer hangs. */
#define HANG_NS 1000000000ULL

struct sleep_job {
	struct job job;
	uint64_t began_ns;
	uint32_t nr;
	struct waits_sleeper tasks[JOB_TASKS];
	struct asleep copies[JOB_TASKS];
};

struct sleepers {
	struct helpers *helpers;
	struct sleep_job *job; /* NULL: none runs */
	struct pipeline *pipeline;
	bool hangs;
	uint32_t places[STACKS_PLACES_MAX]; /* scratch */
};

static void read_all(struct job *job)
{
	struct sleep_job *j = (struct sleep_job *)job;

	for (uint32_t i = 0; i < j->nr; i++) {
		j->copies[i].pid = j->tasks[i].pid;
		j->copies[i].tid = j->tasks[i].tid;
		if (!watch_begin(&job->watch))
			asleep_read(&j->copies[i]);
		watch_end(&job->watch, 0);
	}
}

static void drop(struct job *job)
{
	free(job);
}

/* Make the helper and the pipeline; NULL: out of memory. */
static struct sleepers *get_sleepers(struct sampler *s)
{
	struct sleepers *l = s->waiting.sleepers;
	struct err e;

	if (l)
		return l;
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	if (helpers_new(&l->helpers, -1) ||
	    pipeline_new(&l->pipeline, sampler_thread_tables(s->live.shared), &e)) {
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
	if (l->job)
		helper_job_leave(&l->job->job);
	if (l->helpers)
		helpers_free(l->helpers, time_now_ns() + HANG_NS / 10);
	pipeline_free(l->pipeline);
	free(l);
}

/* Unwind a copy. Return the number of places; *@pending: its process is not read yet. */
static uint32_t unwind_copy(struct sleepers *l, const struct asleep *a, bool *pending)
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

	pipeline_resolve(l->pipeline, &sample, unwind_regs_mask_of_stack());
	pipeline_stack(l->pipeline, &stack);
	*pending = !stack.nr || stack.stop == UNWIND_PENDING;
	if (!*pending)
		memcpy(l->places + 2, stack.places,
		       MIN(stack.nr, STACKS_PLACES_MAX - 2) * sizeof(*l->places));
	return *pending ? 0 : MIN(stack.nr, STACKS_PLACES_MAX - 2);
}

/* Count a copy: kind, mark, functions of the program. */
static void count_copy(struct sampler *s, struct sleepers *l, const struct waits_sleeper *task,
		       const struct asleep *a)
{
	const struct waits_tables t = store_waits_tables(&s->store);
	bool pending = false;
	uint32_t nr = a->size ? unwind_copy(l, a, &pending) : 0;
	uint32_t *first = l->places + !task->before;

	if (pending && task->before)
		return;
	l->places[1] = t.kinds[WAIT_FOUND];
	first[0] = t.kinds[a->kind];
	waits_slept(s->store.waits, task,
		    stacks_intern(t.stacks, first, nr ? nr + 1 + task->before : 1), a->time_ns);
}

/* Take the results of a job that has ended. */
static void take_job(struct sampler *s, struct sleepers *l)
{
	struct sleep_job *j = l->job;

	pipeline_use(l->pipeline, sampler_thread_tables(s->live.shared));
	for (uint32_t i = 0; i < j->nr; i++)
		if (j->copies[i].kind)
			count_copy(s, l, &j->tasks[i], &j->copies[i]);
	if (pipeline_take_asked(l->pipeline))
		symbols_wake(s->store.symbols);
	helper_job_leave(&j->job);
	l->job = NULL;
}

/* Start a job for the next tasks; false: there are none. */
static bool start_job(struct sampler *s, struct sleepers *l, bool all)
{
	struct sleep_job *j = calloc(1, sizeof(*j));

	if (!j)
		return false;
	j->job.run = read_all;
	j->job.drop = drop;
	j->began_ns = time_now_ns();
	j->nr = waits_sleepers(s->store.waits, all, j->tasks, JOB_TASKS);
	if (!j->nr || helpers_start(l->helpers, &j->job)) {
		free(j);
		return false;
	}
	l->job = j;
	return true;
}

bool sleepers_look(struct sampler *s, bool all)
{
	struct sleepers *l = get_sleepers(s);

	if (!l || l->hangs)
		return false;
	if (l->job && !helper_job_done(&l->job->job)) {
		if (time_now_ns() < l->job->began_ns + HANG_NS)
			return true;
		helper_job_leave(&l->job->job);
		l->job = NULL;
		l->hangs = true;
		return false;
	}
	if (l->job)
		take_job(s, l);
	return start_job(s, l, all);
}
