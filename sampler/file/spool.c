// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A byte ring between two threads.
 *
 * Positions only grow; head - tail is the number of bytes in it, at most size. The head moves by
 * whole records, so the consumer peeks whole records.
 */
#include "sampler/file/spool.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

int spool_init(struct spool *s, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		return -errno;
	memset(s, 0, sizeof(*s));
	s->data = p;
	s->size = size;
	return 0;
}

void spool_fini(struct spool *s)
{
	if (s->data)
		munmap(s->data, s->size);
	s->data = NULL;
}

static void copy_in(struct spool *s, uint64_t pos, const void *p, size_t size)
{
	uint64_t at = pos & (s->size - 1);
	size_t first = MIN(size, s->size - at);

	memcpy(s->data + at, p, first);
	memcpy(s->data, (const uint8_t *)p + first, size - first);
}

bool spool_put(struct spool *s, const void *first, size_t first_size, const void *second,
	       size_t second_size)
{
	uint64_t head = atomic_load_explicit(&s->head, memory_order_relaxed);
	uint64_t need = first_size + second_size;

	assert(head - s->seen_tail <= s->size);
	if (need > s->size - (head - s->seen_tail)) {
		/* Acquire: pairs with spool_drop(); the consumer has read the bytes we overwrite.
		 */
		s->seen_tail = atomic_load_explicit(&s->tail, memory_order_acquire);
		if (need > s->size - (head - s->seen_tail))
			return false;
	}
	if (first_size)
		copy_in(s, head, first, first_size);
	copy_in(s, head + first_size, second, second_size);
	/* Release: pairs with spool_peek(); the bytes are there before the head says so. */
	atomic_store_explicit(&s->head, head + need, memory_order_release);
	return true;
}

int spool_peek(struct spool *s, struct iovec pieces[2])
{
	uint64_t tail = atomic_load_explicit(&s->tail, memory_order_relaxed);
	uint64_t nr = atomic_load_explicit(&s->head, memory_order_acquire) - tail;
	uint64_t at = tail & (s->size - 1), first = MIN(nr, s->size - at);

	assert(nr <= s->size);
	pieces[0] = (struct iovec){ s->data + at, first };
	pieces[1] = (struct iovec){ s->data, nr - first };
	return !nr ? 0 : nr > first ? 2 : 1;
}

void spool_drop(struct spool *s, const struct iovec *pieces, int nr)
{
	uint64_t tail = atomic_load_explicit(&s->tail, memory_order_relaxed);

	for (int i = 0; i < nr; i++)
		tail += pieces[i].iov_len;
	assert(atomic_load_explicit(&s->head, memory_order_relaxed) - tail <= s->size);
	atomic_store_explicit(&s->tail, tail, memory_order_release);
}
