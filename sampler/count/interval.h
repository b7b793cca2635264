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
/* The samples of a row, and the sum of their weights. */
struct interval_sum {
	double weight, count;
};
#define INTERVAL_Z 1.959964 /* standard errors: two-sided, 95 % */
/*
 * Report whether @more is larger than @less by more than @z standard errors of the difference, so
 * that chance does not explain it. For small counts too: the correction for continuity makes it
 * agree with the exact test (binomial). Rows of one table share a total, of which that test is
 * free.
 */
bool interval_exceeds(struct interval_sum more, struct interval_sum less, double z);

#endif
