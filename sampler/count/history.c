// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The past in slices of 50 ms, and its sums: window, decay, total and any range.
 *
 * Runs on: the builder.
 */
#include "sampler/count/internal.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/event/event.h"
#include "symbols/base/base.h"

/*
 * Long sums by count: open addressing, never over three quarters full; many are grown by an eighth:
 * the sums of a long session are among its largest tables.
 *
 * Runs on: the builder. Invariant: the sum over all cells is the sum of all
 * that was ever added (scaled), pruned or not.
 */

#define SLOTS_MIN 64u
#define SLOTS_FEW (1u << 15) /* from then on they are many */
#define SLOTS_MAX (1u << 30)

static void sums_init(struct sums *s)
{
	*s = (struct sums){ 0 };
}

static void sums_fini(struct sums *s)
{
	free(s->slots);
	sums_init(s);
}

static bool fits(uint64_t nr, uint64_t slots)
{
	return nr * 4 <= slots * 3;
}

static struct sum *slot_get(struct sums *s, uint64_t key)
{
	uint32_t at = (uint32_t)((hash_u64(key) >> 32) * s->nr_slots >> 32);

	while (s->slots[at].key && s->slots[at].key != key)
		at = at + 1 < s->nr_slots ? at + 1 : 0;
	return &s->slots[at];
}

/* Reserve @more new keys: that number of sums_add() cannot fail. 0 or -ENOMEM (unchanged). */
static int sums_reserve(struct sums *s, uint32_t more)
{
	struct sums grown = { .nr = s->nr };
	uint64_t size = MAX(s->nr_slots, SLOTS_MIN);

	assert(fits(s->nr, s->nr_slots));
	while (!fits((uint64_t)s->nr + more, size))
		size += size < SLOTS_FEW ? size : size / 8;
	if (size == s->nr_slots)
		return 0;
	if (size > SLOTS_MAX)
		return -ENOMEM;
	/* Reading what was never written, then writing it, takes two page faults. */
	grown.slots = alloc_to_fill(size * sizeof(*grown.slots));
	if (!grown.slots)
		return -ENOMEM;
	memset(grown.slots, 0, size * sizeof(*grown.slots));
	grown.nr_slots = (uint32_t)size;
	for (uint32_t i = 0; i < s->nr_slots; i++)
		if (s->slots[i].key)
			*slot_get(&grown, s->slots[i].key) = s->slots[i];
	free(s->slots);
	*s = grown;
	assert(fits((uint64_t)s->nr + more, s->nr_slots));
	return 0;
}

static void sums_add(struct sums *s, uint64_t key, double count, double weight)
{
	struct sum *slot = slot_get(s, key);

	assert(key && fits((uint64_t)s->nr + !slot->key, s->nr_slots));
	s->nr += !slot->key;
	slot->key = key;
	slot->count += count;
	slot->weight += weight;
}

static void sums_scale(struct sums *s, double factor)
{
	for (uint32_t i = 0; i < s->nr_slots; i++) {
		s->slots[i].count *= factor;
		s->slots[i].weight *= factor;
	}
}

static void swap(struct sum *a, struct sum *b)
{
	struct sum was = *a;

	*a = *b;
	*b = was;
}

/* Order @list so that its @keep heaviest cells are first (Hoare's quickselect). */
static void select_heaviest(struct sum *list, uint32_t nr, uint32_t keep)
{
	int64_t low = 0, high = (int64_t)nr - 1, target = keep;

	while (low < high) {
		double pivot = list[low + (high - low) / 2].weight;
		int64_t i = low, j = high;

		while (i <= j) {
			while (list[i].weight > pivot)
				i++;
			while (list[j].weight < pivot)
				j--;
			if (i <= j)
				swap(&list[i++], &list[j--]);
		}
		if (target <= j)
			high = j;
		else if (target >= i)
			low = i;
		else
			return;
	}
}

/* Return the key that a pruned count is added to. */
static uint64_t folded_key(uint64_t key, bool by_task)
{
	return tables_count_key(STACK_NONE, by_task ? tables_count_key_task(key) : 0,
				tables_count_key_event(key));
}

/* Report whether a count is folded already, at the last level. */
static bool is_last(uint64_t key)
{
	return key == folded_key(key, false);
}

static uint32_t list_cells(const struct sums *s, struct sum *list)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < s->nr_slots; i++)
		if (s->slots[i].key)
			list[nr++] = s->slots[i];
	return nr;
}

/* Prune once: into counts by task, or into one per event. */
static int fold_away(struct sums *s, uint32_t keep, double min_count, bool by_task)
{
	struct sum *list = malloc(MAX(s->nr, 1u) * sizeof(*list));
	struct sums pruned;
	uint32_t nr;

	sums_init(&pruned);
	/* Folding never makes more counts: the list is long enough. */
	if (!list || sums_reserve(&pruned, s->nr)) {
		free(list);
		return -ENOMEM;
	}
	nr = list_cells(s, list);
	select_heaviest(list, nr, keep);
	for (uint32_t i = 0; i < nr; i++) {
		/* CPU time has no samples. */
		bool enough = list[i].count > 0 ? list[i].count >= min_count : list[i].weight >= 1;
		bool stays = is_last(list[i].key) || (i < keep && enough);

		sums_add(&pruned, stays ? list[i].key : folded_key(list[i].key, by_task && enough),
			 list[i].count, list[i].weight);
	}
	free(list);
	free(s->slots);
	*s = pruned;
	return 0;
}

/*
 * Keep the @keep heaviest cells of at least @min_count, fold the rest away; below @min_count into
 * task 0, so that a decaying sum forgets tasks (at most COUNTS_EVENTS_MAX cells more may remain). 0
 * or -ENOMEM (unchanged).
 */
static int sums_prune(struct sums *s, uint32_t keep, double min_count)
{
	int ret = fold_away(s, keep, min_count, true);

	if (!ret && s->nr > keep)
		ret = fold_away(s, keep, min_count, false);
	return ret;
}

/*
 * The past in slices of 50 ms: packed, open until all samples of their time are counted, merged
 * and dropped within a limit of memory; rates.
 *
 * Runs on: the builder.
 */

/*
 * The counts of a slice, packed. Pure; any thread.
 *
 * A count is the distance of its key from the one before, its samples, and its weight where that is
 * not samples * unit: with a clock three or four bytes.
 */

/* Return the sum, or the largest number: weights of recordings and of other users have no limit. */
static inline uint64_t slice_add_weight(uint64_t a, uint64_t b)
{
	return a + MIN(b, UINT64_MAX - a);
}

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

	assert(counts || !nr);
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

	assert(bytes || !size);
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

#define SECOND	 1000000000ULL
#define OVERHEAD (sizeof(struct slice) + 16)

