// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Processes that are shown as one: of one name, container or unit. Runs on: the main thread.
 */
#include <stdlib.h>
#include <string.h>

#include "symbols/base/keyhash.h"
#include "ui/fold/fold.h"

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

/* A part of a path. */
struct part {
	const char *str;
	size_t size;
};

/* Take the first part off @path; false: none left. */
static bool first_part(struct part *path, struct part *out)
{
	const char *slash;

	while (path->size && *path->str == '/') {
		path->str++;
		path->size--;
	}
	slash = path->size ? memchr(path->str, '/', path->size) : NULL;
	*out = (struct part){ path->str, slash ? (size_t)(slash - path->str) : path->size };
	path->str += out->size;
	path->size -= out->size;
	return out->size;
}

static bool ends_in(struct part p, const char *suffix)
{
	size_t size = strlen(suffix);

	return p.size > size && !memcmp(p.str + p.size - size, suffix, size);
}

static bool is_unit(struct part p)
{
	return ends_in(p, ".service") || ends_in(p, ".scope");
}

/* Take the parts of @path up to its first service or scope; false: it has none. */
static bool first_unit(struct part *path, struct part *out)
{
	while (first_part(path, out))
		if (is_unit(*out))
			return true;
	return false;
}

static struct safe_text part_text(struct part p, char buf[static TEXT_MAX])
{
	return text_sanitise(buf, TEXT_MAX, p.str, p.size);
}

/* Name a unit that is not the system's, so that no name of the system's is equal. */
static struct safe_text unit_at(struct part unit, struct part owner, char buf[static TEXT_MAX])
{
	return text_format(buf, TEXT_MAX, "%.*s@%.*s", (int)MIN(unit.size, TEXT_MAX / 2u), unit.str,
			   (int)MIN(owner.size, TEXT_MAX / 3u), owner.str);
}

/* Name the unit of a process in @rest of its cgroup's path, which begins behind @service. */
static struct safe_text unit_of_user(struct part service, struct part rest,
				     char buf[static TEXT_MAX])
{
	const size_t before = strlen("user@"), around = strlen("user@.service");
	struct part user = { service.str + before, service.size - around };
	struct part unit;

	return first_unit(&rest, &unit) ? unit_at(unit, user, buf) : part_text(service, buf);
}

/*
 * Return the unit of a process: the first service or scope below slices, which the system's
 * systemd made; else its slice, its container, the last parts of its path. Names below that unit
 * were chosen by others: those of a user and of a container are shown as theirs.
 */
static struct safe_text unit_of(const struct profile_process *process, char buf[static TEXT_MAX])
{
	const struct part container = { process->container.str, process->container.size };
	struct part rest = { process->cgroup.str, process->cgroup.size };
	struct part p, slice = { NULL, 0 }, inner;
	bool more;

	while ((more = first_part(&rest, &p)) && ends_in(p, ".slice"))
		slice = p;
	if (!more)
		return slice.size ? part_text(slice, buf) : TEXT("(no unit)");
	if (p.size > strlen("user@.service") && !memcmp(p.str, "user@", 5) &&
	    ends_in(p, ".service"))
		return unit_of_user(p, rest, buf);
	if (container.size && first_unit(&rest, &inner))
		return unit_at(inner, container, buf);
	if (is_unit(p))
		return part_text(p, buf);
	return container.size ? process->container : tail_of(process->cgroup, buf);
}

struct safe_text folds_group_name(enum grouping by, const struct profile_process *process,
				  char buf[static TEXT_MAX])
{
	switch (by) {
	case GROUPING_CONTAINER:
		return process->container.size ? process->container : TEXT("(no container)");
	case GROUPING_UNIT:
		return unit_of(process, buf);
	default:
		return process->comm;
	}
}

/*
 * The first letters of the name, for the order; and a hash of all, the same one after each start,
 * as rows of equal weight are in this order. Names are compared where it is the same. Bit 63 is
 * free.
 */
static uint64_t group_id(enum grouping by, struct safe_text name)
{
	uint64_t h = (uint64_t)by + 1, order = 0;

	for (size_t i = 0; i < name.size; i++)
		h = hash_u64(h + (unsigned char)name.str[i]);
	for (size_t i = 0; i < 4; i++)
		order = order << 8 | (i < name.size ? (unsigned char)name.str[i] : 0);
	return order << 31 | (h & INT32_MAX);
}

