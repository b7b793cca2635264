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

static bool has_id(const struct perfdata_attr *pa, size_t nr, uint64_t id)
{
	size_t at = search_split(nr, i, pa->ids[i] < id);

	return at < nr && pa->ids[at] == id;
}

static void append_id(struct perfdata_attr *pa, uint64_t id)
{
	if (pa->nr_ids == pa->room_ids) {
		pa->room_ids = MAX(2 * pa->room_ids, 16);
		pa->ids = xrealloc_array(pa->ids, pa->room_ids, sizeof(*pa->ids));
	}
	pa->ids[pa->nr_ids++] = id;
}

static int compare_ids(const void *a, const void *b)
{
	return COMPARE(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* Sort the ids behind the first @known ones among these; the kernel gives them out rising. */
static void sort_ids(struct perfdata_attr *pa, size_t known)
{
	size_t at = MAX(known, 1), kept = 1;

	while (at < pa->nr_ids && pa->ids[at - 1] < pa->ids[at])
		at++;
	if (at >= pa->nr_ids)
		return;
	qsort(pa->ids, pa->nr_ids, sizeof(*pa->ids), compare_ids);
	for (size_t i = 1; i < pa->nr_ids; i++)
		if (pa->ids[i] != pa->ids[kept - 1])
			pa->ids[kept++] = pa->ids[i];
	pa->nr_ids = kept;
}

void perfdata_attrs_add(struct perfdata_attrs *attrs, const char *name,
			const struct perf_event_attr *attr, const uint64_t *ids, size_t nr_ids)
{
	struct perfdata_attr *pa = find_attr(attrs, name, attr);
	size_t known = pa->nr_ids;

	for (size_t i = 0; i < nr_ids; i++)
		if (!has_id(pa, known, ids[i]))
			append_id(pa, ids[i]);
	sort_ids(pa, known);
}

void perfdata_attrs_fini(struct perfdata_attrs *attrs)
{
	for (uint32_t i = 0; i < attrs->nr; i++)
		free(attrs->events[i].ids);
	free(attrs->events);
	*attrs = (struct perfdata_attrs){ 0 };
}
