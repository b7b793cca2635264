// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The sentence for a profile without samples. Runs on: the main thread.
 */
#include "ui/text/idle.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

/* Return whether a task has samples of the event whenever it runs. */
static bool is_of_running(const struct event *ev)
{
	return ev->clock ||
	       (ev->type == PERF_TYPE_HARDWARE && (ev->config == PERF_COUNT_HW_CPU_CYCLES ||
						   ev->config == PERF_COUNT_HW_INSTRUCTIONS));
}

const char *idle_samples(const struct profile *p, uint32_t event)
{
	const struct event *ev = event < p->nr_events ? &p->events[event].event : NULL;

	return !ev || !ev->name[0] || is_of_running(ev) ? "samples" : ev->wait ? "waits" : ev->name;
}

struct safe_text idle_text(const struct profile *p, uint32_t event, char buf[static IDLE_MAX])
{
	double seconds = (double)p->window_ns / 1e9;
	const char *samples = idle_samples(p, event);
	bool ran = strcmp(samples, "samples") != 0; /* or not: it says nothing about that */
	char when[48];

	if (p->window == PROFILE_WINDOW)
		snprintf(when, sizeof(when),
			 p->past_end_ns ? "in these %.*f s" : "in the last %.*f s", seconds < 2,
			 seconds);
	else
		snprintf(when, sizeof(when), "yet");
	if (p->target_gone)
		return text_format(buf, IDLE_MAX, "%s: all processes have exited", p->target);
	if (!strcmp(p->target, "system") || p->ring_size == 0)
		return text_format(buf, IDLE_MAX, "no %s in this window", samples);
	if (ran)
		return text_format(buf, IDLE_MAX, "no %s of %s %s", samples, p->target, when);
	if (!strncmp(p->target, "pid ", 4) || !strncmp(p->target, "thread ", 7))
		return text_format(buf, IDLE_MAX, "%s did not run %s: asleep, stopped or waiting",
				   p->target, when);
	if (!strncmp(p->target, "name ", 5))
		return text_format(buf, IDLE_MAX, "no process that matches '%s' ran %s",
				   p->target + 5, when);
	return text_format(buf, IDLE_MAX, "no process of %s ran %s", p->target, when);
}
