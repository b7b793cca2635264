// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The consumer's side of one perf ring, read in place.
 *
 * Runs on: the ring's consumer (its CPU's sampler thread, or the holder of the drain lock);
 * ring_waiting(), ring_written() any. Invariant: tail <= head <= tail + size, and the kernel's
 * data_tail is never past a record that is still being read.
 */
#include "sampler/ring/ring.h"

#include <assert.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbols/base/base.h"

/* Acquire: the records up to the head are readable; pairs with the kernel's store of data_head. */
static uint64_t head_load(const struct ring *r)
{
	return atomic_load_explicit((_Atomic __u64 *)&r->page->data_head, memory_order_acquire);
}

/* Release: our reads precede the kernel's reuse of the space; pairs with its load of data_tail. */
static void tail_store(struct ring *r, uint64_t tail)
{
	atomic_store_explicit((_Atomic __u64 *)&r->page->data_tail, tail, memory_order_release);
}

/* Map page and data; the data area starts one page into the mapping. */
int ring_open(struct ring *r, int fd, size_t size)
{
	size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
	void *map;

	memset(r, 0, sizeof(*r));
	if (size < page_size || (size & (size - 1)))
		return -EINVAL;
	map = mmap(NULL, page_size + size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	ring_init(r, map, (uint8_t *)map + page_size, size);
	r->map_size = page_size + size;
	return 0;
}

void ring_close(struct ring *r)
{
	if (r->map_size)
		munmap(r->page, r->map_size);
	free(r->scratch);
	memset(r, 0, sizeof(*r));
}

/* We no longer know where records start: the only safe place is the head. */
static void ring_resync(struct ring *r)
{
	r->nr_bad++;
	r->tail = r->last = r->head;
}

/* Fix the end of the batch, so that a fast producer cannot keep the consumer in it. */
bool ring_begin(struct ring *r)
{
	if (!r->page)
		return false;
	r->head = head_load(r);
	r->last = r->tail;
	if (r->head - r->tail > r->size) {
		ring_resync(r);
		tail_store(r, r->tail);
	}
	r->high = MAX(r->high, r->head - r->tail);
	assert(r->head - r->tail <= r->size);
	return r->head != r->tail;
}

/* Copy @size bytes at position @pos out of the ring, across its end if need be. */
static void ring_copy(const struct ring *r, uint64_t pos, void *dst, size_t size)
{
	uint64_t offset = pos & (r->size - 1);
	size_t first = MIN(size, r->size - offset);

	memcpy(dst, r->data + offset, first);
	memcpy((uint8_t *)dst + first, r->data, size - first);
}

/* Return the next whole record: in place, or in scratch if it wraps or is not aligned. */
const struct perf_event_header *ring_next(struct ring *r)
{
	struct perf_event_header header;
	uint64_t left = r->head - r->tail;
	const uint8_t *in_place;

	assert(left <= r->size);
	if (!left)
		return NULL;
	if (left < sizeof(header)) {
		ring_resync(r);
		return NULL;
	}
	ring_copy(r, r->tail, &header, sizeof(header));
	if (header.size < sizeof(header) || header.size > left) {
		ring_resync(r);
		return NULL;
	}
	in_place = r->data + (r->tail & (r->size - 1));
	r->last = r->tail;
	r->tail += header.size;
	if (in_place + header.size <= r->data + r->size &&
	    !((uintptr_t)in_place % _Alignof(struct perf_event_header)))
		return (const struct perf_event_header *)in_place;
	_Static_assert(UINT16_MAX <= RING_SCRATCH, "a record fits: its size has 16 bits");
	assert(r->tail - r->last == header.size);
	ring_copy(r, r->last, r->scratch, header.size);
	/* Whatever the ring says by now: the size that was checked goes with the copy. */
	memcpy(r->scratch, &header, sizeof(header));
	return (const struct perf_event_header *)r->scratch;
}

void ring_release(struct ring *r)
{
	assert(r->tail - r->last <= r->size);
	if (r->page)
		tail_store(r, r->last);
}

void ring_end(struct ring *r)
{
	assert(r->tail <= r->head);
	if (!r->page)
		return;
	r->last = r->tail;
	tail_store(r, r->tail);
}

double ring_take_high(struct ring *r)
{
	double high = r->size ? (double)r->high / (double)r->size : 0;

	r->high = 0;
	return high;
}

uint64_t ring_take_bad(struct ring *r)
{
	uint64_t nr_bad = r->nr_bad;

	r->nr_bad = 0;
	return nr_bad;
}

uint64_t ring_written(const struct ring *r)
{
	return r->page ? head_load(r) : 0;
}

uint64_t ring_waiting(const struct ring *r)
{
	uint64_t tail;

	if (!r->page)
		return 0;
	tail = atomic_load_explicit((_Atomic __u64 *)&r->page->data_tail, memory_order_relaxed);
	return MIN(head_load(r) - tail, r->size);
}
