// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The sampling rate: requested here, reported by later profiles. The main
 * thread.
 */
#include "ui/rate.h"

#include <assert.h>

/* Primes: not in step with timers of 100, 250 and 1000 Hz. */
static const double ladder[] = { 49, 97, 199, 397, 997, 1997, 3997, 9973 };

size_t rate_ladder(const double **out)
{
	*out = ladder;
	return ARRAY_SIZE(ladder);
}

void rate_set(struct ui_state *st, double hz)
{
	assert(hz >= 1);
	if (!st->latest || !st->latest->nr_events)
		return;
	sampler_set_rate(st->sampler, ui_state_event(st, st->latest), hz);
	st->asked_hz = hz;
	st->asked_ns = st->now_ns;
}

static void slower(struct ui_state *st)
{
	double want = ui_state_want_hz(st);

	for (size_t i = ARRAY_SIZE(ladder); i-- > 0;) {
		if (ladder[i] < want || want <= 0) {
			rate_set(st, want > 0 ? ladder[i] : 997);
			return;
		}
	}
	ui_state_say(st, false, "%.0f Hz is the lowest step (f takes any)", want);
}

static void faster(struct ui_state *st)
{
	double want = ui_state_want_hz(st), max = sampler_max_hz(st->sampler);

	for (size_t i = 0; i < ARRAY_SIZE(ladder); i++) {
		if (ladder[i] <= want)
			continue;
		if (max > 0 && ladder[i] > max) {
			ui_state_say(st, true,
				     "already at kernel.perf_event_max_sample_rate (%.0f Hz)", max);
			return;
		}
		rate_set(st, want > 0 ? ladder[i] : 997);
		return;
	}
	ui_state_say(st, false, "%.0f Hz is the highest step (f takes any)", want);
}

void rate_step(struct ui_state *st, bool up)
{
	if (up)
		faster(st);
	else
		slower(st);
}
