// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The hottest source line of each function. Pure; any thread.
 *
 * Weights are kept by (function, line): instances of one template have the
 * lines of each other.
 */
#include "sampler/profile/fold.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "symbols/base/base.h"
#include "symbols/base/keyhash.h"

struct entry {
	uint32_t function, line; /* line PROFILE_NO_LINE: free */
	double weight;
};

struct table {
	struct entry *entries;
	uint32_t mask;
};

static struct entry *entry_of(const struct table *t, uint32_t function, uint32_t line)
{
	uint32_t at = (uint32_t)keyhash_number((uint64_t)function << 32 | line) & t->mask;

	while (t->entries[at].line != PROFILE_NO_LINE &&
	       (t->entries[at].line != line || t->entries[at].function != function))
		at = (at + 1) & t->mask;
	return &t->entries[at];
}

/* Return the line of frame @i of a stack; PROFILE_NO_LINE: unknown. */
static uint32_t line_of(const struct profile *p, const struct profile_stack *s, uint32_t i)
{
	uint32_t line = i < s->nr ? p->frame_lines[s->first + i] : PROFILE_NO_LINE;

	return line < p->nr_lines && p->lines[line].file < p->nr_files && p->lines[line].line
		       ? line
		       : PROFILE_NO_LINE;
}

static int make_table(struct table *t, const struct profile *p)
{
	uint64_t capacity = 64;

	/* At most one entry per count. */
	while (capacity < 2ULL * p->nr_counts)
		capacity *= 2;
	if (capacity > UINT32_MAX)
		return -ENOMEM;
	t->entries = malloc(capacity * sizeof(*t->entries));
	t->mask = (uint32_t)(capacity - 1);
	for (uint64_t i = 0; i < capacity && t->entries; i++)
		t->entries[i].line = PROFILE_NO_LINE;
	return t->entries ? 0 : -ENOMEM;
}

int fold_lines(const struct profile *p, const struct fold_filter *f, uint32_t *lines)
{
	double *best;
	struct table t;
	int rc;

	for (uint32_t i = 0; i < p->nr_functions; i++)
		lines[i] = PROFILE_NO_LINE;
	if (!p->frame_lines)
		return 0;
	rc = make_table(&t, p);
	best = rc ? NULL : calloc(p->nr_functions + 1ULL, sizeof(*best));
	for (uint32_t i = 0; best && i < p->nr_counts; i++) {
		const struct profile_count *c = &p->counts[i];
		const struct profile_stack *s = &p->stacks[c->stack];
		uint32_t line = line_of(p, s, 0), fn;
		struct entry *e;

		if (line == PROFILE_NO_LINE || !fold_passes(p, f, c))
			continue;
		fn = p->frames[s->first];
		e = entry_of(&t, fn, line);
		*e = (struct entry){ fn, line, (e->line == line ? e->weight : 0) + c->weight };
		/* Weights only grow: the last leader is the heaviest. */
		if (e->weight > best[fn]) {
			best[fn] = e->weight;
			lines[fn] = line;
		}
	}
	if (!rc)
		free(t.entries);
	rc = rc || best ? rc : -ENOMEM;
	free(best);
	return rc;
}

int fold_all_lines(const struct profile *p, const struct fold_filter *f, uint32_t *lines)
{
	int rc = fold_lines(p, f, lines);
	double *most = rc || !p->frame_lines ? NULL : calloc(p->nr_functions + 1ULL, sizeof(*most));

	if (rc || !p->frame_lines || !most)
		return rc || !p->frame_lines ? rc : -ENOMEM;
	/* Lines by self samples are kept. */
	for (uint32_t i = 0; i < p->nr_functions; i++)
		most[i] = lines[i] == PROFILE_NO_LINE ? 0 : INFINITY;
	for (uint32_t i = 0; i < p->nr_counts; i++) {
		const struct profile_count *c = &p->counts[i];
		const struct profile_stack *s = &p->stacks[c->stack];

		for (uint32_t k = 1; k < s->nr && fold_passes(p, f, c); k++) {
			uint32_t fn = p->frames[s->first + k], line = line_of(p, s, k);

			if (line == PROFILE_NO_LINE || c->weight <= most[fn])
				continue;
			most[fn] = c->weight;
			lines[fn] = line;
		}
	}
	free(most);
	return 0;
}
