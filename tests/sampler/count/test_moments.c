// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Slices of the past are of the moments of their samples: whatever is read late, out of order or in
 * bursts, no slice has more than its CPUs can have, and no sample is missing.
 * Live: takes about a second of CPU time, or more.
 */
#include "sampler/count/history.c"

#include "tests/prelude.h"

#include <stdio.h>

#include "symbols/base/base.h"

#define MS	 1000000ULL
#define T_SECOND (1000 * MS)
#define CPUS	 4
#define HZ	 1000 /* each CPU is busy: a sample each ms, of 1 ms */
#define SEED	 42u

/* A reader of a CPU, which may stall: all samples of before are then read together. */
struct reader {
	uint64_t done_ns;  /* all samples before it are read */
	uint64_t until_ns; /* it stalls until then */
};

static uint32_t seed;

static uint32_t rnd(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)seed * n >> 32);
}

/* Read the samples of a CPU up to @now_ns; return their number. */
static uint32_t read_ring(struct reader *r, uint32_t cpu, uint64_t now_ns, struct count *out)
{
	uint32_t nr = 0;

	if (now_ns < r->until_ns)
		return 0;
	for (; r->done_ns < now_ns; r->done_ns += T_SECOND / HZ)
		out[nr++] = (struct count){ rnd(7), cpu,	   0,
					    1,	    T_SECOND / HZ, tables_slice(r->done_ns) };
	return nr;
}

static uint64_t weight_of(const struct slice *slice)
{
	struct slice_reader reader;
	struct count c;
	uint64_t weight = 0;

	for (slice_read_begin(&reader, slice); slice_read(&reader, &c);)
		weight += c.weight;
	return weight;
}

static uint64_t sum(const struct slices *s, uint64_t *count)
{
	uint64_t weight = 0;

	slices_dropped(s, count, &weight);
	for (uint32_t i = 0; i < slices_nr(s); i++) {
		*count += slices_at(s, i)->count;
		weight += weight_of(slices_at(s, i));
	}
	return weight;
}

/* No slice has more than all of its CPUs, and one sample of each; they are one after the other. */
static void check_bound(const struct slices *s, bool complete)
{
	uint64_t end_ns = 0;

	for (uint32_t i = 0; i < slices_nr(s); i++) {
		const struct slice *slice = slices_at(s, i);
		uint64_t most = CPUS * (slice->end_ns - slice->begin_ns), has = weight_of(slice);

		if (has > most + CPUS * T_SECOND / HZ ||
		    (complete && i && i + 1 < slices_nr(s) && has + CPUS * MS < most))
			fail_msg("slice %u of %.0f ms: %.0f of %.0f ms", i,
				 (double)(slice->end_ns - slice->begin_ns) / 1e6, (double)has / 1e6,
				 (double)most / 1e6);
		assert_true(slice->begin_ns == end_ns || !i);
		end_ns = slice->end_ns;
	}
}

/* What a round may do to the readers and the builder. */
struct test_load {
	uint32_t stalls;     /* of 1,000 rounds of a reader */
	uint64_t stall_ns;   /* at most */
	uint64_t late_ns;    /* the builder is late by as much at most */
	uint64_t give_up_ns; /* slices are closed so long after their end */
	size_t memory;
};

/*
 * Run @seconds of busy CPUs. Slices are closed as all readers are past them, or after some time.
 */
static struct history *run(const struct test_load *load, uint32_t seconds, uint64_t *taken)
{
	uint64_t start = 5000 * T_SECOND + 37 * MS, now = start, last = start, complete;
	struct reader readers[CPUS] = { { 0 } };
	struct count *counts;
	struct history *h;

