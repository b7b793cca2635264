/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --max-overhead: which share of the wanted rate to sample with, so that our
 * own cost and the samples lost stay below their limits. Pure; the builder's.
 */
#ifndef SAMPLER_GOVERNOR_H
#define SAMPLER_GOVERNOR_H

#include "symbols/base.h"

/* More samples lost than this, and the rate is too high whatever it costs. */
#define GOVERNOR_LOSS_MAX 0.01

struct governor {
	double max_pct;			/* of one CPU; 0: off */
	double factor;			/* of the wanted rate, 1 at most */
	unsigned int over;		/* steps in a row above the limit */
	unsigned int calm;		/* steps in a row well below the limits */
	double cost_ns;			/* CPU time since the last step */
	uint64_t span_ns, taken, lost;
};

void governor_init(struct governor *g, double max_pct);
/* What one tick has cost. True: the factor has changed. */
bool governor_tick(struct governor *g, uint64_t interval_ns, double cpu_pct, uint64_t taken,
		   uint64_t lost);

#endif
