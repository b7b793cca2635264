// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * history and sums: each window against sums done by hand, bounds that fold
 * away without losing a sample, decay over many half-lives.
 */
#include "sampler/count/history.c"

#include "tests/prelude.h"

#include <math.h>

#include "symbols/base/base.h"

/* Get the folded part of a long sum; 0 for PROFILE_WINDOW. */
/* Get the sum over the counts without a stack. */
static void sums_folded(const struct sums *s, double *count, double *weight)
{
	*count = *weight = 0;
	for (uint32_t i = 0; i < s->nr_slots; i++) {
		if (!s->slots[i].key || tables_count_key_stack(s->slots[i].key) != STACK_NONE)
			continue;
		*count += s->slots[i].count;
		*weight += s->slots[i].weight;
	}
}

static void history_folded_away(const struct history *h, enum profile_window window, double *count,
				double *weight)
{
	*count = *weight = 0;
	if (window == PROFILE_TOTAL)
		sums_folded(&h->total, count, weight);
	if (window == PROFILE_DECAY) {
		sums_folded(&h->decay, count, weight);
		*count /= decay_factor(h);
		*weight /= decay_factor(h);
	}
}

#define SECOND 1000000000ULL

static void t_add(struct history *h, uint32_t nr, const struct count *counts, uint64_t interval_ns)
{
	struct count *copy = malloc(MAX(nr, 1u) * sizeof(*copy));

	if (nr)
		memcpy(copy, counts, nr * sizeof(*copy));
	assert_int_equal(history_add(h, copy, nr, interval_ns), 0);
}

static void add_one(struct history *h, uint32_t stack, uint64_t count, uint64_t interval_ns)
{
	t_add(h, 1, &(struct count){ .stack = stack, .count = count, .weight = count * 10 },
	      interval_ns);
}

/* The sums of a window; *stack0 gets the count of stack 0. */
static double sum(const struct history *h, enum profile_window w, double *weight, double *stack0,
		  uint64_t *covers_ns)
{
	struct history_cell *counts;
	double count = 0;
	uint32_t nr;

	*weight = *stack0 = 0;
	assert_int_equal(history_get(h, w, &counts, &nr, covers_ns), 0);
	assert_non_null(counts);
	for (uint32_t i = 0; i < nr; i++) {
		count += counts[i].count;
		*weight += counts[i].weight;
		if (!counts[i].stack)
			*stack0 += counts[i].count;
	}
	free(counts);
	return count;
}

static void assert_near(double a, double b)
{
	if (fabs(a - b) > 1e-9 * MAX(1, fabs(b)))
		fail_msg("%.12g is not %.12g", a, b);
}

static size_t sums_memory(const struct sums *s)
{
	return s->nr_slots * sizeof(*s->slots);
}

/* Bytes of all slices, as they count for the limit. */
static size_t slices_memory(const struct slices *s)
{
	return s->memory;
}

static size_t moments_memory(const struct moments *m)
{
	size_t size = sizeof(*m) + m->room * sizeof(*m->list);

	for (uint32_t i = 0; i < m->nr; i++)
		size += m->list[i].room * sizeof(struct count);
	return size;
}

static size_t history_memory(const struct history *h)
{
	size_t moments = h->moments ? moments_memory(h->moments) + slices_memory(h->past) : 0;

	return sizeof(*h) + h->nr_held * sizeof(*h->held) + sums_memory(&h->decay) +
	       sums_memory(&h->total) + slices_memory(h->slices) + moments;
}

TEST(test_empty)
{
	struct history *h;
	double weight, stack0;
	uint64_t covers_ns = 1;

	assert_int_equal(history_new(&h, 5 * SECOND, SECOND, 100), 0);
	for (int w = 0; w < PROFILE_NR_WINDOWS; w++) {
		assert_true(sum(h, w, &weight, &stack0, &covers_ns) == 0);
		assert_int_equal(covers_ns, 0);
	}
	t_add(h, 0, NULL, SECOND);
	assert_true(sum(h, PROFILE_TOTAL, &weight, &stack0, &covers_ns) == 0);
	assert_true(covers_ns == SECOND);
	history_free(h);
}

