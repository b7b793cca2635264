/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Machines with cores of several types, each with a PMU ("cpu_core" and "cpu_atom",
 * "armv8_cortex_a53" and "armv8_cortex_a72"), as /sys describes them. Reading: any thread.
 */
#ifndef SAMPLER_EVENT_CORES_H
#define SAMPLER_EVENT_CORES_H

#include <linux/perf_event.h>

#include "sampler/event/event_type.h"
#include "symbols/base/base.h"

#define CORE_TYPES_MAX 8
#define CORE_CPUS_MAX  8192

struct core_type {
	char name[24];	   /* of the PMU, without "cpu_" or "armv8_": "core", "cortex_a53" */
	uint32_t pmu_type; /* PERF_TYPE of its events */
	uint64_t cpus[CORE_CPUS_MAX / 64];
};

struct core_types {
	uint32_t nr; /* 0: all cores are alike */
	struct core_type types[CORE_TYPES_MAX];
};

/* Read the types below @root ("" but in tests). */
void core_types_read(struct core_types *t, const char *root);
/* Return the type of @cpu; NULL: all are alike, or it has none. */
const struct core_type *core_types_of(const struct core_types *t, int cpu);
/* Return whether @ev exists on @cpu. An event of one PMU exists on the CPUs of that PMU. */
bool core_types_has(const struct core_types *t, const struct event *ev, int cpu);
/*
 * Make @attr of the general event @ev (cycles, a cache event, rNNN) that of the core type of @cpu.
 * @plain: without the type in the config, which kernels of Arm before 6.6 refuse; they choose by
 * the CPU.
 */
void core_types_set(const struct core_types *t, const struct event *ev, int cpu, bool plain,
		    struct perf_event_attr *attr);

#endif
