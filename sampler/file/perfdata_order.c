// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Merge runs that are in order: they replace perf's rounds.
 */
#include "sampler/file/perfdata_order.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"

uint64_t perfdata_order_later(const struct perfdata_ref *refs, uint64_t from, uint64_t to,
			      uint64_t time_ns)
{
	while (from < to) {
		uint64_t mid = from + (to - from) / 2;

		if (refs[mid].time_ns > time_ns)
			to = mid;
		else
			from = mid + 1;
	}
	return from;
}

/* Merge refs[from..mid) and refs[mid..to), each in order: only the overlap is moved. */
static void merge(struct perfdata_ref *refs, uint64_t from, uint64_t mid, uint64_t to,
		  struct perfdata_ref *spare)
{
	const struct perfdata_ref *left = spare, *end;

	assert(from < mid && mid < to);
	from = perfdata_order_later(refs, from, mid, refs[mid].time_ns);
	end = spare + (mid - from);
	memcpy(spare, refs + from, (mid - from) * sizeof(*refs));
	while (left < end)
		refs[from++] = mid < to && refs[mid].time_ns < left->time_ns ? refs[mid++]
									     : *left++;
}

static int compare(const void *a, const void *b)
{
	const struct perfdata_ref *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->inflated != y->inflated ? COMPARE(x->inflated, y->inflated)
					  : COMPARE(x->at, y->at);
}

/*
 * Sort the records by time, and as they were found. They are in runs, one for
 * each CPU in each of perf's rounds; neighbours are merged until one run is left. In place if there
 * is no memory.
 */
void perfdata_order_sort(struct perfdata_ref *refs, uint64_t nr)
{
	uint64_t nr_runs = 0, *starts = calloc(nr + 1, sizeof(*starts));
	struct perfdata_ref *spare = malloc((nr + 1) * sizeof(*spare));

	for (uint64_t i = 0; i < nr && starts; i++)
		if (!i || refs[i].time_ns < refs[i - 1].time_ns)
			starts[nr_runs++] = i;
	for (; nr_runs > 1 && spare; nr_runs = (nr_runs + 1) / 2) {
		for (uint64_t i = 0; i < nr_runs; i += 2) {
			if (i + 1 < nr_runs)
				merge(refs, starts[i], starts[i + 1],
				      i + 2 < nr_runs ? starts[i + 2] : nr, spare);
			starts[i / 2] = starts[i];
		}
	}
	if (nr_runs > 1 || !starts)
		qsort(refs, nr, sizeof(*refs), compare);
	free(starts);
	free(spare);
}