/* The window holds just enough ticks to cover itself; the total holds all. */
TEST(test_window_and_total)
{
	struct history *h;
	double weight, stack0;
	uint64_t covers_ns;

	assert_int_equal(history_new(&h, 5 * SECOND, SECOND, 100), 0);
	for (uint32_t i = 1; i <= 12; i++) {
		add_one(h, 0, i, SECOND);
		if (i == 3) {
			assert_true(sum(h, PROFILE_WINDOW, &weight, &stack0, &covers_ns) == 6);
			assert_true(covers_ns == 3 * SECOND);
		}
	}
	assert_true(sum(h, PROFILE_WINDOW, &weight, &stack0, &covers_ns) == 8 + 9 + 10 + 11 + 12);
	assert_true(weight == 500 && stack0 == 50);
	assert_true(covers_ns == 5 * SECOND);
	assert_true(sum(h, PROFILE_TOTAL, &weight, &stack0, &covers_ns) == 78);
	assert_true(weight == 780 && covers_ns == 12 * SECOND);
	/* One tick longer than the window pushes all others out. */
	add_one(h, 0, 1000, 9 * SECOND);
	assert_true(sum(h, PROFILE_WINDOW, &weight, &stack0, &covers_ns) == 1000);
	assert_true(covers_ns == 9 * SECOND);
	history_free(h);
}

/* Real ticks are a little long or short; a window of five still holds five of them. */
TEST(test_window_of_uneven_ticks)
{
	struct history *h;
	double weight, stack0;
	uint64_t covers_ns;

	assert_int_equal(history_new(&h, 5 * SECOND, SECOND, 100), 0);
	for (uint32_t i = 0; i < 100; i++) {
		add_one(h, 0, 1, i % 3 ? SECOND - 3000000 : SECOND + 2000000);
		assert_true(sum(h, PROFILE_WINDOW, &weight, &stack0, &covers_ns) == MIN(i + 1, 5));
	}
	history_free(h);
}

/* Cells that differ in any part of their key are separate; equal ones are summed over ticks. */
TEST(test_keys)
{
	const struct count counts[] = {
		{ 1, 2, 3, 1, 1, 0 }, { 2, 2, 3, 1, 1, 0 },
		{ 1, 3, 3, 1, 1, 0 }, { 1, 2, 4, 1, 1, 0 },
		{ 0, 0, 0, 1, 1, 0 }, { UINT32_MAX - 1, COUNTS_TASKS_MAX - 1, 255, 1, 1, 0 },
	};
	struct history_cell *out;
	struct history *h;
	uint64_t covers_ns;
	uint32_t nr;

	assert_int_equal(history_new(&h, 5 * SECOND, SECOND, 100), 0);
	t_add(h, ARRAY_SIZE(counts), counts, SECOND);
	t_add(h, ARRAY_SIZE(counts), counts, SECOND);
	for (int w = 0; w < PROFILE_NR_WINDOWS; w += PROFILE_TOTAL) {
		assert_int_equal(history_get(h, w, &out, &nr, &covers_ns), 0);
		assert_int_equal(nr, ARRAY_SIZE(counts));
		for (uint32_t i = 0; i < nr; i++) {
			uint32_t found = 0;

			assert_true(out[i].count == 2);
			for (uint32_t j = 0; j < nr; j++)
				found += counts[j].stack == out[i].stack &&
					 counts[j].task == out[i].task &&
					 counts[j].event == out[i].event;
			assert_int_equal(found, 1);
		}
		free(out);
	}
	history_free(h);
}

TEST(test_decay_halves)
{
	struct history *h;
	double weight, stack0;
	uint64_t covers_ns;

	assert_int_equal(history_new(&h, 5 * SECOND, 2 * SECOND, 100), 0);
	add_one(h, 0, 1024, SECOND);
	assert_near(sum(h, PROFILE_DECAY, &weight, &stack0, &covers_ns), 1024);
	assert_int_equal(covers_ns, SECOND);
	t_add(h, 0, NULL, 2 * SECOND);
	assert_near(sum(h, PROFILE_DECAY, &weight, &stack0, &covers_ns), 512);
	assert_near(weight, 5120);
	add_one(h, 1, 100, 4 * SECOND);
	assert_near(sum(h, PROFILE_DECAY, &weight, &stack0, &covers_ns), 128 + 100);
	assert_near(stack0, 128);
	history_free(h);
}

