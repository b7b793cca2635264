// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * stacks and cells, one thread: identity, sums, growth, full, memory caps.
 * test_stress.c has the threads.
 * Live: takes about a second of CPU time, or more.
 */
#include "sampler/count/counts.c"

#include "tests/prelude.h"
#include "symbols/base/base.h"

static void make_stack(uint32_t *places, uint32_t nr, uint32_t seed)
{
	for (uint32_t i = 0; i < nr; i++)
		places[i] = (uint32_t)hash_u64(seed * 4096ULL + i + 1);
}

static bool holds(const struct stacks *s, uint32_t id, const uint32_t *places, uint32_t nr)
{
	struct stacks_room room;
	uint32_t found;
	const uint32_t *at = stacks_at(s, id, &room, &found);

	return at && found == nr && !memcmp(at, places, nr * sizeof(*places));
}

TEST(test_stack_identity)
{
	uint32_t a[] = { 1, 2, 3 }, b[] = { 1, 2 }, c[] = { 3, 2, 1 }, d[] = { 1, 2, 4 }, nr;
	struct stacks_room room;
	struct stacks *s;

	assert_int_equal(stacks_new(&s, 1000, 1 << 20), 0);
	assert_int_equal(stacks_intern(s, a, 3), 0);
	assert_int_equal(stacks_intern(s, b, 2), 1);
	assert_int_equal(stacks_intern(s, c, 3), 2);
	assert_int_equal(stacks_intern(s, d, 3), 3);
	assert_int_equal(stacks_intern(s, NULL, 0), 4);
	assert_int_equal(stacks_intern(s, a, 1), 5);
	assert_int_equal(stacks_intern(s, a, 3), 0);
	assert_int_equal(stacks_intern(s, NULL, 0), 4);
	assert_int_equal(stacks_nr(s), 6);
	assert_true(holds(s, 0, a, 3) && holds(s, 1, b, 2) && holds(s, 2, c, 3));
	assert_non_null(stacks_at(s, 4, &room, &nr));
	assert_int_equal(nr, 0);
	assert_null(stacks_at(s, 6, &room, &nr));
	assert_null(stacks_at(s, STACK_NONE, &room, &nr));
	assert_int_equal(nr, 0);
	stacks_free(s);
}

TEST(test_zero_places_are_told_apart_by_length)
{
	uint32_t zero[STACKS_PLACES_MAX] = { 0 };
	struct stacks *s;

	assert_int_equal(stacks_new(&s, 2000, 16 << 20), 0);
	for (uint32_t nr = 0; nr <= STACKS_PLACES_MAX; nr++)
		assert_int_equal(stacks_intern(s, zero, nr), nr);
	for (uint32_t nr = 0; nr <= STACKS_PLACES_MAX; nr++)
		assert_int_equal(stacks_intern(s, zero, nr), nr);
	stacks_free(s);
}

TEST(test_too_deep_is_cut)
{
	uint32_t places[STACKS_PLACES_MAX + 10];
	struct stacks *s;
	uint32_t id;

	make_stack(places, ARRAY_SIZE(places), 1);
	assert_int_equal(stacks_new(&s, 10, 0), 0);
	id = stacks_intern(s, places, ARRAY_SIZE(places));
	assert_true(holds(s, id, places, STACKS_PLACES_MAX));
	assert_int_equal(stacks_intern(s, places, STACKS_PLACES_MAX), id);
	stacks_free(s);
}

/* Stacks that fill one run of slots, for a hash without a secret: none of others is refused. */
TEST(test_chosen_stacks)
{
	enum { NR = 12000, SLOTS = 1 << 17 };
	uint32_t nr = 0, refused = 0;
	struct stacks *s;

	assert_int_equal(stacks_new(&s, 1u << 18, 64 << 20), 0);
	for (uint32_t i = 0; nr < NR; i++) {
		uint32_t chosen[] = { i % 1000, i / 1000 };
		uint64_t hash = 2ULL << 29 ^ ((uint64_t)chosen[0] << 32 | chosen[1]);

		if ((hash_u64(hash * 0x9e3779b97f4a7c15ULL) >> 32) % SLOTS >= NR)
			continue;
		nr++;
		refused += stacks_intern(s, chosen, 2) == STACK_NONE;
	}
	for (uint32_t i = 0; i < 20000; i++) {
		uint32_t places[3];

		make_stack(places, 3, i);
		refused += stacks_intern(s, places, 3) == STACK_NONE;
	}
	assert_int_equal(refused, 0);
	stacks_free(s);
}

