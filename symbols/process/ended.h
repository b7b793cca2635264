/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads of processes that have ended, as one for each name: of one user, cgroup and container. So
 * the sums of a session of days have room for them, and still show the stacks of all.
 *
 * An entry lives as long as the table, since its ids are shown: at most ENDED_MAX, each with
 * 1.4 KiB of texts at most. Sessions and containers have new names for ever, so the last ones are
 * for names without cgroup and container. Threads: one owner; there is no locking.
 */
#ifndef SYMBOLS_PROCESS_ENDED_H
#define SYMBOLS_PROCESS_ENDED_H

#include "symbols/process/details.h"
#include "symbols/process/tasks.h"

#define ENDED_MAX	 4096u
#define ENDED_PLACED_MAX (ENDED_MAX / 4 * 3) /* with cgroup and container */

struct ended;

/* NULL when out of memory. */
struct ended *ended_new(void);
void ended_free(struct ended *e);

/* Ids that no other task or process has: the caller gives two, and learns whether they are used. */
struct ended_ids {
	uint32_t process, number;
	bool process_used, number_used;
};

/*
 * Return the task in @to that @task, with its cgroup and container in @known, is part of; its pid
 * is -1. TASK_UNKNOWN: there are too many, or @to has no room.
 */
uint32_t ended_task(struct ended *e, struct tasks *to, const struct task *task,
		    const struct process_details *known, struct ended_ids *ids);
/* Get user, cgroup and container of @process, an id from above. False: it is none. */
bool ended_details(const struct ended *e, uint32_t process, struct process_details *out);

#endif
