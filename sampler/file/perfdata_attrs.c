// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Events of a recording, each once, with sorted ids.
 *
 * Runs on: the writer of the recording.
 */
#include "sampler/file/perfdata_attrs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/search.h"

static bool same_attr(const struct perf_event_attr *a, const struct perf_event_attr *b)
{
	struct perf_event_attr x = *a, y = *b;

	x.sample_period = y.sample_period = 0;
	x.wakeup_watermark = y.wakeup_watermark = 0;
	return !memcmp(&x, &y, sizeof(x));
}

static struct perfdata_attr *find_attr(struct perfdata_attrs *attrs, const char *name,
				       const struct perf_event_attr *attr)
{
	struct perfdata_attr *pa;

	for (uint32_t i = 0; i < attrs->nr; i++)
		if (same_attr(&attrs->events[i].attr, attr) && !strcmp(attrs->events[i].name, name))
			return &attrs->events[i];
	attrs->events = xrealloc_array(attrs->events, attrs->nr + 1, sizeof(*attrs->events));
	pa = &attrs->events[attrs->nr++];
	*pa = (struct perfdata_attr){ .attr = *attr };
	snprintf(pa->name, sizeof(pa->name), "%s", name);
	return pa;
}

/* Ids are kept sorted; the kernel gives them out rising, so a new one mostly goes to the end. */
static void add_id(struct perfdata_attr *pa, uint64_t id)
{
	size_t low = search_split(pa->nr_ids, i, pa->ids[i] < id);

	if (low < pa->nr_ids && pa->ids[low] == id)
		return;
	if (pa->nr_ids == pa->room_ids) {
		pa->room_ids = MAX(2 * pa->room_ids, 16);
		pa->ids = xrealloc_array(pa->ids, pa->room_ids, sizeof(*pa->ids));
	}
	memmove(pa->ids + low + 1, pa->ids + low, (pa->nr_ids - low) * sizeof(*pa->ids));
	pa->ids[low] = id;
	pa->nr_ids++;
}

void perfdata_attrs_add(struct perfdata_attrs *attrs, const char *name,
			const struct perf_event_attr *attr, const uint64_t *ids, size_t nr_ids)
{
	struct perfdata_attr *pa = find_attr(attrs, name, attr);

	for (size_t i = 0; i < nr_ids; i++)
		add_id(pa, ids[i]);
}

void perfdata_attrs_fini(struct perfdata_attrs *attrs)
{
	for (uint32_t i = 0; i < attrs->nr; i++)
		free(attrs->events[i].ids);
	free(attrs->events);
	*attrs = (struct perfdata_attrs){ 0 };
}
