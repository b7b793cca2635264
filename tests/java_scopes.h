/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The methods at each described pc of a JVM's compiled code, as the JVM reported them
 * (JVMTI's CompiledMethodLoad; written by tests/truth_java.c): the truth of a call into the
 * runtime, for which AsyncGetCallTrace() takes the description behind the call.
 */
#ifndef TESTS_JAVA_SCOPES_H
#define TESTS_JAVA_SCOPES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "symbols/base/base.h"

#define JAVA_SCOPE_MAX 64U

/* One description: ids of methods at first, innermost first. */
struct java_scope {
	uint64_t pc;
	size_t first;
	uint32_t nr;
};

struct java_scopes {
	struct java_scope *scopes; /* sorted by pc; several of one pc: of code that was freed */
	size_t nr, max;
	uint64_t *ids;
	size_t nr_ids, max_ids;
};

static int java_scopes_by_pc(const void *a, const void *b)
{
	const struct java_scope *x = a, *y = b;

	return (x->pc > y->pc) - (x->pc < y->pc);
}

/* Add a line: "PC ID...". */
static void java_scopes_add(struct java_scopes *s, const char *line)
{
	struct java_scope scope = { .first = s->nr_ids };
	char *end;

	scope.pc = strtoull(line, &end, 16);
	if (s->nr_ids + JAVA_SCOPE_MAX > s->max_ids) {
		s->max_ids = 2 * s->max_ids + JAVA_SCOPE_MAX;
		s->ids = xrealloc_array(s->ids, s->max_ids, sizeof(*s->ids));
	}
	while (*end == ' ' && scope.nr < JAVA_SCOPE_MAX)
		s->ids[scope.first + scope.nr++] = strtoull(end + 1, &end, 16);
	if (*end != '\n' || !scope.nr)
		return;
	if (s->nr == s->max) {
		s->max = 2 * s->max + 4096;
		s->scopes = xrealloc_array(s->scopes, s->max, sizeof(*s->scopes));
	}
	s->nr_ids += scope.nr;
	s->scopes[s->nr++] = scope;
}

/* Read all lines of @path. False: no such file. */
static bool java_scopes_read(struct java_scopes *s, const char *path)
{
	FILE *f = fopen(path, "r");
	size_t size = 0;
	char *line = NULL;

	if (!f)
		return false;
	while (getline(&line, &size, f) > 0)
		java_scopes_add(s, line);
	free(line);
	fclose(f);
	if (s->nr)
		qsort(s->scopes, s->nr, sizeof(*s->scopes), java_scopes_by_pc);
	return true;
}

/* The first description at @pc, or behind all of lower pcs. */
static size_t java_scopes_at(const struct java_scopes *s, uint64_t pc)
{
	size_t low = 0, high = s->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (s->scopes[mid].pc < pc)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

#endif