/* Merged slices end this long before the newest one: the newest moments are not merged. */
#define SHARP_NS (15 * SECOND)

/* Counts of slices that become one: they are sorted in a third of a second. */
#define MERGE_MAX (1u << 20)

struct slices {
	struct slice *list; /* the first in use is @first */
	uint32_t first, nr, size;
	uint64_t span_ns;
	size_t memory, max_memory;
	size_t merge_from; /* bytes: below them another merge would free as little as the last */
	uint64_t dropped_count, dropped_weight;
	uint64_t kept_ns;      /* of slices_keep() */
	uint64_t unkept_count; /* samples of later slices that were dropped */
	bool dropped, merged;
	const atomic_bool *stopped; /* by another thread; or NULL */
};

static void slices_clear(struct slices *s)
{
	uint64_t unkept_count = s->unkept_count;

	for (uint32_t i = 0; i < s->nr; i++) {
		const struct slice *slice = &s->list[s->first + i];

		unkept_count += slice->end_ns > s->kept_ns ? slice->count : 0;
		free(slice->bytes);
	}
	free(s->list);
	*s = (struct slices){
		.span_ns = s->span_ns,
		.max_memory = s->max_memory,
		.stopped = s->stopped,
		.kept_ns = s->kept_ns,
		.unkept_count = unkept_count,
	};
}

static void slices_free(struct slices *s)
{
	if (!s)
		return;
	slices_clear(s);
	free(s);
}

static void slices_set_limits(struct slices *s, uint64_t span_ns, size_t memory)
{
	s->span_ns = span_ns;
	s->max_memory = memory;
	s->merge_from = 0;
}

/*
 * Give up merging soon after another thread has set @stopped: slices may take more memory than
 * their limit then, and slices_remap() drops some. NULL: never.
 */
/* @span_ns: how long a slice is kept; @memory: bytes that all slices may take. 0 or -ENOMEM. */
static int slices_new(struct slices **out, uint64_t span_ns, size_t memory)
{
	struct slices *s = calloc(1, sizeof(*s));

	assert(span_ns && memory);
	if (!s)
		return -ENOMEM;
	slices_set_limits(s, span_ns, memory);
	*out = s;
	return 0;
}

/* Drop all slices, and forget the dropped ones. */

static void slices_stop_by(struct slices *s, const atomic_bool *stopped)
{
	s->stopped = stopped;
}

static bool is_stopped(const struct slices *s)
{
	/* Relaxed: the owner waits for the thread. */
	return s->stopped && atomic_load_explicit(s->stopped, memory_order_relaxed);
}

static struct slice *at(const struct slices *s, uint32_t i)
{
	assert(i < s->nr);
	return &s->list[s->first + i];
}

uint32_t slices_nr(const struct slices *s)
{
	return s->nr;
}

const struct slice *slices_at(const struct slices *s, uint32_t i)
{
	return at(s, i);
}

bool slices_dropped(const struct slices *s, uint64_t *count, uint64_t *weight)
{
	*count = s->dropped_count;
	*weight = s->dropped_weight;
	return s->dropped;
}

uint64_t slices_keep(struct slices *s, uint64_t until_ns)
{
	uint64_t count = s->unkept_count;

	assert(until_ns >= s->kept_ns);
	s->kept_ns = until_ns;
	s->unkept_count = 0;
	return count;
}

bool slices_merged(const struct slices *s)
{
	return s->merged;
}

void slices_set_amount(struct slices *s, uint32_t i, double amount, uint32_t seq)
{
	at(s, i)->amount = amount;
	at(s, i)->amount_seq = seq;
}

static void drop_oldest(struct slices *s)
{
	struct slice *slice = at(s, 0);
	struct slice_reader r;
	struct count c;

	for (slice_read_begin(&r, slice); slice_read(&r, &c);)
		s->dropped_weight = slice_add_weight(s->dropped_weight, c.weight);
	s->dropped_count += slice->count;
	s->dropped = true;
	if (slice->end_ns > s->kept_ns)
		s->unkept_count += slice->count;
	s->memory -= slice->size + OVERHEAD;
	free(slice->bytes);
	s->first++;
	s->nr--;
}

/* Reserve one more element behind the last. */
static int reserve(struct slices *s)
{
	uint32_t size = MAX(64u, s->nr + s->nr / 2 + 1);
	struct slice *list;

	if (s->first + s->nr < s->size)
		return 0;
	if (s->first > s->nr) {
		memmove(s->list, s->list + s->first, s->nr * sizeof(*list));
		s->first = 0;
		return 0;
	}
	list = malloc(size * sizeof(*list));
	if (!list)
		return -ENOMEM;
	if (s->nr)
		memcpy(list, s->list + s->first, s->nr * sizeof(*list));
	free(s->list);
	s->list = list;
	s->first = 0;
	s->size = size;
	return 0;
}

static uint32_t read_all(const struct slice *slice, struct count *out)
{
	struct slice_reader r;
	uint32_t nr = 0;

	for (slice_read_begin(&r, slice); nr < slice->nr && slice_read(&r, &out[nr]);)
		nr++;
	return nr;
}

/* Merge the slices from @from to @to into one, at @out, which is not after them. 0 or -ENOMEM. */
static int merge(struct slices *s, uint32_t from, uint32_t to, uint32_t out)
{
	struct slice merged = *at(s, from);
	struct count *counts;
	uint64_t nr = 0;
	uint32_t filled = 0;
	int code;

	for (uint32_t i = from; i <= to; i++)
		nr += at(s, i)->nr;
	counts = nr > UINT32_MAX ? NULL : malloc(MAX(nr, 1ULL) * sizeof(*counts));
	if (!counts)
		return -ENOMEM;
	for (uint32_t i = from; i <= to; i++)
		filled += read_all(at(s, i), counts + filled);
	code = slice_pack(&merged, counts, filled);
	free(counts);
	if (code)
		return code;
	s->merged = true;
	merged.amount_seq = 0;
	for (uint32_t i = from; i <= to; i++) {
		const struct slice *slice = at(s, i);

		merged.end_ns = slice->end_ns;
		if (i > from) {
			merged.lost += slice->lost;
			merged.throttled += slice->throttled;
			merged.marks |= slice->marks;
		}
		s->memory -= slice->size + OVERHEAD;
		free(slice->bytes);
	}
	s->memory += merged.size + OVERHEAD;
	*at(s, out) = merged;
	return 0;
}

