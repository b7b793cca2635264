/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The events of a recording and the ids that its records carry.
 *
 * One thread. Every byte of the file is hostile.
 */
#ifndef SAMPLER_FILE_PERFDATA_EVENTS_H
#define SAMPLER_FILE_PERFDATA_EVENTS_H

#include <linux/perf_event.h>

#include "sampler/file/perfdata_buildids.h"
#include "sampler/file/perfdata_event.h"

#define PERFDATA_EVENTS_MAX 256
#define PERFDATA_IDS_MAX    (1u << 20) /* of all events */

struct perfdata_id {
	uint64_t id;
	uint32_t event;
};

/* Zero-initialised is empty. */
struct perfdata_events {
	struct perfdata_event *events;
	struct perf_event_attr *attrs;
	uint64_t *hashes; /* of all bytes of their attributes */
	uint32_t nr, room;
	struct perfdata_id *ids; /* sorted by id after perfdata_events_sort() */
	uint32_t nr_ids;
	uint64_t last_ids; /* in the last attribute of pipe mode */
	struct kernel_identity kernel;
	struct perfdata_build_ids build_ids;
	char machine[PERFDATA_MACHINE_MAX]; /* as uname(2) has it; "": not known, as the next */
	char host[PERFDATA_HOST_MAX];
};

/* Add the event of an attribute of the file, of @size bytes. 0, -E2BIG: too many, or -EINVAL. */
int perfdata_events_add(struct perfdata_events *t, const uint8_t *attr, size_t size,
			uint32_t *index);
/* Find the event of this attribute. 0 or -ENOENT. */
int perfdata_events_find(const struct perfdata_events *t, const uint8_t *bytes, size_t size,
			 uint32_t *index);
/* Return whether the @size bytes of an event's ids fit. */
bool perfdata_events_room(const struct perfdata_events *t, uint64_t size);
void perfdata_events_add_ids(struct perfdata_events *t, const uint8_t *bytes, uint64_t size,
			     uint32_t event);
/* Set the name, of foreign bytes: it is sanitised. @size: at most, with or without a NUL. */
void perfdata_events_name(struct perfdata_event *ev, const void *name, size_t size);
/* Set the name of the event with that id. */
void perfdata_events_rename(struct perfdata_events *t, uint64_t id, const char *name, size_t size);
void perfdata_events_sort(struct perfdata_events *t);
/* Index of the event with that id, or -1. Without ids: 0. */
int perfdata_events_of(const struct perfdata_events *t, uint64_t id);
void perfdata_events_fini(struct perfdata_events *t);

#endif
