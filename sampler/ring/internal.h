/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's ring of one event: perf_event_open(2), "MMAP layout".
 *
 * One consumer. data_head is read with acquire (pairs with the kernel's
 * store after the record's bytes), data_tail written with release (the kernel may overwrite the
 * bytes before it).
 */
#ifndef SAMPLER_RING_INTERNAL_H
#define SAMPLER_RING_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "sampler/ring/ring.h"
#include "symbols/base/base.h"

struct perf_event_mmap_page;
struct ring;

/*
 * A ring over memory (tests, replay): @page and @data are the caller's. ring_close() frees the
 * scratch buffer.
 */
void ring_init(struct ring *r, struct perf_event_mmap_page *page, uint8_t *data, uint64_t size);

#endif
