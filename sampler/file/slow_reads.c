// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One job for each process; one that hangs is kept until its read ends, and its thread is lost for
 * as long. Of one user only some are: others have the rest of the helpers.
 */
#include "sampler/file/slow_reads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/helper.h"
#include "symbols/process/procfs.h"

#define END_NS	   50000000ULL
#define STATUS_MAX 4096
#define PATH_ROOM  512
/* Of a name in the folder, with its slash. */
#define NAME_ROOM 8

struct slow_job {
	struct job job;
	slow_reads_fn read;
	uint64_t began_ns;
	uint64_t user; /* its real uid, once it hangs; UINT64_MAX: unknown */
	char process[PATH_ROOM];
	char *text;
	size_t size;
};

struct slow_reads {
	slow_reads_fn read;
	uint64_t hang_ns;
	struct helpers *helpers;
	struct slow_job *hung[HELPERS_MAX]; /* some have ended, but not long ago */
	unsigned int nr_hung;
	uint64_t nr_left_out;
};

static void run(struct job *job)
{
	struct slow_job *j = (struct slow_job *)job;
	char path[PATH_ROOM + NAME_ROOM];

	snprintf(path, sizeof(path), "%s/maps", j->process);
	j->text = j->read(path, PROCFS_MAPS_SIZE_MAX, &j->size);
	/* Mappings that arrive late are not kept: they may have 16 MiB. */
	if (!atomic_load_explicit(&job->watch.cancel, memory_order_relaxed))
		return;
	free(j->text);
	j->text = NULL;
}

static void drop(struct job *job)
{
	struct slow_job *j = (struct slow_job *)job;

	free(j->text);
	free(j);
}

struct slow_reads *slow_reads_new(slow_reads_fn read, uint64_t hang_ns)
{
	struct slow_reads *r = calloc(1, sizeof(*r));

	if (!r || helpers_new(&r->helpers, -1)) {
		free(r);
		return NULL;
	}
	r->read = read;
	r->hang_ns = hang_ns;
	return r;
}

/* Return the real uid of a process, from its status, which does not hang; UINT64_MAX: unknown. */
static uint64_t user_of(const struct slow_reads *r, const char *process)
{
	char path[PATH_ROOM + NAME_ROOM], *text;
	uint64_t user;
	size_t size;

	snprintf(path, sizeof(path), "%s/status", process);
	text = r->read(path, STATUS_MAX, &size);
	if (!text || !procfs_status_number(text, size, "Uid", &user))
		user = UINT64_MAX;
	free(text);
	return user;
}

/* Free the reads that have ended, but not soon: else a user could end and begin them in a loop. */
static void tidy(struct slow_reads *r)
{
	uint64_t now_ns = time_now_ns();
	unsigned int kept = 0;

	for (unsigned int i = 0; i < r->nr_hung; i++) {
		struct slow_job *j = r->hung[i];

		if (helper_job_done(&j->job) &&
		    now_ns >= j->began_ns + SLOW_READS_REST * r->hang_ns)
			drop(&j->job);
		else
			r->hung[kept++] = j;
	}
	r->nr_hung = kept;
}

/* Test whether a process is left out: it hangs, or too many of its user or of all do. */
static bool is_left_out(const struct slow_reads *r, const char *process)
{
	unsigned int nr_of_user = 0;
	uint64_t user;

	for (unsigned int i = 0; i < r->nr_hung; i++)
		if (!helper_job_done(&r->hung[i]->job) && !strcmp(r->hung[i]->process, process))
			return true;
	if (r->nr_hung < SLOW_READS_OF_USER)
		return false;
	user = user_of(r, process);
	for (unsigned int i = 0; i < r->nr_hung; i++)
		nr_of_user += r->hung[i]->user == user;
	return nr_of_user >= SLOW_READS_OF_USER || r->nr_hung == HELPERS_MAX;
}

/* Start a read; NULL: out of memory, or of threads. */
static struct slow_job *start(struct slow_reads *r, const char *process)
{
	struct slow_job *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->job.run = run;
	j->job.drop = drop;
	j->read = r->read;
	j->began_ns = time_now_ns();
	snprintf(j->process, sizeof(j->process), "%s", process);
	if (helpers_start(r->helpers, &j->job)) {
		drop(&j->job);
		return NULL;
	}
	return j;
}

/* Wait for a read; false: it hangs, and is kept aside. */
static bool wait_for(struct slow_reads *r, struct slow_job *j)
{
	if (helpers_wait(r->helpers, &j->job, j->began_ns + r->hang_ns))
		return true;
	atomic_store_explicit(&j->job.watch.cancel, true, memory_order_relaxed);
	j->user = user_of(r, j->process);
	r->hung[r->nr_hung++] = j;
	return false;
}

char *slow_reads_maps(struct slow_reads *r, const char *process, size_t *size)
{
	struct slow_job *j;
	char *text;

	tidy(r);
	j = is_left_out(r, process) ? NULL : start(r, process);
	if (!j || !wait_for(r, j)) {
		r->nr_left_out++;
		return NULL;
	}
	text = j->text;
	*size = j->size;
	j->text = NULL;
	drop(&j->job);
	return text;
}

uint64_t slow_reads_left_out(const struct slow_reads *r)
{
	return r->nr_left_out;
}

void slow_reads_free(struct slow_reads *r)
{
	if (!r)
		return;
	for (unsigned int i = 0; i < r->nr_hung; i++)
		helper_job_leave(&r->hung[i]->job);
	helpers_free(r->helpers, time_now_ns() + END_NS);
	free(r);
}
