// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Dense ids for tasks. Runs on: any thread.
 *
 * Invariant: an id below next has a slot; a slot is read only once ready.
 */
#include "symbols/process/tasks.h"
#include "symbols/lang/lang.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BITS 11
#define AHEAD	   (1u << CHUNK_BITS) /* empty entries to keep ahead of the ids given out */

struct task_slot {
	struct task task;
	atomic_bool ready; /* release after task and names; pairs with tasks_at() */
	char comm[TASK_COMM_SIZE], process_comm[TASK_COMM_SIZE];
};

struct tasks *tasks_new(uint32_t max, uint32_t serial)
{
	const struct task unknown = {
		.pid = -1,
		.tid = -1,
		.uid = (uid_t)-1,
		.comm = TEXT("[unknown]"),
		.process_comm = TEXT(""),
	};
	struct tasks *t = aligned_alloc(CACHELINE, sizeof(*t));

	if (!t)
		return NULL;
	memset(t, 0, sizeof(*t));
	t->max = MAX(max, 1u);
	t->serial = serial;
	if (chunked_init(&t->slots, sizeof(struct task_slot), CHUNK_BITS, t->max) ||
	    tasks_grow(t)) {
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
	chunked_fini(&t->slots);
	free(t);
}

int tasks_grow(struct tasks *t)
{
	uint32_t nr = chunked_nr(&t->slots);
	uint32_t next = atomic_load_explicit(&t->next, memory_order_relaxed);

	assert(next <= nr && nr <= t->max);
	while (nr < t->max && nr - next < AHEAD) {
		if (!chunked_reserve(&t->slots, nr))
			return -ENOMEM;
		nr = MIN(nr + (1u << CHUNK_BITS), t->max);
		chunked_publish(&t->slots, nr);
	}
	return 0;
}

/* Copy @name to @buf, of zeroes, and have it there. */
static void keep_name(char buf[static TASK_COMM_SIZE], struct safe_text *name)
{
	name->size = MIN(name->size, TASK_COMM_SIZE - 1);
	memcpy(buf, name->str, name->size);
	name->str = buf;
}

uint32_t tasks_add(struct tasks *t, const struct task *task)
{
	uint32_t id = atomic_load_explicit(&t->next, memory_order_relaxed);
	struct task_slot *slot;

	do {
		if (id >= chunked_nr(&t->slots))
			return TASK_UNKNOWN;
		/* Release: a thread that sees this next sees the chunk; pairs with tasks_at(). */
	} while (!atomic_compare_exchange_weak_explicit(&t->next, &id, id + 1, memory_order_acq_rel,
							memory_order_relaxed));
	slot = chunked_at(&t->slots, id);
	assert(!atomic_load_explicit(&slot->ready, memory_order_relaxed));
	slot->task = *task;
	keep_name(slot->comm, &slot->task.comm);
	keep_name(slot->process_comm, &slot->task.process_comm);
	slot->task.jvm_thread = (uint8_t)lang_jvm_thread(slot->comm);
	atomic_store_explicit(&slot->ready, true, memory_order_release);
	return id;
}

const struct task *tasks_at(const struct tasks *t, uint32_t id)
{
	struct task_slot *slot;

	/* Acquire: the chunk is there; pairs with tasks_add(). */
	if (id >= atomic_load_explicit(&t->next, memory_order_acquire))
		return NULL;
	slot = chunked_at(&t->slots, id);
	return atomic_load_explicit(&slot->ready, memory_order_acquire) ? &slot->task : NULL;
}

uint32_t tasks_nr(const struct tasks *t)
{
	return atomic_load_explicit(&t->next, memory_order_acquire);
}
