// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * delivered SECONDS: print the smallest share, of any second that begins at a tenth of one, of the
 * samples due that the kernel takes on this machine.
 * delivered log HZ: each tenth of a second, until killed, print the time in ns, and how many
 * samples of an event of HZ, or a faster one, were taken and due in it.
 */
#include "tests/reference.h"

#define STEPS 10 /* of a second */

static void print_steps(struct reference *r)
{
	double due, taken;
	struct timespec t;

	for (;;) {
		usleep(1000000 / STEPS);
		taken = reference_taken(r, &due);
		clock_gettime(CLOCK_REALTIME, &t);
		printf("%lld%09ld %.0f %.1f\n", (long long)t.tv_sec, t.tv_nsec, taken, due);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	static struct reference reference;
	bool is_log = argc > 2 && !strcmp(argv[1], "log");
	unsigned int hz = is_log ? (unsigned int)atoi(argv[2]) : 0;
	int nr = (argc > 1 ? atoi(argv[1]) : 1) * STEPS;
	double taken[STEPS] = { 0 }, due[STEPS] = { 0 }, least = 1;

	reference_open_at(&reference, hz > REFERENCE_HZ ? hz : REFERENCE_HZ);
	if (is_log)
		print_steps(&reference);
	for (int i = 0; i < nr; i++) {
		double all_taken = 0, all_due = 0;

		usleep(1000000 / STEPS);
		taken[i % STEPS] = reference_taken(&reference, &due[i % STEPS]);
		for (int k = 0; k < STEPS; k++) {
			all_taken += taken[k];
			all_due += due[k];
		}
		if (i + 1 >= STEPS && all_taken < least * all_due)
			least = all_taken / all_due;
	}
	reference_close(&reference);
	printf("%.4f\n", least);
	return 0;
}
