// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Incarnations of processes and tasks, and dense ids of tasks with samples.
 *
 * Invariant: of the nodes with one key only the one with the latest birth may be undoomed; doomed
 * nodes leave their chain in processes_reap() and are freed after a grace period.
 *
 * Runs on: the writer, under the lock of the maps; *_find() anywhere.
 */
#include "symbols/process/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "symbols/base/base.h"
#include "symbols/base/table.h"
#include "symbols/base/text.h"
#include "symbols/base/thread.h"
#include "symbols/image/image.h"
#include "symbols/script/script.h"

/* Of a storm of processes that end: else their memory leaves holes of 40 MiB among other blocks. */
#define PROCESSES_DOOMED_MAX 8192

void processes_init(struct processes *t)
{
	memset(t, 0, sizeof(*t));
	t->doomed_tail = &t->doomed;
	t->secret = keyhash_new_key().k0;
	t->max_nodes = UINT32_MAX;
}

void processes_limit(struct processes *t, uint32_t max_nodes)
{
	t->max_nodes = max_nodes;
}

static bool is_full(const struct processes *t)
{
	return t->nr_nodes >= t->max_nodes;
}

/* Return the hash bucket of @pid. The hash has a secret: no user can choose pids of one bucket. */
static uint32_t bucket(const struct processes *t, pid_t pid)
{
	return (uint32_t)hash_u64((uint64_t)pid ^ t->secret) & (PROCS_BUCKETS - 1);
}

/*
 * Test whether an incarnation born at @birth_ns is a better result than the best so
 * far. See process_find().
 */
static bool is_better(uint64_t birth_ns, uint64_t best_ns, uint64_t time_ns)
{
	if (birth_ns <= time_ns)
		return best_ns > time_ns || birth_ns > best_ns;
	return best_ns > time_ns && birth_ns < best_ns;
}

struct process *process_find(const struct processes *t, pid_t pid, uint64_t time_ns)
{
	struct process *best = NULL;

	/* Acquire: pairs with the release in process_insert(). */
	for (struct process *p =
		     atomic_load_explicit(&t->processes[bucket(t, pid)], memory_order_acquire);
	     p; p = atomic_load_explicit(&p->next, memory_order_acquire))
		if (p->pid == pid && (!best || is_better(p->birth_ns, best->birth_ns, time_ns)))
			best = p;
	return best;
}

struct process_thread *process_thread_find(const struct processes *t, pid_t pid, pid_t tid,
					   uint64_t time_ns)
{
	struct process_thread *best = NULL;

	/* Acquire: pairs with the release in process_thread_add(). */
	for (struct process_thread *th =
		     atomic_load_explicit(&t->threads[bucket(t, tid)], memory_order_acquire);
	     th; th = atomic_load_explicit(&th->next, memory_order_acquire))
		if (th->tid == tid && th->pid == pid &&
		    (!best || is_better(th->birth_ns, best->birth_ns, time_ns)))
			best = th;
	return best;
}

struct thread_name *process_thread_name(const struct process_thread *th, uint64_t time_ns)
{
	/* Acquire: pairs with the release in names_insert(). */
	struct thread_name *name = atomic_load_explicit(&th->names, memory_order_acquire);
	struct thread_name *older;

	while (name->birth_ns > time_ns &&
	       (older = atomic_load_explicit(&name->older, memory_order_acquire)))
		name = older;
	return name;
}

static void doom(struct processes *t, struct doomed *d, uint64_t time_ns)
{
	assert(!d->is_doomed && !d->next);
	d->is_doomed = true;
	d->since_ns = time_ns;
	d->prev = t->doomed_tail;
	*t->doomed_tail = d;
	t->doomed_tail = &d->next;
	t->nr_doomed++;
}

/* Take a node out of the queue: it is freed now. */
static void undoom(struct processes *t, struct doomed *d)
{
	*d->prev = d->next;
	if (d->next)
		d->next->prev = d->prev;
	else
		t->doomed_tail = d->prev;
	t->nr_doomed--;
}

static void doom_thread(struct processes *t, struct process_thread *th, uint64_t time_ns)
{
	if (th->doomed.is_doomed)
		return;
	assert(th->process && *th->prev_sibling == th);
	*th->prev_sibling = th->next_sibling;
	if (th->next_sibling)
		th->next_sibling->prev_sibling = th->prev_sibling;
	th->process = NULL;
	doom(t, &th->doomed, time_ns);
}