TEST(test_stacks_full_by_number)
{
	uint32_t places[20];
	struct stacks *s;

	assert_int_equal(stacks_new(&s, 100, 64 << 20), 0);
	for (uint32_t i = 0; i < 100; i++) {
		make_stack(places, 20, i);
		assert_int_equal(stacks_intern(s, places, 20), i);
	}
	for (uint32_t i = 100; i < 2000; i++) {
		make_stack(places, 20, i);
		assert_int_equal(stacks_intern(s, places, 20), STACK_NONE);
	}
	assert_false(stacks_grow(s));
	assert_int_equal(stacks_nr(s), 100);
	make_stack(places, 20, 55);
	assert_int_equal(stacks_intern(s, places, 20), 55);
	stacks_free(s);
}

/* Memory runs out: entries remain, the cap is kept, a short stack still fits. */
TEST(test_stacks_full_by_memory)
{
	const size_t cap = 2 << 20;
	uint32_t places[1000];
	struct stacks *s;
	uint32_t nr, i;
	bool room;

	assert_int_equal(stacks_new(&s, 1u << 20, cap), 0);
	for (nr = 0, room = true;; nr++) {
		make_stack(places, 1000, nr);
		if (stacks_intern(s, places, 1000) != nr)
			break;
		if (nr % 50 == 49)
			room = stacks_grow(s);
		assert_true(nr < 1000);
	}
	assert_true(nr > 100);
	assert_false(room && stacks_grow(s));
	assert_true(stacks_memory(s) <= cap);
	assert_true(stacks_memory(s) > cap / 2);
	for (i = 0; i < 10000; i++) {
		make_stack(places, 1000, nr + i);
		assert_int_equal(stacks_intern(s, places, 1000), STACK_NONE);
	}
	assert_int_equal(stacks_nr(s), nr);
	assert_int_equal(stacks_intern(s, places, 1), nr);
	for (i = 0; i < nr; i++) {
		make_stack(places, 1000, i);
		assert_int_equal(stacks_intern(s, places, 1000), i);
		assert_true(holds(s, i, places, 1000));
	}
	stacks_free(s);
}

/* The reserve of words leaves memory for entries and slots: short stacks fill a small table too. */
TEST(test_stacks_short_fill_small_tables)
{
	static const size_t caps[] = { 1 << 20, 2 << 20, 4 << 20, 16 << 20 };

	for (uint32_t i = 0; i < ARRAY_SIZE(caps); i++) {
		uint32_t places[2], nr = 0;
		struct stacks *s;

		assert_int_equal(stacks_new(&s, 1u << 20, caps[i]), 0);
		assert_true((uint64_t)nr_word_chunks(s) * words_size(s) <= caps[i] / 3);
		for (;; nr++) {
			make_stack(places, 2, nr);
			if (stacks_intern(s, places, 2) != nr)
				break;
			if (stacks_crowded(s))
				stacks_grow(s);
		}
		assert_true(stacks_memory(s) <= caps[i]);
		assert_true(stacks_used(s) > caps[i] / 2);
		stacks_free(s);
	}
}

/* Many stacks over many chunks of entries, words and slots; none moves, none is lost. */
TEST(test_stacks_grow)
{
	const uint32_t nr = 200000;
	uint32_t places[40];
	struct stacks *s;
	uint32_t id;

	assert_int_equal(stacks_new(&s, 1u << 20, 256 << 20), 0);
	for (uint32_t i = 0; i < nr; i++) {
		make_stack(places, i % 40 + 1, i);
		id = stacks_intern(s, places, i % 40 + 1);
		assert_int_equal(id, i);
		if (i % 20000 == 0)
			assert_true(stacks_grow(s));
	}
	for (uint32_t i = 0; i < nr; i++) {
		make_stack(places, i % 40 + 1, i);
		assert_true(holds(s, i, places, i % 40 + 1));
		assert_int_equal(stacks_intern(s, places, i % 40 + 1), i);
	}
	assert_int_equal(stacks_nr(s), nr);
	stacks_free(s);
}

