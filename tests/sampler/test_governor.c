// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * governor: the cost of a simulated sampler follows its rate, falls below the limit within ten
 * ticks, does not rise above the limit, and goes up again when it is calm.
 */
#include "sampler/builder.c"

#include "tests/prelude.h"
#include "symbols/base/base.h"

#define S 1000000000ULL

/* Cost of a full rate, and cost without any sample. */
static double cost(const struct governor *g, double full, double fixed)
{
	return fixed + full * g->factor;
}

TEST(test_down)
{
	static const double full[] = { 3, 10, 40, 150, 800 };

	for (size_t k = 0; k < ARRAY_SIZE(full); k++) {
		struct governor g;
		unsigned int changes = 0;

		governor_init(&g, 2, 2, 0);
		for (int i = 0; i < 10; i++)
			governor_tick(&g, S, cost(&g, full[k], 0.3), 1000, 0);
		assert_true(cost(&g, full[k], 0.3) <= 2.0);
		/* and then it rests: no swinging */
		for (int i = 0; i < 60; i++)
			changes += governor_tick(&g, S, cost(&g, full[k], 0.3), 1000, 0);
		assert_in_range(changes, 0, 2);
		assert_true(cost(&g, full[k], 0.3) <= 2.0);
	}
}

/* A cost that samples do not cause does not make them fewer; theirs does, in the same sum. */
TEST(test_fixed_cost)
{
	static const struct {
		double full, fixed, least, most;
	} cases[] = { { 0.5, 30, 0.9, 1 }, { 20, 20, 0.05, 0.5 }, { 40, 10, 0.01, 0.13 } };

	for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
		struct governor g;
		unsigned int undone = 0;
		double sum = 0;

		governor_init(&g, 15, 2, 99);
		for (int i = 0; i < 300; i++) {
			governor_tick(&g, S, cost(&g, cases[k].full, cases[k].fixed), 1000, 0);
			sum += g.factor;
			undone += g.why == GOVERNOR_FIXED;
		}
		print_message("%.0f + %.0f: %.3f\n", cases[k].full, cases[k].fixed, sum / 300);
		/* Said when it is undone, not at each later change. */
		assert_in_range(undone, k < 2, 10);
		assert_true(sum / 300 >= cases[k].least && sum / 300 <= cases[k].most);
	}
}

TEST(test_up)
{
	struct governor g;

	governor_init(&g, 2, 2, 0);
	for (int i = 0; i < 10; i++)
		governor_tick(&g, S, cost(&g, 100, 0.1), 1000, 0);
	assert_true(g.factor < 0.05);
	for (int i = 0; i < 5; i++)
		assert_false(governor_tick(&g, S, 0.1, 1000, 0));
	assert_true(governor_tick(&g, S, 0.1, 1000, 0));
	for (int i = 0; i < 200; i++)
		governor_tick(&g, S, 0.1, 1000, 0);
	assert_true(g.factor > 0.999);
	assert_false(governor_tick(&g, S, 0.1, 1000, 0));
}

TEST(test_loss)
{
	struct governor g;

	governor_init(&g, 50, 2, 0);
	assert_false(governor_tick(&g, S, 5, 1000, 10));
	assert_true(governor_tick(&g, S, 5, 1000, 11));
	assert_true(g.factor < 1 && g.why == GOVERNOR_LOST);
}

/* The loader reads a large program once: that is not the samples' cost. */
TEST(test_spike)
{
	struct governor g;

	governor_init(&g, 2, 2, 0);
	assert_false(governor_tick(&g, S, 1, 1000, 0));
	assert_false(governor_tick(&g, S, 30, 1000, 0));
	assert_false(governor_tick(&g, S, 1, 1000, 0));
	assert_false(governor_tick(&g, S, 30, 1000, 0));
	assert_true(governor_tick(&g, S, 30, 1000, 0));
}

/* Short ticks are put together; off is off. */
TEST(test_spans)
{
	struct governor g;

	governor_init(&g, 2, 2, 0);
	for (int i = 0; i < 4; i++)
		assert_false(governor_tick(&g, S / 10, 100, 10, 0));
	assert_true(governor_tick(&g, S / 10, 200, 10, 0));
	assert_float_equal(g.pct, 120, 0.001); /* of all that was put together */
	governor_init(&g, 0, 2, 0);
	for (int i = 0; i < 10; i++)
		assert_false(governor_tick(&g, S, 100, 10, 10));
	assert_true(g.factor > 0.999);
}

/* Ticks that are hardly made: down to a rate that stalls no machine, for good. One late tick is
 * chance.
 */
