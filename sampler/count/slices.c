// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Slices of the session, merged and dropped within their limits. Runs on: the builder.
 */
#include "sampler/count/slices.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/count/sums.h"
#include "symbols/base/base.h"

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

int slices_add_late(struct slices *s, uint64_t time_ns, uint16_t events, struct count *counts,
		    uint32_t nr)
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
