// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Error bars from counts alone. Pure.
 */
#include "sampler/count/interval.h"

#include <math.h>

#define Z 1.959964 /* two-sided, 95 % */

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

bool interval_is_tie(double a, double b, double total)
{
	double variance;

	if (!(total > 0))
		return true;
	variance = a + b - (a - b) * (a - b) / total;
	return fabs(a - b) <= Z * sqrt(MAX(variance, 0.0));
}
