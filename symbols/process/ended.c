// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names of ended threads, found by all their texts, by the texts of the process, and by the id of
 * the process: three hashes in one set.
 */
#include "symbols/process/ended.h"

#include <stdlib.h>
#include <string.h>

#include "symbols/base/hashset.h"
#include "symbols/base/keyhash.h"

struct name {
	struct task task; /* pid and tid -1, start 0; texts are in the arena */
	struct process_details known;
	uint64_t word;	/* serial of a table << 32 | id in it; 0: none yet */
	uint32_t first; /* name of the process, which has the number of processes */
};

struct ended {
	struct keyhash_key secret; /* against names that were chosen for one bucket */
	struct hashset set;
	struct hashset counted; /* ids of processes since the table is @serial */
	uint32_t serial;
	struct text_arena *texts;
	struct name *names;
	uint32_t nr;
};

struct ended *ended_new(void)
{
	struct ended *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->secret = keyhash_new_key();
	e->texts = text_arena_new();
	if (e->texts)
		return e;
	free(e);
	return NULL;
}

void ended_free(struct ended *e)
{
	if (!e)
		return;
	hashset_fini(&e->set);
	hashset_fini(&e->counted);
	text_arena_free(e->texts);
	free(e->names);
	free(e);
}

static bool is_same(struct safe_text a, struct safe_text b)
{
	return a.size == b.size && (!a.size || !memcmp(a.str, b.str, a.size));
}

/* Hash the texts of the process of @t, and the name of the thread if @thread. */
static uint64_t texts_hash(const struct ended *e, const struct task *t,
			   const struct process_details *known, bool thread)
{
	struct keyhash h = keyhash_begin(&e->secret);

	keyhash_word(&h, (uint64_t)t->uid << 1 | thread);
	keyhash_bytes(&h, t->process_comm.str, t->process_comm.size);
	keyhash_bytes(&h, known->cgroup.str, known->cgroup.size);
	keyhash_bytes(&h, known->container.str, known->container.size);
	if (thread)
		keyhash_bytes(&h, t->comm.str, t->comm.size);
	return keyhash_end(&h);
}

static bool is_same_process(const struct name *n, const struct task *t,
			    const struct process_details *known)
{
	return n->task.uid == t->uid && is_same(n->task.process_comm, t->process_comm) &&
	       is_same(n->known.cgroup, known->cgroup) &&
	       is_same(n->known.container, known->container);
}

/* Find a name of the process of @t, that of the thread too if @thread; NULL: there is none. */
static struct name *find(const struct ended *e, const struct task *t,
			 const struct process_details *known, bool thread)
{
	uint64_t hash = texts_hash(e, t, known, thread);
	uint32_t at = 0, id;

	while ((id = hashset_next(&e->set, hash, &at)) != HASHSET_NONE)
		if (is_same_process(&e->names[id], t, known) &&
		    (!thread || is_same(e->names[id].task.comm, t->comm)))
			return &e->names[id];
	return NULL;
}

static struct safe_text keep(struct ended *e, struct safe_text t)
{
	return t.size ? text_arena_add(e->texts, t.str, t.size) : TEXT("");
}

/* Add a name; @of: another one of this process, or NULL. NULL when there is no room. */
static struct name *add(struct ended *e, const struct task *t, const struct process_details *known,
			const struct name *of, struct ended_ids *ids)
{
	struct name *n;

	if (!e->names)
		e->names = calloc(ENDED_MAX, sizeof(*e->names));
	if (!e->names || e->nr == ENDED_MAX || hashset_reserve(&e->set, 3))
		return NULL;
	n = &e->names[e->nr];
	*n = (struct name){
		.task = { .pid = -1,
			  .tid = -1,
			  .number = ids->number,
			  .process = of ? of->task.process : ids->process,
			  .uid = t->uid,
			  .comm = keep(e, t->comm),
			  .process_comm = of ? of->task.process_comm : keep(e, t->process_comm) },
		.known = { .uid = t->uid,
			   .comm = TEXT(""),
			   .command = TEXT("(ended processes of this name)") },
	};
	n->known.cgroup = of ? of->known.cgroup : keep(e, known->cgroup);
	n->known.container = of ? of->known.container : keep(e, known->container);
	n->first = of ? of->first : e->nr;
	ids->number_used = true;
	hashset_add(&e->set, texts_hash(e, t, known, true), e->nr);
	if (!of) {
		ids->process_used = true;
		hashset_add(&e->set, texts_hash(e, t, known, false), e->nr);
		hashset_add(&e->set, hash_u64(ids->process), e->nr);
	}
	e->nr++;
	return n;
}

/* Count the process of @t to @n, once for all of its threads. */
static void count(struct ended *e, const struct name *n, const struct task *t, uint32_t serial)
{
	uint64_t id = hash_u64(t->process);
	uint32_t at = 0;

	if (e->serial != serial)
		hashset_clear(&e->counted);
	e->serial = serial;
	if (t->pid < 0 || hashset_next(&e->counted, id, &at) != HASHSET_NONE ||
	    hashset_reserve(&e->counted, 1))
		return;
	hashset_add(&e->counted, id, 0);
	e->names[n->first].known.nr++;
}

uint32_t ended_task(struct ended *e, struct tasks *to, const struct task *task,
		    const struct process_details *known, struct ended_ids *ids)
{
	const struct process_details unplaced = { .cgroup = TEXT(""), .container = TEXT("") };
	struct task t = *task;
	struct name *n;

	/* The first sample was of a thread, and the name of the process is not known. */
	if (!t.process_comm.size)
		t.process_comm = t.comm;
	t.process_comm = details_name(t.process_comm, known->program);
	n = find(e, &t, known, true);
	if (!n && e->nr >= ENDED_PLACED_MAX) {
		known = &unplaced;
		n = find(e, &t, known, true);
	}
	if (!n)
		n = add(e, &t, known, find(e, &t, known, false), ids);
	if (!n)
		return TASK_UNKNOWN;
	count(e, n, task, to->serial);
	if (n->word >> 32 != to->serial || !(uint32_t)n->word)
		n->word = (uint64_t)to->serial << 32 | tasks_add(to, &n->task);
	return (uint32_t)n->word;
}

bool ended_details(const struct ended *e, uint32_t process, struct process_details *out)
{
	uint32_t at = 0, id;

	while ((id = hashset_next(&e->set, hash_u64(process), &at)) != HASHSET_NONE) {
		if (e->names[id].task.process != process)
			continue;
		*out = e->names[id].known;
		return true;
	}
	return false;
}
