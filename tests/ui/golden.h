/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whole screens compared with files in tests/golden. For one test program
 * each, after fake.h.
 */
#ifndef TESTS_UI_GOLDEN_H
#define TESTS_UI_GOLDEN_H

#include "fake.h"

static inline char *read_golden(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 200000);

	if (f) {
		size_t n = fread(text, 1, 199999, f);

		text[n] = '\0';
		fclose(f);
	}
	return text;
}

/* Print the first lines that differ. */
static inline void print_difference(const char *want, const char *got)
{
	int line = 1, told = 0;

	while ((*want || *got) && told < 12) {
		int w = (int)strcspn(want, "\n"), g = (int)strcspn(got, "\n");

		if (w != g || memcmp(want, got, (size_t)w)) {
			fprintf(stderr, "%3d -%.*s\n    +%.*s\n", line, w, want, g, got);
			told++;
		}
		want += w + (want[w] == '\n');
		got += g + (got[g] == '\n');
		line++;
	}
}

static inline void golden_text(const char *name, const char *got)
{
	const char *update = getenv("GOLDEN");
	char path[160], *want;

	snprintf(path, sizeof(path), "tests/golden/%s.txt", name);
	if (update && !strcmp(update, "update")) {
		FILE *f = fopen(path, "w");

		assert_non_null(f);
		fputs(got, f);
		assert_int_equal(fclose(f), 0);
		return;
	}
	want = read_golden(path);
	if (strcmp(want, got)) {
		print_difference(want, got);
		free(want);
		fail_msg("%s is not what is drawn (GOLDEN=update rewrites it)", path);
	}
	free(want);
}

static inline void golden(struct bench *b, const char *name)
{
	golden_text(name, look(b));
}

#endif