void process_end(struct processes *t, struct process *p, uint64_t time_ns)
{
	if (p->doomed.is_doomed)
		return;
	while (p->threads)
		doom_thread(t, p->threads, time_ns);
	p->death_ns = time_ns;
	atomic_fetch_sub_explicit(&t->nr_processes, 1, memory_order_relaxed);
	doom(t, &p->doomed, time_ns);
}

static struct thread_name *older_of(const struct thread_name *name)
{
	return atomic_load_explicit(&name->older, memory_order_relaxed);
}

static void free_process(struct reclaim *head)
{
	struct process *p = (struct process *)((char *)head - offsetof(struct process, rcu));

	reclaim_grace_over();
	lang_desc_put(atomic_load_explicit(&p->lang, memory_order_relaxed));
	lang_desc_put(p->unread);
	for (size_t i = 0; i < ARRAY_SIZE(p->interpreters); i++)
		object_put(p->interpreters[i].object);
	urgent_free(p);
}

static void free_thread(struct reclaim *head)
{
	struct process_thread *th =
		(struct process_thread *)((char *)head - offsetof(struct process_thread, rcu));
	struct thread_name *name;

	reclaim_grace_over();
	name = atomic_load_explicit(&th->names, memory_order_relaxed);
	while (name) {
		struct thread_name *older = older_of(name);

		if (name != &th->first)
			urgent_free(name);
		name = older;
	}
	urgent_free(th);
}

void process_mark_dirty(struct process *p, struct process **list)
{
	if (p->prev_dirty)
		return;
	p->next_dirty = *list;
	p->prev_dirty = list;
	if (*list)
		(*list)->prev_dirty = &p->next_dirty;
	*list = p;
}

void process_mark_clean(struct process *p)
{
	if (!p->prev_dirty)
		return;
	*p->prev_dirty = p->next_dirty;
	if (p->next_dirty)
		p->next_dirty->prev_dirty = p->prev_dirty;
	p->prev_dirty = NULL;
}

/* Take @p out of its chain; readers at it find the rest. */
static void drop_process(struct processes *t, struct process *p)
{
	_Atomic(struct process *) *link = &t->processes[bucket(t, p->pid)];
	struct process *q;

	assert(p->doomed.is_doomed && !p->threads);
	undoom(t, &p->doomed);
	process_mark_clean(p);
	while ((q = atomic_load_explicit(link, memory_order_relaxed)) != p)
		link = &q->next;
	atomic_store_explicit(link, atomic_load_explicit(&p->next, memory_order_relaxed),
			      memory_order_release);
	space_edit_free(p->edit);
	space_put(atomic_load_explicit(&p->space, memory_order_relaxed));
	t->nr_nodes--;
	reclaim_later(&p->rcu, free_process);
}

static void drop_thread(struct processes *t, struct process_thread *th)
{
	_Atomic(struct process_thread *) *link = &t->threads[bucket(t, th->tid)];
	struct process_thread *q;

	assert(th->doomed.is_doomed && !th->process);
	undoom(t, &th->doomed);
	while ((q = atomic_load_explicit(link, memory_order_relaxed)) != th)
		link = &q->next;
	atomic_store_explicit(link, atomic_load_explicit(&th->next, memory_order_relaxed),
			      memory_order_release);
	t->nr_nodes--;
	reclaim_later(&th->rcu, free_thread);
}

/* Count a process or thread that was not added because the table is full: without @room. */
static void count_refused(struct processes *t, bool room)
{
	if (!room)
		atomic_fetch_add_explicit(&t->nr_refused, 1, memory_order_relaxed);
}

struct process *process_new(struct processes *t, pid_t pid, uint64_t birth_ns)
{
	bool room = !is_full(t) || process_find(t, pid, birth_ns);
	struct process *p = room ? urgent_alloc(sizeof(*p)) : NULL;

	assert(pid >= 0);
	if (!p) {
		count_refused(t, room);
		return NULL;
	}
	p->pid = pid;
	p->id = ++t->next_id;
	p->birth_ns = birth_ns;
	p->death_ns = UINT64_MAX;
	atomic_init(&p->uid, UINT32_MAX);
	return p;
}

