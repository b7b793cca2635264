// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Details of processes from /proc, and their ancestors. Runs on: the builder. It takes the details
 * read so far, and requests the others for a later profile.
 */
#include "sampler/profile/processes.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "symbols/base/keyhash.h"

#define LEVELS_MAX    64 /* enough for a tree of processes, not for hostile pids */
#define ANCESTORS_MAX 4096u

/* Pids with an entry; open addressing, 0 is free. */
struct pids {
	pid_t *slots;
	uint32_t capacity; /* a power of two, never full */
};

/* Add @pid; false: it was there already. */
static bool pids_add(struct pids *t, pid_t pid)
{
	uint32_t i = (uint32_t)keyhash_number((uint64_t)pid) & (t->capacity - 1);

	while (t->slots[i] && t->slots[i] != pid)
		i = (i + 1) & (t->capacity - 1);
	if (t->slots[i])
		return false;
	t->slots[i] = pid;
	return true;
}

static void fill(struct profile_process *process, const struct process_details *d)
{
	uint64_t now_ns = time_clock_ns(CLOCK_BOOTTIME);

	if (d->parent)
		process->parent = d->parent;
	if (process->comm_is_old && d->comm.size)
		process->comm = d->comm;
	process->program = d->program;
	process->comm = details_name(process->comm, d->program);
	/* Newer than that of the tasks: it may have changed without an exec. */
	if (d->uid != (uid_t)-1)
		process->uid = d->uid;
	process->up_ns = d->start_ns && now_ns > d->start_ns ? now_ns - d->start_ns : 0;
	process->command = d->command;
	process->cgroup = d->cgroup;
	process->container = d->container;
	process->nr_more = d->nr ? d->nr - 1 : 0;
}

/* Get the details of processes that are shown as one. */
static bool merged(const struct profile *p, const struct assemble_input *in, uint32_t process,
		   struct process_details *d)
{
	if (!maps_merged(in->maps, process, d))
		return false;
	d->cgroup = text_arena_add(p->names, d->cgroup.str, d->cgroup.size);
	d->container = text_arena_add(p->names, d->container.str, d->container.size);
	return true;
}

/* Append an ancestor; NULL: out of memory. */
static struct profile_process *ancestor_new(struct profile *p)
{
	struct profile_process *more;

	if (p->nr_ancestors >= ANCESTORS_MAX)
		return NULL;
	if (p->nr_ancestors & (p->nr_ancestors - 1))
		return &p->ancestors[p->nr_ancestors];
	more = reallocarray(p->ancestors, MAX(2 * p->nr_ancestors, 1u), sizeof(*more));
	if (!more)
		return NULL;
	p->ancestors = more;
	return &p->ancestors[p->nr_ancestors];
}

/*
 * Add the ancestors of @pid, up to the first known one. Not proftop, which started the command, nor
 * the shells above it: the command is the root.
 */
static void add_ancestors(struct profile *p, const struct assemble_input *in, struct pids *there,
			  pid_t pid, uint64_t now_ns)
{
	const pid_t self = getpid();

	for (int level = 0; level < LEVELS_MAX && pid > 0 && pid != self; level++) {
		struct profile_process *a = ancestor_new(p);
		struct process_details d;

		if (!a || !pids_add(there, pid) ||
		    !details_get(in->details, 0, pid, now_ns, p->names, &d))
			return;
		*a = (struct profile_process){ .id = PROFILE_ANCESTOR | (uint32_t)pid,
					       .pid = pid,
					       .uid = d.uid,
					       .comm = d.comm };
		fill(a, &d);
		p->nr_ancestors++;
		pid = a->parent;
	}
}

int processes_fill(struct profile *p, const struct assemble_input *in)
{
	uint64_t now_ns = time_now_ns();
	struct pids there = { .capacity = 16 };

	if (!in->details)
		return 0;
	while (there.capacity < 2 * (p->nr_processes + ANCESTORS_MAX + LEVELS_MAX))
		there.capacity *= 2;
	there.slots = calloc(there.capacity, sizeof(*there.slots));
	if (!there.slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->nr_processes; i++) {
		struct profile_process *process = &p->processes[i];
		struct process_details d;

		pids_add(&there, process->pid);
		if (merged(p, in, process->id, &d) ||
		    details_get(in->details, process->id, process->pid, now_ns, p->names, &d))
			fill(process, &d);
	}
	for (uint32_t i = 0; i < p->nr_processes; i++)
		add_ancestors(p, in, &there, p->processes[i].parent, now_ns);
	free(there.slots);
	return 0;
}