/* Report whether slice @i and the next one may become one, of at most @span_ns on its grid. */
static bool joins(const struct slices *s, uint32_t i, uint64_t span_ns)
{
	const struct slice *a = at(s, i), *b = at(s, i + 1);

	/* One is on disk, and the other is not. */
	if (a->end_ns <= s->kept_ns && b->end_ns > s->kept_ns)
		return false;
	return a->epoch == b->epoch && a->events == b->events && a->end_ns == b->begin_ns &&
	       a->begin_ns / span_ns == (MAX(b->end_ns, 1ULL) - 1) / span_ns;
}

/* Return the last slice after @i that becomes one of @span_ns with it; the newest is none. */
static uint32_t last_of_span(const struct slices *s, uint32_t i, uint64_t span_ns)
{
	uint64_t nr = at(s, i)->nr;
	uint32_t to = i;

	while (to + 2 < s->nr && joins(s, to, span_ns) &&
	       at(s, i)->begin_ns / span_ns == at(s, to + 1)->begin_ns / span_ns) {
		nr += at(s, to + 1)->nr;
		if (nr > MERGE_MAX)
			break;
		to++;
	}
	return to;
}

/*
 * Merge slices into ones of @span_ns, the oldest first, until they take @low bytes. In one pass: to
 * open 24 hours of slices takes as long for each of them.
 */
static void merge_oldest(struct slices *s, uint64_t span_ns, size_t low)
{
	uint64_t newest = at(s, s->nr - 1)->end_ns;
	uint32_t i = 0, out = 0;

	while (i + 1 < s->nr && s->memory > low && !is_stopped(s)) {
		uint32_t to = last_of_span(s, i, span_ns);

		if (newest - at(s, to)->end_ns < SHARP_NS && s->span_ns != SLICES_ALL)
			break;
		if (to == i)
			*at(s, out) = *at(s, i);
		else if (merge(s, i, to, out))
			break;
		out++;
		i = to + 1;
	}
	memmove(at(s, out), at(s, i), (s->nr - i) * sizeof(struct slice));
	s->nr -= i - out;
}

/* Merge slices, into the shortest ones that are possible, until enough are free. */
static void merge_any(struct slices *s)
{
	uint64_t longest = s->span_ns == SLICES_ALL ? UINT64_MAX / 10 : 10 * SECOND;
	size_t low = s->max_memory - s->max_memory / 8;

	for (uint64_t span_ns = SECOND; span_ns <= longest && s->memory > low; span_ns *= 10)
		merge_oldest(s, span_ns, low);
	/* Slices are not dropped: else each new one would make all be merged and sorted again. */
	s->merge_from = s->span_ns == SLICES_ALL && s->memory > low ? s->memory + s->memory / 8 : 0;
}

/* Remain within the limits; the newest slice is always kept. */
static void keep_bounded(struct slices *s)
{
	while (s->nr > 1 && s->span_ns != SLICES_ALL &&
	       at(s, s->nr - 1)->end_ns - at(s, 1)->begin_ns >= s->span_ns)
		drop_oldest(s);
	if (s->nr > 1 && s->memory > s->max_memory && s->memory >= s->merge_from)
		merge_any(s);
	while (s->nr > 1 && s->memory > s->max_memory && s->span_ns != SLICES_ALL)
		drop_oldest(s);
}

/*
 * Append the slice of @begin_ns to @end_ns: a copy of @counts (reordered). @about:
 * epoch, events, marks, lost and throttled. 0, or -ENOMEM: nothing was added.
 */
static int slices_add(struct slices *s, struct count *counts, uint32_t nr,
		      const struct slice *about)
{
	struct slice slice = *about;

	slice.amount_seq = 0;
	assert(about->begin_ns < about->end_ns);
	assert(!s->nr || at(s, s->nr - 1)->end_ns <= about->begin_ns);
	if (reserve(s) || slice_pack(&slice, counts, nr))
		return -ENOMEM;
	s->list[s->first + s->nr++] = slice;
	s->memory += slice.size + OVERHEAD;
	keep_bounded(s);
	return 0;
}

/* Add counts to the dropped ones. */
static void drop_late(struct slices *s, const struct count *counts, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		s->dropped_weight = slice_add_weight(s->dropped_weight, counts[i].weight);
		s->dropped_count += counts[i].count;
		s->unkept_count += counts[i].count;
	}
}

/* Pack @slice again with @more counts. 0 or -ENOMEM. */
static int pack_again(struct slices *s, struct slice *slice, const struct count *more, uint32_t nr)
{
	struct count *counts = malloc(((size_t)slice->nr + nr) * sizeof(*counts));
	uint64_t count = slice->count;
	uint32_t size = slice->size, filled;
	uint8_t *was = slice->bytes;
	int code;

	if (!counts)
		return -ENOMEM;
	filled = read_all(slice, counts);
	memcpy(counts + filled, more, nr * sizeof(*counts));
	code = slice_pack(slice, counts, filled + nr);
	free(counts);
	if (code)
		return code;
	free(was);
	s->memory += slice->size - (size_t)size;
	slice->amount_seq = 0;
	if (slice->end_ns <= s->kept_ns)
		s->unkept_count += slice->count - count;
	return 0;
}

/*
 * Add counts (reordered), of the events @events, that arrived late to the slice of @time_ns, or to
 * the ones that were dropped if it is among them. 0, -ENOMEM, or -ENOENT: there is none of them.
 */
static int slices_add_late(struct slices *s, uint64_t time_ns, uint16_t events,
			   struct count *counts, uint32_t nr)
{
	uint32_t i = slices_find(s, time_ns);
	int code;

	if (s->nr && s->dropped && time_ns < at(s, 0)->begin_ns) {
		drop_late(s, counts, nr);
		return 0;
	}
	if (!nr || i == s->nr || at(s, i)->begin_ns > time_ns || at(s, i)->events != events)
		return -ENOENT;
	code = pack_again(s, at(s, i), counts, nr);
	if (!code)
		keep_bounded(s);
	return code;
}

/* Add @marks, @lost and @throttled to the newest slice, if there is one. */
static void slices_note(struct slices *s, unsigned int marks, uint64_t lost, uint64_t throttled)
{
	struct slice *slice;

	if (!s->nr)
		return;
	slice = at(s, s->nr - 1);
	slice->marks |= (uint16_t)marks;
	slice->lost += lost;
	slice->throttled += throttled;
}

void slices_mark(struct slices *s, uint32_t i, unsigned int marks)
{
	at(s, i)->marks |= (uint16_t)marks;
}