/* A steady rate remains a steady rate: count / covers_ns, over hundreds of half-lives. */
TEST(test_decay_keeps_the_rate)
{
	struct history *h;
	double weight, stack0, count;
	uint64_t covers_ns;

	assert_int_equal(history_new(&h, 5 * SECOND, 3 * SECOND, 100), 0);
	for (uint32_t i = 0; i < 1000; i++) {
		add_one(h, i % 2, 999, SECOND);
		count = sum(h, PROFILE_DECAY, &weight, &stack0, &covers_ns);
		if (fabs(count * SECOND / covers_ns - 999) > 1e-3)
			fail_msg("tick %u: %g samples in %lu ns", i, count, covers_ns);
	}
	/* The geometric series: 999 / (1 - 2^(-1/3)). */
	assert_true(fabs(count - 999 / (1 - exp2(-1.0 / 3))) < 1e-3);
	history_free(h);
}

/* Half-lives shorter than a tick by far: nothing but the last tick, and no inf or nan. */
TEST(test_decay_extremes)
{
	struct history *h;
	double weight, stack0;
	uint64_t covers_ns;

	assert_int_equal(history_new(&h, 5 * SECOND, 0, 100), 0);
	for (uint32_t i = 0; i < 10; i++) {
		add_one(h, 0, 1000000, SECOND);
		assert_near(sum(h, PROFILE_DECAY, &weight, &stack0, &covers_ns), 1000000);
	}
	t_add(h, 0, NULL, 1ULL << 62);
	assert_true(sum(h, PROFILE_DECAY, &weight, &stack0, &covers_ns) == 0);
	add_one(h, 0, 5, 0);
	assert_near(sum(h, PROFILE_DECAY, &weight, &stack0, &covers_ns), 5);
	history_free(h);
}

/* More cells than allowed: memory is bounded, the heaviest are kept, not a sample is lost. */
TEST(test_bounded)
{
	struct count counts[1000];
	struct history *h;
	double weight, stack0, count, expect = 0, folded, folded_weight;
	uint64_t covers_ns;
	size_t memory = 0;

	assert_int_equal(history_new(&h, SECOND, 1000000 * SECOND, 500), 0);
	for (uint32_t tick = 0; tick < 100; tick++) {
		for (uint32_t i = 0; i < ARRAY_SIZE(counts); i++)
			counts[i] = (struct count){ tick * 1000 + i, i % 7, i & 1, 1, 3, 0 };
		counts[0] = (struct count){ 0, 1, 0, 1000, 3000, 0 };
		t_add(h, ARRAY_SIZE(counts), counts, SECOND);
		expect += 999 + 1000;
		if (tick == 10)
			memory = history_memory(h);
	}
	/* Larger ids take a byte more. */
	assert_true(history_memory(h) <= memory + 4 * ARRAY_SIZE(counts));
	count = sum(h, PROFILE_TOTAL, &weight, &stack0, &covers_ns);
	assert_true(count == expect && weight == 3 * expect);
	/* The heavy cell is whole. */
	assert_true(stack0 == 100 * 1000);
	history_folded_away(h, PROFILE_TOTAL, &folded, &folded_weight);
	assert_true(folded > 0.9 * 99900 && folded <= 99900);
	assert_true(folded_weight == 3 * folded);
	count = sum(h, PROFILE_DECAY, &weight, &stack0, &covers_ns);
	assert_true(fabs(count - expect) < 1e-3 * expect);
	history_folded_away(h, PROFILE_WINDOW, &folded, &folded_weight);
	assert_true(folded == 0 && folded_weight == 0);
	history_free(h);
}

