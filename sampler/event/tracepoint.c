// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tracepoints: "sched:sched_switch" -> the id that tracefs gives it.
 *
 * Any thread; no state. Only what is mounted is looked at: proftop mounts
 * nothing.
 */
#include "sampler/event/event_parse.h"

#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool tracepoint_dir(const char *root, char *dst, size_t size)
{
	static const char *const places[] = {
		"/sys/kernel/tracing",
		"/sys/kernel/debug/tracing",
	};
	char path[512];

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		snprintf(dst, size, "%s%s", root, places[i]);
		snprintf(path, sizeof(path), "%s/events", dst);
		if (!access(path, R_OK | X_OK))
			return true;
		/* There, but closed to us: say so rather than look elsewhere. */
		if (errno == EACCES)
			return false;
	}
	errno = ENOENT;
	return false;
}

static int no_tracefs(const struct event *ev, struct err *e)
{
	if (errno == EACCES)
		return err_set(e, -EINVAL,
			       "event '%.100s': the kernel's tracepoints cannot be read\n"
			       "  /sys/kernel/tracing/events is open to root alone\n"
			       "  'sudo chgrp -R perf_users /sys/kernel/tracing/events', or run as "
			       "root; "
			       "see proftop --list-events",
			       ev->name);
	return err_set(e, -EINVAL,
		       "event '%.100s': the kernel's tracepoints are not mounted\n"
		       "  /sys/kernel/tracing is empty\n"
		       "  'sudo mount -t tracefs nodev /sys/kernel/tracing', then see "
		       "proftop --list-events",
		       ev->name);
}

int tracepoint_parse(const char *root, struct event *ev, const char *system, const char *name,
		     struct err *e)
{
	char dir[256], path[768], line[32], *end;

	if (!pmu_is_word(system) || !pmu_is_word(name))
		return -ENOENT;
	if (!tracepoint_dir(root, dir, sizeof(dir)))
		return no_tracefs(ev, e);
	snprintf(path, sizeof(path), "%s/events/%s", dir, system);
	if (access(path, F_OK))
		return -ENOENT;
	snprintf(path, sizeof(path), "%s/events/%s/%s/id", dir, system, name);
	if (!pmu_read_line(path, line, sizeof(line)))
		return err_set(e, -EINVAL,
			       "event '%.100s': there is no tracepoint '%.60s' in '%.60s'\n"
			       "  %.200s/events/%.60s has those there are\n"
			       "  'proftop --list-events' shows them all",
			       ev->name, name, system, dir, system);
	ev->type = PERF_TYPE_TRACEPOINT;
	ev->config = strtoull(line, &end, 10);
	/* Each one counts, as with perf: they are events, not a measure of time. */
	ev->period = 1;
	return end != line ? 0 : -ENOENT;
}

static int plain_entry(const struct dirent *d)
{
	return pmu_is_word(d->d_name);
}

/* The events of one system: folders with an id. */
static void each_of_system(const char *dir, const char *system,
			   void (*fn)(void *ctx, const char *name), void *ctx)
{
	char path[768], name[EVENT_NAME_MAX];
	struct dirent **list;
	int nr;

	snprintf(path, sizeof(path), "%s/events/%s", dir, system);
	nr = scandir(path, &list, plain_entry, alphasort);
	for (int i = 0; i < nr; i++) {
		snprintf(path, sizeof(path), "%s/events/%.120s/%.120s/id", dir, system,
			 list[i]->d_name);
		if (!access(path, F_OK)) {
			snprintf(name, sizeof(name), "%.120s:%.120s", system, list[i]->d_name);
			fn(ctx, name);
		}
		free(list[i]);
	}
	if (nr >= 0)
		free(list);
}

/* By folders: available_events leaves out those of ftrace itself. */
void tracepoint_each(const char *root, void (*fn)(void *ctx, const char *name), void *ctx)
{
	struct dirent **list;
	char dir[256], path[512];
	int nr;

	if (!tracepoint_dir(root, dir, sizeof(dir)))
		return;
	snprintf(path, sizeof(path), "%s/events", dir);
	nr = scandir(path, &list, plain_entry, alphasort);
	for (int i = 0; i < nr; i++) {
		each_of_system(dir, list[i]->d_name, fn, ctx);
		free(list[i]);
	}
	if (nr >= 0)
		free(list);
}