uint32_t slices_find(const struct slices *s, uint64_t time_ns)
{
	uint32_t low = 0, high = s->nr;

	assert(s->nr < UINT32_MAX);
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (at(s, mid)->end_ns > time_ns)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

/* ---- ranges ---- */

static uint64_t middle(const struct slice *slice)
{
	return slice->begin_ns + (slice->end_ns - slice->begin_ns) / 2;
}

static bool is_in(const struct slice *slice, uint64_t begin_ns, uint64_t end_ns)
{
	return middle(slice) >= begin_ns && middle(slice) < end_ns;
}

static void add_range(struct slice_range *r, const struct slice *slice)
{
	if (!r->nr++)
		r->begin_ns = slice->begin_ns;
	r->end_ns = slice->end_ns;
	r->covers_ns += slice->end_ns - slice->begin_ns;
	r->count += slice->count;
	r->lost += slice->lost;
	r->throttled += slice->throttled;
	r->marks |= slice->marks;
}

bool slices_range(const struct slices *s, uint64_t begin_ns, uint64_t end_ns,
		  struct slice_range *out)
{
	uint32_t first = slices_find(s, begin_ns), last = UINT32_MAX;

	assert(begin_ns <= end_ns);
	*out = (struct slice_range){ 0 };
	for (uint32_t i = first; i < s->nr && at(s, i)->begin_ns < end_ns; i++)
		if (is_in(at(s, i), begin_ns, end_ns))
			last = i;
	if (last == UINT32_MAX) {
		if (!s->nr)
			return false;
		last = MIN(first, s->nr - 1);
		out->events = at(s, last)->events;
		add_range(out, at(s, last));
		return true;
	}
	out->events = at(s, last)->events;
	for (uint32_t i = first; i <= last; i++)
		if (is_in(at(s, i), begin_ns, end_ns) && at(s, i)->events == out->events)
			add_range(out, at(s, i));
	return true;
}

/* Add the counts of the slices of @range, as slices_range() found it, to @sums. 0 or -ENOMEM. */
static int slices_sum(const struct slices *s, const struct slice_range *range, struct sums *sums)
{
	assert(range->begin_ns <= range->end_ns);
	for (uint32_t i = slices_find(s, range->begin_ns);
	     i < s->nr && at(s, i)->end_ns <= range->end_ns; i++) {
		const struct slice *slice = at(s, i);
		struct slice_reader r;
		struct count c;

		if (slice->events != range->events)
			continue;
		if (sums_reserve(sums, slice->nr))
			return -ENOMEM;
		for (slice_read_begin(&r, slice); slice_read(&r, &c);)
			sums_add(sums, tables_count_key(c.stack, c.task, c.event), (double)c.count,
				 (double)c.weight);
	}
	return 0;
}

/* ---- other tables ---- */

static int remap_one(struct slice *slice, const struct history_ids *ids)
{
	struct count *counts = malloc(MAX(slice->nr, 1u) * sizeof(*counts));
	uint8_t *was = slice->bytes;
	uint32_t nr;
	int code;

	if (!counts)
		return -ENOMEM;
	nr = read_all(slice, counts);
	for (uint32_t i = 0; i < nr; i++) {
		if (counts[i].stack != STACK_NONE)
			counts[i].stack = ids->stack(ids->ctx, counts[i].stack);
		counts[i].task = ids->task(ids->ctx, counts[i].task);
	}
	code = slice_pack(slice, counts, nr);
	if (!code)
		free(was);
	free(counts);
	return code;
}

/* Map the tasks of all slices, which remain as they are. */
static void slices_map_tasks(const struct slices *s, const struct history_ids *ids)
{
	for (uint32_t i = 0; i < s->nr; i++) {
		struct slice_reader r;
		struct count c;

		for (slice_read_begin(&r, at(s, i)); slice_read(&r, &c);)
			(void)ids->task(ids->ctx, c.task);
	}
}

/*
 * Replace all ids of stacks and tasks, from the newest slice to the oldest. 0, or -ENOMEM: the
 * slices are dropped that were not replaced.
 */
static int slices_remap(struct slices *s, const struct history_ids *ids)
{
	for (uint32_t i = s->nr; i-- > 0;) {
		struct slice *slice = at(s, i);

		s->memory -= slice->size;
		if (is_stopped(s) || remap_one(slice, ids)) {
			s->memory += slice->size;
			for (uint32_t left = i + 1; left; left--)
				drop_oldest(s);
			return -ENOMEM;
		}
		s->memory += slice->size;
	}
	return 0;
}

/*
 * The rates at which slices were sampled.
 *
 * Runs on: the builder.
 */

/* Beyond this number of changes the older half is dropped. */
#define RATE_LOG_MAX 512

static void rate_log_fini(struct rate_log *log)
{
	free(log->list);
	*log = (struct rate_log){ .list = NULL };
}

/* Find the last entry of the set that begins at @time_ns at the latest. */
static const struct rate_entry *last_of(const struct rate_log *log, uint64_t time_ns,
					uint16_t events)
{
	for (uint32_t i = log->nr; i-- > 0;)
		if (log->list[i].events == events && log->list[i].begin_ns <= time_ns)
			return &log->list[i];
	return NULL;
}

static struct rate_entry *add(struct rate_log *log)
{
	uint32_t half = log->nr / 2;

	if (log->nr == RATE_LOG_MAX) {
		log->nr -= half;
		memmove(log->list, log->list + half, log->nr * sizeof(*log->list));
	}
	if (!array_reserve(&log->list, &log->capacity, log->nr + 1ULL))
		return NULL;
	return &log->list[log->nr++];
}

/*
 * Set the rates from @begin_ns on, of the set @events. Return true if that is a change of the rates
 * of this set. Without memory the entry is left out.
 */
static bool rate_log_set(struct rate_log *log, uint64_t begin_ns, uint16_t events, const double *hz,
			 uint32_t nr)
{
	const struct rate_entry *last = last_of(log, UINT64_MAX, events);
	struct rate_entry next = { .begin_ns = begin_ns, .events = events }, *entry;
	bool changed;

	memcpy(next.hz, hz, MIN(nr, (uint32_t)EVENTS_MAX) * sizeof(*hz));
	changed = last && memcmp(last->hz, next.hz, sizeof(next.hz)) != 0;
	if (last && !changed)
		return false;
	entry = add(log);
	if (entry)
		*entry = next;
	return changed;
}

/*
 * Return the rates of the set @events at @begin_ns; NULL: unknown. *changed: they changed before
 * @end_ns.
 */
static const double *rate_log_find(const struct rate_log *log, uint64_t begin_ns, uint64_t end_ns,
				   uint16_t events, bool *changed)
{
	const struct rate_entry *first = last_of(log, begin_ns, events);
	const struct rate_entry *last = last_of(log, end_ns ? end_ns - 1 : 0, events);

	*changed = first && last != first;
	return first ? first->hz : NULL;
}

/*
 * Slices that are open: a short list in order of time, without gaps.
 *
 * Runs on: the builder. Invariant: each count that was added is in an open slice, or in a slice of
 * the past, or among its dropped ones.
 */

#define SLICE COUNTS_SLICE_NS

/* A sample is in its ring so long after its time. */
#define MARGIN_NS 2000000ULL

/* A longer time without counts, in which proftop did not run, is one slice. */
#define GAP_NS (40 * SLICE)

/* Counts are of a time around the one they are added at: before it, and after it by a late builder.
 */
#define AHEAD (COUNTS_SLICES / 2)

/* Of all open slices: beyond that the oldest are closed. */
#define COUNTS_MAX (1u << 20)

struct open_slice {
	struct slice about;
	struct count *counts;
	uint32_t nr, room;
};

struct moments {
	struct slices *past;
	struct open_slice *list;
	uint32_t nr, room;
	uint64_t next_ns; /* begin of the slice that is opened next */
	uint64_t nr_counts;
	uint16_t events;
};

/* @past: gets the closed slices; borrowed. 0 or -ENOMEM. */
static int moments_new(struct moments **out, struct slices *past)
{
	struct moments *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->past = past;
	*out = m;
	return 0;
}

/* Drop the open slices. The next one begins at @now_ns or, as the first of all, on the grid. */
static void moments_reset(struct moments *m, uint64_t now_ns)
{
	for (uint32_t i = 0; i < m->nr; i++)
		free(m->list[i].counts);
	m->nr = 0;
	m->nr_counts = 0;
	m->next_ns = slices_nr(m->past) ? MAX(now_ns, m->next_ns) : now_ns / SLICE * SLICE;
}

/* @past: gets the closed slices; borrowed. 0 or -ENOMEM. */
static void moments_free(struct moments *m)
{
	if (!m)
		return;
	moments_reset(m, 0);
	free(m->list);
	free(m);
}

/* Let the slices from @now_ns on be of the events @events. */
static void moments_set_events(struct moments *m, uint16_t events, uint64_t now_ns)
{
	struct open_slice *last = m->nr ? &m->list[m->nr - 1] : NULL;

	if (events == m->events)
		return;
	m->events = events;
	/* No slice is of two sets. */
	while (last && last->about.begin_ns >= now_ns && m->nr > 1 && !last->nr) {
		m->nr--;
		last--;
		m->next_ns = last->about.end_ns;
	}
	if (last && last->about.begin_ns < now_ns && last->about.end_ns > now_ns)
		m->next_ns = last->about.end_ns = now_ns;
}

/* Open a slice up to @end_ns. 0 or -ENOMEM. */
static int open_until(struct moments *m, uint64_t end_ns, const struct slice *about)
{
	if (!array_reserve(&m->list, &m->room, m->nr + 1ULL))
		return -ENOMEM;
	m->list[m->nr++] = (struct open_slice){
		.about = { .begin_ns = m->next_ns,
			   .end_ns = end_ns,
			   .epoch = about->epoch,
			   .events = m->events },
	};
	m->next_ns = end_ns;
	return 0;
}

/* Return the end of a slice from @begin_ns on: the grid, but not of a part that is too short. */
static uint64_t end_after(uint64_t begin_ns)
{
	uint64_t end_ns = (begin_ns / SLICE + 1) * SLICE;

	return end_ns - begin_ns < SLICE / 2 ? end_ns + SLICE : end_ns;
}

/* Open the slices up to the one of @time_ns. 0 or -ENOMEM. */
static int open_for(struct moments *m, uint64_t time_ns, const struct slice *about)
{
	uint64_t begin_ns = time_ns / SLICE * SLICE;
	int code = 0;

	/* Samples of the moments before the first slice. */
	if (!m->nr && !slices_nr(m->past) && begin_ns < m->next_ns)
		m->next_ns = begin_ns;
	if (begin_ns > m->next_ns + GAP_NS)
		code = open_until(m, begin_ns, about);
	while (!code && m->next_ns <= time_ns)
		code = open_until(m, end_after(m->next_ns), about);
	return code;
}

/* Return the first open slice of the present events; NULL: there is none. */
static struct open_slice *first_present(const struct moments *m)
{
	uint32_t i = m->nr;

	while (i && m->list[i - 1].about.events == m->events)
		i--;
	return i < m->nr ? &m->list[i] : NULL;
}

/*
 * Open slices back to the one of @time_ns: no slice is over yet, and the ring of another CPU was
 * read before. 0 or -ENOMEM.
 */
static int open_before(struct moments *m, uint64_t time_ns, const struct slice *about)
{
	uint64_t first_ns = m->nr ? m->list[0].about.begin_ns : 0;
	uint64_t begin_ns = time_ns / SLICE * SLICE, end_ns = first_ns / SLICE * SLICE;
	uint32_t nr;

	if (begin_ns >= end_ns || slices_nr(m->past) || first_present(m) != m->list)
		return 0;
	/* A part that is shorter than the others, or a stop, is one slice. */
	nr = first_ns - begin_ns > GAP_NS ? 2 : (uint32_t)((end_ns - begin_ns) / SLICE);
	if (!array_reserve(&m->list, &m->room, (uint64_t)m->nr + nr))
		return -ENOMEM;
	for (uint32_t i = m->nr; i-- > 0;)
		m->list[i + nr] = m->list[i];
	m->nr += nr;
	for (uint32_t i = 0; i < nr; i++, begin_ns += SLICE)
		m->list[i] = (struct open_slice){
			.about = { .begin_ns = begin_ns,
				   .end_ns = i + 1 < nr ? begin_ns + SLICE : first_ns,
				   .epoch = about->epoch,
				   .events = m->events },
		};
	return 0;
}

/* Find the open slice of @time_ns; NULL: it is over. */
static struct open_slice *find(const struct moments *m, uint64_t time_ns)
{
	struct open_slice *first = first_present(m), *last = &m->list[m->nr - 1];

	if (!first || first->about.begin_ns > time_ns)
		return NULL;
	while (last->about.begin_ns > time_ns)
		last--;
	return last;
}

/* Return the slice for counts of a time when other events were sampled; NULL: no memory. */
static struct open_slice *nearest(struct moments *m, const struct slice *about)
{
	struct open_slice *first = first_present(m);

	return first || open_for(m, m->next_ns, about) ? first : &m->list[m->nr - 1];
}

static int append(struct moments *m, struct open_slice *to, const struct count *counts, uint32_t nr)
{
	if (!array_reserve(&to->counts, &to->room, (uint64_t)to->nr + nr))
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++)
		to->counts[to->nr++] = counts[i];
	m->nr_counts += nr;
	return 0;
}

