// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The attributes of our events, in one place.
 *
 * Pure. Invariant: all events that share a ring have the same clock and the
 * same id block, or a reader could not distinguish their records.
 */
#include "sampler/event/attr.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "sampler/ring/ring.h"

/* kernel.perf_event_max_stack, plus the context markers. */
#define CHAIN_MAX (127 + 8)

static void set_clock(struct perf_event_attr *attr)
{
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	attr->sample_id_all = 1;
}

uint64_t attr_rate(const struct event *ev, double hz)
{
	double rate = ev->clock ? 1e9 / hz : hz;

	return rate < 1 ? 1 : (uint64_t)llround(rate);
}

/* Clocks get their period in ns: the kernel would convert a rate into one, rounded. */
static void set_rate(struct perf_event_attr *attr, const struct attr_config *config,
		     const struct event *ev, double hz)
{
	hz = ev->hz > 0 ? ev->hz : hz;
	if (ev->period || (config->period && !(ev->hz > 0))) {
		attr->sample_period = ev->period ? ev->period : config->period;
	} else if (ev->clock) {
		attr->sample_period = attr_rate(ev, hz);
	} else {
		attr->freq = 1;
		attr->sample_freq = attr_rate(ev, hz);
	}
}

uint64_t attr_sample_type(const struct attr_config *config)
{
	if (config->stack_size)
		return RECORD_SAMPLE_TYPE | RECORD_STACK_TYPE;
	return config->no_chain ? RECORD_SAMPLE_TYPE & ~(uint64_t)PERF_SAMPLE_CALLCHAIN
				: RECORD_SAMPLE_TYPE;
}

void attr_sample(struct perf_event_attr *attr, const struct attr_config *config,
		 const struct event *ev, double hz)
{
	event_attr(ev, attr);
	/* Without a chain a switch has no stack: each would cost the task, and its sample be
	 * useless. */
	if (ev->wait && config->no_chain)
		attr->config = PERF_COUNT_SW_DUMMY;
	set_clock(attr);
	if (!ev->counted)
		set_rate(attr, config, ev, hz);
	attr->disabled = 1;
	/*
	 * Switches, begins and ends of tasks, and exec, in order with the samples. Switches of
	 * whole CPUs have a separate event, as they may be recorded for a part of the time.
	 */
	attr->task = ev->wait;
	attr->comm = attr->comm_exec = ev->wait;
	attr->context_switch = ev->wait && config->tasks;
	/* A sample does not distinguish the counts of a task and of its children: as perf record.
	 */
	attr->inherit = config->tasks && !config->no_inherit && !ev->read;
	attr->enable_on_exec = config->enable_on_exec;
	attr->exclude_idle = config->exclude_idle && ev->clock;
	attr->sample_type = attr_sample_type(config);
	attr->exclude_callchain_kernel = !ev->kernel;
	if (config->stack_size) {
		attr->sample_regs_user = config->regs_mask;
		attr->sample_stack_user = config->stack_size;
		/* the stack copy has it all: the kernel's walk would only cost */
		attr->exclude_callchain_user = 1;
	}
	/* Refused otherwise. */
	if (!strcmp(ev->name, EVENT_FUNCTION))
		attr->exclude_callchain_user = 1;
	attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
			    PERF_FORMAT_ID | PERF_FORMAT_LOST;
	if (ev->read) {
		attr->sample_type |= PERF_SAMPLE_READ;
		attr->read_format |= PERF_FORMAT_GROUP;
	}
	/* The ring's watermark is its owner's; this keeps the event from waking at every sample. */
	attr->watermark = 1;
}

void attr_waking(struct perf_event_attr *attr, const struct event *ev)
{
	event_attr(ev, attr);
	set_clock(attr);
	attr->sample_period = 1;
	attr->sample_type = ATTR_WAKING_TYPE;
	attr->disabled = 1;
	attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
			    PERF_FORMAT_ID | PERF_FORMAT_LOST;
	attr->watermark = 1;
}

void attr_leader(struct perf_event_attr *attr, size_t watermark)
{
	*attr = (struct perf_event_attr){
		.size = sizeof(*attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = ATTR_SIDE_TYPE,
		.disabled = 1,
		/* without these only root may open it */
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.watermark = 1,
		.wakeup_watermark = (uint32_t)watermark,
	};
	set_clock(attr);
}

void attr_switches(struct perf_event_attr *attr)
{
	attr_leader(attr, 0);
	attr->context_switch = 1;
}

void attr_side(struct perf_event_attr *attr, bool tasks, size_t ring_size)
{
	attr_leader(attr, ring_size / 8);
	attr->disabled = 0;
	attr->inherit = tasks;
	attr->mmap = attr->mmap2 = 1;
	attr->comm = attr->comm_exec = 1;
	attr->task = 1;
	attr->ksymbol = 1;
	attr->bpf_event = 1;
	/* It ends when its CPU goes offline. */
	attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
}

size_t attr_sample_max(const struct attr_config *config)
{
	size_t size = sizeof(struct perf_event_header);

	size += 7 * sizeof(uint64_t); /* identifier ... period */
	if (attr_sample_type(config) & PERF_SAMPLE_CALLCHAIN)
		size += (1 + CHAIN_MAX) * sizeof(uint64_t);
	size += (3 + 3 * EVENTS_MAX) * sizeof(uint64_t); /* counts of a group */
	if (config->stack_size)
		size += (1 + (size_t)__builtin_popcountll(config->regs_mask)) * sizeof(uint64_t) +
			2 * sizeof(uint64_t) + config->stack_size;
	return MIN(size, UINT16_MAX);
}