	*taken = 0;
	assert_int_equal(history_new(&h, 5 * T_SECOND, 10 * T_SECOND, 1000), 0);
	assert_int_equal(history_use_moments(h), 0);
	history_keep(h, 5 * T_SECOND, 3600 * T_SECOND, load->memory);
	history_begin(h, now);
	for (uint32_t i = 0; i < CPUS; i++)
		readers[i].done_ns = start;
	while (now < start + seconds * T_SECOND) {
		uint32_t nr = 0;
		bool end;

		now += 100 * MS +
		       (load->late_ns ? rnd((uint32_t)(load->late_ns / 1000)) * 1000ULL : 0);
		end = now >= start + seconds * T_SECOND;
		counts = malloc(CPUS * HZ * 400 * sizeof(*counts));
		complete = now;
		for (uint32_t i = 0; i < CPUS; i++) {
			uint32_t cpu = (i + rnd(CPUS)) % CPUS;

			if (rnd(1000) < load->stalls && !end)
				readers[cpu].until_ns =
					now + rnd((uint32_t)(load->stall_ns / 1000)) * 1000ULL;
		}
		for (uint32_t i = 0; i < CPUS; i++) {
			readers[i].until_ns = end ? 0 : readers[i].until_ns;
			nr += read_ring(&readers[i], i, now, counts + nr);
			complete = MIN(complete, readers[i].done_ns);
		}
		*taken += nr;
		assert_int_equal(history_add(h, counts, nr, now - last), 0);
		last = now;
		assert_int_equal(history_complete(h, MAX(complete, now - load->give_up_ns)), 0);
		check_bound(history_slices(h), complete >= now - load->give_up_ns);
	}
	assert_int_equal(history_complete(h, UINT64_MAX), 0);
	return h;
}

static void check(const struct test_load *load, uint32_t seconds)
{
	uint64_t taken, count;
	struct history *h;

	seed = SEED;
	h = run(load, seconds, &taken);
	check_bound(history_slices(h), true);
	assert_true(sum(history_slices(h), &count) == taken * T_SECOND / HZ);
	assert_true(count == taken);
	history_free(h);
}

TEST(test_calm)
{
	check(&(struct test_load){ 0, 0, 0, 2 * T_SECOND, 64 << 20 }, 30);
}

/* The builder and some readers are late by up to 1.7 s. */
TEST(test_bursts)
{
	check(&(struct test_load){ 100, 1700 * MS, 150 * MS, 2 * T_SECOND, 64 << 20 }, 60);
}

/* Readers have no time for longer than slices wait for them. */
TEST(test_too_late)
{
	check(&(struct test_load){ 20, 9 * T_SECOND, 900 * MS, 2 * T_SECOND, 64 << 20 }, 120);
}

/* The same, with slices that are merged and dropped. */
TEST(test_little_memory)
{
	const struct test_load load = { 50, 9 * T_SECOND, 300 * MS, T_SECOND, 30 << 10 };
	uint64_t taken, count;
	struct history *h;

	seed = SEED;
	h = run(&load, 200, &taken);
	check_bound(history_slices(h), false);
	assert_true(history_slices(h)->memory <= load.memory);
	assert_true(sum(history_slices(h), &count) == taken * T_SECOND / HZ);
	assert_true(count == taken);
	assert_true(slices_at(history_slices(h), 0)->begin_ns > 5001 * T_SECOND);
	history_free(h);
}

/* Stopped for an hour: the rings had the first of its seconds. */
TEST(test_stopped)
{
	uint64_t now = 5000 * T_SECOND, count;
	const struct slices *s;
	struct history *h;

	assert_int_equal(history_new(&h, 5 * T_SECOND, 10 * T_SECOND, 1000), 0);
	assert_int_equal(history_use_moments(h), 0);
	history_keep(h, 5 * T_SECOND, 7200 * T_SECOND, 64 << 20);
	history_begin(h, now);
	for (uint32_t i = 0; i < 30; i++) {
		uint64_t interval_ns = i == 20 ? 3600 * T_SECOND : 100 * MS;
		uint32_t nr = i == 20 ? 500 : 10;
		struct count *counts = malloc(nr * sizeof(*counts));

		for (uint32_t k = 0; k < nr; k++)
			counts[k] = (struct count){ 1, 1,	0,
						    1, 10 * MS, tables_slice(now + k * 10 * MS) };
		now += interval_ns;
		assert_int_equal(history_add(h, counts, nr, interval_ns), 0);
		assert_int_equal(history_complete(h, now), 0);
	}
	assert_int_equal(history_complete(h, UINT64_MAX), 0);
	s = history_slices(h);
	assert_in_range(slices_nr(s), 25, 200);
	assert_true(sum(s, &count) == (290 + 500) * 10 * MS);
	for (uint32_t i = 0; i < slices_nr(s); i++)
		assert_true(weight_of(slices_at(s, i)) <=
			    slices_at(s, i)->end_ns - slices_at(s, i)->begin_ns);
	history_free(h);
}

