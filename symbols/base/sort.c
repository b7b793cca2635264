// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Records are dealt out once, to half as many heaps as there are records: each
 * heap has an equal part of the range of the keys. Keys that are spread leave
 * few in a heap, and an insertion as they are taken back puts them in order. A
 * heap that got many is sorted in the same way before: its range is smaller by
 * the number of heaps, so this ends after some few rounds, whatever the keys are.
 */
#include "symbols/base/sort.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEAP_MAX 32U /* sorted by insertion */

/* What is sorted; sizes are constants where this is inlined. */
struct table {
	uint8_t *records;
	size_t nr, size, key_at;
};

static inline uint64_t key_of(const uint8_t *record, size_t key_at)
{
	uint64_t key;

	memcpy(&key, record + key_at, sizeof(key));
	return key;
}

/* The least and the greatest key; false: all are in order. */
static inline bool find_range(const struct table *t, uint64_t *least, uint64_t *greatest)
{
	uint64_t before = t->nr ? key_of(t->records, t->key_at) : 0;
	bool in_order = true;

	*least = *greatest = before;
	for (size_t i = 1; i < t->nr; i++) {
		uint64_t key = key_of(t->records + i * t->size, t->key_at);

		in_order &= key >= before;
		*least = MIN(*least, key);
		*greatest = MAX(*greatest, key);
		before = key;
	}
	return !in_order;
}

/* Put @record behind those of the @nr sorted ones at @to whose key is not greater. */
static inline void insert(uint8_t *to, size_t nr, const uint8_t *record, const struct table *t)
{
	uint64_t key = key_of(record, t->key_at);
	uint8_t *at = to + nr * t->size;

	for (; at > to && key_of(at - t->size, t->key_at) > key; at -= t->size)
		memcpy(at, at - t->size, t->size);
	memcpy(at, record, t->size);
}

/*
 * Deal the records of @t out to @heaps; of each, ends[] says where the next one
 * begins. How many the largest has.
 */
static inline uint32_t deal(const struct table *t, uint8_t *heaps, uint32_t *ends, size_t nr_heaps,
			    uint64_t least, unsigned int shift)
{
	uint32_t start = 0, most = 0;

	for (size_t i = 0; i < t->nr; i++)
		ends[(key_of(t->records + i * t->size, t->key_at) - least) >> shift]++;
	for (size_t h = 0; h < nr_heaps; h++) {
		uint32_t here = ends[h];

		ends[h] = start;
		start += here;
		most = MAX(most, here);
	}
	for (size_t i = 0; i < t->nr; i++) {
		const uint8_t *record = t->records + i * t->size;
		uint32_t *end = &ends[(key_of(record, t->key_at) - least) >> shift];

		memcpy(heaps + *end * t->size, record, t->size);
		++*end;
	}
	return most;
}

/* Sort the heaps that are too large for insertion. */
static int sort_large(const struct table *t, uint8_t *heaps, const uint32_t *ends, size_t nr_heaps)
{
	uint32_t start = 0;
	int rc = 0;

	for (size_t h = 0; h < nr_heaps && !rc; start = ends[h++])
		if (ends[h] - start > HEAP_MAX)
			rc = sort_records(heaps + start * t->size, ends[h] - start, t->size,
					  t->key_at);
	return rc;
}

static inline __attribute__((always_inline)) int sort(const struct table *t)
{
	uint64_t least, greatest;
	unsigned int shift = 0;
	size_t nr_heaps;
	uint32_t *ends;
	uint8_t *heaps;
	int rc = -ENOMEM;

	if (!find_range(t, &least, &greatest))
		return 0;
	while (shift < 63 && (greatest - least) >> shift >= (t->nr + 1) / 2)
		shift++;
	nr_heaps = (size_t)((greatest - least) >> shift) + 1;
	ends = t->nr <= UINT32_MAX ? calloc(nr_heaps, sizeof(*ends)) : NULL;
	heaps = ends ? malloc(t->nr * t->size) : NULL;
	if (heaps) {
		rc = 0;
		if (deal(t, heaps, ends, nr_heaps, least, shift) > HEAP_MAX)
			rc = sort_large(t, heaps, ends, nr_heaps);
		for (size_t i = 0; i < t->nr && !rc; i++)
			insert(t->records, i, heaps + i * t->size, t);
	}
	free(heaps);
	free(ends);
	return rc;
}

int sort_records(void *records, size_t nr, size_t size, size_t key_at)
{
	switch (size) { /* those of our large tables */
	case 16:
		return sort(&(struct table){ records, nr, 16, key_at });
	case 24:
		return sort(&(struct table){ records, nr, 24, key_at });
	default:
		return sort(&(struct table){ records, nr, size, key_at });
	}
}