void process_insert(struct processes *t, struct process *p)
{
	_Atomic(struct process *) *head = &t->processes[bucket(t, p->pid)];
	struct process *first = atomic_load_explicit(head, memory_order_relaxed);
	uint64_t next_ns = UINT64_MAX;
	struct process *oldest = NULL;
	uint32_t nr = 1;

	t->nr_nodes++;
	atomic_fetch_add_explicit(&t->nr_processes, 1, memory_order_relaxed);
	for (struct process *q = first; q;
	     q = atomic_load_explicit(&q->next, memory_order_relaxed)) {
		if (q->pid != p->pid)
			continue;
		if (q->birth_ns <= p->birth_ns)
			process_end(t, q, p->birth_ns);
		else /* arrived late: it has a successor */
			next_ns = MIN(next_ns, q->birth_ns);
		nr++;
		if (q->doomed.is_doomed && (!oldest || q->birth_ns <= oldest->birth_ns))
			oldest = q;
	}
	if (next_ns != UINT64_MAX)
		process_end(t, p, next_ns);
	atomic_store_explicit(&p->next, first, memory_order_relaxed);
	/* Publishes the node; pairs with process_find(). */
	atomic_store_explicit(head, p, memory_order_release);
	if ((nr <= INCARNATIONS_MAX && !is_full(t)) || !oldest)
		return;
	drop_process(t, oldest);
	atomic_fetch_add_explicit(&t->nr_programs_dropped, 1, memory_order_relaxed);
}

struct process_thread *process_thread_present(const struct processes *t, pid_t pid, pid_t tid)
{
	struct process_thread *th =
		atomic_load_explicit(&t->threads[bucket(t, tid)], memory_order_relaxed);

	while (th && (th->tid != tid || th->pid != pid || th->doomed.is_doomed))
		th = atomic_load_explicit(&th->next, memory_order_relaxed);
	return th;
}

/* Add @th to the live threads of its process. */
static void add_sibling(struct process_thread *th, struct process *p)
{
	th->process = p;
	th->next_sibling = p->threads;
	th->prev_sibling = &p->threads;
	if (p->threads)
		p->threads->prev_sibling = &th->next_sibling;
	p->threads = th;
}

static void name_init(struct processes *t, struct thread_name *name, uint64_t birth_ns,
		      struct safe_text comm)
{
	name->birth_ns = birth_ns;
	name->number = ++t->next_number;
	name->comm = text_sanitise(name->bytes, sizeof(name->bytes), comm.str, comm.size);
}

struct process_thread *process_thread_add(struct processes *t, struct process *p, pid_t tid,
					  uint64_t birth_ns, struct safe_text comm)
{
	_Atomic(struct process_thread *) *head = &t->threads[bucket(t, tid)];
	struct process_thread *first = atomic_load_explicit(head, memory_order_relaxed);
	bool room = !is_full(t) || process_thread_find(t, p->pid, tid, birth_ns);
	struct process_thread *th = room ? urgent_alloc(sizeof(*th)) : NULL, *oldest = NULL;
	uint32_t nr = 1;

	if (!th) {
		count_refused(t, room);
		return NULL;
	}
	t->nr_nodes++;
	th->pid = p->pid;
	th->tid = tid;
	th->doomed.is_thread = true;
	th->birth_ns = birth_ns;
	name_init(t, &th->first, birth_ns, comm);
	atomic_init(&th->names, &th->first);
	th->nr_names = 1;
	atomic_init(&th->next, first);
	add_sibling(th, p);
	if (p->doomed.is_doomed)
		doom_thread(t, th, p->doomed.since_ns);
	for (struct process_thread *q = first; q;
	     q = atomic_load_explicit(&q->next, memory_order_relaxed)) {
		if (q->tid != tid || q->pid != p->pid)
			continue;
		if (q->birth_ns <= birth_ns)
			doom_thread(t, q, birth_ns);
		else
			doom_thread(t, th, q->birth_ns);
		nr++;
		if (q->doomed.is_doomed && (!oldest || q->birth_ns <= oldest->birth_ns))
			oldest = q;
	}
	/* Publishes the node; pairs with process_thread_find(). */
	atomic_store_explicit(head, th, memory_order_release);
	if ((nr > INCARNATIONS_MAX || is_full(t)) && oldest)
		drop_thread(t, oldest);
	return th;
}

static void free_name(struct reclaim *head)
{
	reclaim_grace_over();
	urgent_free((char *)head - offsetof(struct thread_name, rcu));
}

/* Take the name at @link out of the list of @th; readers at it find the older ones. */
static void names_drop(struct processes *t, struct process_thread *th,
		       _Atomic(struct thread_name *) *link, bool needed)
{
	struct thread_name *name = atomic_load_explicit(link, memory_order_relaxed);

	/* Release: the older names are complete. */
	atomic_store_explicit(link, older_of(name), memory_order_release);
	assert(th->nr_names > 1);
	th->nr_names--;
	if (needed)
		atomic_fetch_add_explicit(&t->nr_names_dropped, 1, memory_order_relaxed);
	if (name != &th->first)
		reclaim_later(&name->rcu, free_name);
}

