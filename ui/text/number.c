// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Parse numbers strictly: strtod() and strtoull() accept signs, spaces,
 * "0x1p3", "nan" and "inf", and wrap around.
 */
#include "ui/text/number.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"

#define DOUBLE_CHARS_MAX 32

int number_u64(const char *text, size_t size, uint64_t min, uint64_t max, uint64_t *out)
{
	uint64_t value = 0;

	if (!size)
		return -EINVAL;
	for (size_t i = 0; i < size; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
			return -EINVAL;
	}
	if (value < min || value > max)
		return -EINVAL;
	*out = value;
	return 0;
}

int number_double(const char *text, double min, double max, double *out)
{
	size_t size = strlen(text), digits = strspn(text, "0123456789");
	size_t rest = text[digits] == '.' ? strspn(text + digits + 1, "0123456789") : 0;
	double value;

	if (size > DOUBLE_CHARS_MAX || digits + rest == 0 ||
	    digits + rest + (text[digits] == '.') != size)
		return -EINVAL;
	value = strtod(text, NULL);
	if (!(value >= min && value <= max))
		return -EINVAL;
	*out = value;
	return 0;
}

int number_size(const char *text, uint64_t max, uint64_t *out)
{
	static const char suffixes[] = "KMG";
	size_t size = strlen(text);
	unsigned int shift = 0;
	uint64_t value;

	for (unsigned int i = 0; size && i < 3; i++)
		if ((text[size - 1] & ~0x20) == suffixes[i])
			shift = 10 * (i + 1);
	if (number_u64(text, size - (shift > 0), 0, max >> shift, &value))
		return -EINVAL;
	*out = value << shift;
	return 0;
}

int number_pids(const char *text, pid_t **out, uint32_t *nr)
{
	for (const char *s = text;; s++) {
		size_t size = strcspn(s, ",");
		uint64_t pid;

		if (number_u64(s, size, 1, 1 << 22, &pid))
			return -EINVAL;
		if (*nr == NUMBER_PIDS_MAX)
			return -E2BIG;
		*out = xrealloc_array(*out, *nr + 1, sizeof(**out));
		(*out)[(*nr)++] = (pid_t)pid;
		s += size;
		if (!*s)
			return 0;
	}
}

/* Parse one "5" or "0-3" of @size bytes into @seen; return the number of new CPUs, or -EINVAL. */
static int mark_cpus(const char *text, size_t size, bool *seen)
{
	const char *dash = memchr(text, '-', size);
	size_t head = dash ? (size_t)(dash - text) : size;
	uint64_t first, last;
	int nr = 0;

	if (number_u64(text, head, 0, NUMBER_CPUS_MAX - 1, &first))
		return -EINVAL;
	last = first;
	if (dash && number_u64(dash + 1, size - head - 1, first, NUMBER_CPUS_MAX - 1, &last))
		return -EINVAL;
	for (uint64_t cpu = first; cpu <= last; cpu++) {
		nr += !seen[cpu];
		seen[cpu] = true;
	}
	return nr;
}

int number_cpus(const char *text, int **out, uint32_t *nr)
{
	bool seen[NUMBER_CPUS_MAX] = { false };
	uint32_t all = 0;

	for (const char *s = text;; s++) {
		size_t size = strcspn(s, ",");
		int found = mark_cpus(s, size, seen);

		if (found < 0)
			return -EINVAL;
		all += (uint32_t)found;
		s += size;
		if (!*s)
			break;
	}
	*out = xrealloc_array(*out, all, sizeof(**out));
	*nr = 0;
	for (int cpu = 0; cpu < NUMBER_CPUS_MAX; cpu++)
		if (seen[cpu])
			(*out)[(*nr)++] = cpu;
	return 0;
}

bool number_screen_size(const char *text, size_t size, unsigned int max, unsigned int *cols,
			unsigned int *rows)
{
	const char *x = memchr(text, 'x', size);
	uint64_t c, r;

	if (!x || number_u64(text, (size_t)(x - text), 1, max, &c) ||
	    number_u64(x + 1, size - (size_t)(x - text) - 1, 1, max, &r))
		return false;
	*cols = (unsigned int)c;
	*rows = (unsigned int)r;
	return true;
}
