// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copy a record in parts; after each, look whether the kernel has come round to it.
 *
 * Runs on: a reader.
 */
#include "sampler/pipeline/ring_copy.h"

#include <string.h>

/* Bytes of a record among which the size of its stack is, mostly. */
#define HEAD 1024U

void ring_copy_out(const struct ring *ring, uint64_t pos, void *out, size_t size)
{
	uint64_t at = pos & (ring->size - 1);
	size_t first = MIN(size, ring->size - at);

	memcpy(out, ring->data + at, first);
	memcpy((uint8_t *)out + first, ring->data, size - first);
}

static void copy_part(struct ring_copy *c, size_t begin, size_t end)
{
	ring_copy_out(c->ring, c->pos + begin, c->bytes + begin, end - begin);
	c->overwritten |= ring_written(c->ring) - c->pos > c->ring->size;
}

bool ring_copy_record(struct ring_copy *c, const struct ring *ring,
		      const struct record_layout *layout, uint64_t pos, size_t size)
{
	size_t head = MIN(size, HEAD), at;
	uint64_t stack_size = 0;

	if (size > sizeof(c->bytes))
		return false;
	c->ring = ring;
	c->pos = pos;
	c->rest_size = 0;
	c->overwritten = false;
	copy_part(c, 0, head);
	at = record_stack_at(layout, c->bytes, head);
	if (at) {
		memcpy(&stack_size, c->bytes + at, sizeof(stack_size));
		at += sizeof(stack_size);
	}
	if (stack_size > RING_COPY_STACK && stack_size <= size - at) {
		c->rest_at = at + RING_COPY_STACK;
		c->rest_size = stack_size - RING_COPY_STACK;
		copy_part(c, head, c->rest_at);
		copy_part(c, c->rest_at + c->rest_size, size);
	} else {
		copy_part(c, head, size);
	}
	return !c->overwritten;
}

void ring_copy_rest(struct ring_copy *c)
{
	copy_part(c, c->rest_at, c->rest_at + c->rest_size);
	c->rest_size = 0;
}
