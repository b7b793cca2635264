// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The tasks of one process, as a ring: an exec ends them, and there may be a hundred thousand
 * others.
 *
 * Runs on: the builder.
 */
#include <assert.h>

#include "sampler/waits/waits_private.h"
#include "symbols/base/base.h"
#include "symbols/base/keyhash.h"

uint32_t waits_ring(const struct waits *w, pid_t pid)
{
	uint32_t at = 0, id;

	do
		id = hashset_next(&w->processes, keyhash_number((uint64_t)pid), &at);
	while (id != HASHSET_NONE && w->tasks[id].pid != pid);
	return id;
}

void waits_join(struct waits *w, struct wait_task *task)
{
	uint32_t id = (uint32_t)(task - w->tasks), ring = waits_ring(w, task->pid);

	assert(!task->in_ring);
	if (ring == HASHSET_NONE) {
		/* Out of memory: an exec of another thread does not end this one. */
		if (hashset_reserve(&w->processes, 1))
			return;
		hashset_add(&w->processes, keyhash_number((uint64_t)task->pid), id);
		task->next = task->prev = id;
	} else {
		task->next = ring;
		task->prev = w->tasks[ring].prev;
		w->tasks[task->prev].next = w->tasks[ring].prev = id;
	}
	task->in_ring = true;
}

void waits_leave(struct waits *w, struct wait_task *task)
{
	uint32_t id = (uint32_t)(task - w->tasks);
	uint64_t hash = keyhash_number((uint64_t)task->pid);

	if (task->next == id)
		hashset_remove(&w->processes, hash, id);
	else if (waits_ring(w, task->pid) == id)
		hashset_replace(&w->processes, hash, id, task->next);
	w->tasks[task->prev].next = task->next;
	w->tasks[task->next].prev = task->prev;
	task->in_ring = false;
}

void waits_set_process(struct waits *w, struct wait_task *task, pid_t pid)
{
	if (pid <= 0)
		pid = task->pid;
	if (task->in_ring && task->pid == pid)
		return;
	if (task->in_ring)
		waits_leave(w, task);
	task->pid = pid;
	waits_join(w, task);
}