/* A session of short ticks: all of them are in a long window. */
TEST(test_many_ticks)
{
	struct history *h;
	double weight, stack0;
	uint64_t covers_ns;

	assert_int_equal(history_new(&h, 3600 * SECOND, SECOND, 100), 0);
	for (uint32_t i = 0; i < 3000; i++)
		add_one(h, 0, 1, SECOND / 10);
	assert_true(sum(h, PROFILE_WINDOW, &weight, &stack0, &covers_ns) == 3000);
	assert_true(covers_ns == 300 * SECOND);
	assert_true(sum(h, PROFILE_TOTAL, &weight, &stack0, &covers_ns) == 3000);
	history_free(h);
}

/* After a restart the window is empty, though its slices are still there. */
TEST(test_restart_keeps_slices)
{
	struct slice_range range;
	struct history_cell *counts;
	struct history *h;
	double weight, stack0;
	uint64_t covers_ns;
	uint32_t nr;

	assert_int_equal(history_new(&h, 5 * SECOND, SECOND, 100), 0);
	history_keep(h, 5 * SECOND, 600 * SECOND, 1 << 20);
	history_begin(h, 1000 * SECOND);
	for (uint32_t i = 0; i < 10; i++)
		add_one(h, 7, 2, SECOND / 10);
	history_restart(h);
	for (int w = 0; w < PROFILE_NR_WINDOWS; w++) {
		assert_true(sum(h, w, &weight, &stack0, &covers_ns) == 0);
		assert_int_equal(covers_ns, 0);
	}
	add_one(h, 0, 3, SECOND);
	assert_true(sum(h, PROFILE_WINDOW, &weight, &stack0, &covers_ns) == 3);
	assert_true(slices_range(history_slices(h), 1000 * SECOND, 2000 * SECOND, &range));
	assert_int_equal(range.nr, 11);
	assert_int_equal(range.covers_ns, 2 * SECOND);
	assert_true(range.marks == SLICE_RESET);
	assert_int_equal(history_get_range(history_slices(h), &range, &counts, &nr), 0);
	assert_int_equal(nr, 2);
	assert_true(counts[0].count + counts[1].count == 23);
	free(counts);
	history_free(h);
}

/* Another window: a longer one as far as slices are there, a shorter one from now on. */
TEST(test_other_window)
{
	double weight, stack0;
	struct history *h;
	uint64_t covers_ns;

	assert_int_equal(history_new(&h, 5 * SECOND, SECOND, 100), 0);
	history_keep(h, 5 * SECOND, 600 * SECOND, 1 << 20);
	history_begin(h, 1000 * SECOND);
	for (uint32_t i = 0; i < 20; i++)
		add_one(h, 7, 1, SECOND);
	assert_true(sum(h, PROFILE_WINDOW, &weight, &stack0, &covers_ns) == 5);
	history_keep(h, 12 * SECOND, 600 * SECOND, 0);
	assert_true(sum(h, PROFILE_WINDOW, &weight, &stack0, &covers_ns) == 12);
	assert_int_equal(covers_ns, 12 * SECOND);
	history_keep(h, 2 * SECOND, 0, 0);
	assert_true(sum(h, PROFILE_WINDOW, &weight, &stack0, &covers_ns) == 2);
	/* The past is no longer kept: a longer window fills again. */
	add_one(h, 7, 1, SECOND);
	history_keep(h, 10 * SECOND, 0, 0);
	for (uint32_t i = 0; i < 5; i++)
		add_one(h, 7, 1, SECOND);
	weight = sum(h, PROFILE_WINDOW, &weight, &stack0, &covers_ns);
	assert_true(weight >= 7 && weight <= 10);
	for (uint32_t i = 0; i < 10; i++)
		add_one(h, 7, 1, SECOND);
	assert_true(sum(h, PROFILE_WINDOW, &weight, &stack0, &covers_ns) == 10);
	history_free(h);
}

