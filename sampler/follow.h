/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tasks that join the target while it is sampled. Runs on: the builder.
 */
#ifndef SAMPLER_FOLLOW_H
#define SAMPLER_FOLLOW_H

#include "sampler/event/task_set.h"

struct sampler;

/*
 * Once a tick: open events on new tasks of the target, and on tasks that were hanging in an exec;
 * note the ends of others.
 */
void follow_target(struct sampler *s, uint64_t now_ns);

/* A search for tasks without events: its input. */
struct follow_search {
	struct task_set listed;	  /* found by the search before */
	struct task_set opened;	  /* with events */
	struct task_set left_out; /* without: they hang in an exec, and are listed */
	/* Return the process of a task; 0: it has ended. */
	pid_t (*process_of)(pid_t tid);
	/* Report whether the process inherited events from its parent. */
	bool (*has_inherited)(const struct follow_search *f, pid_t pid);
	const struct sampler *sampler; /* for has_inherited() */
};

/*
 * Write the tasks of @tids without events to @fresh, which has @nr elements. Returns how many. A
 * process that was left out comes before its threads: their next ones inherit.
 */
uint32_t follow_search(const struct follow_search *f, const pid_t *tids, uint32_t nr, pid_t *fresh);

#endif
