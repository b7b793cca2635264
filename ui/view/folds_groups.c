// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Processes that are shown as one: of one name, container or unit. Runs on: the main thread.
 */
#include <stdlib.h>
#include <string.h>

#include "ui/view/folds.h"

/* Return the last two parts of a path. */
static struct safe_text tail_of(struct safe_text path, char buf[static TEXT_MAX])
{
	const char *begin = path.str + path.size;

	for (int parts = 0; parts < 2 && begin > path.str; parts++) {
		const char *slash = memrchr(path.str, '/', (size_t)(begin - path.str));

		begin = slash ? slash : path.str;
	}
	begin += *begin == '/';
	return text_sanitise(buf, TEXT_MAX, begin, (size_t)(path.str + path.size - begin));
}

/* Return the innermost service or scope of a cgroup's path, else its slice, else its last parts. */
static struct safe_text unit_of(struct safe_text path, char buf[static TEXT_MAX])
{
	static const char *const kinds[] = { ".service", ".scope", ".slice" };
	const char *end = path.str ? path.str + path.size : NULL;

	for (size_t k = 0; path.str && k < ARRAY_SIZE(kinds); k++) {
		size_t size = strlen(kinds[k]);

		for (const char *at = end; at > path.str; at--) {
			const char *slash = memrchr(path.str, '/', (size_t)(at - path.str));
			const char *begin = slash ? slash + 1 : path.str;

			if ((size_t)(at - begin) > size && !memcmp(at - size, kinds[k], size))
				return text_sanitise(buf, TEXT_MAX, begin, (size_t)(at - begin));
			at = begin;
		}
	}
	return path.size > 1 ? tail_of(path, buf) : TEXT("(no unit)");
}

struct safe_text folds_group_name(enum grouping by, const struct profile_process *process,
				  char buf[static TEXT_MAX])
{
	switch (by) {
	case GROUPING_CONTAINER:
		return process->container.size ? process->container : TEXT("(no container)");
	case GROUPING_UNIT:
		return unit_of(process->cgroup, buf);
	default:
		return process->comm;
	}
}

/* The first letters of the name, for the order; and a hash of all. */
static uint64_t group_id(enum grouping by, const struct profile_process *process)
{
	char buf[TEXT_MAX];
	struct safe_text name = folds_group_name(by, process, buf);
	uint64_t h = (uint64_t)by + 1, order = 0;

	for (size_t i = 0; i < name.size; i++)
		h = hash_u64(h + (unsigned char)name.str[i]);
	for (size_t i = 0; i < 4; i++)
		order = order << 8 | (i < name.size ? (unsigned char)name.str[i] : 0);
	return order << 32 | (uint32_t)h;
}

void folds_forget_groups(struct folds_groups *groups)
{
	free(groups->leaders);
	free(groups->ids);
	free(groups->sizes);
	*groups = (struct folds_groups){ 0 };
}

/* Find the first process of each group, and count the processes. Return false without memory. */
static bool make(struct folds_groups *g, const struct profile *p)
{
	struct folds_member *members = calloc(p->nr_processes + 1ULL, sizeof(*members));

	g->leaders = calloc(p->nr_processes + 1ULL, sizeof(*g->leaders));
	g->ids = calloc(p->nr_processes + 1ULL, sizeof(*g->ids));
	g->sizes = calloc(p->nr_processes + 1ULL, sizeof(*g->sizes));
	if (!members || !g->leaders || !g->ids || !g->sizes) {
		free(members);
		return false;
	}
	for (uint32_t i = 0; i < p->nr_processes; i++) {
		g->ids[i] = group_id(g->by, &p->processes[i]);
		members[i] = (struct folds_member){ g->ids[i], i };
	}
	qsort(members, p->nr_processes, sizeof(*members), folds_by_group);
	for (uint32_t i = 0, first = 0; i < p->nr_processes; i++) {
		if (members[i].group != members[first].group)
			first = i;
		g->leaders[members[i].task] = members[first].task;
		g->sizes[members[first].task] += 1 + p->processes[members[i].task].nr_more;
	}
	for (uint32_t i = 0; i < p->nr_processes; i++)
		g->sizes[i] = g->sizes[g->leaders[i]];
	free(members);
	return true;
}

const struct folds_groups *folds_groups(const struct ui_state *st, const struct profile *p,
					struct folds_of *of)
{
	if (st->grouping == GROUPING_PID)
		return NULL;
	if (!of->groups.leaders) {
		of->groups.by = st->grouping;
		if (!make(&of->groups, p))
			folds_forget_groups(&of->groups);
	}
	return of->groups.leaders ? &of->groups : NULL;
}
