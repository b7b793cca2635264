/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finding in large tables that are sorted by a number: between which records
 * to search. A binary search through all of a table misses the CPU's cache
 * nearly each time it halves; this leaves some few records to halve.
 *
 * Pure; immutable once made, then any thread.
 */
#ifndef SYMBOLS_BASE_LOOKUP_H
#define SYMBOLS_BASE_LOOKUP_H

#include "symbols/base/base.h"

struct lookup {
	uint32_t *first; /* of each stretch of numbers: its first record; NULL: all is one */
	uint64_t base;	 /* the first number */
	uint32_t nr_stretches;
	uint32_t nr;   /* records */
	uint8_t shift; /* a stretch is 1 << shift numbers */
};

/* Of @nr records of @size bytes, sorted by the uint64_t at @key_at. Without memory it is but
 * slower. */
void lookup_init(struct lookup *l, const void *records, uint32_t nr, size_t size, size_t key_at);
void lookup_fini(struct lookup *l);
size_t lookup_memory(const struct lookup *l);

/* How many records have a number up to @key: at least *@lo, at most *@hi. */
static inline void lookup_bounds(const struct lookup *l, uint64_t key, uint32_t *lo, uint32_t *hi)
{
	uint64_t stretch = (key - l->base) >> l->shift;

	*lo = 0;
	*hi = l->nr;
	if (!l->first)
		return;
	if (key < l->base) {
		*hi = 0;
	} else if (stretch >= l->nr_stretches) {
		*lo = l->nr;
	} else {
		*lo = l->first[stretch];
		*hi = l->first[stretch + 1];
	}
}

#endif
