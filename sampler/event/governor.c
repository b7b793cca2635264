// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The governor: down immediately, as far as the cost requires, up slowly and only after some calm
 * ticks, so that it does not swing.
 *
 * Pure; one caller at a time.
 */
#include "sampler/event/governor.h"

/* Shorter stretches say little about the cost. */
#define SPAN_NS	   500000000ULL
#define AIM	   0.8 /* of the limit: the cost swings */
#define CALM_BELOW 0.6
#define CALM_STEPS 6
#define RAISE	   1.25
#define STEP_MIN   0.2 /* the cost of one stretch may be a fluke */
#define FACTOR_MIN 0.001
#define CLIMB	   2.0
#define CLIMB_MIN  1.05
/* Above GOVERNOR_STALL_HZ: how long a tick may be, and the cost be above the cap. */
#define FAST_NS	   1000000000ULL
#define LATE_TIMES 3		 /* as long as a tick should be, */
#define LATE_NS	   1000000000ULL /* and this much longer at least, */
#define LATE_TICKS 2		 /* so often in a row */

void governor_init(struct governor *g, double max_pct, uint32_t nr_cpus, double hz)
{
	*g = (struct governor){
		.max_pct = max_pct, .factor = 1, .ceiling = 1, .over = 1, .fast = 1
	};
	if (max_pct > 0 || hz <= GOVERNOR_CAP_HZ)
		return;
	g->is_cap = true;
	g->max_pct = (double)GOVERNOR_CAP_PCT * nr_cpus;
	g->least = GOVERNOR_CAP_HZ / hz;
}

void governor_climb(struct governor *g, double hz)
{
	g->climbs = hz > GOVERNOR_STALL_HZ && g->max_pct > 0;
	if (g->climbs)
		g->factor = g->fast = GOVERNOR_STALL_HZ / hz;
}

static bool is_fast(const struct governor *g)
{
	return g->factor > g->fast;
}

uint64_t governor_patience(const struct governor *g)
{
	return g->climbs ? SPAN_NS : is_fast(g) ? FAST_NS : UINT64_MAX;
}

static bool set_factor(struct governor *g, double factor)
{
	double was = g->factor;

	g->factor = MIN(MAX(factor, FACTOR_MIN), g->ceiling);
	g->capped &= g->factor < g->ceiling;
	g->calm = 0;
	return g->factor < was || g->factor > was;
}

/* A step above the limit. A single costly tick is the loader at work, except at the start. */
static bool lasts(struct governor *g, uint64_t span_ns)
{
	if (!g->is_cap)
		return g->over++;
	g->over_ns += span_ns;
	if (g->over_ns < (is_fast(g) ? FAST_NS : GOVERNOR_CAP_NS))
		return false;
	g->over_ns = 0;
	return true;
}

/* The cost is almost proportional to the number of samples. */
static bool lower(struct governor *g, double pct)
{
	double factor = g->factor * MAX(AIM * g->max_pct / pct, STEP_MIN);

	g->capped |= g->is_cap && g->factor > g->least;
	return set_factor(g, MAX(factor, MIN(g->least, g->factor)));
}

/* Cost and interrupts are almost proportional to the rate: the next step is within the limits. */
static bool climb(struct governor *g, double pct)
{
	double times = pct > 0 ? MIN(AIM * g->max_pct / pct, CLIMB) : CLIMB;
	double limit = 1;

	/* The cost may fall later, interrupts will not. */
	if (g->interrupts > 0)
		limit = g->factor * GOVERNOR_INTERRUPTS_MAX / g->interrupts;
	g->ceiling = MIN(g->ceiling, MAX(limit, g->fast));
	if (times < CLIMB) {
		g->climbs = false;
		g->capped = g->is_cap;
	}
	if (g->factor * times >= g->ceiling)
		g->climbs = false;
	return times >= CLIMB_MIN && set_factor(g, g->factor * times);
}

static bool step(struct governor *g, uint64_t span_ns, double pct, double loss)
{
	if (g->climbs)
		return climb(g, pct);
	if (pct > g->max_pct)
		return lasts(g, span_ns) && lower(g, pct);
	g->over = 0;
	g->over_ns = 0;
	if (!g->is_cap && loss > GOVERNOR_LOSS_MAX)
		return set_factor(g, g->factor * 0.7);
	if (pct > CALM_BELOW * g->max_pct) {
		g->calm = 0;
		return false;
	}
	return ++g->calm >= CALM_STEPS && g->factor < g->ceiling &&
	       set_factor(g, g->factor * RAISE);
}

bool governor_tick(struct governor *g, uint64_t interval_ns, double cpu_pct, uint64_t taken,
		   uint64_t lost)
{
	uint64_t span_ns;
	double pct, loss;

	if (!(g->max_pct > 0))
		return false;
	g->span_ns += interval_ns;
	g->cost_ns += cpu_pct * (double)interval_ns;
	g->taken += taken;
	g->lost += lost;
	if (g->span_ns < SPAN_NS)
		return false;
	pct = g->cost_ns / (double)g->span_ns;
	loss = g->taken ? (double)g->lost / (double)g->taken : 0;
	span_ns = g->span_ns;
	g->span_ns = g->taken = g->lost = 0;
	g->cost_ns = 0;
	return step(g, span_ns, pct, loss);
}

bool governor_stall(struct governor *g, uint64_t interval_ns, uint64_t tick_ns, double hz)
{
	if (hz * g->factor <= GOVERNOR_STALL_HZ || interval_ns < LATE_TIMES * tick_ns ||
	    interval_ns < tick_ns + LATE_NS) {
		g->late = 0;
		return false;
	}
	if (++g->late < LATE_TICKS)
		return false;
	g->late = 0;
	g->climbs = false;
	g->ceiling = GOVERNOR_STALL_HZ / hz;
	return set_factor(g, g->factor);
}

bool governor_starve(struct governor *g, bool starved, double hz)
{
	double least = MIN(GOVERNOR_STARVED_HZ / hz, g->factor);

	if (starved) {
		g->fed = 0;
		/* The first tick starts with everything unread. */
		if (++g->starved < LATE_TICKS)
			return false;
		g->hungry |= g->factor > least;
		g->climbs = false;
		return set_factor(g, MAX(g->factor / 2, least));
	}
	g->starved = 0;
	if (!g->hungry || ++g->fed < CALM_STEPS)
		return false;
	g->fed = 0;
	/* Faster than after a cost that was too high: symbols are read once. */
	set_factor(g, g->factor * 2);
	g->hungry = g->factor < g->ceiling;
	return true;
}
