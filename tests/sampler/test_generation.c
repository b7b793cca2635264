// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * New tables for full ones: what the history shows is the same before and
 * after, sums and stacks, and old stacks that nothing shows are gone.
 */
#include "sampler/generation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <urcu-qsbr.h>
#include <cmocka.h>

#include "sampler/session.h"

#define SMALL 4096u

static void open_session(struct sampler *s)
{
	memset(s, 0, sizeof(*s));
	s->shared = aligned_alloc(CACHELINE, sizeof(*s->shared));
	memset(s->shared, 0, sizeof(*s->shared));
	s->tables = xcalloc(1, sizeof(*s->tables));
	assert_int_equal(stacks_new(&s->stacks, SMALL, 1 << 20), 0);
	assert_int_equal(cells_new(&s->cells, 1 << 14, 1 << 16), 0);
	assert_int_equal(history_new(&s->history, 5000000000ULL, 10000000000ULL, 1 << 16), 0);
	s->tables->stacks = s->stacks;
	s->tables->cells = s->cells;
	atomic_init(&s->shared->tables, s->tables);
}

static void close_session(struct sampler *s)
{
	history_free(s->history);
	stacks_free(s->stacks);
	cells_free(s->cells);
	free(s->tables);
	free(s->shared);
}

/* Stack @i is (i, 7, i * 3). */
static uint32_t intern(struct stacks *stacks, uint32_t i)
{
	const uint32_t places[] = { i, 7, i * 3 };

	return stacks_intern(stacks, places, 3);
}

/* Fill the stacks until they are full; returns how many went in, each counted (i % 5 + 1) times. */
static uint32_t fill(struct sampler *s)
{
	uint32_t i = 0, id;

	while ((id = intern(s->stacks, i)) != STACK_NONE || stacks_grow(s->stacks)) {
		for (uint32_t k = 0; id != STACK_NONE && k < i % 5 + 1; k++)
			assert_true(cells_add(s->cells, id, 3, 1, 10));
		i += id != STACK_NONE;
	}
	return i;
}

static void check(const struct sampler *s, enum profile_window window, uint32_t nr_stacks)
{
	struct history_cell *cells;
	uint64_t covers;
	uint32_t nr;
	bool *seen = xcalloc(nr_stacks, sizeof(*seen));

	assert_int_equal(history_get(s->history, window, &cells, &nr, &covers), 0);
	assert_int_equal(nr, nr_stacks);
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t len;
		const uint32_t *places = stacks_at(s->stacks, cells[i].stack, &len);

		assert_non_null(places);
		assert_int_equal(len, 3);
		assert_true(places[0] < nr_stacks && !seen[places[0]]);
		seen[places[0]] = true;
		assert_int_equal(places[2], places[0] * 3);
		assert_int_equal(cells[i].task, 3);
		assert_int_equal(cells[i].event, 1);
		if (window != PROFILE_DECAY) {
			assert_true(cells[i].count == places[0] % 5 + 1);
			assert_true(cells[i].weight == 10 * cells[i].count);
		}
	}
	free(cells);
	free(seen);
}

static void test_history_moves_along(void **state)
{
	struct stacks *old;
	struct cell *cells;
	struct sampler s;
	uint32_t nr, nr_stacks;

	open_session(&s);
	nr_stacks = fill(&s);
	assert_true(nr_stacks > SMALL / 2);
	/* Half of it is a tick already, the rest is in the cells still: both must move. */
	assert_int_equal(cells_swap(s.cells, &cells, &nr), 0);
	assert_int_equal(nr, nr_stacks);
	assert_int_equal(history_add(s.history, cells, nr, 1000000000), 0);
	old = s.stacks;
	assert_int_equal(generation_next(&s), 0);
	assert_ptr_not_equal(s.stacks, old);
	assert_ptr_equal(thread_tables(s.shared)->stacks, s.stacks);
	check(&s, PROFILE_WINDOW, nr_stacks);
	check(&s, PROFILE_TOTAL, nr_stacks);
	check(&s, PROFILE_DECAY, nr_stacks);
	/* There is room again. */
	assert_int_not_equal(intern(s.stacks, nr_stacks + 1), STACK_NONE);
	close_session(&s);
}

static void test_cells_in_flight_move(void **state)
{
	struct sampler s;
	uint32_t nr_stacks;

	open_session(&s);
	nr_stacks = fill(&s);
	assert_int_equal(generation_next(&s), 0);
	check(&s, PROFILE_TOTAL, nr_stacks);
	close_session(&s);
}

/* What only reset history knew is not carried along. */
static void test_forgotten_stacks_are_gone(void **state)
{
	struct sampler s;

	open_session(&s);
	fill(&s);
	assert_int_equal(generation_next(&s), 0);
	history_reset(s.history);
	assert_int_equal(generation_next(&s), 0);
	assert_int_equal(stacks_nr(s.stacks), 0);
	close_session(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_history_moves_along),
		cmocka_unit_test(test_cells_in_flight_move),
		cmocka_unit_test(test_forgotten_stacks_are_gone),
	};
	int failed;

	rcu_register_thread();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rcu_unregister_thread();
	return failed;
}
