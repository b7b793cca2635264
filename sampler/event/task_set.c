// SPDX-License-Identifier: GPL-2.0-or-later
/* Tasks in order of their tids: a copy, sorted once. */
#include "sampler/event/task_set.h"

#include <stdlib.h>
#include <string.h>

#include "symbols/base/search.h"

static int by_tid(const void *a, const void *b)
{
	pid_t one = *(const pid_t *)a, other = *(const pid_t *)b;

	return (one > other) - (one < other);
}

void task_set_init(struct task_set *s, const pid_t *tids, uint32_t nr)
{
	s->tids = xcalloc(nr + 1ULL, sizeof(*s->tids));
	s->nr = nr;
	if (nr)
		memcpy(s->tids, tids, nr * sizeof(*tids));
	qsort(s->tids, nr, sizeof(*s->tids), by_tid);
}

void task_set_fini(struct task_set *s)
{
	free(s->tids);
	*s = (struct task_set){ 0 };
}

bool task_set_has(const struct task_set *s, pid_t tid)
{
	uint32_t at = search_split(s->nr, i, s->tids[i] < tid);

	return at < s->nr && s->tids[at] == tid;
}

uint32_t task_find(const pid_t *tids, uint32_t nr, pid_t tid)
{
	uint32_t i = 0;

	while (i < nr && tids[i] != tid)
		i++;
	return i;
}
