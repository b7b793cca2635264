/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Event names -> perf_event_attr, in perf's syntax (perf-list(1)).
 *
 * Parsing reads the kernel's description of its events (/sys/bus/event_source, tracefs) and, for
 * probes by symbol, the file named. Any thread.
 */
#ifndef SAMPLER_EVENT_EVENT_H
#define SAMPLER_EVENT_EVENT_H

#include <sys/types.h>

#include "sampler/event/event_type.h"
#include "symbols/base/base.h"

struct perf_event_attr;

/*
 * Parse "cycles", "cpu-clock:u", "cycles:kpp", "r1a8", "cpu/event=0x3c,umask=1/u", "msr/tsc/",
 * "cycles/freq=99/", "sched:sched_switch", "mem:0x1000/4:rw", "uprobe:/bin/sh:main+4:u",
 * "kprobe:do_exit", "pfm:RETIRED_INSTRUCTIONS". 0 or -EINVAL with a sentence.
 */
int event_parse(struct event *ev, const char *text, struct err *e);
/* The same with @root before /sys: tests. */
int event_parse_at(const char *root, struct event *ev, const char *text, struct err *e);
/*
 * Add the events of a list by commas to @events; a comma between slashes belongs to the event. With
 * groups: "{cycles,instructions}:u", "{cycles,cache-misses}:S"; "topdown" is one of them. 0 or
 * -EINVAL with a sentence.
 */
int event_parse_list(struct event *events, uint32_t *nr, uint32_t max, const char *text,
		     struct err *e);
int event_parse_list_at(const char *root, struct event *events, uint32_t *nr, uint32_t max,
			const char *text, struct err *e);
/* Report whether parsing this list reads a file that it names: a program with a probe. */
bool event_list_reads_file(const char *text);
/*
 * Replace the modifiers of @ev, which was parsed, by "u", "kpp" or ""; its group and filter remain.
 * No file that it names is read again. 0 or -EINVAL with a sentence.
 */
int event_change_modifiers(struct event *ev, const char *modifiers, struct err *e);
/* The first of the group that event @at belongs to, and how many it has; of an event alone:
 * itself, 1. */
uint32_t event_group_first(const struct event *events, uint32_t at);
uint32_t event_group_nr(const struct event *events, uint32_t nr, uint32_t first);
/* After events were added or taken out: groups of one are none, the first of a group leads it. */
void event_groups_tidy(struct event *events, uint32_t nr);
/* Filter the samples of a tracepoint, as in "prev_pid == 0". -EINVAL with a sentence: not for this
 * one. */
int event_set_filter(struct event *ev, const char *filter, struct err *e);
/*
 * Return whether both are the same event, under any name and in any group. Of the same name the
 * rate may differ; of different names a rate in the name must be the same.
 */
bool event_same(const struct event *a, const struct event *b);
/* Return whether two lists have the same events in the same order. */
bool event_same_list(const struct event *a, uint32_t nr_a, const struct event *b, uint32_t nr_b);

/* The catalogue, for the picker and --list-events; ends with a NULL name. */
struct event_info {
	const char *name;  /* canonical, as perf stat prints it: "cycles" */
	const char *alias; /* the other name that is taken: "cpu-cycles"; may be NULL */
	const char *group; /* "hardware", "software", "cache" */
	const char *description;
};
const struct event_info *event_catalogue(void);
/* Return the catalogue's entry for @ev, under any name and modifiers; NULL for raw events.
 */
const struct event_info *event_info(const struct event *ev);

/*
 * All that this machine has: the catalogue, the PMUs' events, the tracepoints ("tracepoints") last.
 * Ends with a NULL name. Reads some thousand names: not for the main thread.
 */
struct event_list {
	struct event_info *infos;
	uint32_t nr;
	char **texts; /* owns the names that are not the catalogue's */
	uint32_t nr_texts;
};
void event_list_init(struct event_list *l, const char *root);
void event_list_fini(struct event_list *l);
#define EVENT_GROUP_TRACEPOINTS "tracepoints"
/* Waiting time: the records of all switches, and the stacks of some. */
#define EVENT_WAITS "waits"
/* Each call of a kernel function: the kernel samples it without user frames only. */
#define EVENT_FUNCTION "ftrace:function"

/* Fill type, config, exclusion, precision; everything else zero. A probe's @ev must outlive @attr.
 */
void event_attr(const struct event *ev, struct perf_event_attr *attr);

/*
 * Can it be opened here, now (pid, cpu as in perf_event_open(2))? 0 or -errno.
 * Opens and closes one event: not for the main thread.
 */
int event_probe(const struct event *ev, pid_t pid, int cpu);

/* Return the meaning of an errno of perf_event_open in a few words. */
const char *event_errno(int code);

#endif
