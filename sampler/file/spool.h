/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bytes on their way from one thread to another: a ring for whole records,
 * one producer, one consumer, no lock. A record that does not fit is refused, and the producer
 * counts it.
 */
#ifndef SAMPLER_FILE_SPOOL_H
#define SAMPLER_FILE_SPOOL_H

#include <stdatomic.h>
#include <sys/uio.h>

#include "symbols/base/base.h"

struct spool {
	uint8_t *data;
	uint64_t size;				/* a power of two */
	_Alignas(CACHELINE) atomic_ullong head; /* producer: release; consumer: acquire */
	uint64_t seen_tail;			/* producer's: tail as it last read it */
	_Alignas(CACHELINE) atomic_ullong tail; /* consumer: release; producer: acquire */
};

/* @size is a power of two; its pages are touched now, not by the producer later. 0 or -errno. */
int spool_init(struct spool *s, size_t size);
void spool_fini(struct spool *s);

/* Producer: put both pieces in, or nothing. */
bool spool_put(struct spool *s, const void *first, size_t first_size, const void *second,
	       size_t second_size);

/* Consumer: get the bytes in it, in up to two pieces; returns their number. */
int spool_peek(struct spool *s, struct iovec pieces[2]);
/* Consumer: these have been used. */
void spool_drop(struct spool *s, const struct iovec *pieces, int nr);

#endif
