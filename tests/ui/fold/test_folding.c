// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A profile that was folded on another thread before it is shown makes the same screens as one that
 * is folded when it is shown; changes during the folding are not shown with old folds. Neither a
 * large profile nor a large baseline is folded for a key.
 * Live: takes about a second of CPU time, or more.
 */
#define LARGE_STACKS 21000u
#define LARGE_DEPTH  10u
#include "ui/fold/folds.c"

#include "tests/ui/large.h"

#include <math.h>
#include <poll.h>
#include <sched.h>

#include "symbols/base/base.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "ui/key/key.h"
#include "ui/draw/draw.h"
#include "ui/state/state.h"
#include "ui/view/view.h"
#include "ui/internal.h"

/* Show rows of folds that the thread made of the shown profile. */
static void model_folded(struct ui_state *st)
{
	take_back(st);
	table_rebuild(st, st->view);
}

static void wait_for(struct folding *f)
{
	struct pollfd fd = { .fd = f->fd, .events = POLLIN };

	assert_int_equal(poll(&fd, 1, 60000), 1);
}

/* Give the requested folds to the thread. Return them; NULL: none is requested. */
static struct folds_of *lend(struct bench *b)
{
	struct profile *p;
	struct folds_of *of = lend_wanted(&b->st, &p);

	if (of)
		assert_true(folding_begin(b->st.folding, p, of, true));
	return of;
}

static void take_lent(struct bench *b)
{
	bool lent = false;

	wait_for(b->st.folding);
	assert_non_null(folding_take(b->st.folding, &lent));
	assert_true(lent);
	model_folded(&b->st);
	screen_draw(&b->st, &b->canvas);
}

/* Fold the requests of keys until none is pending, as the main loop does. */
static void settle(struct bench *b)
{
	screen_draw(&b->st, &b->canvas);
	while (lend(b))
		take_lent(b);
}

static const char *keys_in(struct bench *b, const char *keys)
{
	for (const char *k = keys; *k; k++) {
		const struct key key = { .code = *k == '\n' ? K_ENTER : (unsigned char)*k };

		/* One that waits for rows is obeyed once they are there. */
		if (input_waits(&b->st, &key))
			return k;
		input_key(&b->st, &key);
		if (folding_is_busy(b->st.folding))
			screen_draw(&b->st, &b->canvas);
		else
			settle(b);
	}
	return "";
}

/* Is any fold made, and all that were wanted? */
static bool is_made(const struct folds_of *of)
{
	bool made = false;

	for (size_t i = 0; i < ARRAY_SIZE(of->entries); i++) {
		if (of->entries[i].state == FOLDS_WANTED)
			return false;
		made |= of->entries[i].state == FOLDS_MADE;
	}
	return made;
}

/* Fold the next profile on the thread, with @keys typed during the folding; return the pending
 * kinds. */
static const char *take_folded(struct bench *b, struct profile *p, const char *keys)
{
	struct folding *f = b->st.folding;
	struct folds_of *of = plan_next(&b->st, p);
	bool lent = false;

	assert_non_null(of);
	assert_true(folding_begin(f, p, of, false));
	assert_true(folding_is_busy(f));
	keys = keys_in(b, keys);
	wait_for(f);
	assert_ptr_equal(folding_take(f, &lent), p);
	assert_false(lent || folding_is_busy(f));
	assert_null(folding_take(f, &lent));
	assert_true(is_made(of));
	model_take(&b->st, p);
	return keys;
}

