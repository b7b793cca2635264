/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How far a share may be off: the 95 % interval of Wilson (1927), which keeps
 * its word for small counts and near 0 and 1, too. Pure; any thread.
 */
#ifndef SAMPLER_COUNT_INTERVAL_H
#define SAMPLER_COUNT_INTERVAL_H

#include "symbols/base/base.h"

/* The share of @count samples in @total is in low..high, both 0..1. No total: anything. */
struct interval {
	double low, high;
};
struct interval interval_of(double count, double total);
/*
 * Two rows of one table that noise alone could put in the other order: the difference of their
 * counts is within 1.96 standard errors (they share a total: a pair of a multinomial).
 */
bool interval_is_tie(double a, double b, double total);

#endif
