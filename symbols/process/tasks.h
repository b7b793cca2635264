/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Dense ids for tasks, given at their first sample.
 *
 * Entries live in chunks that never move. The hot thread that meets a task
 * first writes its entry, without malloc: tasks_grow() keeps room ahead.
 *
 * Ids are given back all at once: another table takes over (maps_renew_tasks()),
 * what is still shown moves, the rest goes with the old one. Ids of two tables
 * are in use only while it is waited for a grace period, so a thread has two
 * words for its id, by turns of the tables' serial numbers.
 *
 * Threads: tasks_add() and the look-ups anywhere, lock-free; tasks_grow()
 * under the lock of the maps.
 */
#ifndef SYMBOLS_PROCESS_TASKS_H
#define SYMBOLS_PROCESS_TASKS_H

#include <stdatomic.h>

#include "symbols/base/chunked.h"
#include "symbols/process/maps.h"

#define TASK_COMM_SIZE 64

struct task_slot;

struct tasks {
	uint32_t max;
	uint32_t serial;      /* of the table; one more than that of the one before */
	struct chunked slots; /* struct task_slot, empty ones ahead of the ids */
	_Alignas(CACHELINE) atomic_uint next; /* ids given out */
};

/* An empty table, but for TASK_UNKNOWN; NULL when memory is out. */
struct tasks *tasks_new(uint32_t max, uint32_t serial);
void tasks_free(struct tasks *t);
/* Room for a good number of ids beyond those given out; 0 or -ENOMEM. */
int tasks_grow(struct tasks *t);
/* A copy of @task (and its comm) under a new id; TASK_UNKNOWN when there is no room. */
uint32_t tasks_add(struct tasks *t, const struct task *task);
const struct task *tasks_at(const struct tasks *t, uint32_t id);

#endif