/* Add the counts of one slice, which has @time_ns. 0 or -ENOMEM. */
static int add_group(struct moments *m, uint64_t time_ns, struct count *counts, uint32_t nr,
		     const struct slice *about)
{
	int code = open_for(m, time_ns, about);
	struct open_slice *to;

	code = code ? code : open_before(m, time_ns, about);
	to = code ? NULL : find(m, time_ns);
	if (code || to)
		return code ? code : append(m, to, counts, nr);
	code = slices_add_late(m->past, time_ns, m->events, counts, nr);
	if (code != -ENOENT)
		return code;
	to = nearest(m, about);
	return to ? append(m, to, counts, nr) : -ENOMEM;
}

static int by_age(const void *a, const void *b)
{
	return -COMPARE(((const struct count *)a)->slice, ((const struct count *)b)->slice);
}

/* Number the slices of counts back from @newest. Report whether they differ. */
static bool set_ages(struct count *counts, uint32_t nr, uint32_t newest)
{
	bool differ = false;

	for (uint32_t i = 0; i < nr; i++) {
		uint32_t age = (newest - counts[i].slice) & (COUNTS_SLICES - 1);

		counts[i].slice = age;
		differ |= age != counts[0].slice;
	}
	return differ;
}

/*
 * Add counts that arrived until @now_ns (reordered), each to the slice of its time. @about: epoch,
 * and marks for the slice of @now_ns. 0, or -ENOMEM: some counts are in no slice.
 */
