/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Read how much memory of this process is resident. */
#ifndef TESTS_RESIDENT_H
#define TESTS_RESIDENT_H

#include "tests/prelude.h"

/* Return the KiB of anonymous memory that are resident. */
static inline long resident_kb(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	long kb = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, "RssAnon:", 8))
			kb = strtol(line + 8, NULL, 10);
	fclose(f);
	return kb;
}

#endif
