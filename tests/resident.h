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

/* Make the heap have @nr blocks of @size bytes that are free, below one that is returned. */
static inline void *leave_free(uint32_t nr, size_t size)
{
	void **blocks = calloc(nr + 1, sizeof(*blocks)), *last;

	assert_non_null(blocks);
	for (uint32_t i = 0; i <= nr; i++) {
		blocks[i] = malloc(size);
		assert_non_null(blocks[i]);
		memset(blocks[i], 1, size);
	}
	last = blocks[nr];
	for (uint32_t i = 0; i < nr; i++)
		free(blocks[i]);
	free(blocks);
	return last;
}

#endif
