// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copies of targets, and rates of events.
 *
 * Runs on: any thread.
 */
#include "sampler/config.h"

#include <stdlib.h>
#include <string.h>

#include "symbols/lang/lang.h"

static void *copy_array(const void *p, size_t nr, size_t size)
{
	void *copy = p && nr ? xcalloc(nr, size) : NULL;

	if (copy)
		memcpy(copy, p, nr * size);
	return copy;
}

static char *copy_text(const char *text)
{
	return text ? xstrndup(text, strlen(text)) : NULL;
}

struct sampler_target_spec *config_copy_spec(const struct sampler_target_spec *spec)
{
	struct sampler_target_spec *copy = xcalloc(1, sizeof(*copy));

	*copy = *spec;
	copy->pids = copy_array(spec->pids, spec->nr_pids, sizeof(*spec->pids));
	copy->cpus = copy_array(spec->cpus, spec->nr_cpus, sizeof(*spec->cpus));
	copy->cgroup = copy_text(spec->cgroup);
	copy->name = copy_text(spec->name);
	return copy;
}

void config_free_spec(struct sampler_target_spec *spec)
{
	if (!spec)
		return;
	free((void *)(uintptr_t)spec->pids);
	free((void *)(uintptr_t)spec->cpus);
	free((void *)(uintptr_t)spec->cgroup);
	free((void *)(uintptr_t)spec->name);
	free(spec);
}

struct sampler_target_spec *config_get_spec(const struct sampler_config *c)
{
	return config_copy_spec(&(struct sampler_target_spec){
		.target = c->target,
		.pids = c->pids,
		.nr_pids = c->nr_pids,
		.uid = c->uid,
		.cgroup = c->cgroup,
		.name = c->name,
		.cpus = c->cpus,
		.nr_cpus = c->nr_cpus,
	});
}

void config_set_spec(struct sampler_config *c, const struct sampler_target_spec *spec)
{
	c->target = spec->target;
	c->pids = spec->pids;
	c->nr_pids = spec->nr_pids;
	c->uid = spec->uid;
	c->cgroup = spec->cgroup;
	c->name = spec->name;
	c->cpus = spec->cpus;
	c->nr_cpus = spec->nr_cpus;
}

void config_set_spec_cpus(struct sampler_target_spec *spec, const int *cpus, uint32_t nr)
{
	free((void *)(uintptr_t)spec->cpus);
	spec->cpus = copy_array(cpus, nr, sizeof(*cpus));
	spec->nr_cpus = nr;
}

int config_latency_slot(const struct sampler_config *c)
{
	for (uint32_t i = 0; i < c->nr_events; i++)
		if (!c->events[i].wait && !c->events[i].counted)
			return (int)i;
	return -1;
}

int config_wait_slot(const struct sampler_config *c)
{
	for (uint32_t i = 0; i < c->nr_events; i++)
		if (c->events[i].wait)
			return (int)i;
	return -1;
}

double config_default_hz(uint32_t nr_cpus)
{
	unsigned int hz = (unsigned int)SAMPLER_HZ_DEFAULT;

	if (nr_cpus > SAMPLER_HZ_CPUS)
		hz = MAX(hz * SAMPLER_HZ_CPUS / nr_cpus, 20u);
	return hz - !(hz % 2);
}

bool config_user_only(struct event *events, uint32_t nr)
{
	bool any = false;

	for (uint32_t i = 0; i < nr; i++) {
		if (events[i].kernel && !events[i].user)
			return false;
		any |= events[i].kernel;
	}
	for (uint32_t i = 0; i < nr; i++)
		events[i].kernel = events[i].hv = false;
	return any;
}

double config_hz(const struct sampler_config *c, const struct event *ev)
{
	if (ev->period || ev->counted)
		return 0;
	if (ev->hz > 0)
		return ev->hz;
	return c->period ? 0 : c->hz;
}

uint32_t config_language(const char *name)
{
	for (int i = LANG_NONE + 1; i < LANG_NR; i++)
		if (!strcmp(lang_name((enum lang_kind)i), name))
			return lang_bit((enum lang_kind)i);
	return strcmp(name, "java") ? 0 : CONFIG_JAVA;
}