/* The same keys and profiles with the thread and without: the same screen. */
static void compare(const char *keys, const char *during, const char *after)
{
	struct bench with, without;
	struct profile *a, *b;
	const char *waits;
	char *x, *y;

	bench_init(&with, 200, 60, false);
	bench_init(&without, 200, 60, false);
	folds_start(&with.st);
	assert_non_null(with.st.folding);
	model_take(&with.st, large_profile(1));
	settle(&with);
	model_take(&without.st, large_profile(1));
	keys_in(&with, keys);
	keys_in(&without, keys);
	a = large_profile(2);
	b = large_profile(2);
	a->running_ns = b->running_ns = 6000000000ull;
	waits = take_folded(&with, a, during);
	settle(&with);
	keys_in(&with, waits);
	keys_in(&without, during);
	model_take(&without.st, b);
	keys_in(&with, after);
	keys_in(&without, after);
	settle(&with);
	/* The order of rows depends on the profiles that were shown before. */
	table_reorder(&with.st);
	settle(&with);
	table_reorder(&without.st);
	screen_draw(&with.st, &with.canvas);
	screen_draw(&without.st, &without.canvas);
	x = canvas_dump(&with.canvas);
	y = canvas_dump(&without.canvas);
	assert_string_equal(x, y);
	free(x);
	free(y);
	bench_fini(&with);
	bench_fini(&without);
}

TEST(test_views)
{
	static const char *const keys[] = { "1",  "1K", "2", "2H", "2j\n", "3",	  "3i",
					    "3K", "3H", "4", "6",  "6K",   "1jjc" };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		compare(keys[i], "", "");
}

/* A request during the folding is folded when the profile is shown. */
TEST(test_changes)
{
	compare("3", "4", "");
	compare("1", "2j\n", ""); /* into a process */
	compare("3", "H", "");
	compare("1", ":cgroup none\n", "");
	compare("2", ":cgroup none\n:cgroup\n", "");
	compare("1", "z", ""); /* frozen: not shown */
	compare("1", "z", "z");
	compare("1", "zz", "");
	compare("4", "B", "");
}

/* Against a profile that was shown before. */
TEST(test_baseline)
{
	compare("1B", "", "2");
	compare("3B", "", "H");
	compare("2B", "j\n", "");
	compare("4B", "2", "4");
}

/*
 * While a large profile is folded for a key the screen says so; the cursor has not moved after it.
 */
TEST(test_late)
{
	struct profile *p;
	struct bench b;
	uint64_t selected;

	bench_init(&b, 100, 30, false);
	folds_start(&b.st);
	model_take(&b.st, large_profile(1));
	settle(&b);
	keys_in(&b, "jjjjjjjjjj");
	selected = b.st.lists[VIEW_FUNCTIONS].selected;
	press(&b, 'K');
	assert_true(folds_is_late(&b.st));
	assert_non_null(strstr(look(&b), "folding 21,000 stacks"));
	assert_false(input_waits(&b.st, &(struct key){ .code = 'j' }));
	press(&b, 'K');
	settle(&b);
	assert_false(folds_is_late(&b.st));
	assert_int_equal(b.st.lists[VIEW_FUNCTIONS].cursor, 10);
	assert_true(b.st.lists[VIEW_FUNCTIONS].selected == selected);
	/* Rows of which there is no draft. */
	press(&b, '2');
	assert_true(folds_is_late(&b.st));
	assert_true(input_waits(&b.st, &(struct key){ .code = 'j' }));
	assert_false(input_waits(&b.st, &(struct key){ .code = '3' }));
	settle(&b);
	/* Forgotten while it is lent. */
	press(&b, '3');
	keys_in(&b, "");
	press(&b, 'H');
	assert_non_null(lend_wanted(&b.st, &p));
	folds_forget(b.st.folds);
	folds_make(b.st.shown, &b.st.folds->shown);
	model_folded(&b.st);
	assert_true(folds_is_late(&b.st));
	settle(&b);
	assert_true(b.st.lists[VIEW_TREE].nr > 0);
	bench_fini(&b);
}

/* Few counts have many frames: these decide. */
TEST(test_late_frames)
{
	for (int many = 0; many < 2; many++) {
		struct profile *p = large_profile(1);
		struct bench b;

		bench_init(&b, 100, 30, false);
		folds_start(&b.st);
		p->nr_counts = 1000;
		p->nr_frames = many ? 504000 : 252000;
		p->frames = realloc(p->frames, p->nr_frames * sizeof(*p->frames));
		model_take(&b.st, p);
		settle(&b);
		press(&b, 'K');
		assert_int_equal(folds_is_late(&b.st), many);
		bench_fini(&b);
	}
}

