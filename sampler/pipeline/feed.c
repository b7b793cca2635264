// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A ring of slots. Each is contiguous: a slot of time 0 fills the end of the ring
 * when the next one does not fit there.
 *
 * Runs on: a reader (put), a sampler thread (find).
 */
#include "sampler/pipeline/feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int feed_init(struct feed *f)
{
	f->bytes = aligned_alloc(CACHELINE, FEED_SIZE);
	atomic_init(&f->head, 0);
	atomic_init(&f->tail, 0);
	return f->bytes ? 0 : -ENOMEM;
}

void feed_fini(struct feed *f)
{
	free(f->bytes);
	f->bytes = NULL;
}

static uint64_t slot_size(uint32_t nr)
{
	return sizeof(struct lang_slot) + (uint64_t)nr * sizeof(struct lang_frame);
}

static struct lang_slot *slot_at(const struct feed *f, uint64_t pos)
{
	return (struct lang_slot *)(void *)(f->bytes + (pos & (FEED_SIZE - 1)));
}

bool feed_put(struct feed *f, const struct lang_slot *slot, const struct lang_frame *frames)
{
	uint64_t head = atomic_load_explicit(&f->head, memory_order_relaxed);
	/* Acquire: the consumer's reads of this space precede our writes. */
	uint64_t tail = atomic_load_explicit(&f->tail, memory_order_acquire);
	uint64_t size = slot_size(slot->nr), left = FEED_SIZE - (head & (FEED_SIZE - 1));
	uint64_t skip = left < size ? left : 0;
	struct lang_slot *at;

	if (head + skip + size - tail > FEED_SIZE)
		return false;
	/* The end may be too near even for a head. */
	if (skip >= sizeof(*at))
		*slot_at(f, head) = (struct lang_slot){ .time_ns = 0 };
	at = slot_at(f, head + skip);
	*at = *slot;
	if (slot->nr)
		memcpy(at->frames, frames, slot->nr * sizeof(*frames));
	/* Publishes the slot; pairs with feed_find(). */
	atomic_store_explicit(&f->head, head + skip + size, memory_order_release);
	return true;
}

const struct lang_slot *feed_find(struct feed *f, uint64_t time_ns, uint32_t pid, uint32_t tid)
{
	uint64_t tail = atomic_load_explicit(&f->tail, memory_order_relaxed);
	uint64_t head = atomic_load_explicit(&f->head, memory_order_acquire);
	const struct lang_slot *slot = NULL;

	while (tail != head) {
		uint64_t left = FEED_SIZE - (tail & (FEED_SIZE - 1));

		slot = slot_at(f, tail);
		if (left < sizeof(*slot) || !slot->time_ns) {
			tail += left;
			continue;
		}
		if (slot->time_ns >= time_ns)
			break;
		tail += slot_size(slot->nr);
	}
	/* Release: our reads precede the producer's writes to this space. */
	atomic_store_explicit(&f->tail, tail, memory_order_release);
	return tail != head && slot->time_ns == time_ns && slot->pid == pid && slot->tid == tid
		       ? slot
		       : NULL;
}
