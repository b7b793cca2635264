// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A coarse index of a sorted table: one entry for some records.
 *
 * Runs on: a helper. Invariant: first[] grows, and its last entry is the number
 * of records.
 */
#include "symbols/base/lookup.h"

#include <stdlib.h>
#include <string.h>

#define RECORDS_MIN	  64u
#define RECORDS_A_STRETCH 4u

void lookup_init(struct lookup *l, const void *records, uint32_t nr, size_t size, size_t key_at)
{
	const uint8_t *at;
	uint64_t key, last;
	uint32_t next = 0;

	*l = (struct lookup){ .nr = nr };
	if (nr < RECORDS_MIN)
		return;
	at = (const uint8_t *)records + key_at;
	memcpy(&l->base, at, sizeof(l->base));
	memcpy(&last, at + (nr - 1) * size, sizeof(last));
	while ((last - l->base) >> l->shift >= nr / RECORDS_A_STRETCH)
		l->shift++;
	l->nr_stretches = (uint32_t)((last - l->base) >> l->shift) + 1;
	l->first = malloc((l->nr_stretches + 1) * sizeof(*l->first));
	if (!l->first)
		return;
	for (uint32_t i = 0; i < nr; i++, at += size) {
		memcpy(&key, at, sizeof(key));
		while (next <= (key - l->base) >> l->shift)
			l->first[next++] = i;
	}
	l->first[next] = nr;
}

void lookup_fini(struct lookup *l)
{
	free(l->first);
	*l = (struct lookup){ 0 };
}

size_t lookup_memory(const struct lookup *l)
{
	return l->first ? (l->nr_stretches + 1) * sizeof(*l->first) : 0;
}
