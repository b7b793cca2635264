// SPDX-License-Identifier: GPL-2.0-or-later
/* The points of an annotated function. Runs on: the builder. */
#include "sampler/annotate_points.h"

#include <errno.h>
#include <stdlib.h>

#include "symbols/base/array.h"
#include "symbols/process/maps.h"

static int by_place(const void *pa, const void *pb)
{
	const struct profile_point *a = pa, *b = pb;

	if (a->event != b->event)
		return COMPARE(a->event, b->event);
	if (a->vaddr != b->vaddr)
		return COMPARE(a->vaddr, b->vaddr);
	return COMPARE(a->task, b->task);
}

uint32_t points_task(const struct assemble_input *in, uint32_t id)
{
	const struct task *t = maps_task(in->maps, id);

	if (!t)
		t = maps_task(in->maps, TASK_UNKNOWN);
	return t ? t->number : 0;
}

uint32_t points_place(const struct assemble_input *in, uint32_t stack)
{
	uint32_t nr = 0;
	const uint32_t *places = stacks_at(in->stacks, stack, &nr);

	return places && nr ? places[0] : PLACE_NONE;
}

int points_add(struct profile_annotate *a, uint32_t *max, const struct profile_point *point)
{
	if (!array_reserve(&a->points, max, a->nr_points + 1ull))
		return -ENOMEM;
	a->points[a->nr_points++] = *point;
	return 0;
}

void points_sum(struct profile_annotate *a)
{
	uint32_t nr = 0;

	if (a->nr_points)
		qsort(a->points, a->nr_points, sizeof(*a->points), by_place);
	for (uint32_t i = 0; i < a->nr_points; i++) {
		if (nr && !by_place(&a->points[nr - 1], &a->points[i])) {
			a->points[nr - 1].count += a->points[i].count;
			a->points[nr - 1].weight += a->points[i].weight;
			a->points[nr - 1].total += a->points[i].total;
		} else {
			a->points[nr++] = a->points[i];
		}
	}
	a->nr_points = nr;
}
