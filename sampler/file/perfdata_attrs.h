/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The events of a recording that is written, with the ids that its records carry.
 *
 * One thread at a time.
 */
#ifndef SAMPLER_FILE_PERFDATA_ATTRS_H
#define SAMPLER_FILE_PERFDATA_ATTRS_H

#include <linux/perf_event.h>

#include "sampler/event/event.h"
#include "symbols/base/base.h"

/* An event of the file, with the ids that its records carry. */
struct perfdata_attr {
	char name[EVENT_NAME_MAX];
	struct perf_event_attr attr;
	uint64_t *ids; /* sorted */
	size_t nr_ids, room_ids;
};

/* All events of the file; their number does not fall. Zero-initialised is empty. */
struct perfdata_attrs {
	struct perfdata_attr *events;
	uint32_t nr;
};

/* Add the event and its ids if they are new. Events that differ only in their rate are one. */
void perfdata_attrs_add(struct perfdata_attrs *attrs, const char *name,
			const struct perf_event_attr *attr, const uint64_t *ids, size_t nr_ids);
void perfdata_attrs_fini(struct perfdata_attrs *attrs);

#endif
