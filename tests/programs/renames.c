// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * renames [SECONDS [PER-SECOND]]: rename the calling thread as fast as one CPU can, or
 * PER-SECOND times a second; prints the number of renames.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int main(int argc, char **argv)
{
	uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 5;
	uint64_t rate = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	uint64_t begin_ns = now_ns(), end_ns = begin_ns + seconds * 1000000000u, nr = 0;

	for (uint64_t at_ns = begin_ns; at_ns < end_ns; at_ns = now_ns()) {
		char name[16];

		if (rate && (at_ns - begin_ns) * rate / 1000000000u < nr)
			continue;
		snprintf(name, sizeof(name), "name-%u", (unsigned int)(nr++ % 1000000));
		prctl(PR_SET_NAME, name);
	}
	printf("%llu renames\n", (unsigned long long)nr);
	return 0;
}
