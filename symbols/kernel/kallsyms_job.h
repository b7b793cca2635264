/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Read the symbol list of the kernel on a helper, ahead of its first use: the
 * kernel takes longer to write it than the replay of a short recording takes.
 *
 * Runs on: the loader; the reading on a helper.
 */
#ifndef SYMBOLS_KERNEL_KALLSYMS_JOB_H
#define SYMBOLS_KERNEL_KALLSYMS_JOB_H

#include "symbols/base/helper.h"
#include "symbols/kernel/kallsyms.h"

struct kallsyms_job;

struct kallsyms_job_result {
	struct kallsyms *list;	    /* owned by the caller if rc is 0 */
	int rc;			    /* result of kernel_cage_list(); -ETIME: it hangs */
	uint64_t start_ns, cost_ns; /* begin; CPU time */
};

/* Start to read @path below @root, as kernel_cage_list(). NULL: no helper is free. */
struct kallsyms_job *kallsyms_job_start(const char *root, const char *path,
					struct helpers *helpers);
/* Wait for the end of @job; without a job (NULL) read @path on this thread. */
void kallsyms_job_take(struct kallsyms_job *job, const char *root, const char *path,
		       struct kallsyms_job_result *out);
/* Abandon @job, which may be NULL. */
void kallsyms_job_leave(struct kallsyms_job *job);

#endif