static int moments_add(struct moments *m, struct count *counts, uint32_t nr, uint64_t now_ns,
		       const struct slice *about)
{
	uint64_t newest = now_ns / SLICE + AHEAD;
	int code = 0;

	if (now_ns > m->next_ns + MOMENTS_STOP_NS)
		code = open_until(m, (now_ns - MOMENTS_STOP_NS / 2) / SLICE * SLICE, about);
	if (set_ages(counts, nr, tables_slice(newest * SLICE)))
		qsort(counts, nr, sizeof(*counts), by_age);
	for (uint32_t i = 0, to; i < nr; i = to) {
		uint64_t slice = newest - MIN(newest, counts[i].slice);
		int failed;

		for (to = i + 1; to < nr && counts[to].slice == counts[i].slice;)
			to++;
		failed = add_group(m, slice * SLICE + SLICE / 2, counts + i, to - i, about);
		code = code ? code : failed;
	}
	if (!code)
		code = open_for(m, now_ns, about);
	if (m->nr)
		m->list[m->nr - 1].about.marks |= about->marks;
	return code;
}

/* Add to the newest open slice, as slices_note(). False: none is open. */
static bool moments_note(struct moments *m, unsigned int marks, uint64_t lost, uint64_t throttled)
{
	struct slice *about = m->nr ? &m->list[m->nr - 1].about : NULL;

	if (!about)
		return false;
	about->marks |= (uint16_t)marks;
	about->lost += lost;
	about->throttled += throttled;
	return true;
}

/* Close the first @nr slices. 0, or -ENOMEM: some are lost. */
static int close_first(struct moments *m, uint32_t nr)
{
	int code = 0;

	assert(nr <= m->nr);
	for (uint32_t i = 0; i < nr; i++) {
		struct open_slice *slice = &m->list[i];
		int failed = slices_add(m->past, slice->counts, slice->nr, &slice->about);

		code = code ? code : failed;
		m->nr_counts -= slice->nr;
		free(slice->counts);
	}
	m->nr -= nr;
	for (uint32_t i = 0; nr && i < m->nr; i++)
		m->list[i] = m->list[nr + i];
	return code;
}

/* Close the slices that end until @complete_ns; all counts before have arrived. 0 or -ENOMEM. */
static int moments_close(struct moments *m, uint64_t complete_ns)
{
	uint64_t left = m->nr_counts;
	uint32_t nr = 0;

	while (nr < m->nr && (m->list[nr].about.end_ns + MARGIN_NS <= complete_ns ||
			      (left > COUNTS_MAX && nr + 1 < m->nr)))
		left -= m->list[nr++].nr;
	return close_first(m, nr);
}

/* Replace the ids of tasks, and then of stacks, in the open slices. */
static void moments_map_tasks(struct moments *m, const struct history_ids *ids)
{
	for (uint32_t i = 0; i < m->nr; i++)
		for (uint32_t k = 0; k < m->list[i].nr; k++) {
			struct count *c = &m->list[i].counts[k];

			c->task = ids->task(ids->ctx, c->task);
		}
}

/* Replace the ids of tasks, and then of stacks, in the open slices. */
static void moments_map_stacks(struct moments *m, const struct history_ids *ids)
{
	for (uint32_t i = 0; i < m->nr; i++)
		for (uint32_t k = 0; k < m->list[i].nr; k++) {
			struct count *c = &m->list[i].counts[k];

			if (c->stack != STACK_NONE)
				c->stack = ids->stack(ids->ctx, c->stack);
		}
}

/*
 * Slices summed into window, decay, total and any range.
 *
 * Runs on: the builder. Decay is lazy: instead of fading every cell each tick, a new one is added
 * with a growing factor 2^(age / half life), and read divided by it; before the factor gets out of
 * hand the cells are scaled.
 */

/* In half-lives: scale when the factor passes 2^AGE_MAX. */
#define AGE_MAX 32.0

/* Samples: smaller decayed counts are folded when the sums are scaled. */
#define FADED (1.0 / 1024)

#define CELLS_MIN 16u

/* Of slices, unless history_keep() sets another limit. */
#define MEMORY_MAX ((size_t)64 << 20)

struct history {
	struct slices *slices; /* of the times at which counts were added */
	struct slices *past;   /* of their moments; the same where nothing is late */
	struct moments *moments;
	struct slice next;  /* of the slice that is added next: begin, epoch, events, marks */
	struct count *held; /* its counts so far, of tables before; in the sums already */
	uint32_t nr_held;
	struct rate_log rates;
	uint64_t window_ns; /* wanted */
	uint64_t span_ns;   /* of the slices, and their memory */
	size_t memory;
	uint64_t half_life_ns;
	uint32_t max_cells;

	struct sums decay; /* times decay_factor() */
	double decay_age;  /* in half-lives */
	double decay_ns;   /* times decay_factor() */
	struct sums total;
	uint64_t total_ns;
};

int history_new(struct history **out, uint64_t window_ns, uint64_t half_life_ns, uint32_t max_cells)
{
	struct history *h = calloc(1, sizeof(*h));

	if (!h || slices_new(&h->slices, window_ns, MEMORY_MAX)) {
		free(h);
		return -ENOMEM;
	}
	h->past = h->slices;
	h->window_ns = h->span_ns = window_ns;
	h->memory = MEMORY_MAX;
	h->half_life_ns = MAX(half_life_ns, 1ULL);
	h->max_cells = max_cells ? MAX(max_cells, CELLS_MIN) : 0;
	*out = h;
	return 0;
}

