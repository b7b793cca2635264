// SPDX-License-Identifier: GPL-2.0-or-later
/* Parts of a file: a sorted list. */
#include "symbols/object/elfparts.h"

#include <string.h>

#include "symbols/base/search.h"
#include "symbols/base/base.h"

bool elfparts_has(const struct elfparts *p, uint64_t start, uint64_t end)
{
	uint32_t after = search_split(p->nr, i, p->list[i].start <= start);

	return start >= end || (after && end <= p->list[after - 1].end);
}

struct elfpart elfparts_round(uint64_t start, uint64_t end, uint64_t size)
{
	uint64_t more = ELFPARTS_ALIGNED - 1 - (end - 1) % ELFPARTS_ALIGNED;

	return (struct elfpart){
		.start = start - start % ELFPARTS_ALIGNED,
		.end = more < size - MIN(end, size) ? end + more : size,
	};
}

void elfparts_add(struct elfparts *p, uint64_t start, uint64_t end, uint64_t size)
{
	struct elfpart part = elfparts_round(start, end, size);
	uint32_t first, after;

	if (start >= end)
		return;
	/* It takes in the parts from @first to before @after, which it touches. */
	first = search_split(p->nr, i, p->list[i].end < part.start);
	after = search_split(p->nr, i, p->list[i].start <= part.end);
	if (first < after) {
		part.start = MIN(part.start, p->list[first].start);
		part.end = MAX(part.end, p->list[after - 1].end);
	} else if (p->nr == ELFPARTS_MAX) {
		p->full = true;
		return;
	}
	memmove(&p->list[first + 1], &p->list[after], (p->nr - after) * sizeof(p->list[0]));
	p->nr = p->nr - after + first + 1;
	p->list[first] = part;
}

uint64_t elfparts_sum(const struct elfparts *p)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < p->nr; i++)
		sum += p->list[i].end - p->list[i].start;
	return sum;
}
