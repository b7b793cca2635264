/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sorting large tables by a number: addresses, times.
 *
 * Pure. Time is linear in the number of keys, whatever they are.
 */
#ifndef SYMBOLS_SORT_H
#define SYMBOLS_SORT_H

#include "symbols/base.h"

struct sort_key {
	uint64_t key;
	uint32_t index;			/* of what it belongs to */
};

/* Sort by key; equal keys stay in their order. 0 or -ENOMEM, then nothing was moved. */
int sort_keys(struct sort_key *keys, size_t nr);
/* The same for records of @size bytes, by the uint64_t that each has at @key_at. */
int sort_records(void *records, size_t nr, size_t size, size_t key_at);

#endif