/* A profile that is also the baseline is folded once, and by the thread. */
TEST(test_own_baseline)
{
	struct bench b;

	bench_init(&b, 100, 30, false);
	folds_start(&b.st);
	model_take(&b.st, large_profile(1));
	settle(&b);
	press(&b, 'B');
	assert_false(folds_is_late(&b.st));
	assert_true(b.st.lists[VIEW_FUNCTIONS].nr > 0);
	for (const char *k = "34"; *k; k++) {
		press(&b, (unsigned char)*k);
		assert_true(folds_is_late(&b.st));
		settle(&b);
		assert_true(ui_state_list(&b.st)->nr > 0);
		press(&b, 'H');
		assert_true(folds_is_late(&b.st));
		settle(&b);
		assert_false(folds_is_late(&b.st));
	}
	bench_fini(&b);
}

static bool is_compared(const struct list *list)
{
	assert_true(list->nr > 0);
	for (uint32_t i = 0; i < list->nr; i++)
		if (list->rows[i].change != CHANGE_UNKNOWN)
			return true;
	return false;
}

/* Take the shown profile's folds, give those of the baseline to the thread: rows, not compared. */
static void lend_baseline(struct bench *b)
{
	struct folds_of *of;

	while ((of = lend(b)) == &b->st.folds->shown)
		take_lent(b);
	assert_ptr_equal(of, &b->st.folds->baseline);
	assert_false(folds_is_late(&b->st));
	assert_false(is_compared(ui_state_list(&b->st)));
}

/* A baseline is also folded by the thread; until then the rows are shown without changes. */
TEST(test_late_baseline)
{
	static const char *const keys[] = { "2", "3", "H", "2=\n", "4" };
	struct bench b;

	bench_init(&b, 100, 30, false);
	folds_start(&b.st);
	b.st.baseline = large_profile(2);
	b.st.baseline_path = "/var/tmp/old.data";
	model_take(&b.st, large_profile(1));
	lend_baseline(&b);
	take_lent(&b);
	settle(&b);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		for (const char *k = keys[i]; k[1]; k++) {
			press(&b, (unsigned char)*k);
			settle(&b);
		}
		press(&b, keys[i][strlen(keys[i]) - 1] == '\n'
				  ? K_ENTER
				  : (unsigned char)keys[i][strlen(keys[i]) - 1]);
		lend_baseline(&b);
		take_lent(&b);
		settle(&b);
		assert_true(is_compared(ui_state_list(&b.st)));
	}
	assert_true(b.st.scope.drilled);
	/* Forgotten and freed while it is lent. */
	press(&b, 'H');
	lend_baseline(&b);
	press(&b, 'B');
	assert_null(b.st.baseline);
	take_lent(&b);
	settle(&b);
	assert_null(b.st.folds->lent);
	assert_false(is_compared(ui_state_list(&b.st)));
	bench_fini(&b);
}

/* A turn of the loop, as in app.c. */
static void turn(struct bench *b, struct profile *next)
{
	bool made;
	struct profile *p = folds_take(&b->st, &made);

	if (made)
		table_rebuild(&b->st, b->st.view);
	if (p) {
		model_take(&b->st, p);
		folds_lend(&b->st);
	}
	if (next && folds_fd(&b->st) >= 0)
		profile_free(next);
	else if (next && !folds_begin(&b->st, next))
		model_take(&b->st, next);
	screen_draw(&b->st, &b->canvas);
	folds_lend(&b->st);
}

/* Any key at any time, whatever the thread is at. */
TEST(test_random)
{
	static const char keys[] = "1234567jjkkGgHKUzzBB,ibcX3H1K4t ";
	const char *given = getenv("FOLDING_SEED");
	uint32_t seed = given ? (uint32_t)strtoul(given, NULL, 10) : 1;
	struct bench b;

	print_message("FOLDING_SEED=%u\n", seed);
	bench_init(&b, 100, 30, false);
	folds_start(&b.st);
	model_take(&b.st, large_profile(1));
	for (int i = 0; i < 150; i++) {
		uint32_t n = large_next(&seed);

		press(&b, n % 16 ? (unsigned char)keys[n / 16 % (sizeof(keys) - 1)] : K_ENTER);
		if (n % 11 == 0)
			press(&b, K_ESC);
		turn(&b, n % 7 ? NULL : large_profile(n % 5));
		if (n % 3 == 0)
			sched_yield();
	}
	bench_fini(&b);
}