/* A stack of a program: its places by depth, which the bits of @seed choose between two. */
static uint32_t make_branches(uint32_t *places, uint32_t seed)
{
	uint32_t nr = 1 + (uint32_t)hash_u64(seed) % 60;

	for (uint32_t depth = 0; depth < nr; depth++)
		places[nr - 1 - depth] = depth * 8 + (seed >> depth / 8 & 3);
	return nr;
}

/* Outer frames are stored once; each stack is as it was, also with no frames but shared ones. */
TEST(test_stacks_share_outer_frames)
{
	enum { NR = 30000 };
	static uint32_t ids[NR];
	uint32_t places[STACKS_PLACES_MAX], nr, words = 0, deepest = 0;
	struct stacks *s;

	assert_int_equal(stacks_new(&s, 1u << 20, 64 << 20), 0);
	for (uint32_t i = 0; i < NR; i++) {
		uint32_t before = stacks_nr(s);

		nr = make_branches(places, i);
		ids[i] = stacks_intern(s, places, nr);
		assert_true(ids[i] != STACK_NONE && holds(s, ids[i], places, nr));
		words += stacks_nr(s) > before ? nr + 1 : 0;
		stacks_grow(s);
	}
	assert_true(words_used(s) < words / 4);
	for (uint32_t i = 0; i < NR; i++) {
		nr = make_branches(places, i);
		assert_true(holds(s, ids[i], places, nr));
		assert_int_equal(stacks_intern(s, places, nr), ids[i]);
		deepest = MAX(deepest, head_depth(words_at(s, entry(s, ids[i])->at - 1)));
	}
	assert_true(deepest > 0 && deepest < DEPTH_MAX);
	stacks_free(s);
}

static const struct count *find_cell(const struct count *counts, uint32_t nr, uint32_t stack,
				     uint32_t task, uint32_t event)
{
	for (uint32_t i = 0; i < nr; i++)
		if (counts[i].stack == stack && counts[i].task == task && counts[i].event == event)
			return &counts[i];
	return NULL;
}

TEST(test_cells_sum)
{
	struct count *counts;
	struct counts *c;
	uint32_t nr;

	assert_int_equal(counts_new(&c, 64, 64), 0);
	assert_true(counts_add(c, 0, 0, 0, 5, 0));
	assert_true(counts_add(c, 0, 0, 0, 7, 0));
	assert_true(counts_add(c, 0, 0, 1, 1ULL << 40, 0));
	assert_true(counts_add(c, 0, COUNTS_TABLE_TASKS - 1, 0, 0, 0));
	assert_true(counts_add(c, COUNTS_TABLE_STACKS - 2, COUNTS_TABLE_TASKS - 1, 15, 9,
			       COUNTS_SLICES - 1));
	assert_int_equal(counts_swap(c, &counts, &nr), 0);
	assert_int_equal(nr, 4);
	assert_int_equal(find_cell(counts, nr, 0, 0, 0)->count, 2);
	assert_int_equal(find_cell(counts, nr, 0, 0, 0)->weight, 12);
	assert_true(find_cell(counts, nr, 0, 0, 1)->weight == 1ULL << 40);
	assert_int_equal(find_cell(counts, nr, 0, COUNTS_TABLE_TASKS - 1, 0)->weight, 0);
	assert_int_equal(
		find_cell(counts, nr, COUNTS_TABLE_STACKS - 2, COUNTS_TABLE_TASKS - 1, 15)->slice,
		COUNTS_SLICES - 1);
	free(counts);
	counts_free(c);
}

TEST(test_cells_refuse_what_they_cannot_name)
{
	struct count *counts;
	struct counts *c;
	uint32_t nr;

	assert_int_equal(counts_new(&c, 64, 64), 0);
	assert_false(counts_add(c, STACK_NONE, 0, 0, 1, 0));
	assert_false(counts_add(c, COUNTS_TABLE_STACKS - 1, 0, 0, 1, 0));
	assert_false(counts_add(c, 1, COUNTS_TABLE_TASKS, 0, 1, 0));
	assert_false(counts_add(c, 1, 0, COUNTS_TABLE_EVENTS, 1, 0));
	assert_int_equal(counts_swap(c, &counts, &nr), 0);
	assert_int_equal(nr, 0);
	assert_non_null(counts);
	free(counts);
	counts_free(c);
}