/* An empty history begins t_at any time, as of an old recording; later it never goes back. */
TEST(test_begin)
{
	struct history *h;

	assert_int_equal(history_new(&h, 5 * SECOND, SECOND, 100), 0);
	history_keep(h, 5 * SECOND, 600 * SECOND, 1 << 20);
	history_begin(h, 1000 * SECOND);
	history_begin(h, 10 * SECOND);
	add_one(h, 7, 2, SECOND);
	history_begin(h, 5 * SECOND);
	add_one(h, 7, 2, SECOND);
	history_begin(h, 100 * SECOND);
	add_one(h, 7, 2, SECOND);
	assert_int_equal(slices_nr(history_slices(h)), 3);
	assert_int_equal(slices_at(history_slices(h), 0)->begin_ns, 10 * SECOND);
	assert_int_equal(slices_at(history_slices(h), 1)->begin_ns, 11 * SECOND);
	assert_int_equal(slices_at(history_slices(h), 2)->begin_ns, 100 * SECOND);
	history_free(h);
}

/* Without long sums only the window grows, also when ids change. */
TEST(test_window_alone)
{
	struct history *h;
	double weight, stack0;
	uint64_t covers_ns;
	size_t memory;

	assert_int_equal(history_new(&h, 5 * SECOND, SECOND, 0), 0);
	for (uint32_t i = 0; i < 10; i++)
		add_one(h, i, 10, SECOND);
	memory = history_memory(h);
	for (uint32_t i = 10; i < 100; i++)
		add_one(h, i, 10, SECOND);
	assert_true(history_memory(h) < memory + 1000);
	assert_true(sum(h, PROFILE_WINDOW, &weight, &stack0, &covers_ns) == 50);
	assert_true(sum(h, PROFILE_TOTAL, &weight, &stack0, &covers_ns) == 0);
	assert_int_equal(history_hold(h, NULL, 0), 0);
	history_free(h);
}

TEST(test_reset)
{
	struct history *h;
	double weight, stack0;
	uint64_t covers_ns;
	size_t memory;

	assert_int_equal(history_new(&h, 5 * SECOND, SECOND, 100), 0);
	memory = history_memory(h);
	for (uint32_t i = 0; i < 7; i++)
		add_one(h, i, 10, SECOND);
	history_reset(h);
	assert_int_equal(history_memory(h), memory);
	for (int w = 0; w < PROFILE_NR_WINDOWS; w++) {
		assert_true(sum(h, w, &weight, &stack0, &covers_ns) == 0);
		assert_int_equal(covers_ns, 0);
	}
	add_one(h, 0, 3, SECOND);
	assert_near(sum(h, PROFILE_DECAY, &weight, &stack0, &covers_ns), 3);
	assert_true(sum(h, PROFILE_WINDOW, &weight, &stack0, &covers_ns) == 3);
	history_free(h);
}

static double t_at(const struct sums *s, uint32_t stack, uint32_t task, uint32_t event)
{
	for (uint32_t i = 0; i < s->nr_slots; i++)
		if (s->slots[i].key == tables_count_key(stack, task, event))
			return s->slots[i].count;
	return 0;
}

/* The sums of a session, which are 131,072 and a tick's, take little more memory than they fill. */
TEST(test_dense)
{
	struct sums s;

	sums_init(&s);
	for (uint32_t i = 0; i < 140000; i++) {
		assert_int_equal(sums_reserve(&s, 1), 0);
		sums_add(&s, tables_count_key(i, i % 7, 0), 1, i);
		assert_true(s.nr < 30000 || s.nr_slots <= s.nr * 4 / 3 * 9 / 8 + 8);
	}
	assert_int_equal(s.nr, 140000);
	for (uint32_t i = 0; i < 140000; i += 1009)
		assert_true(t_at(&s, i, i % 7, 0) == 1);
	sums_fini(&s);
}

