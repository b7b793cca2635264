// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * slices: packed counts against the counts themselves; random adds, merges, drops, resets and
 * changes of events against a list of all samples; memory of ten minutes; damaged bytes.
 * Live: takes about a second of CPU time, or more.
 */
#include "sampler/count/history.c"

#include "tests/prelude.h"

#include <errno.h>
#include <time.h>

#include "symbols/base/base.h"

#define SECOND	1000000000ULL
#define T_SLICE (SECOND / 10)

static uint64_t seed = 20261122;

static uint32_t rnd(uint32_t below)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(seed >> 33) % below;
}

/* Counts with random keys; some twice, some with a weight of their own. */
static uint32_t make(struct count *out, uint32_t max, uint32_t stacks)
{
	uint32_t nr = rnd(max + 1);

	for (uint32_t i = 0; i < nr; i++) {
		uint64_t count = 1 + rnd(9);

		out[i] = (struct count){
			rnd(50) ? rnd(stacks) : STACK_NONE,	  rnd(20), rnd(3), count,
			rnd(4) ? count * 1001001 : rnd(1u << 31), 0
		};
	}
	return nr;
}

static void totals(const struct count *c, uint32_t nr, uint64_t *count, uint64_t *weight)
{
	for (uint32_t i = 0; i < nr; i++) {
		*count += c[i].count;
		*weight += c[i].weight;
	}
}

TEST(test_pack)
{
	struct count in[400], out;
	uint64_t count, weight, checked;
	struct slice slice;
	struct slice_reader r;

	for (int round = 0; round < 300; round++) {
		uint64_t c = 0, w = 0, last = 0;
		uint32_t n = make(in, ARRAY_SIZE(in), round % 2 ? 50 : UINT32_MAX), nr = 0;

		count = weight = 0;
		totals(in, n, &count, &weight);
		assert_int_equal(slice_pack(&slice, in, n), 0);
		assert_int_equal(slice_check(slice.bytes, slice.size, 400, &checked), slice.nr);
		assert_int_equal(checked, count);
		for (slice_read_begin(&r, &slice); slice_read(&r, &out); nr++) {
			assert_true(tables_count_key(out.stack, out.task, out.event) > last);
			last = tables_count_key(out.stack, out.task, out.event);
			c += out.count;
			w += out.weight;
			/* Sorted in place, equal keys summed. */
			assert_int_equal(out.stack, in[nr].stack);
			assert_int_equal(out.weight, in[nr].weight);
		}
		assert_int_equal(nr, slice.nr);
		assert_int_equal(c, count);
		assert_int_equal(w, weight);
		assert_int_equal(slice.count, count);
		free(slice.bytes);
	}
}

/* Any bytes: no read beyond the end, and no order or number that is not checked. */
TEST(test_damaged)
{
	struct count in[100];
	struct slice slice;
	uint64_t count;
	uint32_t n;

	do
		n = make(in, ARRAY_SIZE(in), 1000);
	while (n < 50);
	assert_int_equal(slice_pack(&slice, in, n), 0);
	assert_int_equal(slice_check(slice.bytes, slice.size, slice.nr - 1, &count), -EINVAL);
	assert_int_equal(slice_check(slice.bytes, slice.size - 1, 100, &count), -EINVAL);
	assert_int_equal(slice_check(slice.bytes, 0, 100, &count), -EINVAL);
	for (int i = 0; i < 20000; i++) {
		uint32_t size = 1 + rnd(slice.size);
		uint8_t *copy = malloc(size);
		int64_t nr;

		memcpy(copy, slice.bytes, size);
		for (uint32_t k = 0; k <= rnd(4); k++)
			copy[rnd(size)] ^= (uint8_t)(1u << rnd(8));
		nr = slice_check(copy, size, 100, &count);
		assert_true(nr == -EINVAL || (nr >= 0 && nr <= 100));
		free(copy);
	}
	free(slice.bytes);
}

struct moment {
	uint64_t begin_ns, end_ns, count, weight, lost;
	uint16_t events;
};