/* Drop the oldest names: one that begins at @birth_ns must fit, and one remains. */
static void names_make_room(struct processes *t, struct process_thread *th, uint64_t birth_ns,
			    uint64_t keep_ns)
{
	struct thread_name *newest = atomic_load_explicit(&th->names, memory_order_relaxed);
	_Atomic(struct thread_name *) *last = &newest->older;
	uint64_t second_ns = older_of(newest)->birth_ns, end_ns = newest->birth_ns;
	struct thread_name *name;

	if (birth_ns >= newest->birth_ns && birth_ns - second_ns < NAME_SPACING_NS) {
		names_drop(t, th, &th->names, true);
		return;
	}
	while (older_of(name = atomic_load_explicit(last, memory_order_relaxed))) {
		end_ns = name->birth_ns;
		last = &name->older;
	}
	names_drop(t, th, last, end_ns > keep_ns);
}

/* Put @name into the list of @th by its birth: a record may arrive late. */
static void names_insert(struct process_thread *th, struct thread_name *name)
{
	_Atomic(struct thread_name *) *link = &th->names;
	struct thread_name *at;

	while ((at = atomic_load_explicit(link, memory_order_relaxed)) &&
	       at->birth_ns > name->birth_ns)
		link = &at->older;
	atomic_store_explicit(&name->older, at, memory_order_relaxed);
	/* Publishes the name; pairs with process_thread_name(). */
	atomic_store_explicit(link, name, memory_order_release);
	th->nr_names++;
	assert(th->nr_names <= NAMES_MAX);
}

void process_thread_rename(struct processes *t, struct process_thread *th, uint64_t birth_ns,
			   struct safe_text comm, uint64_t keep_ns)
{
	struct thread_name *name = urgent_alloc(sizeof(*name));

	assert(!th->doomed.is_doomed && birth_ns >= th->birth_ns);
	if (!name)
		return;
	name_init(t, name, birth_ns, comm);
	if (th->nr_names == NAMES_MAX)
		names_make_room(t, th, birth_ns, keep_ns);
	names_insert(th, name);
}

void process_thread_forget_tasks(struct process_thread *th)
{
	for (struct thread_name *name = atomic_load_explicit(&th->names, memory_order_relaxed);
	     name; name = older_of(name))
		for (size_t i = 0; i < ARRAY_SIZE(name->task); i++)
			atomic_store_explicit(&name->task[i], 0, memory_order_relaxed);
}

void process_thread_end(struct processes *t, struct process_thread *th, uint64_t time_ns)
{
	struct process *p = th->process;

	doom_thread(t, th, time_ns);
	if (p && !p->threads)
		process_end(t, p, time_ns);
}

void processes_reap(struct processes *t, uint64_t before_ns, uint64_t crowd_ns)
{
	while (t->doomed &&
	       (t->doomed->since_ns < before_ns ||
		(t->nr_doomed > PROCESSES_DOOMED_MAX && t->doomed->since_ns < crowd_ns))) {
		struct doomed *d = t->doomed;

		if (d->is_thread)
			drop_thread(t, (struct process_thread *)((char *)d -
								 offsetof(struct process_thread,
									  doomed)));
		else
			drop_process(t, (struct process *)((char *)d -
							   offsetof(struct process, doomed)));
	}
}

void processes_fini(struct processes *t)
{
	for (uint32_t i = 0; i < PROCS_BUCKETS; i++) {
		struct process *p;

		for (p = atomic_load_explicit(&t->processes[i], memory_order_relaxed); p;
		     p = atomic_load_explicit(&p->next, memory_order_relaxed))
			process_end(t, p, 0);
	}
	for (struct doomed *d = t->doomed; d; d = d->next)
		d->since_ns = 0;
	processes_reap(t, 1, 0);
	assert(!t->doomed && t->doomed_tail == &t->doomed);
}

/*
 * Dense ids for tasks. Runs on: any thread.
 *
 * Invariant: an id below next has a slot; a slot is read only once ready.
 */

#define CHUNK_BITS 11
#define AHEAD	   (1u << CHUNK_BITS) /* empty entries to keep ahead of the ids given out */

