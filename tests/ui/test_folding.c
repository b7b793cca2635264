// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A profile that was folded on another thread before it is shown makes the same screens as one that
 * is folded when it is shown; what changes meanwhile is not shown with old folds.
 */
#define LARGE_STACKS 10000u
#include "large.h"

#include <poll.h>

#include "ui/folding.h"
#include "ui/folds.h"

static void keys_in(struct bench *b, const char *keys)
{
	for (const char *k = keys; *k; k++) {
		press(b, *k == '\n' ? K_ENTER : (unsigned char)*k);
		screen_draw(&b->st, &b->canvas);
	}
}

static void wait_for(struct folding *f)
{
	struct pollfd fd = { .fd = folding_fd(f), .events = POLLIN };

	assert_int_equal(poll(&fd, 1, 60000), 1);
}

/* Is anything made of it, and all that was wanted? */
static bool is_made(const struct folds_of *of)
{
	const enum folds_state states[] = { of->rows[0].state,	of->rows[1].state, of->trees[0].state,
					    of->trees[1].state, of->callers.state, of->processes.state,
					    of->sums.state };
	bool made = false;

	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		if (states[i] == FOLDS_WANTED)
			return false;
		made |= states[i] == FOLDS_MADE;
	}
	return made;
}

/* The next profile through the thread, with @meanwhile typed while it is folded. */
static void take_folded(struct bench *b, struct profile *p, const char *meanwhile)
{
	struct folding *f = b->st.folding;
	struct folds_of *of = folds_plan(&b->st, p);

	assert_non_null(of);
	assert_true(folding_give(f, p, of));
	assert_true(folding_is_busy(f));
	keys_in(b, meanwhile);
	wait_for(f);
	assert_ptr_equal(folding_take(f), p);
	assert_false(folding_is_busy(f));
	assert_null(folding_take(f));
	assert_true(is_made(of));
	ui_state_take(&b->st, p);
}

/* The same keys and profiles with the thread and without: the same screen. */
static void compare(const char *keys, const char *meanwhile, const char *after)
{
	struct bench with, without;
	struct profile *a, *b;
	char *x, *y;

	bench_init(&with, 200, 60, false);
	bench_init(&without, 200, 60, false);
	with.st.folding = folding_new();
	assert_non_null(with.st.folding);
	ui_state_take(&with.st, large_profile(1));
	ui_state_take(&without.st, large_profile(1));
	keys_in(&with, keys);
	keys_in(&without, keys);
	a = large_profile(2);
	b = large_profile(2);
	a->running_ns = b->running_ns = 6000000000ull;
	take_folded(&with, a, meanwhile);
	keys_in(&without, meanwhile);
	ui_state_take(&without.st, b);
	keys_in(&with, after);
	keys_in(&without, after);
	screen_draw(&with.st, &with.canvas);
	screen_draw(&without.st, &without.canvas);
	x = canvas_dump(&with.canvas);
	y = canvas_dump(&without.canvas);
	assert_string_equal(x, y);
	free(x);
	free(y);
	folding_free(with.st.folding);
	with.st.folding = NULL;
	bench_fini(&with);
	bench_fini(&without);
}

static void test_views(void **state)
{
	static const char *const keys[] = { "1", "1K", "2",  "2H", "2j\n", "3",   "3i",
					    "3K", "3H", "4", "6",  "6K",   "1jjc" };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		compare(keys[i], "", "");
}

/* What is asked for meanwhile is folded when it is shown. */
static void test_changes(void **state)
{
	compare("3", "4", "");
	compare("1", "2j\n", "");		/* into a process */
	compare("3", "H", "");
	compare("1", ":cgroup none\n", "");
	compare("2", ":cgroup none\n:cgroup\n", "");
	compare("1", "z", "");			/* frozen: not shown */
	compare("1", "z", "z");
	compare("1", "zz", "");
	compare("4", "B", "");
}

/* The thread ends with a job in hand and profiles to free. */
static void test_end(void **state)
{
	for (int i = 0; i < 3; i++) {
		struct bench b;
		struct profile *p = large_profile(2);
		struct folds_of *of;

		bench_init(&b, 100, 30, false);
		b.st.folding = folding_new();
		ui_state_take(&b.st, large_profile(1));
		keys_in(&b, "3");
		of = folds_plan(&b.st, p);
		for (int n = 0; n < i * 3; n++)
			folding_discard(b.st.folding, large_profile(3));
		assert_true(folding_give(b.st.folding, p, of));
		assert_false(folding_give(b.st.folding, p, of));
		folding_free(b.st.folding);
		b.st.folding = NULL;
		bench_fini(&b);
	}
}

static void test_none(void **state)
{
	assert_int_equal(folding_fd(NULL), -1);
	assert_false(folding_is_busy(NULL));
	assert_false(folding_give(NULL, NULL, NULL));
	assert_null(folding_take(NULL));
	folding_discard(NULL, large_profile(1));
	folding_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_views),
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