/* Other events: no slice has counts of two sets. */
TEST(test_events)
{
	uint64_t now = 5000 * T_SECOND + 30 * MS, count;
	uint32_t nr_other = 0;
	const struct slices *s;
	struct history *h;

	assert_int_equal(history_new(&h, 5 * T_SECOND, 10 * T_SECOND, 1000), 0);
	assert_int_equal(history_use_moments(h), 0);
	history_keep(h, 5 * T_SECOND, 3600 * T_SECOND, 64 << 20);
	history_begin(h, now);
	for (uint32_t i = 0; i < 40; i++) {
		struct count *counts = malloc(sizeof(*counts));

		/* One of 1.5 s ago, also of the time of the other events. */
		*counts = (struct count){ i >= 20, 1, 0, 1, MS, tables_slice(now - 1500 * MS) };
		now += 100 * MS;
		assert_int_equal(history_add(h, counts, 1, 100 * MS), 0);
		assert_int_equal(history_complete(h, now - 200 * MS), 0);
		if (i != 19)
			continue;
		history_restart(h);
		history_set_events(h, 1);
		history_begin(h, now);
	}
	assert_int_equal(history_complete(h, UINT64_MAX), 0);
	s = history_slices(h);
	for (uint32_t i = 0; i < slices_nr(s); i++) {
		const struct slice *slice = slices_at(s, i);
		struct slice_reader reader;
		struct count c;

		assert_true(!i || slice->begin_ns == slices_at(s, i - 1)->end_ns);
		nr_other += !!(slice->marks & SLICE_EVENTS);
		for (slice_read_begin(&reader, slice); slice_read(&reader, &c);)
			assert_int_equal(c.stack, slice->events);
	}
	assert_int_equal(nr_other, 1);
	sum(s, &count);
	assert_true(count == 40);
	history_free(h);
}

/* A late sample is in the window and the total when it arrives. */
TEST(test_window_of_arrivals)
{
	struct history_cell *cells;
	uint64_t covers_ns, now = 5000 * T_SECOND;
	struct history *h;
	uint32_t nr;

	assert_int_equal(history_new(&h, T_SECOND, 10 * T_SECOND, 1000), 0);
	assert_int_equal(history_use_moments(h), 0);
	history_keep(h, T_SECOND, 3600 * T_SECOND, 64 << 20);
	history_begin(h, now);
	for (uint32_t i = 0; i < 50; i++) {
		struct count *counts = malloc(sizeof(*counts));

		*counts = (struct count){ i, 1, 0, 1, MS, tables_slice(now - 3 * T_SECOND) };
		now += 100 * MS;
		assert_int_equal(history_add(h, counts, 1, 100 * MS), 0);
		assert_int_equal(history_complete(h, now), 0);
	}
	assert_int_equal(history_get(h, PROFILE_WINDOW, &cells, &nr, &covers_ns), 0);
	assert_int_equal(nr, 10);
	for (uint32_t i = 0; i < nr; i++)
		assert_in_range(cells[i].stack, 40, 49);
	assert_int_equal(covers_ns, T_SECOND);
	free(cells);
	history_free(h);
}

/*
 * The ring of one CPU is read first, the others later by @late slices: samples of before
 * the first slice, or far ahead of a builder that was late, are in separate slices.
 */
static void check_start(uint32_t late, uint32_t ahead)
{
	const uint64_t start = 5000 * T_SECOND, slice = COUNTS_SLICE_NS;
	struct count *counts;
	uint64_t count, taken = 0;
	struct history *h;

	assert_int_equal(history_new(&h, 5 * T_SECOND, 10 * T_SECOND, 1000), 0);
	assert_int_equal(history_use_moments(h), 0);
	history_keep(h, 5 * T_SECOND, 3600 * T_SECOND, 1 << 24);
	history_begin(h, start);
	for (uint32_t cpu = 0; cpu < CPUS; cpu++) {
		uint32_t nr = 0, from = cpu ? 0 : late;

		counts = calloc(late + ahead + 2, sizeof(*counts));
		for (uint32_t i = from; i < late + ahead; i++, nr++)
			counts[nr] = (struct count){
				1,   cpu,   0,
				100, slice, tables_slice(start + i * slice - late * slice)
			};
		taken += nr * 100;
		/* A millisecond of a late builder each. */
		assert_int_equal(history_add(h, counts, nr, MS), 0);
	}
	assert_int_equal(history_complete(h, UINT64_MAX), 0);
	sum(history_slices(h), &count);
	assert_int_equal(count, taken);
	check_bound(history_slices(h), false);
	history_free(h);
}

TEST(test_early)
{
	check_start(0, 0);
	check_start(25, 3);
	check_start(15, 150);
	check_start(0, 300);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
