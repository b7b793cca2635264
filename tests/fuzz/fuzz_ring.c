// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * FUZZ: sampler
 *
 * A ring with hostile content and positions: 8 bytes of tail, then steps of 3 bytes (the call, how
 * far the head moves), the rest fills the ring.
 * Each record must be whole and readable; each batch must end; the tail given
 * back must never pass the head.
 */
#include "sampler/ring/ring.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#define SIZE 1024u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint8_t sink;

/* Read one batch to its end, or leave it after @max records. */
static void read_batch(struct ring *r, unsigned int max)
{
	const struct perf_event_header *h;
	unsigned int nr = 0;

	while (nr < max && (h = ring_next(r))) {
		if (h->size < sizeof(*h) || h->size > SIZE)
			abort();
		for (size_t i = 0; i < h->size; i++)
			sink = (uint8_t)(sink + ((const uint8_t *)h)[i]);
		/* a batch is at most the ring, a record at least its header */
		if (++nr > SIZE / sizeof(*h))
			abort();
		if (nr % 2)
			ring_release(r);
		if (r->page->data_head - r->page->data_tail > SIZE)
			abort();
	}
}

static void step(struct ring *r, const uint8_t *op)
{
	uint64_t jump = (uint64_t)(op[1] | op[2] << 8);

	switch (op[0] % 4) {
	case 0:
		r->page->data_head += jump % (SIZE + 16);
		break;
	case 1:
		r->page->data_head -= jump;
		break;
	case 2:
		r->page->data_head += jump << (op[0] % 64);
		break;
	}
	if (ring_begin(r)) {
		read_batch(r, op[0] & 0x80 ? 2 : UINT32_MAX);
		ring_end(r);
	}
	if (r->page->data_tail != r->tail || r->head - r->tail > SIZE || ring_take_high(r) > 1)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perf_event_mmap_page *page;
	size_t nr_steps, left;
	uint8_t *bytes;
	struct ring r;

	if (size < 9)
		return 0;
	nr_steps = data[8] % 16;
	if (size < 9 + 3 * nr_steps)
		return 0;
	page = calloc(1, sizeof(*page));
	bytes = calloc(1, SIZE);
	memcpy(&page->data_tail, data, 8);
	page->data_head = page->data_tail;
	left = size - 9 - 3 * nr_steps;
	for (size_t i = 0; i < SIZE && left; i++)
		bytes[(page->data_tail + i) % SIZE] = data[9 + 3 * nr_steps + i % left];
	ring_init(&r, page, bytes, SIZE);
	for (size_t i = 0; i < nr_steps; i++)
		step(&r, data + 9 + 3 * i);
	ring_close(&r);
	free(bytes);
	free(page);
	return 0;
}
