// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The counts of a slice, packed. Pure; any thread.
 *
 * A count is the distance of its key from the one before, its samples, and its weight where that is
 * not samples * unit: with a clock three or four bytes.
 */
#include "sampler/count/slice.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "symbols/base/base.h"

#define VARINT_MAX 10
#define PACKED_MAX (3 * VARINT_MAX) /* bytes of one count */

static uint8_t *put(uint8_t *at, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*at++ = (uint8_t)(v | 0x80);
	*at++ = (uint8_t)v;
	return at;
}

/* Get a number. NULL: damaged. */
static const uint8_t *get(const uint8_t *at, const uint8_t *end, uint64_t *v)
{
	*v = 0;
	for (unsigned int shift = 0; at < end && shift < 64; shift += 7) {
		*v |= (uint64_t)(*at & 0x7f) << shift;
		if (!(*at++ & 0x80))
			return at;
	}
	return NULL;
}

static uint64_t key_of(const struct count *c)
{
	return tables_count_key(c->stack, c->task, c->event);
}

static int by_key(const void *a, const void *b)
{
	return COMPARE(key_of(a), key_of(b));
}

/* Sort, and sum up counts with equal keys; the rest is set to zero. Return how many are left. */
static uint32_t tidy(struct count *counts, uint32_t nr)
{
	uint32_t kept = 0;

	if (nr > 1)
		qsort(counts, nr, sizeof(*counts), by_key);
	for (uint32_t i = 0; i < nr; i++) {
		struct count c = counts[i];

		counts[i].count = counts[i].weight = 0;
		if (kept && key_of(&counts[kept - 1]) == key_of(&c)) {
			counts[kept - 1].count += c.count;
			counts[kept - 1].weight =
				slice_add_weight(counts[kept - 1].weight, c.weight);
		} else {
			counts[kept++] = c;
		}
	}
	return kept;
}

int slice_pack(struct slice *out, struct count *counts, uint32_t nr)
{
	uint8_t *bytes, *at, *shrunk;
	uint64_t last = 0, unit = 0;

	nr = tidy(counts, nr);
	bytes = at = malloc((size_t)nr * PACKED_MAX + VARINT_MAX);
	if (!bytes)
		return -ENOMEM;
	if (nr && counts[0].count)
		unit = counts[0].weight / counts[0].count;
	at = put(at, unit);
	out->count = 0;
	for (uint32_t i = 0; i < nr; i++) {
		const struct count *c = &counts[i];
		uint64_t product;
		bool other = __builtin_mul_overflow(c->count, unit, &product) ||
			     c->weight != product;

		assert(c->count < 1ULL << 63);
		at = put(at, key_of(c) - last);
		at = put(at, c->count << 1 | other);
		if (other)
			at = put(at, c->weight);
		last = key_of(c);
		out->count += c->count;
	}
	out->nr = nr;
	out->size = (uint32_t)(at - bytes);
	shrunk = realloc(bytes, out->size);
	out->bytes = shrunk ? shrunk : bytes;
	return 0;
}

static void read_begin(struct slice_reader *r, const uint8_t *bytes, size_t size)
{
	*r = (struct slice_reader){ .at = bytes, .end = bytes + size };
	r->at = get(r->at, r->end, &r->unit);
}

void slice_read_begin(struct slice_reader *r, const struct slice *slice)
{
	read_begin(r, slice->bytes, slice->size);
}

bool slice_read(struct slice_reader *r, struct count *out)
{
	uint64_t more, count, weight;

	if (!r->at || r->at == r->end)
		return false;
	r->at = get(r->at, r->end, &more);
	r->at = r->at ? get(r->at, r->end, &count) : NULL;
	if (!r->at)
		return false;
	r->key += more;
	if (__builtin_mul_overflow(count >> 1, r->unit, &weight))
		weight = UINT64_MAX;
	if (count & 1)
		r->at = get(r->at, r->end, &weight);
	*out = (struct count){ tables_count_key_stack(r->key),
			       tables_count_key_task(r->key),
			       tables_count_key_event(r->key),
			       count >> 1,
			       weight,
			       0 };
	return r->at != NULL;
}

int64_t slice_check(const uint8_t *bytes, size_t size, uint32_t max_nr, uint64_t *count)
{
	struct slice_reader r;
	struct count c;
	uint64_t last = 0, weight = 0;
	uint32_t nr = 0;

	*count = 0;
	for (read_begin(&r, bytes, size); slice_read(&r, &c); nr++) {
		if (r.key <= last || nr == max_nr || c.count > SLICE_COUNT_MAX - *count ||
		    c.weight > SLICE_WEIGHT_MAX - weight)
			return -EINVAL;
		weight += c.weight;
		last = r.key;
		*count += c.count;
	}
	return r.at && r.at == r.end ? (int64_t)nr : -EINVAL;
}
