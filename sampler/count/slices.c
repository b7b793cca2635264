// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The past in slices of 100 ms: packed, open until all samples of their time are counted, merged
 * and dropped within a limit of memory; rates.
 *
 * Runs on: the builder.
 */
#include "sampler/count/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/event/event.h"
#include "symbols/base/base.h"

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

int slices_new(struct slices **out, uint64_t span_ns, size_t memory)
{
	struct slices *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	slices_set_limits(s, span_ns, memory);
	*out = s;
	return 0;
}

void slices_clear(struct slices *s)
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

void slices_free(struct slices *s)
{
	if (!s)
		return;
	slices_clear(s);
	free(s);
}

void slices_set_limits(struct slices *s, uint64_t span_ns, size_t memory)
{
	s->span_ns = span_ns;
	s->max_memory = memory;
	s->merge_from = 0;
}

void slices_stop_by(struct slices *s, const atomic_bool *stopped)
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

size_t slices_memory(const struct slices *s)
{
	return s->memory;
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

int slices_add(struct slices *s, struct count *counts, uint32_t nr, const struct slice *about)
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

void slices_note(struct slices *s, unsigned int marks, uint64_t lost, uint64_t throttled)
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

int slices_sum(const struct slices *s, const struct slice_range *range, struct sums *sums)
{
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

void slices_map_tasks(const struct slices *s, const struct history_ids *ids)
{
	for (uint32_t i = 0; i < s->nr; i++) {
		struct slice_reader r;
		struct count c;

		for (slice_read_begin(&r, at(s, i)); slice_read(&r, &c);)
			(void)ids->task(ids->ctx, c.task);
	}
}

int slices_remap(struct slices *s, const struct history_ids *ids)
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

void rate_log_fini(struct rate_log *log)
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

bool rate_log_set(struct rate_log *log, uint64_t begin_ns, uint16_t events, const double *hz,
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

const double *rate_log_find(const struct rate_log *log, uint64_t begin_ns, uint64_t end_ns,
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
#define GAP_NS (20 * SLICE)

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

int moments_new(struct moments **out, struct slices *past)
{
	struct moments *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->past = past;
	*out = m;
	return 0;
}

void moments_reset(struct moments *m, uint64_t now_ns)
{
	for (uint32_t i = 0; i < m->nr; i++)
		free(m->list[i].counts);
	m->nr = 0;
	m->nr_counts = 0;
	m->next_ns = slices_nr(m->past) ? MAX(now_ns, m->next_ns) : now_ns / SLICE * SLICE;
}

void moments_free(struct moments *m)
{
	if (!m)
		return;
	moments_reset(m, 0);
	free(m->list);
	free(m);
}

void moments_set_events(struct moments *m, uint16_t events, uint64_t now_ns)
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

int moments_add(struct moments *m, struct count *counts, uint32_t nr, uint64_t now_ns,
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

bool moments_note(struct moments *m, unsigned int marks, uint64_t lost, uint64_t throttled)
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

int moments_close(struct moments *m, uint64_t complete_ns)
{
	uint64_t left = m->nr_counts;
	uint32_t nr = 0;

	while (nr < m->nr && (m->list[nr].about.end_ns + MARGIN_NS <= complete_ns ||
			      (left > COUNTS_MAX && nr + 1 < m->nr)))
		left -= m->list[nr++].nr;
	return close_first(m, nr);
}

int moments_finish(struct moments *m)
{
	return close_first(m, m->nr);
}

void moments_map_tasks(struct moments *m, const struct history_ids *ids)
{
	for (uint32_t i = 0; i < m->nr; i++)
		for (uint32_t k = 0; k < m->list[i].nr; k++) {
			struct count *c = &m->list[i].counts[k];

			c->task = ids->task(ids->ctx, c->task);
		}
}

void moments_map_stacks(struct moments *m, const struct history_ids *ids)
{
	for (uint32_t i = 0; i < m->nr; i++)
		for (uint32_t k = 0; k < m->list[i].nr; k++) {
			struct count *c = &m->list[i].counts[k];

			if (c->stack != STACK_NONE)
				c->stack = ids->stack(ids->ctx, c->stack);
		}
}

size_t moments_memory(const struct moments *m)
{
	size_t size = sizeof(*m) + m->room * sizeof(*m->list);

	for (uint32_t i = 0; i < m->nr; i++)
		size += m->list[i].room * sizeof(struct count);
	return size;
}
