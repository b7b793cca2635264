// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A job for a helper: read the symbol list of the kernel.
 *
 * Runs on: the loader; run() on a helper. Invariant: the job shares no memory with
 * the loader.
 */
#include "symbols/kernel/kallsyms_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/kernel/kernel_cage.h"

#define WAIT_NS 10000000000ULL

struct kallsyms_job {
	struct job job;
	struct helpers *helpers;
	char *root, *path;
	struct kallsyms_job_result result;
};

static void read_list(struct kallsyms_job_result *r, const char *root, const char *path)
{
	uint64_t cpu_ns = time_thread_ns();

	r->start_ns = time_now_ns();
	r->rc = kernel_cage_list(&r->list, root, path, NULL);
	r->cost_ns = time_thread_ns() - cpu_ns;
}

static void run(struct job *job)
{
	struct kallsyms_job *j = (struct kallsyms_job *)job;

	read_list(&j->result, j->root, j->path);
}

static void drop(struct job *job)
{
	struct kallsyms_job *j = (struct kallsyms_job *)job;

	kallsyms_free(j->result.list);
	free(j->root);
	free(j->path);
	free(j);
}

struct kallsyms_job *kallsyms_job_start(const char *root, const char *path, struct helpers *helpers)
{
	struct kallsyms_job *j = xcalloc(1, sizeof(*j));

	j->job.run = run;
	j->job.drop = drop;
	j->helpers = helpers;
	j->root = root ? strdup(root) : NULL;
	j->path = strdup(path);
	if (j->path && (!root || j->root) && !helpers_start(helpers, &j->job))
		return j;
	drop(&j->job);
	return NULL;
}

void kallsyms_job_take(struct kallsyms_job *j, const char *root, const char *path,
		       struct kallsyms_job_result *out)
{
	*out = (struct kallsyms_job_result){ .rc = -ETIME, .start_ns = time_now_ns() };
	if (!j) {
		read_list(out, root, path);
	} else if (helpers_wait(j->helpers, &j->job, time_now_ns() + WAIT_NS)) {
		*out = j->result;
		j->result.list = NULL;
		drop(&j->job);
	} else {
		helper_job_leave(&j->job);
	}
}

void kallsyms_job_leave(struct kallsyms_job *j)
{
	if (j)
		helper_job_leave(&j->job);
}
