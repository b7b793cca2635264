// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * interval: the 95 % interval covers the true share in 93 to 97 % of a thousand
 * simulated windows; ties are reported as often as they should be.
 */
#include "sampler/count/count.h"

#include "tests/prelude.h"
#include "symbols/base/base.h"

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

static bool exceeds(double a, double b)
{
	return interval_exceeds((struct interval_sum){ a, a }, (struct interval_sum){ b, b },
				INTERVAL_Z);
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
		double n[4] = { 0 };

		for (int s = 0; s < 1000; s++) {
			double x = uniform();

			n[0] += x < 0.2;
			n[1] += x >= 0.2 && x < 0.4;
			n[2] += x < 0.3;
			n[3] += x >= 0.3 && x < 0.5;
		}
		equal += !exceeds(n[0], n[1]) && !exceeds(n[1], n[0]);
		apart += !exceeds(n[2], n[3]);
	}
	assert_in_range(equal, 935, 975);
	assert_in_range(apart, 0, 20);
	assert_false(exceeds(0, 0));
}

/* Return the chance that of @n fair tosses @k or more are heads. */
static double tail(unsigned int k, unsigned int n)
{
	double sum = 0;

	for (unsigned int i = k; i <= n; i++)
		sum += exp(lgamma(n + 1.0) - lgamma(i + 1.0) - lgamma(n - i + 1.0) - n * log(2));
	return sum;
}

/* Of small counts the test agrees with the exact one: of the two shares of a sum. */
TEST(test_small_counts)
{
	for (unsigned int a = 0; a < 60; a++)
		for (unsigned int b = a; b < 120; b++) {
			double p = tail(b, a + b);

			if (exceeds(b, a))
				assert_true(p < 0.0275);
			else
				assert_true(p > 0.0170);
			assert_false(exceeds(a, b));
		}
	assert_false(exceeds(5, 0));
	assert_true(exceeds(6, 0));
	assert_true(exceeds(10, 1));
}

/* Heavy samples are few: 10 of a thousand each may be chance beside 20 of 400; 1,000 of 10 not. */
TEST(test_weights)
{
	struct interval_sum few = { 10000, 10 }, light = { 8000, 20 }, many = { 4000, 1000 },
			    more = { 5000, 1250 }, none = { 5, 0 };

	assert_false(interval_exceeds(few, light, INTERVAL_Z));
	assert_true(interval_exceeds(more, many, INTERVAL_Z));
	assert_false(interval_exceeds(more, many, 10));
	/* A unit of the weights changes nothing. */
	more.weight *= 1e9;
	many.weight *= 1e9;
	assert_true(interval_exceeds(more, many, INTERVAL_Z));
	assert_false(interval_exceeds(none, (struct interval_sum){ 0, 0 }, INTERVAL_Z));
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
