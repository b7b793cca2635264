// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * delivered SECONDS: print the smallest share, of one second each, of the samples due that the
 * kernel takes on this machine.
 */
#include "tests/reference.h"

int main(int argc, char **argv)
{
	static struct reference reference;
	double least = 1;

	reference_open(&reference);
	for (int i = argc > 1 ? atoi(argv[1]) : 1; i > 0; i--) {
		double share;

		usleep(1000000);
		share = reference_share(&reference);
		least = share < least ? share : least;
	}
	reference_close(&reference);
	printf("%.4f\n", least);
	return 0;
}