/* The sum of a range against the samples that were added in it. */
static void check_range(const struct slices *s, const struct moment *all, uint32_t nr,
			uint64_t begin_ns, uint64_t end_ns)
{
	struct slice_range range;
	struct sums sums;
	double count = 0, weight = 0;
	uint64_t want = 0, want_weight = 0, want_lost = 0;

	assert_true(slices_range(s, begin_ns, end_ns, &range));
	sums_init(&sums);
	assert_int_equal(slices_sum(s, &range, &sums), 0);
	for (uint32_t i = 0; i < sums.nr_slots; i++) {
		count += sums.slots[i].count;
		weight += sums.slots[i].weight;
	}
	sums_fini(&sums);
	for (uint32_t i = 0; i < nr; i++) {
		if (all[i].begin_ns < range.begin_ns || all[i].end_ns > range.end_ns ||
		    all[i].events != range.events)
			continue;
		want += all[i].count;
		want_weight += all[i].weight;
		want_lost += all[i].lost;
	}
	assert_true(count == (double)want && range.count == want);
	assert_true(weight == (double)want_weight);
	assert_int_equal(range.lost, want_lost);
}

/* Every sample is in exactly one slice, or was in a dropped one. */
static void check_all(const struct slices *s, const struct moment *all, uint32_t nr)
{
	uint64_t count = 0, weight = 0, want = 0, want_weight = 0, end = 0;
	size_t memory = 0;

	slices_dropped(s, &count, &weight);
	for (uint32_t i = 0; i < slices_nr(s); i++) {
		const struct slice *slice = slices_at(s, i);
		struct slice_reader r;
		struct count c;

		assert_true(slice->begin_ns >= end && slice->end_ns > slice->begin_ns);
		end = slice->end_ns;
		memory += slice->size;
		for (slice_read_begin(&r, slice); slice_read(&r, &c);) {
			count += c.count;
			weight += c.weight;
		}
	}
	assert_true(memory <= s->memory);
	for (uint32_t i = 0; i < nr; i++) {
		want += all[i].count;
		want_weight += all[i].weight;
	}
	assert_int_equal(count, want);
	assert_int_equal(weight, want_weight);
}

/* Ranges that meet have each slice once. */
static void check_partition(const struct slices *s)
{
	uint64_t at = slices_at(s, 0)->begin_ns, end = slices_at(s, slices_nr(s) - 1)->end_ns;
	uint64_t count = 0, want = 0;

	for (uint32_t i = 0; i < slices_nr(s); i++)
		want += slices_at(s, i)->count;
	while (at < end) {
		uint64_t next = MIN(end, at + 1 + rnd(1u << 30) * 8ULL);
		struct slice_range range;

		assert_true(slices_range(s, at, next, &range));
		for (uint32_t i = 0; i < slices_nr(s); i++) {
			const struct slice *slice = slices_at(s, i);
			uint64_t mid = slice->begin_ns + (slice->end_ns - slice->begin_ns) / 2;

			if (mid >= at && mid < next)
				count += slice->count;
		}
		at = next;
	}
	assert_int_equal(count, want);
}

static void run(uint64_t span_ns, size_t memory, uint32_t steps)
{
	struct moment *all = xcalloc(steps, sizeof(*all));
	struct slice about = { .begin_ns = 77 * SECOND };
	struct count counts[200];
	struct slices *s;
	uint32_t nr = 0;

	assert_int_equal(slices_new(&s, span_ns, memory), 0);
	for (uint32_t step = 0; step < steps; step++) {
		struct moment *m = &all[nr++];
		uint32_t n = make(counts, rnd(10) ? 20 : 200, 500);

		if (!rnd(300))
			about.epoch++;
		if (!rnd(300))
			about.events = (uint16_t)rnd(3);
		if (!rnd(100))
			about.begin_ns += rnd(5) * SECOND;
		about.end_ns = about.begin_ns + (rnd(20) ? T_SLICE : 1 + rnd(2000000000));
		*m = (struct moment){ about.begin_ns, about.end_ns, 0, 0, 0, about.events };
		totals(counts, n, &m->count, &m->weight);
		assert_int_equal(slices_add(s, counts, n, &about), 0);
		if (!rnd(9)) {
			m->lost = rnd(100);
			slices_note(s, SLICE_LOST, m->lost, 0);
		}
		assert_true(s->memory <= memory || slices_nr(s) == 1 || span_ns == SLICES_ALL);
		about.begin_ns = about.end_ns;
		if (step % 40)
			continue;
		check_all(s, all, nr);
		for (int i = 0; i < 5; i++) {
			uint64_t from = 70 * SECOND + rnd(4000) * T_SLICE;

			check_range(s, all, nr, from, from + rnd(1u << 31) * 4ULL);
		}
	}
	check_partition(s);
	slices_free(s);
	free(all);
}

