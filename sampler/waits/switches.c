// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A ring of notes. Runs on: one sampler thread (writer), the builder (reader).
 * Invariant: tail <= head <= tail + size; notes in between are complete.
 */
#include "sampler/waits/switch_queue.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "symbols/base/base.h"

struct switch_queue {
	uint32_t size;
	struct switch_note *notes;
	_Alignas(CACHELINE) atomic_uint head; /* release by the writer: the notes before it */
	atomic_ullong done_ns;		      /* release by the writer, after head */
	atomic_ullong nr_full;		      /* relaxed: a count */
	_Alignas(CACHELINE) atomic_uint tail; /* release by the reader: it has read them */
};

struct switch_queue *switch_queue_new(uint32_t nr)
{
	struct switch_queue *q = aligned_alloc(CACHELINE, sizeof(*q));

	assert(nr && !(nr & (nr - 1)));
	if (!q)
		return NULL;
	*q = (struct switch_queue){ .size = nr, .notes = calloc(nr, sizeof(*q->notes)) };
	if (q->notes)
		return q;
	free(q);
	return NULL;
}

void switch_queue_free(struct switch_queue *q)
{
	if (!q)
		return;
	free(q->notes);
	free(q);
}

static uint32_t used(const struct switch_queue *q)
{
	return atomic_load_explicit(&q->head, memory_order_relaxed) -
	       atomic_load_explicit(&q->tail, memory_order_acquire);
}

bool switch_queue_put(struct switch_queue *q, const struct switch_note *note)
{
	uint32_t head = atomic_load_explicit(&q->head, memory_order_relaxed);

	if (used(q) == q->size) {
		atomic_fetch_add_explicit(&q->nr_full, 1, memory_order_relaxed);
		return false;
	}
	q->notes[head & (q->size - 1)] = *note;
	/* Release: the note; pairs with switch_queue_first(). */
	atomic_store_explicit(&q->head, head + 1, memory_order_release);
	return true;
}

void switch_queue_done(struct switch_queue *q, uint64_t time_ns)
{
	/* Release: head; pairs with switch_queue_done_ns(). */
	atomic_store_explicit(&q->done_ns, time_ns, memory_order_release);
}

uint32_t switch_queue_nr(const struct switch_queue *q)
{
	return atomic_load_explicit(&q->head, memory_order_relaxed);
}

bool switch_queue_crowded(const struct switch_queue *q)
{
	return used(q) > q->size / 2;
}

uint64_t switch_queue_done_ns(const struct switch_queue *q)
{
	return atomic_load_explicit(&q->done_ns, memory_order_acquire);
}

const struct switch_note *switch_queue_first(const struct switch_queue *q)
{
	uint32_t tail = atomic_load_explicit(&q->tail, memory_order_relaxed);

	/* Acquire: pairs with switch_queue_put(). */
	if (tail == atomic_load_explicit(&q->head, memory_order_acquire))
		return NULL;
	return &q->notes[tail & (q->size - 1)];
}

void switch_queue_drop(struct switch_queue *q)
{
	uint32_t tail = atomic_load_explicit(&q->tail, memory_order_relaxed);

	/* Release: the note was read; pairs with the acquire in used(). */
	atomic_store_explicit(&q->tail, tail + 1, memory_order_release);
}

uint64_t switch_queue_take_full(struct switch_queue *q)
{
	return atomic_exchange_explicit(&q->nr_full, 0, memory_order_relaxed);
}