void history_keep(struct history *h, uint64_t window_ns, uint64_t span_ns, size_t memory)
{
	h->window_ns = window_ns;
	h->span_ns = MAX(span_ns, h->window_ns);
	h->memory = memory ? memory : h->memory;
	history_extend(h, 0);
}

void history_extend(struct history *h, uint64_t span_ns)
{
	slices_set_limits(h->past, MAX(span_ns, h->span_ns), h->memory);
	if (h->moments)
		slices_set_limits(h->slices, MAX(span_ns, h->window_ns), h->memory);
}

int history_use_moments(struct history *h)
{
	if (slices_new(&h->past, h->span_ns, h->memory)) {
		h->past = h->slices;
		return -ENOMEM;
	}
	if (moments_new(&h->moments, h->past)) {
		slices_free(h->past);
		h->past = h->slices;
		return -ENOMEM;
	}
	history_extend(h, 0);
	return 0;
}

int history_complete(struct history *h, uint64_t complete_ns)
{
	return h->moments ? moments_close(h->moments, complete_ns) : 0;
}

void history_stop_by(struct history *h, const atomic_bool *stopped)
{
	slices_stop_by(h->slices, stopped);
}

void history_begin(struct history *h, uint64_t now_ns)
{
	if (h->moments && !slices_nr(h->slices))
		moments_reset(h->moments, now_ns);
	if (h->moments)
		moments_set_events(h->moments, h->next.events, now_ns);
	/* The first slice of a recording is at the time of the recording, maybe before our start.
	 */
	h->next.begin_ns = slices_nr(h->slices) ? MAX(h->next.begin_ns, now_ns) : now_ns;
}

static void drop_held(struct history *h)
{
	free(h->held);
	h->held = NULL;
	h->nr_held = 0;
}

void history_restart(struct history *h)
{
	sums_fini(&h->decay);
	sums_fini(&h->total);
	drop_held(h);
	h->next.epoch++;
	if (slices_nr(h->slices))
		h->next.marks |= SLICE_RESET;
	h->decay_age = h->decay_ns = 0;
	h->total_ns = 0;
}

void history_reset(struct history *h)
{
	history_restart(h);
	slices_clear(h->slices);
	if (h->moments) {
		slices_clear(h->past);
		moments_reset(h->moments, h->next.begin_ns);
	}
	rate_log_fini(&h->rates);
	h->next.marks = 0;
}

void history_free(struct history *h)
{
	if (!h)
		return;
	history_reset(h);
	moments_free(h->moments);
	if (h->past != h->slices)
		slices_free(h->past);
	slices_free(h->slices);
	free(h);
}

struct slices *history_slices(const struct history *h)
{
	return h->past;
}

struct slices *history_arrivals(const struct history *h)
{
	return h->slices;
}

void history_note(struct history *h, unsigned int marks, uint64_t lost, uint64_t throttled)
{
	if (h->moments)
		slices_note(h->slices, marks, lost, throttled);
	if (!h->moments || !moments_note(h->moments, marks, lost, throttled))
		slices_note(h->past, marks, lost, throttled);
}

void history_set_events(struct history *h, uint16_t events)
{
	if (h->next.events != events && slices_nr(h->slices))
		h->next.marks |= SLICE_EVENTS;
	h->next.events = events;
}

void history_set_rates(struct history *h, const double *hz, uint32_t nr)
{
	if (rate_log_set(&h->rates, h->next.begin_ns, h->next.events, hz, nr))
		h->next.marks |= SLICE_RATE;
}

const double *history_rates(const struct history *h, const struct slice_range *range, bool *changed)
{
	return rate_log_find(&h->rates, range->begin_ns, range->end_ns, range->events, changed);
}

static double decay_factor(const struct history *h)
{
	return exp2(h->decay_age);
}

/* Advance the time of the decaying sum. */
static void decay_advance(struct history *h, uint64_t interval_ns)
{
	if (!h->max_cells)
		return;
	h->decay_age += (double)interval_ns / (double)h->half_life_ns;
	if (h->decay_age <= AGE_MAX)
		return;
	sums_scale(&h->decay, exp2(-h->decay_age));
	h->decay_ns *= exp2(-h->decay_age);
	h->decay_age = 0;
	/* Without memory faded counts are kept until the next time. */
	sums_prune(&h->decay, h->max_cells, FADED);
}

static void sums_add_tick(struct sums *s, const struct count *counts, uint32_t nr, double factor)
{
	for (uint32_t i = 0; i < nr; i++)
		sums_add(s, tables_count_key(counts[i].stack, counts[i].task, counts[i].event),
			 (double)counts[i].count * factor, (double)counts[i].weight * factor);
}

/* Reserve several counts at a time. */
static void prune_bounded(const struct history *h, struct sums *s)
{
	if (s->nr > h->max_cells)
		sums_prune(s, h->max_cells / 4 * 3, 0);
}

/* Append counts to the held ones. 0 or -ENOMEM. */
static int hold(struct history *h, const struct count *counts, uint32_t nr)
{
	struct count *larger;

	if (!nr)
		return 0;
	larger = realloc(h->held, ((size_t)h->nr_held + nr) * sizeof(*larger));
	if (!larger)
		return -ENOMEM;
	memcpy(larger + h->nr_held, counts, nr * sizeof(*larger));
	h->held = larger;
	h->nr_held += nr;
	return 0;
}

/* Append a slice of the counts and the held ones. 0 or -ENOMEM. */
static int add_slice(struct history *h, struct count *counts, uint32_t nr, uint64_t interval_ns)
{
	int code = h->nr_held ? hold(h, counts, nr) : 0;

	/* A slice has a middle that no other has: a sample is in one of two adjacent ranges. */
	h->next.end_ns = h->next.begin_ns + MAX(interval_ns, 1ULL);
	if (!code)
		code = h->nr_held ? slices_add(h->slices, h->held, h->nr_held, &h->next)
				  : slices_add(h->slices, counts, nr, &h->next);
	h->next.begin_ns = h->next.end_ns;
	drop_held(h);
	if (!code)
		h->next.marks = 0;
	return code;
}

/* Make room for counts in the sums, if there are any. 0 or -ENOMEM. */
static int reserve_sums(struct history *h, uint32_t nr)
{
	return h->max_cells && (sums_reserve(&h->decay, nr) || sums_reserve(&h->total, nr))
		       ? -ENOMEM
		       : 0;
}

/* Add counts to the sums, which have space for them. */
static void add_to_sums(struct history *h, const struct count *counts, uint32_t nr)
{
	if (!h->max_cells)
		return;
	sums_add_tick(&h->decay, counts, nr, decay_factor(h));
	sums_add_tick(&h->total, counts, nr, 1);
	prune_bounded(h, &h->decay);
	prune_bounded(h, &h->total);
}

