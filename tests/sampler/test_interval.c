// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * interval: the 95 % interval covers the true share in 93 to 97 % of a thousand
 * simulated windows; ties are reported as often as they should be.
 */
#include "sampler/count/interval.h"

#include "tests/prelude.h"

#include <math.h>

#define WINDOWS 1000

static uint64_t seed;

static double uniform(void)
{
	return (double)(hash_u64(++seed) >> 11) / 9007199254740992.0;
}

static unsigned int draw(double share, unsigned int total)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < total; i++)
		count += uniform() < share;
	return count;
}

TEST(test_known)
{
	/* Newcombe 1998, table I, method 3 */
	struct interval i = interval_of(81, 263);

	assert_true(fabs(i.low - 0.2553) < 0.0001 && fabs(i.high - 0.3662) < 0.0001);
	i = interval_of(0, 20);
	assert_true(i.low < 1e-12 && fabs(i.high - 0.1611) < 0.0001);
	i = interval_of(1, 29);
	assert_true(fabs(i.low - 0.0061) < 0.0001 && fabs(i.high - 0.1718) < 0.0001);
	i = interval_of(0, 0);
	assert_true(i.low < 1e-12 && i.high > 1 - 1e-12);
	i = interval_of(7, 5);
	assert_true(i.high <= 1);
}

TEST(test_coverage)
{
	static const struct {
		double share;
		unsigned int total;
	} cases[] = { { 0.5, 999 }, { 0.1, 999 }, { 0.02, 4995 }, { 0.3, 200 }, { 0.9, 2000 } };

	for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
		unsigned int covered = 0;

		for (int i = 0; i < WINDOWS; i++) {
			unsigned int count = draw(cases[k].share, cases[k].total);
			struct interval in = interval_of(count, cases[k].total);

			covered += in.low <= cases[k].share && cases[k].share <= in.high;
		}
		if (covered < 930 || covered > 970)
			fail_msg("share %g of %u: covered in %u of %d windows", cases[k].share,
				 cases[k].total, covered, WINDOWS);
	}
}

/* Equal shares are a tie in 95 % of the windows; 30 % and 20 % of a thousand almost never. */
TEST(test_ties)
{
	unsigned int equal = 0, apart = 0;

	for (int i = 0; i < WINDOWS; i++) {
		unsigned int a = 0, b = 0, c = 0, d = 0;

		for (int n = 0; n < 1000; n++) {
			double x = uniform();

			a += x < 0.2;
			b += x >= 0.2 && x < 0.4;
			c += x < 0.3;
			d += x >= 0.3 && x < 0.5;
		}
		equal += interval_is_tie(a, b, 1000);
		apart += interval_is_tie(c, d, 1000);
	}
	assert_in_range(equal, 930, 970);
	assert_in_range(apart, 0, 20);
	assert_true(interval_is_tie(0, 0, 0));
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
