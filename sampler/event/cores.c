// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Types of cores, from /sys/bus/event_source/devices: a PMU of cores has a file "cpus", others
 * have "cpumask".
 *
 * Any thread; no state. Invariant: there are no types, or at least two.
 */
#include "sampler/event/cores.h"

#include <assert.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/event/event_parse.h"
#include "sampler/event/task_list.h"

#define PMU_DIR	   "/sys/bus/event_source/devices"
#define TYPE_SHIFT 32 /* PERF_PMU_TYPE_SHIFT */

/* Set the bits of "0-3,5" in @cpus. False: it is no list of CPUs. */
static bool set_cpus(uint64_t *cpus, const char *text)
{
	int *list, nr = task_list_cpus(text, &list);

	if (nr <= 0)
		return false;
	for (int i = 0; i < nr; i++)
		if (list[i] < CORE_CPUS_MAX)
			cpus[list[i] / 64] |= 1ULL << list[i] % 64;
	free(list);
	return true;
}

static void name_type(struct core_type *type, const char *pmu)
{
	static const char *const prefixes[] = { "cpu_", "armv8_", "armv9_" };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (!strncmp(pmu, prefixes[i], strlen(prefixes[i])) && pmu[strlen(prefixes[i])])
			pmu += strlen(prefixes[i]);
	snprintf(type->name, sizeof(type->name), "%.23s", pmu);
}

static bool read_type(struct core_type *type, const char *root, const char *pmu)
{
	char path[512], text[4096];

	*type = (struct core_type){ .pmu_type = 0 };
	snprintf(path, sizeof(path), "%s" PMU_DIR "/%.100s/cpus", root, pmu);
	if (!pmu_is_word(pmu) || !pmu_read_line(path, text, sizeof(text)) ||
	    !set_cpus(type->cpus, text))
		return false;
	name_type(type, pmu);
	return pmu_type(root, pmu, &type->pmu_type);
}

void core_types_read(struct core_types *t, const char *root)
{
	struct dirent **list;
	char path[512];
	int nr;

	t->nr = 0;
	snprintf(path, sizeof(path), "%s" PMU_DIR, root);
	nr = scandir(path, &list, NULL, alphasort);
	for (int i = 0; i < nr; i++) {
		if (t->nr < CORE_TYPES_MAX)
			t->nr += read_type(&t->types[t->nr], root, list[i]->d_name);
		free(list[i]);
	}
	if (nr >= 0)
		free(list);
	t->nr = t->nr > 1 ? t->nr : 0;
}

static bool has_cpu(const struct core_type *type, int cpu)
{
	return cpu >= 0 && cpu < CORE_CPUS_MAX && type->cpus[cpu / 64] >> cpu % 64 & 1;
}

const struct core_type *core_types_of(const struct core_types *t, int cpu)
{
	assert(t->nr <= CORE_TYPES_MAX);
	for (uint32_t i = 0; i < t->nr; i++)
		if (has_cpu(&t->types[i], cpu))
			return &t->types[i];
	return NULL;
}

/* rNNN and "cpu_core/…/" may have the same type. */
static bool names_pmu(const struct event *ev)
{
	return ev->type >= PERF_TYPE_RAW && strchr(ev->name, '/');
}

bool core_types_has(const struct core_types *t, const struct event *ev, int cpu)
{
	for (uint32_t i = 0; i < t->nr && names_pmu(ev); i++)
		if (t->types[i].pmu_type == ev->type)
			return has_cpu(&t->types[i], cpu);
	return true;
}

void core_types_set(const struct core_types *t, const struct event *ev, int cpu, bool plain,
		    struct perf_event_attr *attr)
{
	const struct core_type *type = core_types_of(t, cpu);

	if (!type || names_pmu(ev))
		return;
	if (ev->type == PERF_TYPE_RAW)
		attr->type = type->pmu_type;
	else if ((ev->type == PERF_TYPE_HARDWARE || ev->type == PERF_TYPE_HW_CACHE) && !plain)
		attr->config |= (uint64_t)type->pmu_type << TYPE_SHIFT;
}
