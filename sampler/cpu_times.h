/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CPU time of the sampled tasks, from clocks of the kernel: samples of tasks that run in short
 * pieces are too few, and say how the time is shared only. Each slice of the history gets it as
 * counts of PROFILE_CPU (of a task) and PROFILE_CPU_REST (of its process, and of no sampled task).
 *
 * Samples stand for the time where no clock does: in the slice in which a process was first sampled
 * and existed before, and in that of its end. What is left of the time of all tasks is of
 * tasks that have ended. A process and each thread without samples in a slice has its time at the
 * end of a tick.
 *
 * Runs on: the builder, online for urcu-qsbr.
 */
#ifndef SAMPLER_CPU_TIMES_H
#define SAMPLER_CPU_TIMES_H

#include <sys/types.h>

#include "sampler/count/count.h"
#include "symbols/base/base.h"
#include "symbols/process/maps.h"

/* Clocks of the kernel, replaceable by tests: set *ns to the CPU time so far. False: not known. */
struct cpu_times_clocks {
	bool (*process)(void *ctx, pid_t pid, uint64_t *ns);
	bool (*thread)(void *ctx, pid_t pid, pid_t tid, uint64_t *ns);
	void *ctx;
};

struct cpu_times_input {
	struct maps *maps;
	uint32_t generation; /* of the ids of tasks */
	uint64_t begin_ns, now_ns;
	int event;	  /* its samples stand for time; -1: none */
	double sample_ns; /* time of one sample; 0: its weight */
	int wait_slot;	  /* an event that is no running time; -1: none */
	bool threads;	  /* single threads are sampled: a process has the time of these */
	bool tick;	  /* the slice is the last one of a tick */
	uint64_t all_ns;  /* of a tick: the time of all tasks, by their events; 0: not known */
};

struct cpu_times;

/* @clocks NULL: of the kernel; else copied. NULL: out of memory. */
struct cpu_times *cpu_times_new(const struct cpu_times_clocks *clocks);
void cpu_times_free(struct cpu_times *t);
/* Append the CPU time of the tasks to the *@nr @counts of a slice (malloc'ed, reallocated). Without
 * memory nothing is appended. */
void cpu_times_add(struct cpu_times *t, const struct cpu_times_input *in, struct count **counts,
		   uint32_t *nr);
/* Begin again: the time up to now is of no slice. */
void cpu_times_restart(struct cpu_times *t);
/* Forget all tasks: others are sampled now. */
void cpu_times_clear(struct cpu_times *t);

#endif