/* The same stack, task and event in another slice is another count. */
TEST(test_slices_apart)
{
	struct count *counts;
	struct counts *c;
	uint32_t nr;

	assert_int_equal(counts_new(&c, 64, 64), 0);
	for (uint32_t i = 0; i < 30; i++)
		assert_true(
			counts_add(c, 7, 1, 2, 10, tables_slice((i / 10 + 5) * COUNTS_SLICE_NS)));
	assert_int_equal(counts_swap(c, &counts, &nr), 0);
	assert_int_equal(nr, 3);
	for (uint32_t i = 0; i < nr; i++) {
		assert_int_equal(counts[i].stack, 7);
		assert_int_equal(counts[i].count, 10);
		assert_in_range(counts[i].slice, 5, 7);
	}
	free(counts);
	counts_free(c);
}

/* A tick's increments are in that tick and in no other. */
TEST(test_swap_starts_from_zero)
{
	struct count *counts;
	struct counts *c;
	uint32_t nr;

	assert_int_equal(counts_new(&c, 64, 64), 0);
	for (uint32_t tick = 0; tick < 10; tick++) {
		for (uint32_t i = 0; i <= tick; i++)
			assert_true(counts_add(c, 7, 1, 0, 10, 0));
		assert_int_equal(counts_swap(c, &counts, &nr), 0);
		assert_int_equal(nr, 1);
		assert_int_equal(counts[0].count, tick + 1);
		assert_int_equal(counts[0].weight, 10 * (tick + 1));
		free(counts);
		assert_int_equal(counts_swap(c, &counts, &nr), 0);
		assert_int_equal(nr, 0);
		free(counts);
	}
	counts_free(c);
}

static uint32_t fill(struct counts *c, uint32_t nr)
{
	uint32_t added = 0;

	for (uint32_t i = 0; i < nr; i++)
		added += counts_add(c, i, i % 100, 0, 1, 0);
	return added;
}

/* Return the slots of the table that is filled first. */
static uint32_t first_size(const struct counts *c)
{
	return c->first->mask + 1;
}

/* Each full tick makes the table four times as large, up to its limit; quiet ticks shrink it again.
 */
TEST(test_cells_grow_and_shrink)
{
	uint32_t expect = 64, nr, added;
	struct count *counts;
	struct counts *c;

	assert_int_equal(counts_new(&c, 64, 1024), 0);
	for (uint32_t tick = 0; tick < 8; tick++) {
		assert_int_equal(first_size(c), expect);
		added = fill(c, expect);
		assert_in_range(added, expect / 2 + 1, expect);
		assert_int_equal(counts_swap(c, &counts, &nr), 0);
		assert_int_equal(nr, added);
		free(counts);
		expect = MIN(expect * 4, 1024);
	}
	for (uint32_t tick = 0; tick < 8; tick++) {
		assert_int_equal(counts_swap(c, &counts, &nr), 0);
		assert_int_equal(nr, 0);
		free(counts);
	}
	assert_int_equal(first_size(c), 64);
	counts_free(c);
}

/*
 * Without CPU time for the builder, samples go on to the larger tables that it made before, up to
 * the limit: each is in the sums of its tick, and the memory is free again afterwards.
 */
TEST(test_cells_without_a_builder)
{
	uint64_t sums[3000] = { 0 };
	struct count *counts;
	struct counts *c;
	uint32_t nr, tick;

	assert_int_equal(counts_new(&c, 64, 4096), 0);
	for (uint32_t round = 0; round < 4; round++) {
		struct counts_table *batch = counts_begin(c, &tick);

		assert_int_equal(tick, round);
		memset(sums, 0, sizeof(sums));
		for (uint32_t i = 0; i < 3000; i++) {
			assert_true(counts_add(c, i, 0, 0, 1, 0));
			assert_true(counts_add_to(c, &batch, i / 2, 0, 0, 1, 0));
		}
		assert_true(counts_crowded(c));
		assert_int_equal(counts_end_tick(c, &counts, &nr), 0);
		for (uint32_t i = 0; i < nr; i++)
			sums[counts[i].stack] += counts[i].count;
		free(counts);
		for (uint32_t i = 0; i < 3000; i++)
			assert_int_equal(sums[i], i < 1500 ? 3 : 1);
		assert_true(!c->spare || !tables_used(c->spare));
		/* Small again: the next round is as late. */
		for (uint32_t i = 0; i < 10; i++) {
			assert_int_equal(counts_swap(c, &counts, &nr), 0);
			assert_int_equal(nr, 0);
			free(counts);
		}
		assert_int_equal(first_size(c), 64);
	}
	/* More than the limit is refused. */
	assert_in_range(fill(c, 10000), 4096 / 2, 4096);
	counts_free(c);
}

