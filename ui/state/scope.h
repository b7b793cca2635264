/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which samples are shown: of which event, process, thread, cgroup and code. The
 * main thread.
 */
#ifndef UI_STATE_SCOPE_H
#define UI_STATE_SCOPE_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/sampler.h"
#include "ui/cli/config.h"
#include "ui/text/format.h"
#include "ui/text/text.h"

#define SCOPE_NAME_MAX 128

/* The process, or group of processes, in which a thread was opened. */
struct scope_outer {
	uint32_t process;
	char group[TEXT_MAX];
	enum grouping group_by;
	char name[SCOPE_NAME_MAX]; /* clean text; "": there is none */
};

struct scope {
	char event_name[EVENT_NAME_MAX]; /* "" the first */
	bool with_waits;		 /* the time of a clock and of waits together */
	bool latency;			 /* the weights of latency, if there are any */
	enum {
		IDLE_AUTO,
		IDLE_SHOWN,
		IDLE_HIDDEN
	} idle;		      /* waits; AUTO: hidden beside CPU time, else of kernel threads only */
	bool drilled;	      /* into one process */
	uint32_t process;     /* its id */
	char group[TEXT_MAX]; /* or into a group of processes: its whole name; "": none */
	enum grouping group_by;		   /* of that group */
	char process_name[SCOPE_NAME_MAX]; /* clean text */
	bool in_thread;			   /* drilled further, into one thread */
	uint32_t thread;		   /* its id */
	char thread_group[FORMAT_MAX * 2]; /* or into a group of threads: "worker-*"; clean */
	struct scope_outer outer;	   /* of that thread, or group of threads */
	bool by_user;			   /* only processes of one user */
	uid_t uid;
	struct match cgroup; /* only processes of a matching cgroup or container */
	bool hide_kernel, hide_user;
};

/* Return whether only samples of some processes are shown, of a user or of cgroups. */
static inline bool scope_chooses(const struct scope *s)
{
	return s->by_user || match_active(&s->cgroup);
}

#endif