int history_hold(struct history *h, struct count *counts, uint32_t nr)
{
	int code = 0;

	assert(counts || !nr);
	if (reserve_sums(h, nr) || hold(h, counts, nr))
		code = -ENOMEM;
	else
		add_to_sums(h, counts, nr);
	if (!code && h->moments)
		code = moments_add(h->moments, counts, nr, h->next.begin_ns, &h->next);
	free(counts);
	return code;
}

int history_add(struct history *h, struct count *counts, uint32_t nr, uint64_t interval_ns)
{
	int code = 0;

	assert(counts || !nr);
	if (h->moments)
		code = moments_add(h->moments, counts, nr, h->next.begin_ns + interval_ns,
				   &h->next);
	decay_advance(h, interval_ns);
	if (code || reserve_sums(h, nr))
		code = -ENOMEM;
	if (!code)
		code = add_slice(h, counts, nr, interval_ns);
	if (!code) {
		add_to_sums(h, counts, nr);
		h->decay_ns += (double)interval_ns * decay_factor(h);
		h->total_ns += interval_ns;
	}
	free(counts);
	return code;
}

/* Write the sums times @factor as an array. */
static int list_sums(const struct sums *s, double factor, struct history_cell **out, uint32_t *nr)
{
	struct history_cell *list = malloc(MAX(s->nr, 1u) * sizeof(*list));

	*nr = 0;
	*out = list;
	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->nr_slots; i++) {
		const struct sum *sum = &s->slots[i];

		/* Leave out counts that faded to nothing; CPU time has no samples. */
		if (!sum->key || (sum->count * factor <= 0 && sum->weight * factor < 1))
			continue;
		list[*nr] = (struct history_cell){
			.stack = tables_count_key_stack(sum->key),
			.task = tables_count_key_task(sum->key),
			.event = tables_count_key_event(sum->key),
			.count = sum->count * factor,
			.weight = sum->weight * factor,
		};
		++*nr;
	}
	return 0;
}

int history_get_range(const struct slices *slices, const struct slice_range *range,
		      struct history_cell **out, uint32_t *nr)
{
	struct sums sums;
	int code;

	sums_init(&sums);
	*nr = 0;
	*out = NULL;
	code = slices_sum(slices, range, &sums);
	if (!code)
		code = list_sums(&sums, 1, out, nr);
	sums_fini(&sums);
	return code;
}

/* Find the slices of the window: since the reset, and just enough to cover it. */
static void window_range(const struct history *h, struct slice_range *range)
{
	uint32_t nr = slices_nr(h->slices);

	*range = (struct slice_range){ 0 };
	for (uint32_t i = nr; i-- > 0;) {
		const struct slice *slice = slices_at(h->slices, i), *newest;
		uint64_t interval_ns;

		newest = slices_at(h->slices, nr - 1);
		interval_ns = newest->end_ns - newest->begin_ns;
		/* Slices differ by nanoseconds: half of one may be missing. */
		if (slice->epoch != h->next.epoch || slice->events != h->next.events ||
		    (range->nr && range->covers_ns + interval_ns / 2 >= h->window_ns))
			break;
		if (!range->nr++)
			range->end_ns = slice->end_ns;
		range->begin_ns = slice->begin_ns;
		range->covers_ns += slice->end_ns - slice->begin_ns;
		range->events = slice->events;
	}
}

static int list_window(const struct history *h, struct history_cell **out, uint32_t *nr,
		       uint64_t *covers_ns)
{
	struct slice_range range;

	window_range(h, &range);
	*covers_ns = range.covers_ns;
	return history_get_range(h->slices, &range, out, nr);
}

int history_get(const struct history *h, enum profile_window window, struct history_cell **out,
		uint32_t *nr, uint64_t *covers_ns)
{
	switch (window) {
	case PROFILE_DECAY:
		*covers_ns = (uint64_t)llround(h->decay_ns / decay_factor(h));
		return list_sums(&h->decay, 1 / decay_factor(h), out, nr);
	case PROFILE_TOTAL:
		*covers_ns = h->total_ns;
		return list_sums(&h->total, 1, out, nr);
	default:
		return list_window(h, out, nr, covers_ns);
	}
}

static uint32_t new_stack(const struct history_ids *ids, uint32_t stack)
{
	return stack == STACK_NONE ? STACK_NONE : ids->stack(ids->ctx, stack);
}

/* Replace the ids of tasks, or else of stacks. 0 or -ENOMEM (unchanged). */
static int remap_keys(struct sums *s, const struct history_ids *ids,
		      uint32_t (*task)(void *ctx, uint32_t task))
{
	struct sums next;

	sums_init(&next);
	if (sums_reserve(&next, s->nr))
		return -ENOMEM;
	for (uint32_t i = 0; i < s->nr_slots; i++) {
		uint64_t key = s->slots[i].key;
		uint32_t stack = tables_count_key_stack(key), of = tables_count_key_task(key);

		if (!key)
			continue;
		key = tables_count_key(task ? stack : new_stack(ids, stack),
				       task ? task(ids->ctx, of) : of, tables_count_key_event(key));
		sums_add(&next, key, s->slots[i].count, s->slots[i].weight);
	}
	sums_fini(s);
	*s = next;
	return 0;
}

/* Tasks first: counts that are one then have one stack, and fewer are folded. */
static int remap_sums(struct sums *s, uint32_t keep, const struct history_ids *ids,
		      uint32_t (*task)(void *ctx, uint32_t task))
{
	int code = remap_keys(s, ids, task);

	if (!code && s->nr > keep)
		code = sums_prune(s, keep, 0);
	return code ? code : remap_keys(s, ids, NULL);
}

int history_remap(struct history *h, uint32_t keep, const struct history_ids *ids)
{
	assert(ids->task);
	keep = MIN(keep, h->max_cells / 2);
	/* Before the total: tasks that have been mapped then are not of the total alone. */
	slices_map_tasks(h->slices, ids);
	if (h->moments) {
		slices_map_tasks(h->past, ids);
		moments_map_tasks(h->moments, ids);
	}
	for (uint32_t i = 0; i < h->nr_held; i++)
		h->held[i].task = ids->task(ids->ctx, h->held[i].task);
	if (h->max_cells && (remap_sums(&h->decay, keep, ids, ids->task) ||
			     remap_sums(&h->total, keep, ids, ids->only_total))) {
		history_reset(h);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < h->nr_held; i++)
		h->held[i].stack = new_stack(ids, h->held[i].stack);
	if (h->moments)
		moments_map_stacks(h->moments, ids);
	/* From the newest one on: when the new tables are full, old stacks are folded. */
	if (slices_remap(h->slices, ids))
		return -ENOMEM;
	return h->moments ? slices_remap(h->past, ids) : 0;
}