TEST(test_stall)
{
	struct governor g;

	governor_init(&g, 0, 2, 0);
	assert_false(governor_stall(&g, 8 * S, S, 100000));
	assert_false(governor_stall(&g, S, S, 100000));
	assert_false(governor_stall(&g, 8 * S, S, 100000));
	assert_true(governor_stall(&g, 5 * S, S, 100000));
	assert_float_equal(g.factor * 100000, GOVERNOR_STALL_HZ, 0.001);
	for (int i = 0; i < 10; i++)
		assert_false(governor_stall(&g, 8 * S, S, 100000));
	/* A short tick is late immediately, if it is late at all. */
	governor_init(&g, 0, 2, 0);
	for (int i = 0; i < 10; i++)
		assert_false(governor_stall(&g, S, S / 10, 100000));
	/* The other limit raises it no further. */
	governor_init(&g, 50, 2, 0);
	governor_stall(&g, 8 * S, S, 20000);
	assert_true(governor_stall(&g, 8 * S, S, 20000));
	for (int i = 0; i < 100; i++)
		governor_tick(&g, S, 1, 1000, 0);
	assert_float_equal(g.factor, 0.5, 0.001);
}

/* Starved of CPU time: down by halves after the second tick, not to nothing; up when it is over. */
TEST(test_starve)
{
	struct governor g;
	unsigned int changes = 0;

	governor_init(&g, 0, 2, 0);
	assert_false(governor_starve(&g, true, 2000));
	assert_false(g.hungry);
	/* One tick of many, as at every start. */
	for (int i = 0; i < 20; i++)
		assert_false(governor_starve(&g, false, 2000));
	governor_starve(&g, true, 2000);
	assert_true(governor_starve(&g, true, 2000));
	assert_true(g.factor == 0.5 && g.hungry);
	for (int i = 0; i < 20; i++)
		changes += governor_starve(&g, true, 2000);
	assert_true(g.factor * 2000 >= GOVERNOR_STARVED_HZ - 1e-9);
	assert_true(g.factor * 2000 < GOVERNOR_STARVED_HZ + 1e-9);
	assert_in_range(changes, 6, 7);
	for (int i = 0; i < 60; i++)
		governor_starve(&g, false, 2000);
	assert_true(g.factor == 1 && !g.hungry);
	assert_false(governor_starve(&g, false, 2000));
	/* A rate that is that low already is left alone. */
	governor_init(&g, 0, 2, 0);
	for (int i = 0; i < 10; i++)
		assert_false(governor_starve(&g, true, 9));
	assert_false(g.hungry);
}

/* 2 CPUs: proftop may use half of one. Above it for 3 s, and the rate falls to 80 % of that.
 */
TEST(test_cap)
{
	struct governor g;
	unsigned int changes = 0;

	governor_init(&g, 0, 2, 50000);
	assert_false(governor_tick(&g, S, cost(&g, 135, 0), 50000, 0));
	assert_false(governor_tick(&g, S, cost(&g, 135, 0), 50000, 0));
	assert_false(g.capped);
	assert_true(governor_tick(&g, S, cost(&g, 135, 0), 50000, 0));
	assert_true(g.capped);
	assert_float_equal(cost(&g, 135, 0), 40, 0.001);
	for (int i = 0; i < 60; i++)
		changes += governor_tick(&g, S, cost(&g, 135, 0), 50000, 0);
	assert_int_equal(changes, 0);
	/* Stacks that cost less: up again, to the whole rate; then it is no longer the reason. */
	for (int i = 0; i < 60; i++)
		governor_tick(&g, S, cost(&g, 25, 0), 50000, 0);
	assert_true(g.factor > 0.999 && !g.capped);
}

/* The cap is not for less than 3 s in a row, lost samples, or a cost just below; one late tick is
 * enough. */
TEST(test_cap_spares)
{
	struct governor g;

	governor_init(&g, 0, 2, 50000);
	for (int i = 0; i < 30; i++)
		assert_false(governor_tick(&g, S, i % 3 == 2 ? 20 : 190, 1000, 500));
	for (int i = 0; i < 30; i++)
		assert_false(governor_tick(&g, S, 49, 1000, 500));
	assert_true(governor_tick(&g, 4 * S, 190, 1000, 0));
	/* The limit is of all CPUs. */
	governor_init(&g, 0, 8, 50000);
	for (int i = 0; i < 30; i++)
		assert_false(governor_tick(&g, S, 190, 1000, 0));
}