/* A caller that reads crowded and grows loses nothing in a tick that has many more than the one
 * before. */
TEST(test_cells_grow_in_a_tick)
{
	uint64_t sums[3000] = { 0 };
	struct count *counts;
	struct counts *c;
	uint32_t nr, grown = 0;

	assert_int_equal(counts_new(&c, 64, 4096), 0);
	for (uint32_t i = 0; i < 3000; i++) {
		assert_true(counts_add(c, i, 0, 0, 1, 0));
		assert_true(counts_add(c, i / 2, 0, 0, 1, 0));
		if (counts_crowded(c))
			grown += counts_grow(c);
	}
	assert_in_range(grown, 2, 5);
	assert_int_equal(counts_swap(c, &counts, &nr), 0);
	for (uint32_t i = 0; i < nr; i++)
		sums[counts[i].stack] += counts[i].count;
	free(counts);
	for (uint32_t i = 0; i < 3000; i++)
		assert_int_equal(sums[i], i < 1500 ? 3 : 1);
	/* the next tick has room from its start */
	assert_int_equal(fill(c, 2000), 2000);
	counts_free(c);
}

/* At the limit no growth is requested. */
TEST(test_cells_limit)
{
	struct counts *c;
	struct count *counts;
	uint32_t nr;

	assert_int_equal(counts_new(&c, 64, 256), 0);
	for (int i = 0; i < 20; i++) {
		fill(c, 10000);
		assert_true(!counts_crowded(c) || counts_grow(c) || !counts_crowded(c));
	}
	assert_false(counts_crowded(c));
	assert_false(counts_grow(c));
	assert_int_equal(counts_swap(c, &counts, &nr), 0);
	assert_in_range(nr, 200, 2 * 256);
	free(counts);
	counts_free(c);
}

/* A caller that grows the crowded table is never refused, small as it may begin. */
static void check_crowded(bool small)
{
	uint32_t places[40], nr = 300000, asked = 0;
	struct stacks *s;

	assert_int_equal(stacks_new(&s, 1u << 20, (size_t)128 << 20), 0);
	if (small)
		assert_int_equal(stacks_begin_small(s), 0);
	assert_false(stacks_crowded(s));
	for (uint32_t i = 0; i < nr; i++) {
		make_stack(places, i % 40 + 1, i);
		assert_int_equal(stacks_intern(s, places, i % 40 + 1), i);
		if (!stacks_crowded(s))
			continue;
		asked++;
		assert_true(stacks_grow(s));
		assert_false(stacks_crowded(s));
	}
	assert_in_range(asked, 1, 64);
	for (uint32_t i = 0; i < nr; i++) {
		make_stack(places, i % 40 + 1, i);
		assert_int_equal(stacks_intern(s, places, i % 40 + 1), i);
	}
	stacks_free(s);
}

TEST(test_stacks_crowded)
{
	check_crowded(false);
	check_crowded(true);
}

TEST(test_cells_full_still_counts_what_is_in)
{
	struct count *counts;
	struct counts *c;
	uint32_t nr, in = 0;

	assert_int_equal(counts_new(&c, 8, 8), 0);
	assert_int_equal(fill(c, 100), 8);
	in = fill(c, 8);
	assert_int_equal(in, 8);
	assert_int_equal(counts_swap(c, &counts, &nr), 0);
	assert_int_equal(nr, 8);
	for (uint32_t i = 0; i < nr; i++)
		assert_int_equal(counts[i].count, 2);
	free(counts);
	counts_free(c);
}

TEST(test_cell_key_round_trip)
{
	const uint32_t stacks[] = { 0, 1, UINT32_MAX - 1, UINT32_MAX };
	const uint32_t tasks[] = { 0, 1, COUNTS_TASKS_MAX - 1 };
	const uint32_t events[] = { 0, 1, 254 };

	for (uint32_t i = 0; i < 36; i++) {
		uint64_t key = tables_count_key(stacks[i % 4], tasks[i / 4 % 3], events[i / 12]);

		assert_true(key != 0);
		assert_int_equal(tables_count_key_stack(key), stacks[i % 4]);
		assert_int_equal(tables_count_key_task(key), tasks[i / 4 % 3]);
		assert_int_equal(tables_count_key_event(key), events[i / 12]);
	}
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
