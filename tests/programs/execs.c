// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * execs [SECONDS [PER-SECOND]]: execute this program again as fast as one CPU can, or PER-SECOND
 * times a second; prints their number.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

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
	uint64_t begin_ns = argc > 3 ? strtoull(argv[3], NULL, 10) : now_ns();
	uint64_t nr = argc > 4 ? strtoull(argv[4], NULL, 10) : 0;
	char words[4][24];
	uint64_t at_ns;

	do {
		at_ns = now_ns();
		if (at_ns >= begin_ns + seconds * 1000000000u) {
			printf("%llu programs\n", (unsigned long long)nr);
			return 0;
		}
	} while (rate && (at_ns - begin_ns) * rate / 1000000000u < nr);
	snprintf(words[0], sizeof(words[0]), "%llu", (unsigned long long)seconds);
	snprintf(words[1], sizeof(words[1]), "%llu", (unsigned long long)rate);
	snprintf(words[2], sizeof(words[2]), "%llu", (unsigned long long)begin_ns);
	snprintf(words[3], sizeof(words[3]), "%llu", (unsigned long long)nr + 1);
	execl("/proc/self/exe", "execs", words[0], words[1], words[2], words[3], (char *)NULL);
	return 1;
}
