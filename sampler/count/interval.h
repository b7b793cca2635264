/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Error bars of a share: the 95 % interval of Wilson (1927), also right for small counts and near 0
 * and 1. Pure; any thread.
 */
#ifndef SAMPLER_COUNT_INTERVAL_H
#define SAMPLER_COUNT_INTERVAL_H

#include "symbols/base/base.h"

/* Get the interval low..high, both 0..1, of the share of @count samples in @total; 0..1 without a
 * total. */
struct interval {
	double low, high;
};
struct interval interval_of(double count, double total);
/*
 * Report whether noise alone could put two rows of one table in the other order: the difference of
 * their counts is within 1.96 standard errors (they share a total: a pair of a multinomial).
 */
bool interval_is_tie(double a, double b, double total);

#endif