/* Fewer samples do not save the cost of symbols: GOVERNOR_CAP_HZ is the lowest rate. */
TEST(test_cap_least)
{
	struct governor g;

	governor_init(&g, 0, 2, 4000);
	for (int i = 0; i < 100; i++)
		governor_tick(&g, S, cost(&g, 1, 80), 1000, 0);
	assert_float_equal(g.factor * 4000, GOVERNOR_CAP_HZ, 0.001);
	/* Not above a rate that is lower for another reason. */
	g.factor = 0.01;
	for (int i = 0; i < 100; i++)
		governor_tick(&g, S, 80, 1000, 0);
	assert_float_equal(g.factor, 0.01, 0.001);
	governor_init(&g, 0, 2, GOVERNOR_CAP_HZ);
	for (int i = 0; i < 100; i++)
		assert_false(governor_tick(&g, S, 200, 1000, 0));
	/* --max-overhead is the only limit where it is given, and goes below. */
	governor_init(&g, 100, 2, 4000);
	for (int i = 0; i < 100; i++)
		assert_false(governor_tick(&g, S, 99, 1000, 0));
	for (int i = 0; i < 100; i++)
		governor_tick(&g, S, cost(&g, 1000, 0), 1000, 0);
	assert_true(g.factor * 4000 < GOVERNOR_CAP_HZ && !g.capped);
}

/* Do @nr ticks at the cost and the interrupts of @full and @interrupts at the whole rate. */
static void climb_steps(struct governor *g, int nr, double full, double interrupts)
{
	for (int i = 0; i < nr; i++) {
		g->interrupts = interrupts * g->factor;
		governor_tick(g, S / 2, full * g->factor, 1000, 0);
		assert_true(full * g->factor <= g->max_pct || g->factor <= g->fast);
		assert_true(interrupts * g->factor <= GOVERNOR_INTERRUPTS_MAX ||
			    g->factor <= g->fast);
	}
}

/*
 * A rate that is too much for this machine is never set, neither for its CPUs nor for its
 * interrupts; one that the machine carries is reached within 3 s.
 */
TEST(test_climb)
{
	static const double full[] = { 1, 30, 49, 60, 135, 400, 2000 };
	static const double interrupts[] = { 0, 0.01, 0.2, 0.3, 0.9, 3 };
	static const double hz[] = { 10001, 20000, 50000, 100000, 1e6 };

	for (size_t i = 0; i < ARRAY_SIZE(full) * ARRAY_SIZE(interrupts) * ARRAY_SIZE(hz); i++) {
		double f = full[i % ARRAY_SIZE(full)];
		double n = interrupts[i / ARRAY_SIZE(full) % ARRAY_SIZE(interrupts)];
		double h = hz[i / ARRAY_SIZE(full) / ARRAY_SIZE(interrupts)], at;
		struct governor g;

		governor_init(&g, 0, 2, h);
		governor_climb(&g, h);
		assert_float_equal(g.factor * h, GOVERNOR_STALL_HZ, 0.001);
		climb_steps(&g, 6, f, n);
		at = g.factor;
		if (h < 1e6) {
			assert_false(g.climbs);
			assert_true(f > 40 || n > 0.25 || at > 0.999);
		}
		assert_true(at * h >= GOVERNOR_STALL_HZ - 0.001 || f * g.fast > 40);
		climb_steps(&g, 60, f, n);
	}
}

/* The cost of a high rate is seen in time however long the ticks of the screen are. */
TEST(test_patience)
{
	struct governor g;

	governor_init(&g, 0, 2, 50000);
	assert_true(governor_patience(&g) == UINT64_MAX);
	governor_climb(&g, 9999);
	assert_true(!g.climbs && governor_patience(&g) == UINT64_MAX);
	governor_climb(&g, 50000);
	assert_true(g.climbs && governor_patience(&g) == S / 2);
	climb_steps(&g, 6, 10, 0.1);
	assert_true(!g.climbs && governor_patience(&g) == S);
	/* The load begins later: 1 s above the limit. */
	assert_false(governor_tick(&g, S / 2, 190, 1000, 0));
	assert_true(governor_tick(&g, S / 2, 190, 1000, 0));
	assert_float_equal(190 * g.factor, 40, 1);
	assert_true(governor_patience(&g) == UINT64_MAX || g.factor > g.fast);
	/* Too little CPU time for symbols, or a stall: not the time to climb. */
	governor_init(&g, 0, 2, 50000);
	governor_climb(&g, 50000);
	governor_starve(&g, true, 50000);
	governor_starve(&g, true, 50000);
	assert_false(g.climbs);
}

/* A look without a sample, as on a busy machine, does not say that all code is read. */
TEST(test_part_that_waits)
{
	static const struct {
		uint64_t taken, pending;
		uint32_t before, want;
	} looks[] = {
		{ 0, 0, 0, 0 },	  { 100, 0, 90, 0 },  { 100, 1, 0, 1 }, { 200, 3, 0, 2 },
		{ 7, 7, 0, 100 }, { 0, 0, 100, 100 }, { 0, 0, 2, 2 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(looks); i++) {
		struct pipeline_stats look = { .taken = looks[i].taken,
					       .pending = looks[i].pending };

		assert_int_equal(part_that_waits(&look, looks[i].before), looks[i].want);
	}
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
