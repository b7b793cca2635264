// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The sentence for a profile without samples. Runs on: the main thread.
 */
#include "ui/text/idle.h"

#include <stdio.h>
#include <string.h>

struct safe_text idle_text(const struct profile *p, char buf[static IDLE_MAX])
{
	double seconds = (double)p->window_ns / 1e9;
	char when[48];

	if (p->window == PROFILE_WINDOW)
		snprintf(when, sizeof(when),
			 p->past_end_ns ? "in these %.*f s" : "in the last %.*f s", seconds < 2,
			 seconds);
	else
		snprintf(when, sizeof(when), "yet");
	if (p->target_gone)
		return text_format(buf, IDLE_MAX, "%s: all processes have exited", p->target);
	if (!strncmp(p->target, "pid ", 4) || !strncmp(p->target, "thread ", 7))
		return text_format(buf, IDLE_MAX, "%s did not run %s: asleep, stopped or waiting",
				   p->target, when);
	if (!strncmp(p->target, "name ", 5))
		return text_format(buf, IDLE_MAX, "no process that matches '%s' ran %s",
				   p->target + 5, when);
	if (!strcmp(p->target, "system") || p->ring_size == 0)
		return TEXT("no samples in this window");
	return text_format(buf, IDLE_MAX, "no process of %s ran %s", p->target, when);
}
