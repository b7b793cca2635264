/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's list of symbols, read by a helper while others work: the kernel
 * takes longer to write it than a short recording takes to be replayed.
 *
 * Runs on: the loader; the reading on a helper.
 */
#ifndef SYMBOLS_KERNEL_KALLSYMS_JOB_H
#define SYMBOLS_KERNEL_KALLSYMS_JOB_H

#include "symbols/base/helper.h"
#include "symbols/kernel/kallsyms.h"

struct kallsyms_job;

struct kallsyms_job_result {
	struct kallsyms *list;	    /* the caller's, if rc is 0 */
	int rc;			    /* as of kallsyms_read(); -ETIME: it hangs */
	uint64_t start_ns, cost_ns; /* when it was begun; CPU time */
};

/* Have @path read. NULL: no helper is free. */
struct kallsyms_job *kallsyms_job_start(const char *path, struct helpers *helpers);
/* Wait for the end of @job; without one (NULL) read @path here. */
void kallsyms_job_take(struct kallsyms_job *job, const char *path, struct kallsyms_job_result *out);
/* It is not wanted any more. NULL is none. */
void kallsyms_job_leave(struct kallsyms_job *job);

#endif