struct task_slot {
	struct task task;
	atomic_bool ready; /* release after task and names; pairs with tasks_at() */
	char comm[TASK_COMM_SIZE], process_comm[TASK_COMM_SIZE];
};

struct tasks *tasks_new(uint32_t max, uint32_t serial)
{
	const struct task unknown = {
		.pid = -1,
		.tid = -1,
		.uid = (uid_t)-1,
		.comm = TEXT("[unknown]"),
		.process_comm = TEXT(""),
	};
	struct tasks *t = aligned_alloc(CACHELINE, sizeof(*t));

	assert(max);
	if (!t)
		return NULL;
	memset(t, 0, sizeof(*t));
	t->max = MAX(max, 1u);
	t->serial = serial;
	if (chunked_init(&t->slots, sizeof(struct task_slot), CHUNK_BITS, t->max) ||
	    tasks_grow(t)) {
		tasks_free(t);
		return NULL;
	}
	tasks_add(t, &unknown); /* TASK_UNKNOWN */
	return t;
}

void tasks_free(struct tasks *t)
{
	if (!t)
		return;
	chunked_fini(&t->slots);
	free(t);
}

int tasks_grow(struct tasks *t)
{
	uint32_t nr = chunked_nr(&t->slots);
	uint32_t next = atomic_load_explicit(&t->next, memory_order_relaxed);

	assert(next <= nr && nr <= t->max);
	while (nr < t->max && nr - next < AHEAD) {
		if (!chunked_reserve(&t->slots, nr))
			return -ENOMEM;
		nr = MIN(nr + (1u << CHUNK_BITS), t->max);
		chunked_publish(&t->slots, nr);
	}
	return 0;
}

/* Copy @name to @buf, of zeroes, and have it there. */
static void keep_name(char buf[static TASK_COMM_SIZE], struct safe_text *name)
{
	name->size = MIN(name->size, TASK_COMM_SIZE - 1);
	memcpy(buf, name->str, name->size);
	name->str = buf;
}

uint32_t tasks_add(struct tasks *t, const struct task *task)
{
	uint32_t id = atomic_load_explicit(&t->next, memory_order_relaxed);
	struct task_slot *slot;

	assert(task->pid >= -1);
	do {
		if (id >= chunked_nr(&t->slots))
			return TASK_UNKNOWN;
		/* Release: a thread that sees this next sees the chunk; pairs with tasks_at(). */
	} while (!atomic_compare_exchange_weak_explicit(&t->next, &id, id + 1, memory_order_acq_rel,
							memory_order_relaxed));
	slot = chunked_at(&t->slots, id);
	assert(!atomic_load_explicit(&slot->ready, memory_order_relaxed));
	slot->task = *task;
	keep_name(slot->comm, &slot->task.comm);
	keep_name(slot->process_comm, &slot->task.process_comm);
	slot->task.own_thread = (uint8_t)lang_own_thread(slot->comm);
	atomic_store_explicit(&slot->ready, true, memory_order_release);
	return id;
}

const struct task *tasks_at(const struct tasks *t, uint32_t id)
{
	struct task_slot *slot;

	/* Acquire: the chunk is there; pairs with tasks_add(). */
	if (id >= atomic_load_explicit(&t->next, memory_order_acquire))
		return NULL;
	slot = chunked_at(&t->slots, id);
	return atomic_load_explicit(&slot->ready, memory_order_acquire) ? &slot->task : NULL;
}

uint32_t tasks_nr(const struct tasks *t)
{
	return atomic_load_explicit(&t->next, memory_order_acquire);
}

void maps_choose_by(struct maps *m, maps_match_fn match, const void *ctx)
{
	pthread_mutex_lock(&m->lock);
	m->match = match;
	m->match_ctx = ctx;
	for (uint32_t i = 0; i < PROCS_BUCKETS; i++) {
		struct process *p =
			atomic_load_explicit(&m->procs.processes[i], memory_order_relaxed);

		for (; p; p = atomic_load_explicit(&p->next, memory_order_relaxed))
			atomic_fetch_and_explicit(&p->flags, ~PROCESS_CHOSEN, memory_order_relaxed);
	}
	pthread_mutex_unlock(&m->lock);
}

bool maps_is_chosen(struct maps *m, pid_t pid, uint64_t time_ns)
{
	const struct process *p = process_find(&m->procs, pid, time_ns);
	bool chosen = p && atomic_load_explicit(&p->flags, memory_order_relaxed) & PROCESS_CHOSEN;

	reclaim_reader_done();
	return chosen;
}
