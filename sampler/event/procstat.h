/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Figures of /proc: how busy each CPU is, the cost of proftop itself, the kernel's limits for perf
 * events.
 *
 * One thread at a time (the builder). Missing or odd files give zeros.
 */
#ifndef SAMPLER_EVENT_PROCSTAT_H
#define SAMPLER_EVENT_PROCSTAT_H

#include "symbols/base/base.h"

struct procstat;

/* @root is put before /proc ("" but in tests). 0, or -errno with a sentence: no /proc. */
int procstat_new(struct procstat **out, const char *root, struct err *e);
void procstat_free(struct procstat *p);

/* Once a tick: read /proc/stat. 0 or -errno (the old values are kept). */
int procstat_update(struct procstat *p);
/*
 * Busy share 0..1 between the last two updates, from the time not spent idle
 * or waiting for I/O. @online (may be NULL): the CPU was there at the last one.
 */
double procstat_busy(const struct procstat *p, int cpu, bool *online);

/* How much of the time some task waited, 0..1 over the last ten seconds, from /proc/pressure. */
struct procstat_pressure {
	double cpu, io, memory;
};
/* At the last update. Zeros if the kernel has no such figures. */
struct procstat_pressure procstat_pressure(const struct procstat *p);

/* CPU of this process since the last call, in percent of one CPU, and its resident memory. */
void procstat_self(struct procstat *p, double *cpu_pct, uint64_t *rss_kb);

/* kernel.perf_event_max_sample_rate now; 0: not readable. */
uint64_t procstat_max_sample_rate(const struct procstat *p);
/* One number of /proc/sys/kernel. 0, -errno, or -EINVAL if it is none. Any thread. */
int procstat_sysctl(const char *root, const char *name, long *value);
/* The level of kernel lockdown: "none", "integrity", "confidentiality"; "" if unknown. Any thread.
 */
void procstat_lockdown(const char *root, char *dst, size_t size);
/* Return whether proftop is in another PID namespace than the first: see pid_namespaces(7). */
bool procstat_pid_namespace(const char *root);

#endif