/* The lightest go: first to their task, and from there, when that is too many, to task 0. */
TEST(test_prune_folds_by_task_then_by_event)
{
	struct sums s;
	double count, weight;

	sums_init(&s);
	assert_int_equal(sums_prune(&s, 10, 0), 0);
	assert_int_equal(sums_reserve(&s, 100), 0);
	for (uint32_t i = 0; i < 100; i++)
		sums_add(&s, tables_count_key(i, i % 3 + 1, 0), 1, i);
	assert_int_equal(sums_prune(&s, 50, 0), 0);
	/* 50 light ones into three tasks' cells; these make three more too many: into task 0. */
	assert_int_equal(s.nr, 47 + 3 + 1);
	assert_true(t_at(&s, STACK_NONE, 0, 0) == 3);
	assert_true(t_at(&s, 99, 1, 0) == 1 && t_at(&s, 10, 2, 0) == 0);
	sums_folded(&s, &count, &weight);
	assert_int_equal(count, 53);
	assert_true(t_at(&s, STACK_NONE, 0, 0) + t_at(&s, STACK_NONE, 1, 0) +
			    t_at(&s, STACK_NONE, 2, 0) + t_at(&s, STACK_NONE, 3, 0) ==
		    count);
	assert_int_equal(sums_prune(&s, 2, 0), 0);
	assert_true(s.nr <= 3);
	sums_folded(&s, &count, &weight);
	assert_true(count == 100);
	/* Prune again: folded counts remain; equal weights do not hinder. */
	assert_int_equal(sums_prune(&s, 0, 0), 0);
	assert_int_equal(s.nr, 1);
	assert_true(t_at(&s, STACK_NONE, 0, 0) == 100);
	sums_fini(&s);
}

/* A decaying sum forgets the tasks that were not sampled for some minutes, their counts not. */
TEST(test_decay_forgets_tasks)
{
	struct history_cell *cells;
	struct history *h;
	uint64_t covers_ns;
	double count = 0;
	uint32_t nr;

	assert_int_equal(history_new(&h, SECOND, 10 * SECOND, 1 << 16), 0);
	for (uint32_t tick = 1; tick <= 2000; tick++) {
		const struct count c = { tick % 7, tick, 0, 1, 3, 0 };

		t_add(h, 1, &c, SECOND);
	}
	assert_int_equal(history_get(h, PROFILE_DECAY, &cells, &nr, &covers_ns), 0);
	for (uint32_t i = 0; i < nr; i++)
		count += cells[i].count;
	/* Samples of 320 s until they are scaled, and of the 100 before that. */
	assert_in_range(nr, 100, 450);
	assert_near(count, (double)covers_ns / 1e9);
	free(cells);
	history_free(h);
}

/* A range has the rates of its begin and its events; a change is marked in the slice. */
TEST(test_rates)
{
	const double slow[] = { 99, 0 }, fast[] = { 999, 0 };
	struct slice_range range = { .events = 0 };
	struct history *h;
	bool changed;

	assert_int_equal(history_new(&h, 100 * SECOND, SECOND, 100), 0);
	history_keep(h, 100 * SECOND, 1000 * SECOND, 1 << 20);
	history_begin(h, 1000 * SECOND);
	range.begin_ns = 1000 * SECOND;
	range.end_ns = 1001 * SECOND;
	assert_null(history_rates(h, &range, &changed));
	for (uint32_t i = 0; i < 6; i++) {
		history_set_events(h, i == 4);
		history_set_rates(h, i == 2 ? fast : slow, 2);
		add_one(h, 0, 1, SECOND);
	}
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(slices_at(history_slices(h), i)->marks & SLICE_RATE,
				 i == 2 || i == 3 ? SLICE_RATE : 0);
	for (uint32_t i = 0; i < 6; i++) {
		range.begin_ns = (1000 + i) * SECOND;
		range.end_ns = range.begin_ns + SECOND;
		range.events = i == 4;
		assert_true(history_rates(h, &range, &changed)[0] == (i == 2 ? 999 : 99));
		assert_false(changed);
	}
	range = (struct slice_range){ .begin_ns = 1001 * SECOND, .end_ns = 1003 * SECOND };
	assert_true(history_rates(h, &range, &changed)[0] == 99 && changed);
	/* Many changes: the oldest are forgotten. */
	for (uint32_t i = 0; i < 2000; i++) {
		history_set_rates(h, i % 2 ? fast : slow, 2);
		add_one(h, 0, 1, SECOND);
	}
	assert_null(history_rates(h, &range, &changed));
	range = (struct slice_range){ .begin_ns = 2999 * SECOND, .end_ns = 3000 * SECOND };
	assert_true(history_rates(h, &range, &changed)[0] == fast[0]);
	history_reset(h);
	assert_null(history_rates(h, &range, &changed));
	history_free(h);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