void folds_forget_groups(struct folds_groups *groups)
{
	free(groups->leaders);
	free(groups->ids);
	free(groups->sizes);
	*groups = (struct folds_groups){ 0 };
}

static bool same_name(enum grouping by, const struct profile_process *a,
		      const struct profile_process *b)
{
	char buf_a[TEXT_MAX], buf_b[TEXT_MAX];
	struct safe_text name_a = folds_group_name(by, a, buf_a);
	struct safe_text name_b = folds_group_name(by, b, buf_b);

	return name_a.size == name_b.size && !memcmp(name_a.str, name_b.str, name_a.size);
}

/* A process, by the id and another hash of its name. */
struct named {
	uint64_t id, hash;
	uint32_t process;
};

static int by_name(const void *pa, const void *pb)
{
	const struct named *a = pa, *b = pb;

	if (a->id != b->id)
		return COMPARE(a->id, b->id);
	return a->hash != b->hash ? COMPARE(a->hash, b->hash) : COMPARE(a->process, b->process);
}

static struct named named_of(enum grouping by, const struct profile *p, uint32_t process)
{
	char buf[TEXT_MAX];
	struct safe_text name = folds_group_name(by, &p->processes[process], buf);

	return (struct named){ group_id(by, name), keyhash_name(name.str, name.size), process };
}

/*
 * Set leader and id of the last of @nr processes with one hash: the first of its name, or itself.
 * Names with one id are different ones by choice or chance; the id of a later one is the next
 * number. @nr_names: of this id.
 */
static void join(struct folds_groups *g, const struct profile *p, const struct named *list,
		 uint32_t nr, uint32_t *nr_names)
{
	uint32_t process = list[nr - 1].process;

	g->leaders[process] = process;
	/* By chance a hash may be of more than one name. */
	for (uint32_t i = 0; i + 1 < nr; i++) {
		uint32_t leader = g->leaders[list[i].process];

		if (!same_name(g->by, &p->processes[leader], &p->processes[process]))
			continue;
		g->leaders[process] = leader;
		g->ids[process] = g->ids[leader];
		return;
	}
	g->ids[process] = list[nr - 1].id + (*nr_names)++;
}

/* Find the first process of each group, and count the processes. Return false without memory. */
static bool make(struct folds_groups *g, const struct ui_state *st, const struct profile *p)
{
	struct named *list = calloc(p->nr_processes + 1ULL, sizeof(*list));

	g->leaders = calloc(p->nr_processes + 1ULL, sizeof(*g->leaders));
	g->ids = calloc(p->nr_processes + 1ULL, sizeof(*g->ids));
	g->sizes = calloc(p->nr_processes + 1ULL, sizeof(*g->sizes));
	if (!list || !g->leaders || !g->ids || !g->sizes) {
		free(list);
		return false;
	}
	for (uint32_t i = 0; i < p->nr_processes; i++)
		list[i] = named_of(g->by, p, i);
	qsort(list, p->nr_processes, sizeof(*list), by_name);
	for (uint32_t i = 0, first = 0, nr_names = 0; i < p->nr_processes; i++) {
		if (list[i].id != list[first].id)
			nr_names = 0;
		if (list[i].id != list[first].id || list[i].hash != list[first].hash)
			first = i;
		join(g, p, list + first, i + 1 - first, &nr_names);
		if (folds_chooses(st, &p->processes[list[i].process]))
			g->sizes[g->leaders[list[i].process]] +=
				1 + p->processes[list[i].process].nr_more;
	}
	for (uint32_t i = 0; i < p->nr_processes; i++)
		g->sizes[i] = g->sizes[g->leaders[i]];
	free(list);
	return true;
}

const struct folds_groups *folds_groups(const struct ui_state *st, const struct profile *p,
					struct folds_of *of)
{
	if (st->grouping == GROUPING_PID)
		return NULL;
	if (!of->groups.leaders) {
		of->groups.by = st->grouping;
		if (!make(&of->groups, st, p))
			folds_forget_groups(&of->groups);
	}
	return of->groups.leaders ? &of->groups : NULL;
}
