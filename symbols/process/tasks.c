// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Dense ids for tasks. Runs on: any thread.
 *
 * Invariant: an id below next has a slot; a slot is read only once ready.
 */
#include "symbols/process/tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BITS 11
#define CHUNK_SIZE (1u << CHUNK_BITS)

struct task_slot {
	struct task task;
	atomic_bool ready; /* release after task and comm; pairs with tasks_at() */
	char comm[TASK_COMM_SIZE];
};

static struct task_slot *slot_at(const struct tasks *t, uint32_t id)
{
	/* Stored before the release of room, which every id given out has seen. */
	struct task_slot *chunk =
		atomic_load_explicit(&t->chunks[id >> CHUNK_BITS], memory_order_relaxed);

	return &chunk[id & (CHUNK_SIZE - 1)];
}

struct tasks *tasks_new(uint32_t max, uint32_t serial)
{
	const struct task unknown = {
		.pid = -1, .tid = -1, .uid = (uid_t)-1, .comm = TEXT("[unknown]")
	};
	struct tasks *t = aligned_alloc(CACHELINE, sizeof(*t));

	if (!t)
		return NULL;
	memset(t, 0, sizeof(*t));
	t->max = MAX(max, 1u);
	t->serial = serial;
	t->chunks = calloc((t->max + CHUNK_SIZE - 1) >> CHUNK_BITS, sizeof(*t->chunks));
	if (!t->chunks || tasks_grow(t)) {
		tasks_free(t);
		return NULL;
	}
	tasks_add(t, &unknown); /* TASK_UNKNOWN */
	return t;
}

void tasks_free(struct tasks *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; t->chunks && i < (t->max + CHUNK_SIZE - 1) >> CHUNK_BITS; i++)
		free(atomic_load_explicit(&t->chunks[i], memory_order_relaxed));
	free(t->chunks);
	free(t);
}

int tasks_grow(struct tasks *t)
{
	uint32_t room = atomic_load_explicit(&t->room, memory_order_relaxed);
	uint32_t next = atomic_load_explicit(&t->next, memory_order_relaxed);

	while (room < t->max && room - next < CHUNK_SIZE) {
		struct task_slot *chunk = calloc(CHUNK_SIZE, sizeof(*chunk));

		if (!chunk)
			return -ENOMEM;
		atomic_store_explicit(&t->chunks[room >> CHUNK_BITS], chunk, memory_order_relaxed);
		room = MIN(room + CHUNK_SIZE, t->max);
		/* Publishes the chunk; pairs with tasks_add(). */
		atomic_store_explicit(&t->room, room, memory_order_release);
	}
	return 0;
}

uint32_t tasks_add(struct tasks *t, const struct task *task)
{
	uint32_t id = atomic_load_explicit(&t->next, memory_order_relaxed);
	struct task_slot *slot;

	do {
		/* Pairs with the release in tasks_grow(). */
		if (id >= atomic_load_explicit(&t->room, memory_order_acquire))
			return TASK_UNKNOWN;
		/* Release: whoever sees this next has the chunk, too; pairs with tasks_at(). */
	} while (!atomic_compare_exchange_weak_explicit(&t->next, &id, id + 1, memory_order_acq_rel,
							memory_order_relaxed));
	slot = slot_at(t, id);
	slot->task = *task;
	slot->task.comm.size = MIN(task->comm.size, TASK_COMM_SIZE - 1);
	memcpy(slot->comm, task->comm.str, slot->task.comm.size);
	slot->task.comm.str = slot->comm;
	atomic_store_explicit(&slot->ready, true, memory_order_release);
	return id;
}

const struct task *tasks_at(const struct tasks *t, uint32_t id)
{
	struct task_slot *slot;

	/* Pairs with tasks_add(): the chunk is there. */
	if (id >= atomic_load_explicit(&t->next, memory_order_acquire))
		return NULL;
	slot = slot_at(t, id);
	return atomic_load_explicit(&slot->ready, memory_order_acquire) ? &slot->task : NULL;
}

uint32_t tasks_nr(const struct tasks *t)
{
	return atomic_load_explicit(&t->next, memory_order_acquire);
}
