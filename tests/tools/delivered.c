// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * delivered SECONDS [HZ]: print the smallest share, of any second that begins at a tenth of one, of
 * the samples due that the kernel takes on this machine, of an event of HZ or a faster one.
 */
#include "tests/reference.h"

#define STEPS 10 /* of a second */

int main(int argc, char **argv)
{
	static struct reference reference;
	int nr = (argc > 1 ? atoi(argv[1]) : 1) * STEPS;
	unsigned int hz = argc > 2 ? (unsigned int)atoi(argv[2]) : 0;
	double shares[STEPS] = { 0 }, least = 1;

	reference_open_at(&reference, hz > REFERENCE_HZ ? hz : REFERENCE_HZ);
	for (int i = 0; i < nr; i++) {
		double sum = 0;

		usleep(1000000 / STEPS);
		shares[i % STEPS] = reference_share(&reference);
		for (int k = 0; k < STEPS; k++)
			sum += shares[k];
		if (i + 1 >= STEPS && sum / STEPS < least)
			least = sum / STEPS;
	}
	reference_close(&reference);
	printf("%.4f\n", least);
	return 0;
}
