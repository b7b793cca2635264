// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tracepoints: "sched:sched_switch" -> its id in tracefs.
 *
 * Any thread; no state.
 */
#include "sampler/event/event_parse.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampler/event/tracefs.h"

static int no_tracefs(const struct event *ev, enum tracefs_state state, struct err *e)
{
	if (state == TRACEFS_CLOSED)
		return err_set(e, -EINVAL,
			       "event '%.100s': cannot read the tracepoints: permission denied\n"
			       "  only root may read /sys/kernel/tracing/events\n"
			       "  'sudo chgrp -R perf_users /sys/kernel/tracing/events', or run as "
			       "root; see proftop --list-events",
			       ev->name);
	if (state == TRACEFS_LOCKED)
		return err_set(e, -EINVAL,
			       "event '%.100s': no tracepoints: kernel lockdown is in force\n"
			       "  /sys/kernel/security/lockdown is 'confidentiality'; it forbids "
			       "tracefs to every user\n"
			       "  boot with lockdown=integrity or none; or choose another event "
			       "(proftop --list-events)",
			       ev->name);
	return err_set(e, -EINVAL,
		       "event '%.100s': the kernel's tracepoints are not mounted\n"
		       "  /sys/kernel/tracing is empty, and CAP_SYS_ADMIN is needed to read them "
		       "without a mount\n"
		       "  'sudo mount -t tracefs nodev /sys/kernel/tracing', then see "
		       "proftop --list-events",
		       ev->name);
}

/* Find the tracepoint below the open folder @events. */
static int find_tracepoint(int events, struct event *ev, const char *system, const char *name,
			   struct err *e)
{
	char path[256], line[32], *end;

	if (faccessat(events, system, F_OK, 0))
		return -ENOENT;
	snprintf(path, sizeof(path), "%.120s/%.120s/id", system, name);
	if (!pmu_read_line_at(events, path, line, sizeof(line)))
		return err_set(e, -EINVAL,
			       "event '%.100s': no tracepoint '%.60s' in '%.60s'\n"
			       "  the kernel has others there\n"
			       "  'proftop --list-events' shows all events",
			       ev->name, name, system);
	ev->type = PERF_TYPE_TRACEPOINT;
	ev->config = strtoull(line, &end, 10);
	/* Each one counts, as with perf: they are events, not a measure of time. */
	ev->period = 1;
	return end != line ? 0 : -ENOENT;
}

int tracepoint_parse(const char *root, struct event *ev, const char *system, const char *name,
		     struct err *e)
{
	enum tracefs_state state;
	int events, code;

	if (!pmu_is_word(system) || !pmu_is_word(name))
		return -ENOENT;
	state = tracefs_open(root, &events);
	if (events < 0)
		return no_tracefs(ev, state, e);
	code = find_tracepoint(events, ev, system, name, e);
	close(events);
	return code;
}

static int plain_entry(const struct dirent *d)
{
	return pmu_is_word(d->d_name);
}

/* Call @fn with each event of one system: its folders that have an id. */
static void each_of_system(int events, const char *system, void (*fn)(void *ctx, const char *name),
			   void *ctx)
{
	char path[512], name[EVENT_NAME_MAX];
	struct dirent **list;
	int nr = scandirat(events, system, &list, plain_entry, alphasort);

	for (int i = 0; i < nr; i++) {
		snprintf(path, sizeof(path), "%.120s/%.120s/id", system, list[i]->d_name);
		if (!faccessat(events, path, F_OK, 0)) {
			snprintf(name, sizeof(name), "%.120s:%.120s", system, list[i]->d_name);
			fn(ctx, name);
		}
		free(list[i]);
	}
	if (nr >= 0)
		free(list);
}

/* By folders: available_events has no ftrace events. */
void tracepoint_each(const char *root, void (*fn)(void *ctx, const char *name), void *ctx)
{
	struct dirent **list;
	int events, nr;

	tracefs_open(root, &events);
	if (events < 0)
		return;
	nr = scandirat(events, ".", &list, plain_entry, alphasort);
	for (int i = 0; i < nr; i++) {
		each_of_system(events, list[i]->d_name, fn, ctx);
		free(list[i]);
	}
	if (nr >= 0)
		free(list);
	close(events);
}
