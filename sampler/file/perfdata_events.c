// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perf_event_attr of a file -> how its records are decoded and counted.
 */
#include "sampler/file/perfdata_events.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "symbols/base/keyhash.h"
#include "symbols/base/text.h"

/* Name an event that has no name in the file. */
static void name_event(struct perfdata_event *ev, const struct perf_event_attr *attr)
{
	const struct event known = { .type = attr->type, .config = attr->config };
	const struct event_info *info = event_info(&known);

	if (info)
		snprintf(ev->event.name, sizeof(ev->event.name), "%s", info->name);
	else
		snprintf(ev->event.name, sizeof(ev->event.name), "%u:%#llx", attr->type,
			 (unsigned long long)attr->config);
}

/* Make room for one more event. */
static void make_room(struct perfdata_events *t)
{
	if (t->nr < t->room)
		return;
	t->room = MAX(2 * t->room, 4U);
	t->events = xrealloc_array(t->events, t->room, sizeof(*t->events));
	t->attrs = xrealloc_array(t->attrs, t->room, sizeof(*t->attrs));
	t->hashes = xrealloc_array(t->hashes, t->room, sizeof(*t->hashes));
}

int perfdata_events_add(struct perfdata_events *t, const uint8_t *bytes, size_t size,
			uint32_t *index)
{
	struct perf_event_attr attr = { 0 };
	struct perfdata_event *ev;

	if (size < PERF_ATTR_SIZE_VER0)
		return -EINVAL;
	if (t->nr == PERFDATA_EVENTS_MAX)
		return -E2BIG;
	memcpy(&attr, bytes, MIN(size, sizeof(attr)));
	make_room(t);
	*index = t->nr++;
	t->attrs[*index] = attr;
	t->hashes[*index] = keyhash_name((const char *)bytes, size);
	ev = &t->events[*index];
	*ev = (struct perfdata_event){ .nr_samples = 0 };
	ev->layout = (struct record_layout){
		.sample_type = attr.sample_type,
		.regs_mask = attr.sample_type & PERF_SAMPLE_REGS_USER ? attr.sample_regs_user : 0,
		.branch_type = attr.branch_sample_type,
		.intr_mask = attr.sample_type & PERF_SAMPLE_REGS_INTR ? attr.sample_regs_intr : 0,
		.read_format = attr.read_format,
		.id_all = attr.sample_id_all,
	};
	ev->event.type = attr.type;
	ev->event.config = attr.config;
	ev->event.user = !attr.exclude_user;
	ev->event.kernel = !attr.exclude_kernel;
	ev->event.read = attr.sample_type & PERF_SAMPLE_READ &&
			 attr.read_format & PERF_FORMAT_GROUP;
	ev->event.hardware = attr.type != PERF_TYPE_SOFTWARE;
	ev->event.clock = attr.type == PERF_TYPE_SOFTWARE &&
			  attr.config <= PERF_COUNT_SW_TASK_CLOCK;
	ev->stack_size = attr.sample_type & PERF_SAMPLE_STACK_USER ? attr.sample_stack_user : 0;
	ev->user_chain = attr.sample_type & PERF_SAMPLE_CALLCHAIN && !attr.exclude_callchain_user;
	ev->switches = attr.context_switch;
	/* Since Linux 6.13; older ones refuse such an event. */
	ev->by_task = attr.inherit && attr.sample_type & PERF_SAMPLE_READ &&
		      attr.sample_type & PERF_SAMPLE_TID;
	ev->monotonic = attr.use_clockid && attr.clockid == CLOCK_MONOTONIC;
	ev->dummy = attr.type == PERF_TYPE_SOFTWARE && attr.config == PERF_COUNT_SW_DUMMY;
	ev->hz = attr.freq ? (double)attr.sample_freq : 0;
	ev->period = attr.freq ? 0 : attr.sample_period;
	name_event(ev, &attr);
	return 0;
}

int perfdata_events_find(const struct perfdata_events *t, const uint8_t *bytes, size_t size,
			 uint32_t *index)
{
	uint64_t hash = keyhash_name((const char *)bytes, size);

	for (*index = 0; *index < t->nr; ++*index)
		if (t->hashes[*index] == hash)
			return 0;
	return -ENOENT;
}

bool perfdata_events_room(const struct perfdata_events *t, uint64_t size)
{
	return size / 8 <= PERFDATA_IDS_MAX - t->nr_ids;
}

void perfdata_events_add_ids(struct perfdata_events *t, const uint8_t *bytes, uint64_t size,
			     uint32_t event)
{
	uint32_t nr = (uint32_t)(size / 8);

	t->ids = xrealloc_array(t->ids, t->nr_ids + nr, sizeof(*t->ids));
	for (uint32_t i = 0; i < nr; i++) {
		struct perfdata_id *id = &t->ids[t->nr_ids++];

		id->event = event;
		memcpy(&id->id, bytes + 8 * (size_t)i, sizeof(id->id));
	}
}

static int compare_ids(const void *a, const void *b)
{
	const struct perfdata_id *x = a, *y = b;

	return COMPARE(x->id, y->id);
}

void perfdata_events_sort(struct perfdata_events *t)
{
	if (t->nr_ids)
		qsort(t->ids, t->nr_ids, sizeof(*t->ids), compare_ids);
}

int perfdata_events_of(const struct perfdata_events *t, uint64_t id)
{
	const struct perfdata_id key = { .id = id }, *found;

	if (!t->nr_ids || t->nr == 1)
		return 0;
	found = bsearch(&key, t->ids, t->nr_ids, sizeof(key), compare_ids);
	return found ? (int)found->event : -1;
}

void perfdata_events_name(struct perfdata_event *ev, const void *name, size_t size)
{
	text_sanitise(ev->event.name, EVENT_NAME_MAX, name,
		      strnlen(name, MIN(size, EVENT_NAME_MAX - 1u)));
}

void perfdata_events_rename(struct perfdata_events *t, uint64_t id, const char *name, size_t size)
{
	int event = perfdata_events_of(t, id);

	if (event >= 0 && (uint32_t)event < t->nr)
		perfdata_events_name(&t->events[event], name, size);
}

void perfdata_events_fini(struct perfdata_events *t)
{
	perfdata_build_ids_fini(&t->build_ids);
	free(t->ids);
	free(t->events);
	free(t->attrs);
	free(t->hashes);
	*t = (struct perfdata_events){ .nr = 0 };
}
