// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Layout of the arrows of jumps. Runs on: the main thread.
 *
 * Short jumps take the lanes next to the instructions. Jumps longer than any
 * screen, or without a free lane, get a sign instead.
 */
#include "ui/view/arrows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH_MAX 250u

struct jump {
	uint32_t from, to, length;
};

static int by_length(const void *pa, const void *pb)
{
	const struct jump *a = pa, *b = pb;

	if (a->length != b->length)
		return a->length < b->length ? -1 : 1;
	return COMPARE(a->from, b->from);
}

/* Collect all jumps short enough to be seen whole; malloc'ed. */
static struct jump *collect(const struct listing *l, uint32_t *nr)
{
	struct jump *jumps = calloc(l->nr_insns + 1ULL, sizeof(*jumps));

	*nr = 0;
	for (uint32_t i = 0; jumps && i < l->nr_insns; i++) {
		uint32_t to = l->insns[i].target;
		uint32_t length = to > i ? to - i : i - to;

		if (to < l->nr_insns && length && length <= LENGTH_MAX)
			jumps[(*nr)++] = (struct jump){ i, to, length };
	}
	if (jumps)
		qsort(jumps, *nr, sizeof(*jumps), by_length);
	return jumps;
}

static bool is_free(const struct arrows *a, uint32_t low, uint32_t high, unsigned int lane)
{
	for (uint32_t i = low; i <= high; i++)
		if (a->cells[i][lane])
			return false;
	return true;
}

static void lay(struct arrows *a, const struct jump *j)
{
	uint32_t low = MIN(j->from, j->to), high = MAX(j->from, j->to);
	unsigned int lane = 0;

	while (lane < ARROW_LANES && !is_free(a, low, high, lane))
		lane++;
	if (lane == ARROW_LANES)
		return;
	a->lane[j->from] = (uint8_t)lane;
	for (uint32_t i = low; i <= high; i++)
		a->cells[i][lane] |= (i > low ? ARROW_ABOVE : 0) | (i < high ? ARROW_BELOW : 0);
	a->cells[j->from][lane] |= ARROW_FROM;
	a->cells[j->to][lane] |= ARROW_TO;
}

int arrows_update(struct arrows *a, const struct listing *l)
{
	struct jump *jumps;
	uint32_t nr;

	if (a->of == l && a->nr == l->nr_insns)
		return 0;
	arrows_fini(a);
	a->of = l;
	jumps = collect(l, &nr);
	a->cells = calloc(l->nr_insns + 1ULL, sizeof(*a->cells));
	a->lane = malloc(l->nr_insns + 1ULL);
	if (!jumps || !a->cells || !a->lane) {
		free(jumps);
		arrows_fini(a);
		return -ENOMEM;
	}
	a->nr = l->nr_insns;
	memset(a->lane, ARROW_NONE, l->nr_insns + 1ULL);
	for (uint32_t i = 0; i < nr; i++)
		lay(a, &jumps[i]);
	free(jumps);
	return 0;
}

void arrows_fini(struct arrows *a)
{
	free(a->cells);
	free(a->lane);
	*a = (struct arrows){ .nr = 0 };
}
