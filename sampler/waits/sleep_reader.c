// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One job at a time reads the stacks of sleeping tasks, or kinds of waits, on a helper.
 *
 * Runs on: the owner; read_all() on a helper. A process may hang its reader (userfaultfd, a file
 * system that does not respond): that job is put aside until it ends, and the process is
 * reported until then.
 */
#include "sampler/waits/sleep_reader.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "symbols/base/helper.h"

/* A read that takes longer hangs; a job that takes longer hangs in the process that it reads. */
#define HANG_NS	    1000000000ULL
#define JOB_HANG_NS (4 * HANG_NS)
/* Jobs that may hang. */
#define HUNG_MAX (HELPERS_MAX / 2)

struct sleep_job {
	struct job job;
	uint64_t began_ns;
	struct sleep_reader_calls calls;
	atomic_int pid; /* of the process that is read; 0: none. Relaxed: a number */
	/* Copies that are complete. Release by the helper, acquire in sleep_reader_copies(). */
	atomic_uint nr_read;
	uint32_t nr;
	struct sleep_copy copies[SLEEP_READER_KINDS];
	struct asleep stacks[]; /* SLEEP_READER_TASKS, or none */
};

struct sleep_reader {
	struct helpers *helpers;
	struct sleep_reader_calls calls;
	struct sleep_job *job; /* NULL: none */
	/* Jobs that hang, and their processes, by index. */
	struct sleep_job *left[HUNG_MAX];
	pid_t hung[HUNG_MAX];
	unsigned int nr_hung;
};

static void read_task(const struct sleep_job *j, struct sleep_copy *c)
{
	c->time_ns = time_now_ns();
	if (!c->copy) {
		c->kind = j->calls.kind_of(c->task.tid);
		return;
	}
	c->copy->pid = c->task.pid;
	c->copy->tid = c->task.tid;
	j->calls.read(c->copy);
	c->kind = c->copy->kind;
}

static void read_all(struct job *job)
{
	struct sleep_job *j = (struct sleep_job *)job;

	for (uint32_t i = 0; i < j->nr && !watch_begin(&job->watch); i++) {
		atomic_store_explicit(&j->pid, j->copies[i].task.pid, memory_order_relaxed);
		read_task(j, &j->copies[i]);
		atomic_store_explicit(&j->nr_read, i + 1, memory_order_release);
		atomic_store_explicit(&j->pid, 0, memory_order_relaxed);
		watch_end(&job->watch, 0);
	}
}

static void drop(struct job *job)
{
	free(job);
}

struct sleep_reader *sleep_reader_new(struct sleep_reader_calls calls)
{
	struct sleep_reader *r = calloc(1, sizeof(*r));

	if (!r || helpers_new(&r->helpers, -1)) {
		free(r);
		return NULL;
	}
	r->calls = calls;
	return r;
}

void sleep_reader_free(struct sleep_reader *r)
{
	if (!r)
		return;
	sleep_reader_drop(r);
	for (uint32_t i = 0; i < r->nr_hung; i++)
		helper_job_leave(&r->left[i]->job);
	helpers_free(r->helpers, time_now_ns() + HANG_NS / 10);
	free(r);
}

bool sleep_reader_stopped(const struct sleep_reader *r)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < r->nr_hung; i++)
		nr += !helper_job_done(&r->left[i]->job);
	return nr == HUNG_MAX;
}

/* Free the jobs that no longer hang: their processes ended, went on, or proftop was stopped. */
static void tidy(struct sleep_reader *r)
{
	uint32_t kept = 0;

	assert(!r->job);
	for (uint32_t i = 0; i < r->nr_hung; i++) {
		if (helper_job_done(&r->left[i]->job)) {
			free(r->left[i]);
			continue;
		}
		r->left[kept] = r->left[i];
		r->hung[kept++] = r->hung[i];
	}
	r->nr_hung = kept;
}

/* Test whether the present job was found to hang. */
static bool is_left(const struct sleep_reader *r)
{
	return r->nr_hung && r->left[r->nr_hung - 1] == r->job;
}

enum sleep_reader_state sleep_reader_look(struct sleep_reader *r, uint64_t now_ns)
{
	struct sleep_job *j = r->job;
	pid_t pid;

	if (!j) {
		tidy(r);
		return r->nr_hung == HUNG_MAX ? SLEEP_READER_STOPPED : SLEEP_READER_IDLE;
	}
	if (helper_job_done(&j->job) || is_left(r))
		return is_left(r) ? SLEEP_READER_HUNG : SLEEP_READER_DONE;
	/* Between two reads, or before the first one, there is no process to blame. */
	pid = atomic_load_explicit(&j->pid, memory_order_relaxed);
	if (!pid || (watch_blocked_ns(&j->job.watch, now_ns) < HANG_NS &&
		     now_ns < j->began_ns + JOB_HANG_NS))
		return SLEEP_READER_BUSY;
	r->left[r->nr_hung] = j;
	r->hung[r->nr_hung++] = pid;
	return SLEEP_READER_HUNG;
}

struct waits_barred sleep_reader_hung(const struct sleep_reader *r)
{
	return (struct waits_barred){ r->hung, r->nr_hung };
}

const struct sleep_copy *sleep_reader_copies(const struct sleep_reader *r, uint32_t *nr)
{
	assert(r->job);
	*nr = atomic_load_explicit(&r->job->nr_read, memory_order_acquire);
	return r->job->copies;
}

void sleep_reader_drop(struct sleep_reader *r)
{
	if (!r->job)
		return;
	if (is_left(r))
		/* It ends with this read. */
		atomic_store_explicit(&r->job->job.watch.cancel, true, memory_order_relaxed);
	else
		helper_job_leave(&r->job->job);
	r->job = NULL;
	tidy(r);
}

bool sleep_reader_start(struct sleep_reader *r, const struct waits_sleeper *tasks, uint32_t nr,
			bool stacks)
{
	struct sleep_job *j;

	assert(!r->job && nr <= (stacks ? SLEEP_READER_TASKS : SLEEP_READER_KINDS));
	if (!nr || r->nr_hung == HUNG_MAX)
		return false;
	j = calloc(1, sizeof(*j) + (stacks ? SLEEP_READER_TASKS * sizeof(j->stacks[0]) : 0));
	if (!j)
		return false;
	j->job.run = read_all;
	j->job.drop = drop;
	j->calls = r->calls;
	j->began_ns = time_now_ns();
	j->nr = nr;
	for (uint32_t i = 0; i < nr; i++)
		j->copies[i] = (struct sleep_copy){ .task = tasks[i],
						    .copy = stacks ? &j->stacks[i] : NULL };
	if (helpers_start(r->helpers, &j->job)) {
		free(j);
		return false;
	}
	r->job = j;
	return true;
}
