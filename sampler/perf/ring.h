/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's ring of one event: perf_event_open(2), "MMAP layout".
 *
 * One consumer. data_head is read with acquire (pairs with the kernel's
 * store after the record's bytes), data_tail written with release (the kernel may overwrite the
 * bytes before it).
 */
#ifndef SAMPLER_PERF_RING_H
#define SAMPLER_PERF_RING_H

#include <stddef.h>
#include <stdint.h>

#include "symbols/base/base.h"

struct perf_event_mmap_page;
struct perf_event_header;

struct ring {
	struct perf_event_mmap_page *page; /* NULL: closed */
	uint8_t *data;
	uint64_t size;	  /* of the data area; a power of two */
	uint64_t head;	  /* up to here this batch reads */
	uint64_t tail;	  /* next record */
	uint8_t *scratch; /* 64 KiB: a record that wraps is copied here */
	uint64_t nr_bad;  /* invalid headers, each of which skipped the ring to its head */
	uint64_t high;	  /* most bytes seen waiting since ring_take_high() */
	uint64_t last;	  /* start of the record last returned */
	size_t map_size;  /* to unmap; 0: the memory is the caller's */
};

/* Map @fd's ring: 1 + @size/page pages. 0 or -errno; -EPERM is the mlock limit. */
int ring_open(struct ring *r, int fd, size_t size);
/*
 * A ring over memory (tests, replay): @page and @data are the caller's. ring_close() frees the
 * scratch buffer.
 */
void ring_init(struct ring *r, struct perf_event_mmap_page *page, uint8_t *data, uint64_t size);
void ring_close(struct ring *r);

/* Begin a batch: look at data_head. True if there is anything to read. */
bool ring_begin(struct ring *r);
/*
 * The next record of the batch, whole and contiguous, NULL at its end. In
 * place unless it wraps; valid until the next call or ring_end(). On an invalid header (size 0,
 * beyond head) the rest is skipped and counted. The header returned is always aligned for reading
 * its fields.
 */
const struct perf_event_header *ring_next(struct ring *r);
/* Give the space of all records but the last one returned back to the kernel (mid-batch). */
void ring_release(struct ring *r);
/* End of the batch: give back everything returned; unread records are in the next batch. */
void ring_end(struct ring *r);
/* The fullest the ring was, 0..1, since the last call. */
double ring_take_high(struct ring *r);
/* Return the number of invalid headers since the last call. */
uint64_t ring_take_bad(struct ring *r);
/* Bytes written since it was opened: any thread. */
uint64_t ring_written(const struct ring *r);
/* Bytes waiting now: any thread. */
uint64_t ring_waiting(const struct ring *r);

#endif