TEST(test_every_sample_once)
{
	print_message("seed %llu\n", (unsigned long long)seed);
	run(600 * SECOND, 64 << 20, 2000); /* nothing merged */
	run(30 * SECOND, 64 << 20, 2000);  /* old ones dropped */
	run(600 * SECOND, 40 << 10, 3000); /* merged and dropped */
	run(SLICES_ALL, 20 << 10, 3000);   /* merged, never dropped */
}

/* Add a slice of four samples behind @about, and move @about to its end. */
static void add_next(struct slices *s, struct slice *about, uint32_t i)
{
	struct count c[] = { { i % 7, 1, 0, 3, 30, 0 }, { 9, 2, 0, 1, 10, 0 } };

	about->end_ns = about->begin_ns + T_SLICE;
	assert_int_equal(slices_add(s, c, 2, about), 0);
	about->begin_ns = about->end_ns;
}

/* First to 1 s, then to 10 s; the newest moments are not merged. */
TEST(test_merges_old_ones_first)
{
	struct slice about = { .begin_ns = 0 };
	struct slices *s;
	uint64_t shortest = UINT64_MAX, longest = 0, before = UINT64_MAX, count, weight;

	assert_int_equal(slices_new(&s, 3600 * SECOND, 60 << 10), 0);
	for (uint32_t i = 0; i < 3000; i++)
		add_next(s, &about, i);
	for (uint32_t i = 0; i < slices_nr(s); i++) {
		uint64_t span = slices_at(s, i)->end_ns - slices_at(s, i)->begin_ns;

		assert_true(span == T_SLICE || span == SECOND || span == 10 * SECOND);
		assert_true(span <= before);
		before = span;
		shortest = MIN(shortest, span);
		longest = MAX(longest, span);
	}
	assert_true(shortest == T_SLICE && longest > T_SLICE);
	assert_false(slices_dropped(s, &count, &weight));
	slices_free(s);
}

static int64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * (int64_t)SECOND + ts.tv_nsec;
}

static uint64_t samples_after(const struct slices *s, uint64_t time_ns)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < slices_nr(s); i++)
		sum += slices_at(s, i)->end_ns > time_ns ? slices_at(s, i)->count : 0;
	return sum;
}

/* A slice that is on disk does not become one with others; samples that are dropped before are
 * counted.
 */
TEST(test_kept)
{
	struct slice about = { .begin_ns = 0 };
	uint64_t kept_ns = 0, before;
	struct slices *s;

	assert_int_equal(slices_new(&s, 3600 * SECOND, 60 << 10), 0);
	for (uint32_t i = 0; i < 3000; i++) {
		add_next(s, &about, i);
		/* From then on the disk is not ready. */
		if (i == 1003)
			assert_int_equal(slices_keep(s, kept_ns = about.end_ns), 0);
	}
	assert_true(slices_merged(s));
	for (uint32_t i = 0; i < slices_nr(s); i++)
		assert_false(slices_at(s, i)->begin_ns < kept_ns &&
			     slices_at(s, i)->end_ns > kept_ns);
	before = samples_after(s, kept_ns);
	slices_set_limits(s, 50 * SECOND, 60 << 10);
	add_next(s, &about, 0);
	assert_true(samples_after(s, kept_ns) < before);
	assert_int_equal(slices_keep(s, kept_ns), before + 4 - samples_after(s, kept_ns));
	assert_int_equal(slices_keep(s, kept_ns), 0);
	slices_free(s);
}

