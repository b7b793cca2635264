/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records of the existing state: the kernel's code, the names and mappings of running processes,
 * from /proc, as perf record puts them in front.
 *
 * Reads files, allocates: never on a sampler thread. A process controls the content of /proc/PID:
 * names are cut, padded and copied, no more.
 */
#ifndef SAMPLER_FILE_SYNTH_H
#define SAMPLER_FILE_SYNTH_H

#include <sys/types.h>

#include "symbols/base/base.h"

/* The id block of all our records (sample_id_all), in the order of perf_event_open(2). */
struct synth_id {
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t id;
};

struct slow_reads;

/* Takes one whole record. */
typedef void (*synth_fn)(void *ctx, const void *record, size_t size);

struct synth {
	const char *root; /* "": /proc; else a folder of a test */
	uint64_t time_ns; /* in the id block; 0: before everything, as perf has it */
	synth_fn fn;
	void *ctx;
	struct slow_reads *reads; /* of mappings, made with synth_read_file(); it counts the ones
				   * that hang, which are left out */
};

/* As slow_reads_fn. */
char *synth_read_file(const char *path, size_t max, size_t *size);
/* The kernel's mapping, if its addresses may be seen. */
void synth_kernel(const struct synth *s);
/* The process of a task, or if the task is not its first, the task's name alone. */
void synth_task(const struct synth *s, pid_t tid);
/* All of them. */
void synth_processes(const struct synth *s);

#endif
