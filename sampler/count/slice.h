/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The packed counts of a short time. Times are in ns of one clock. Pure; any thread.
 */
#ifndef SAMPLER_COUNT_SLICE_H
#define SAMPLER_COUNT_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sampler/count/count.h"
#include "symbols/base/base.h"

/* Bits: incidents in a slice. */
enum slice_mark {
	SLICE_LOST = 1,
	SLICE_THROTTLED = 2,
	SLICE_RATE = 4,	  /* the rate was changed */
	SLICE_EVENTS = 8, /* other events since then */
	SLICE_TRAP = 16,  /* a rule of --trap matched */
	SLICE_RESET = 32, /* the counts were reset before it */
};

struct slice {
	uint64_t begin_ns, end_ns;
	uint64_t count; /* samples */
	uint64_t lost, throttled;
	uint32_t epoch;	 /* counts up with each reset */
	uint16_t events; /* the set of events that the slots are of */
	uint16_t marks;	 /* enum slice_mark */
	uint32_t nr;	 /* counts in it */
	uint32_t size;	 /* of @bytes */
	uint8_t *bytes;	 /* packed counts, in order of tables_count_key() */
	/* Kept for the heat strip (strip_make.h): the amount of one query; seq 0: not computed. */
	double amount;
	uint32_t amount_seq;
};

/* Reads the packed counts of one slice. */
struct slice_reader {
	const uint8_t *at, *end;
	uint64_t key, unit;
};

void slice_read_begin(struct slice_reader *r, const struct slice *slice);
/* Get the next count, with UINT64_MAX for a larger weight. False: the end, or damaged bytes. */
bool slice_read(struct slice_reader *r, struct count *out);
/* More samples than a machine takes in a slice; the sum of millions of slices fits into 64 bits. */
#define SLICE_COUNT_MAX (1ULL << 40)
/* 36 years of a machine with 1,000 CPUs at 4 GHz; four times as much fits. */
#define SLICE_WEIGHT_MAX (1ULL << 62)
/*
 * Read packed bytes of another origin, of at most @max_nr counts in ascending order, of
 * SLICE_COUNT_MAX samples and SLICE_WEIGHT_MAX. Return the number of counts; -EINVAL: damaged.
 * *count: samples.
 */
int64_t slice_check(const uint8_t *bytes, size_t size, uint32_t max_nr, uint64_t *count);
/* Pack @counts (reordered); malloc'ed. Weights of equal keys end at UINT64_MAX. 0 or -ENOMEM. */
int slice_pack(struct slice *out, struct count *counts, uint32_t nr);

/* Return the sum, or the largest number: weights of recordings and of other users have no limit. */
static inline uint64_t slice_add_weight(uint64_t a, uint64_t b)
{
	return a + MIN(b, UINT64_MAX - a);
}

#endif
