/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Dense ids for tasks, given at their first sample.
 *
 * Entries live in chunks that never move. The hot thread that finds a new task
 * writes its entry, without malloc: tasks_grow() keeps empty entries ahead.
 *
 * Ids are freed all together: another table takes over (maps_renew_tasks()),
 * tasks still shown move, the rest goes with the old table. Ids of two tables
 * are in use only during a grace period, so a thread name has two words for its
 * id, used alternately by the serial numbers of the tables.
 *
 * Threads: tasks_add() and the look-ups anywhere, lock-free; tasks_grow()
 * under the lock of the maps.
 */
#ifndef SYMBOLS_PROCESS_TASKS_H
#define SYMBOLS_PROCESS_TASKS_H

#include <stdatomic.h>

#include "symbols/base/base.h"
#include "symbols/base/chunked.h"
#include "symbols/process/task.h"

#define TASK_COMM_SIZE 64

struct task_slot;

struct tasks {
	uint32_t max;
	uint32_t serial;      /* of the table; one more than that of the table before */
	struct chunked slots; /* struct task_slot, empty ones ahead of the ids */
	_Alignas(CACHELINE) atomic_uint next; /* ids given out */
};

/* Make an empty table with TASK_UNKNOWN; NULL when out of memory. */
struct tasks *tasks_new(uint32_t max, uint32_t serial);
void tasks_free(struct tasks *t);
/* Keep empty entries ahead of the ids given out; 0 or -ENOMEM. */
int tasks_grow(struct tasks *t);
/* Copy @task and its names to a new id; TASK_UNKNOWN when the table is full. */
uint32_t tasks_add(struct tasks *t, const struct task *task);
const struct task *tasks_at(const struct tasks *t, uint32_t id);

#endif
