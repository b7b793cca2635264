/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A profile folded into rows: functions, processes. Pure; any thread.
 */
#ifndef SAMPLER_PROFILE_FOLD_H
#define SAMPLER_PROFILE_FOLD_H

#include "sampler/profile/profile.h"

/* The samples that count. */
struct fold_filter {
	uint32_t event;	      /* index in events */
	uint32_t also;	      /* a second event, in the same unit, as index + 1; 0: none */
	uint32_t process;     /* index in processes, or UINT32_MAX: all */
	uint32_t task;	      /* index in tasks, or UINT32_MAX: all */
	const uint8_t *tasks; /* borrowed; by index in tasks: 0 does not count; NULL: all do */
	/* Borrowed; by index in processes: processes with equal values are one. NULL: none are. */
	const uint32_t *groups;
	bool hide_kernel; /* leave kernel functions out (their samples are in the total) */
	bool hide_user;
	uint8_t hide_idle; /* waits of this enum profile_idle and above do not count; 0: all do */
};

static inline bool fold_passes_task(const struct profile *p, const struct fold_filter *f,
				    uint32_t task)
{
	return (f->task == UINT32_MAX || task == f->task) &&
	       (f->process == UINT32_MAX || p->tasks[task].process == f->process) &&
	       (!f->tasks || f->tasks[task]);
}

static inline bool fold_hides(const struct profile *p, uint8_t hide_idle, uint32_t stack)
{
	return hide_idle && p->stack_idle && p->stack_idle[stack] >= hide_idle;
}

/* Return whether the count passes, its task not considered. */
static inline bool fold_passes_kind(const struct profile *p, const struct fold_filter *f,
				    const struct profile_count *c)
{
	return (c->event == f->event || (f->also && c->event == f->also - 1)) &&
	       !fold_hides(p, f->hide_idle, c->stack);
}

static inline bool fold_passes(const struct profile *p, const struct fold_filter *f,
			       const struct profile_count *c)
{
	return fold_passes_kind(p, f, c) && fold_passes_task(p, f, c->task);
}

struct fold_row {
	uint32_t function;  /* index in functions */
	double self, total; /* samples; recursion counted once */
	double self_weight, total_weight;
	uint32_t task;	       /* the task with the largest share (index in tasks) */
	uint32_t nr_processes; /* how many processes it ran in */
	uint32_t nr_tasks;     /* how many threads */
	bool mixed;	       /* not all of these are of one group */
};

struct fold_functions {
	struct fold_row *rows; /* unsorted */
	uint32_t nr_rows;
	double count, weight; /* of all samples that passed the event and process filter */
};

struct fold_process_row {
	uint32_t process; /* index in processes */
	double count, weight;
	double cpu_ns; /* CPU time, where profile.cpu_known */
	uint32_t nr_tasks;
	uint32_t top_function; /* most self weight; UINT32_MAX: none */
};

struct fold_processes {
	struct fold_process_row *rows; /* unsorted */
	uint32_t nr_rows;
	/* By the value of a group: its function with most self weight, as in rows; NULL: no groups.
	 */
	uint32_t *group_tops;
	double count, weight;
};

/* Sums of one task. */
struct fold_task {
	double count, weight;
	double kernel;	       /* weight of samples in the kernel */
	uint32_t top_function; /* most self weight; UINT32_MAX: none */
};

/* 0 or -ENOMEM. Free with the matching fini. */
int fold_functions(const struct profile *p, const struct fold_filter *f,
		   struct fold_functions *out);
void fold_functions_fini(struct fold_functions *out);
int fold_processes(const struct profile *p, const struct fold_filter *f,
		   struct fold_processes *out);
void fold_processes_fini(struct fold_processes *out);
/* Sum the samples of the events of @f (and not of idle waits) by task, into @tasks (one entry per
 * task). */
void fold_tasks(const struct profile *p, const struct fold_filter *f, struct fold_task *tasks);
/*
 * Sum the CPU time of the tasks that pass by process, in ns, into @processes (one entry per
 * process), where profile.cpu_known. Return the sum of all, without a filter also of processes
 * that have no samples.
 */
double fold_cpu(const struct profile *p, const struct fold_filter *f, double *processes);
/*
 * Sum the time of each task by kind, in nanoseconds: running, and waits by kind, into
 * @tasks[task][enum wait_kind] (one entry per task). Zero where waits are not measured. @hide_idle:
 * as in a filter; hidden waits are under WAIT_NO.
 */
void fold_waits(const struct profile *p, uint8_t hide_idle, double (*tasks)[WAIT_NR]);
/*
 * Find the hottest source line of each function (index in lines, or PROFILE_NO_LINE), into @lines
 * (one entry per function). 0 or -ENOMEM.
 */
int fold_lines(const struct profile *p, const struct fold_filter *f, uint32_t *lines);
/* The same; a function without self samples has the line of its heaviest count as a caller.
 */
int fold_all_lines(const struct profile *p, const struct fold_filter *f, uint32_t *lines);

#endif