/* Ten minutes of 999 Hz on two busy CPUs with 5,000 stacks: all slices as they were, in 64 MiB. */
TEST(test_ten_minutes)
{
	struct slice about = { .begin_ns = 0 };
	struct count counts[200];
	struct slice_range range;
	struct sums sums;
	struct slices *s;
	int64_t begin;

	assert_int_equal(slices_new(&s, 600 * SECOND, 64 << 20), 0);
	for (uint32_t i = 0; i < 6000; i++) {
		for (uint32_t k = 0; k < 200; k++) {
			uint32_t stack = rnd(5000);

			counts[k] = (struct count){ stack, stack % 40, 0, 1, 1001001, 0 };
		}
		about.end_ns = about.begin_ns + T_SLICE;
		assert_int_equal(slices_add(s, counts, 200, &about), 0);
		about.begin_ns = about.end_ns;
	}
	assert_int_equal(slices_nr(s), 6000);
	assert_true(s->memory < 64 << 20);
	begin = cpu_ns();
	sums_init(&sums);
	assert_true(slices_range(s, 0, UINT64_MAX, &range));
	assert_int_equal(slices_sum(s, &range, &sums), 0);
	assert_int_equal(range.count, 6000 * 200);
	print_message("%zu KiB; the sum of all: %lld us of CPU time\n", s->memory >> 10,
		      (long long)(cpu_ns() - begin) / 1000);
	sums_fini(&sums);
	slices_free(s);
}

/* Weights that do not fit into 64 bits are the largest number, not a small one. */
TEST(test_largest_weights)
{
	/* A unit of nearly 2^64 by three samples, as no slice_pack() writes it. */
	static const uint8_t product[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
					   0xff, 0xff, 0xff, 1,	   1,	 3 << 1 };
	const struct slice packed = { .nr = 1,
				      .bytes = (uint8_t *)product,
				      .size = sizeof(product) };
	struct slice about = { .begin_ns = 0, .end_ns = T_SLICE };
	struct slice_reader r;
	uint64_t count, weight;
	struct slices *s;
	struct count c;

	slice_read_begin(&r, &packed);
	assert_true(slice_read(&r, &c));
	assert_int_equal(c.count, 3);
	assert_true(c.weight == UINT64_MAX);
	assert_int_equal(slice_check(product, sizeof(product), 1, &count), -EINVAL);

	assert_int_equal(slices_new(&s, 4 * SECOND, 1 << 20), 0);
	for (uint32_t i = 0; i < 100; i++) {
		struct count counts[] = { { 1, 0, 0, 1, UINT64_MAX / 2, 0 },
					  { 1, 0, 0, 2, UINT64_MAX, 0 } };

		assert_int_equal(slices_add(s, counts, 2, &about), 0);
		slice_read_begin(&r, slices_at(s, slices_nr(s) - 1));
		assert_true(slice_read(&r, &c));
		assert_int_equal(c.count, 3);
		assert_true(c.weight == UINT64_MAX);
		about.begin_ns = about.end_ns;
		about.end_ns += T_SLICE;
	}
	assert_true(slices_dropped(s, &count, &weight));
	assert_true(count > 3 && weight == UINT64_MAX);
	slices_free(s);
}

/*
 * Slices of which none is dropped, without a common stack: each that follows is no reason to sort
 * all of them again.
 */
TEST(test_nothing_to_merge)
{
	struct slice about = { .begin_ns = 0 };
	struct count *counts = xcalloc(60000, sizeof(*counts));
	struct slices *s;
	int64_t begin = cpu_ns(), filled = 0;

	assert_int_equal(slices_new(&s, SLICES_ALL, 512 << 10), 0);
	for (uint32_t i = 0; i < 10005; i++) {
		uint32_t nr = i < 5 ? 30000 : 1;

		for (uint32_t k = 0; k < nr; k++)
			counts[k] = (struct count){ i < 5 ? i * 30000 + k : 0, 0, 0, 1, i + k, 0 };
		about.end_ns = about.begin_ns + T_SLICE;
		assert_int_equal(slices_add(s, counts, nr, &about), 0);
		about.begin_ns = about.end_ns;
		if (i == 4) {
			assert_true(s->memory > 512 << 10);
			filled = cpu_ns() - begin;
			begin = cpu_ns();
		}
	}
	print_message("%lld us of CPU time, then %lld\n", (long long)filled / 1000,
		      (long long)(cpu_ns() - begin) / 1000);
	assert_true(cpu_ns() - begin < 5 * (int64_t)SECOND);
	free(counts);
	slices_free(s);
}

#define MANY 300000u

static uint32_t same_id(void *ctx, uint32_t id)
{
	return id;
}