/* The thread ends with a job in hand and profiles to free. */
TEST(test_end)
{
	for (int i = 0; i < 3; i++) {
		struct bench b;
		struct profile *p = large_profile(2);
		struct folds_of *of;

		bench_init(&b, 100, 30, false);
		folds_start(&b.st);
		model_take(&b.st, large_profile(1));
		keys_in(&b, "3");
		of = plan_next(&b.st, p);
		for (int n = 0; n < i * 3; n++)
			folding_discard(b.st.folding, large_profile(3));
		assert_true(folding_begin(b.st.folding, p, of, false));
		assert_false(folding_begin(b.st.folding, p, of, false));
		bench_fini(&b);
	}
}

/* Return the share of samples that a function's row has in itself; negative: it has no row. */
static double self_of(const struct fold_functions *fold, const struct profile *p, uint32_t id)
{
	for (uint32_t i = 0; i < fold->nr_rows; i++)
		if (p->functions[fold->rows[i].function].id == id)
			return fold->rows[i].self_weight / fold->weight;
	return -1;
}

/* Until rows are folded for a key, the screen has rows of a part of the counts, and says so. */
TEST(test_draft)
{
	static const char *const keys[] = { "3", "4", "1K", "3H", "2\n" };
	struct bench b;

	bench_init(&b, 120, 30, false);
	folds_start(&b.st);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		model_take(&b.st, large_profile((uint32_t)i + 1));
		settle(&b);
		for (const char *k = keys[i]; *k; k++) {
			if (!k[1])
				settle(&b);
			press(&b, *k == '\n' ? K_ENTER : (unsigned char)*k);
		}
		assert_true(folds_is_late(&b.st));
		assert_true(ui_state_list(&b.st)->nr > 0);
		assert_non_null(strstr(look(&b), "a draft: folding 21,000 stacks"));
		settle(&b);
		assert_true(ui_state_list(&b.st)->nr > 0);
		assert_null(strstr(look(&b), "a draft"));
	}
	bench_fini(&b);
}

/* Shares of a draft are near the shares of all counts, and their sum is the same; also with weights
 * that differ, and of one process. */
TEST(test_draft_shares)
{
	struct profile *p = large_bush(1), draft;
	struct fold_filter f = { .process = UINT32_MAX, .task = UINT32_MAX };
	struct fold_functions all, some;

	for (int one = 0; one < 2; one++) {
		for (uint32_t i = 0; one && i < p->nr_counts; i++)
			p->counts[i].weight = i % 1000 ? (double)(1 + i % 7) : 3000;
		f.process = one ? 3 : UINT32_MAX;
		assert_int_equal(fold_functions(p, &f, &all), 0);
		assert_true(draft_draw(p, &f, one ? 500 : draft_size(p), &draft));
		assert_true(draft.nr_counts <= p->nr_counts / 2);
		assert_int_equal(fold_functions(&draft, &f, &some), 0);
		assert_true(some.weight > all.weight * 0.998 && some.weight < all.weight * 1.002);
		assert_true(some.count > all.count * 0.9 && some.count < all.count * 1.1);
		for (uint32_t i = 0; i < all.nr_rows; i++) {
			double share = all.rows[i].self_weight / all.weight;
			uint32_t id = p->functions[all.rows[i].function].id;

			assert_true(share < 0.05 || fabs(self_of(&some, p, id) - share) < 0.04);
		}
		fold_functions_fini(&all);
		fold_functions_fini(&some);
		free(draft.counts);
		free(draft.stacks);
		free(draft.stack_idle);
	}
	profile_free(p);
}

TEST(test_none)
{
	bool lent = false;
	struct ui_state st = { .folding = NULL };

	assert_int_equal(folds_fd(&st), -1);
	assert_false(folding_is_busy(NULL));
	assert_false(folding_begin(NULL, NULL, NULL, false));
	assert_null(folding_take(NULL, &lent));
	folding_discard(NULL, large_profile(1));
	folding_free(NULL);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
