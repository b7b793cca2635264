// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * trend, baseline: the values of each second, bounds, and how often chance is taken for a change.
 */
#include "ui/fold/folds.c"

#include "tests/prelude.h"

#include <math.h>

#include "symbols/base/base.h"
#include "ui/view/baseline.c"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "ui/state/state.h"

#define S 1000000000ull

/* Two functions with ids 1 and 2. */
static struct profile_function functions[] = {
	{ .id = 1, .name = { "one", 3, 3 } },
	{ .id = 2, .name = { "two", 3, 3 } },
};
static struct profile two = { .functions = functions, .nr_functions = 2 };

static struct fold_functions fold_of(struct fold_row rows[2], double a, double b, double all)
{
	rows[0] = (struct fold_row){ .function = 0, .self = a, .self_weight = a };
	rows[1] = (struct fold_row){ .function = 1, .self = b, .self_weight = b };
	return (struct fold_functions){ rows, b > 0 ? 2 : 1, all, all };
}

static void note(struct trend *t, uint64_t key, uint64_t ns, double a, double b)
{
	struct fold_row rows[2];
	struct fold_functions fold = fold_of(rows, a, b, 100);

	trend_note(t, key, ns, &two, &fold);
}

TEST(test_seconds)
{
	struct trend t = { .first = 1 };

	assert_true(trend_share(&t, 1, 0) < 0);
	assert_true(trend_wants(&t, 7, 10 * S));
	note(&t, 7, 10 * S, 50, 0);
	assert_false(trend_wants(&t, 7, 10 * S + S / 2));
	assert_true(trend_wants(&t, 7, 11 * S));
	assert_true(trend_wants(&t, 8, 10 * S));
	assert_true(fabs(trend_share(&t, 1, 0) - 0.5) < 1e-6);
	assert_true(trend_share(&t, 2, 0) == 0);
	assert_true(trend_share(&t, 1, 1) < 0);
	/*
	 * The second note of a second replaces the first; a skipped second has the value of the
	 * next.
	 */
	note(&t, 7, 10 * S + S / 2, 60, 0);
	note(&t, 7, 13 * S, 20, 30);
	assert_true(fabs(trend_share(&t, 1, 0) - 0.2) < 1e-6);
	assert_true(fabs(trend_share(&t, 1, 2) - 0.2) < 1e-6);
	assert_true(fabs(trend_share(&t, 1, 3) - 0.6) < 1e-6);
	assert_true(trend_share(&t, 1, 4) < 0);
	assert_true(trend_share(&t, 2, 3) == 0);
	/* A function that is gone has no value, not its last one. */
	note(&t, 7, 14 * S, 10, 0);
	assert_true(trend_share(&t, 2, 0) == 0);
	assert_true(fabs(trend_share(&t, 2, 1) - 0.3) < 1e-6);
	trend_fini(&t);
}

TEST(test_ring)
{
	struct trend t = { .first = 1 };

	for (uint64_t s = 100; s < 300; s++)
		note(&t, 1, s * S, (double)(s % 100), 0);
	for (uint32_t ago = 0; ago < TREND_SECONDS; ago++)
		assert_true(fabs(trend_share(&t, 1, ago) - (299 - ago) % 100 / 100.0) < 1e-6);
	assert_true(trend_share(&t, 1, TREND_SECONDS) < 0);
	/* Another key, a clock that goes back, and a long pause: nothing is known of before. */
	note(&t, 2, 300 * S, 5, 0);
	assert_true(trend_share(&t, 1, 1) < 0);
	note(&t, 2, 301 * S, 5, 0);
	note(&t, 2, 10 * S, 5, 0);
	assert_true(trend_share(&t, 1, 1) < 0);
	note(&t, 2, 100 * S, 5, 0);
	assert_true(trend_share(&t, 1, 1) < 0 && trend_share(&t, 1, 0) > 0);
	trend_fini(&t);
}

/* More functions than the limit: no fault, and the heavy ones are kept. */
TEST(test_full)
{
	enum { NR = 20000 };
	struct profile_function *fns = calloc(NR, sizeof(*fns));
	struct fold_row *rows = calloc(NR, sizeof(*rows));
	struct profile p = { .functions = fns, .nr_functions = NR };
	struct fold_functions fold = { rows, NR, 1000000, 1000000 };
	struct trend t = { .first = 1 };

	for (uint32_t round = 0; round < 5; round++) {
		for (uint32_t i = 0; i < NR; i++) {
			fns[i].id = i + round * NR;
			rows[i] = (struct fold_row){ .function = i,
						     .self_weight = i % 100 ? 1 : 2000 };
		}
		trend_note(&t, 1, (100 + round * 50) * S, &p, &fold);
		assert_true(t.nr <= TREND_FUNCTIONS / 4 * 3);
		for (uint32_t i = 0; i < NR; i += 100)
			assert_true(fabs(trend_share(&t, fns[i].id, 0) - 0.002) < 1e-6);
	}
	trend_fini(&t);
	free(fns);
	free(rows);
}

TEST(test_compare)
{
	assert_int_equal(baseline_change(400, 1000, 410, 1000), CHANGE_UNSURE);
	assert_int_equal(baseline_change(400, 1000, 500, 1000), CHANGE_SURE);
	assert_int_equal(baseline_change(400, 1000, 0, 1000), CHANGE_SURE);
	assert_int_equal(baseline_change(0, 1000, 100, 1000), CHANGE_NEW);
	assert_int_equal(baseline_change(0, 1000, 1, 1000), CHANGE_UNSURE);
	assert_int_equal(baseline_change(0, 1000, 0, 1000), CHANGE_UNKNOWN);
	/* Fewer samples prove less; none at all nothing. */
	assert_int_equal(baseline_change(400, 1000, 10, 20), CHANGE_UNSURE);
	assert_int_equal(baseline_change(0, 0, 10, 20), CHANGE_UNKNOWN);
}

static double draw(double p, int n)
{
	int k = 0;

	for (int i = 0; i < n; i++)
		k += rand() < p * RAND_MAX;
	return k;
}

/* Two windows of the same program differ "surely" about once in a hundred. */
TEST(test_chance)
{
	static const double rates[] = { 0.02, 0.1, 0.5 };

	srand(11);
	for (size_t r = 0; r < ARRAY_SIZE(rates); r++) {
		int wrong = 0, missed = 0;

		for (int i = 0; i < 2000; i++) {
			wrong += text_shares_differ(draw(rates[r], 1000), 1000,
						    draw(rates[r], 2000), 2000);
			missed += !text_shares_differ(draw(rates[r], 2000), 2000,
						      draw(rates[r] * 1.9, 2000), 2000);
		}
		print_message("rate %g: %d of 2000 taken for a change, %d changes missed\n",
			      rates[r], wrong, missed);
		assert_true(wrong <= 40);
		/* At 0.02 the power of such a test is 0.79. */
		assert_true(missed <= 500);
	}
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