/*
 * Append @nr slices of many counts, the same keys in each, or else keys of its own. Return the
 * longest time that one takes.
 */
static int64_t add_many(struct slices *s, uint32_t nr, bool same)
{
	struct slice about = { .begin_ns = 0 };
	struct count *counts = xcalloc(MANY, sizeof(*counts));
	int64_t longest = 0;

	for (uint32_t i = 0; i < nr; i++) {
		int64_t begin;

		for (uint32_t k = 0; k < MANY; k++)
			counts[k] = (struct count){ k, same ? 0 : i, 0, 1, 1, 0 };
		about.end_ns = about.begin_ns + T_SLICE / 100;
		begin = cpu_ns();
		assert_int_equal(slices_add(s, counts, MANY, &about), 0);
		longest = MAX(longest, cpu_ns() - begin);
		about.begin_ns = about.end_ns;
	}
	free(counts);
	return longest;
}

/*
 * As many counts as fit into 24 MiB, which become one slice: it is made in steps, and a stop of
 * the reading is seen between them.
 */
TEST(test_merge_stopped)
{
	atomic_bool stopped = true;
	struct slices *s;
	int64_t took;

	assert_int_equal(slices_new(&s, SLICES_ALL, 24 << 20), 0);
	slices_stop_by(s, &stopped);
	took = add_many(s, 43, true);
	print_message("stopped: %lld ms of CPU time\n", (long long)took / 1000000);
	assert_true(took < (int64_t)SECOND && s->memory > 24 << 20 && !slices_merged(s));
	slices_free(s);

	/* In the end they are one. */
	assert_int_equal(slices_new(&s, SLICES_ALL, 32 * MANY), 0);
	add_many(s, 20, true);
	assert_true(slices_merged(s) && s->memory <= 32 * MANY);
	slices_free(s);

	/* No step has more counts than can be sorted in a moment. */
	assert_int_equal(slices_new(&s, SLICES_ALL, 8 * MANY), 0);
	took = add_many(s, 5, false);
	print_message("a step: %lld ms of CPU time\n", (long long)took / 1000000);
	assert_true(slices_merged(s));
	for (uint32_t i = 0; i < slices_nr(s); i++)
		assert_true(slices_at(s, i)->nr <= 1 << 20);
	slices_free(s);
}

/* Ids are not replaced in a session that ends. */
TEST(test_remap_stopped)
{
	atomic_bool stopped = true;
	const struct history_ids ids = { same_id, same_id, same_id, NULL };
	struct slices *s;
	uint64_t count, weight;

	assert_int_equal(slices_new(&s, SLICES_ALL, 24 << 20), 0);
	add_many(s, 3, true);
	slices_stop_by(s, &stopped);
	assert_int_equal(slices_remap(s, &ids), -ENOMEM);
	assert_int_equal(slices_nr(s), 0);
	assert_true(slices_dropped(s, &count, &weight));
	assert_true(count == 3 * MANY);
	slices_free(s);
}

static uint32_t add_one(void *ctx, uint32_t id)
{
	return id + 1;
}

static uint32_t half(void *ctx, uint32_t id)
{
	return id % 2 ? STACK_NONE : id / 2;
}

/* Other ids: no sample is dropped; stacks without a new id are folded. */
TEST(test_remap)
{
	const struct history_ids ids = { half, add_one, add_one, NULL };
	struct slice about = { .end_ns = T_SLICE };
	struct count c[] = { { 4, 1, 0, 3, 30, 0 }, { 5, 1, 0, 1, 10, 0 }, { 7, 1, 0, 2, 21, 0 } },
		     out;
	struct slice_reader r;
	struct slices *s;

	assert_int_equal(slices_new(&s, 600 * SECOND, 64 << 20), 0);
	assert_int_equal(slices_add(s, c, 3, &about), 0);
	assert_int_equal(slices_remap(s, &ids), 0);
	slice_read_begin(&r, slices_at(s, 0));
	assert_true(slice_read(&r, &out));
	assert_true(out.stack == 2 && out.task == 2 && out.count == 3 && out.weight == 30);
	assert_true(slice_read(&r, &out));
	assert_true(out.stack == STACK_NONE && out.task == 2 && out.count == 3 && out.weight == 31);
	assert_false(slice_read(&r, &out));
	slices_free(s);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
