// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Radix sort, lowest byte first: one pass a byte, none for a byte in which all
 * keys are the same, none at all for keys that are in order.
 */
#include "symbols/sort.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NR_BYTES 8

static bool in_order(const struct sort_key *keys, size_t nr)
{
	for (size_t i = 1; i < nr; i++)
		if (keys[i].key < keys[i - 1].key)
			return false;
	return true;
}

/* How many keys have which value of each byte. */
static void count_bytes(const struct sort_key *keys, size_t nr, size_t (*counts)[256])
{
	for (size_t i = 0; i < nr; i++)
		for (int byte = 0; byte < NR_BYTES; byte++)
			counts[byte][keys[i].key >> (8 * byte) & 0xff]++;
}

/* Move all keys from @from to @to, in the order of one byte. */
static void move(struct sort_key *to, const struct sort_key *from, size_t nr, size_t *count, int byte)
{
	size_t start = 0;

	for (int value = 0; value < 256; value++) {
		size_t here = count[value];

		count[value] = start;
		start += here;
	}
	for (size_t i = 0; i < nr; i++)
		to[count[from[i].key >> (8 * byte) & 0xff]++] = from[i];
}

int sort_keys(struct sort_key *keys, size_t nr)
{
	size_t counts[NR_BYTES][256] = { { 0 } };
	struct sort_key *from = keys, *to, *spare;

	if (in_order(keys, nr))
		return 0;
	count_bytes(keys, nr, counts);
	spare = to = malloc(nr * sizeof(*spare));
	if (!spare)
		return -ENOMEM;
	for (int byte = 0; byte < NR_BYTES; byte++) {
		struct sort_key *moved = to;

		if (counts[byte][keys[0].key >> (8 * byte) & 0xff] == nr)
			continue;
		move(to, from, nr, counts[byte], byte);
		to = from;
		from = moved;
	}
	if (from != keys)
		memcpy(keys, from, nr * sizeof(*keys));
	free(spare);
	return 0;
}

static uint64_t key_of(const uint8_t *record, size_t key_at)
{
	uint64_t key;

	memcpy(&key, record + key_at, sizeof(key));
	return key;
}

static bool records_in_order(const uint8_t *at, size_t nr, size_t size, size_t key_at)
{
	for (; nr > 1; nr--, at += size)
		if (key_of(at + size, key_at) < key_of(at, key_at))
			return false;
	return true;
}

int sort_records(void *records, size_t nr, size_t size, size_t key_at)
{
	struct sort_key *keys;
	uint8_t *bytes = records, *copy;
	int rc;

	if (records_in_order(bytes, nr, size, key_at))
		return 0;
	keys = nr <= UINT32_MAX ? calloc(nr, sizeof(*keys)) : NULL;
	if (!keys)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		keys[i] = (struct sort_key){ key_of(bytes + i * size, key_at), (uint32_t)i };
	rc = sort_keys(keys, nr);
	copy = rc ? NULL : malloc(nr * size);
	if (copy) {
		memcpy(copy, bytes, nr * size);
		for (size_t i = 0; i < nr; i++)
			memcpy(bytes + i * size, copy + keys[i].index * size, size);
	}
	free(keys);
	free(copy);
	return copy ? 0 : -ENOMEM;
}
