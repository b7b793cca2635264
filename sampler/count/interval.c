// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Error bars from counts alone. Pure.
 */
#include "sampler/count/interval.h"

#include <math.h>

#define Z INTERVAL_Z

struct interval interval_of(double count, double total)
{
	double p, middle, half, scale;

	if (!(total > 0))
		return (struct interval){ 0, 1 };
	p = MIN(MAX(count / total, 0.0), 1.0);
	scale = 1 + Z * Z / total;
	middle = (p + Z * Z / (2 * total)) / scale;
	half = Z / scale * sqrt(p * (1 - p) / total + Z * Z / (4 * total * total));
	return (struct interval){ MAX(middle - half, 0.0), MIN(middle + half, 1.0) };
}

/* The variance of a sum of weights that are about equal. A weight without a sample is one of one.
 */
static double variance(struct interval_sum s)
{
	return s.weight * s.weight / (s.count > 0 ? s.count : 1);
}

bool interval_exceeds(struct interval_sum more, struct interval_sum less, double z)
{
	double count = more.count + less.count, d = more.weight - less.weight;

	/* For continuity: a count is at least half a sample away from the next. */
	if (count > 0)
		d -= (more.weight + less.weight) / count;
	return d > 0 && d * d > z * z * (variance(more) + variance(less));
}
