/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Event names -> perf_event_attr, in perf's syntax (perf-list(1)).
 *
 * Pure but for event_probe(). Any thread.
 */
#ifndef SAMPLER_EVENT_H
#define SAMPLER_EVENT_H

#include <sys/types.h>

#include "symbols/base.h"

struct perf_event_attr;

#define EVENT_NAME_MAX 64
#define EVENTS_MAX     8		/* sampled at the same time */

struct event {
	char name[EVENT_NAME_MAX];	/* as asked for, modifiers included */
	uint32_t type;			/* PERF_TYPE_* */
	uint64_t config, config1, config2;
	bool user, kernel, hv;		/* what is counted */
	uint8_t precise;		/* precise_ip, 0-3 */
	bool precise_max;		/* modifier P: as precise as this machine can, precise at most */
	bool clock;			/* cpu-clock, task-clock: periods are nanoseconds */
	bool hardware;			/* needs a PMU */
};

/* Parse "cycles", "cpu-clock:u", "L1-dcache-load-misses", "cycles:kpp". 0 or -EINVAL with a sentence. */
int event_parse(struct event *ev, const char *text, struct err *e);

/* The catalogue, for the picker and --list-events; ends with a NULL name. */
struct event_info {
	const char *name;		/* canonical, as perf stat prints it: "cycles" */
	const char *alias;		/* the other name that is taken: "cpu-cycles"; may be NULL */
	const char *group;		/* "hardware", "software", "cache" */
	const char *description;
};
const struct event_info *event_catalogue(void);
/* The catalogue's entry for @ev, whatever name and modifiers it was asked by; NULL for raw events. */
const struct event_info *event_info(const struct event *ev);

/* Fill type, config, exclusion, precision; everything else zero. */
void event_attr(const struct event *ev, struct perf_event_attr *attr);

/*
 * Can it be opened here, now (pid, cpu as in perf_event_open(2))? 0 or -errno.
 * Opens and closes one event: not for the UI thread.
 */
int event_probe(const struct event *ev, pid_t pid, int cpu);

/* What an errno of perf_event_open means for a person, in a few words. */
const char *event_errno(int code);

#endif
