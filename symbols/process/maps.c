// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Processes, threads and mappings over time: the public functions.
 *
 * Readers walk chains and immutable spaces without a lock. Writers add events
 * (maps_events.c) or read /proc (maps_load.c) under one mutex.
 *
 * Runs on: sampler threads (find, request), the side-band drain (publish).
 */
#include "symbols/process/maps.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/array.h"
#include "symbols/base/reclaim.h"
#include "symbols/process/ended.h"
#include "symbols/process/maps_state.h"

/* Shortest and longest pause between readings of all processes because of lost records. */
/* A late sample of a process that has ended, while very many end. */
#define CROWD_NS      500000000ull
#define REREAD_MIN_NS 1000000000ull
#define REREAD_MAX_NS 8000000000ull
/* Processes and threads of a recording, which may have any number: a full table of tasks. */
#define RECORDED_MAX (1u << 19)

/* Add the idle task, which is not in /proc. */
static int add_swapper(struct maps *m)
{
	struct process *p = process_new(&m->procs, 0, 0);

	if (!p)
		return -ENOMEM;
	atomic_store_explicit(&p->flags, PROCESS_KNOWN | PROCESS_KERNEL, memory_order_relaxed);
	atomic_store_explicit(&p->uid, 0, memory_order_relaxed);
	process_insert(&m->procs, p);
	return process_thread_add(&m->procs, p, 0, 0, TEXT("swapper")) ? 0 : -ENOMEM;
}

int maps_new(struct maps **out, struct objects *objects, uint32_t max_tasks)
{
	struct maps *m =
		aligned_alloc(CACHELINE, (sizeof(*m) + CACHELINE - 1) & ~(CACHELINE - 1ul));
	struct space_edit *edit;
	int code;

	if (!m)
		return -ENOMEM;
	memset(m, 0, sizeof(*m));
	m->objects = objects;
	atomic_init(&m->due_ns, UINT64_MAX);
	atomic_init(&m->reread_ns, UINT64_MAX);
	processes_init(&m->procs);
	atomic_init(&m->tasks, tasks_new(max_tasks, 1));
	if (!maps_tasks(m)) {
		free(m);
		return -ENOMEM;
	}
	mutex_init_urgent(&m->lock);
	edit = space_edit_new(NULL, &m->spaces);
	m->empty = edit ? space_edit_freeze(edit, 0) : NULL;
	code = m->empty ? add_swapper(m) : -ENOMEM;
	if (!code)
		code = reclaim_start();
	if (code) {
		maps_free(m);
		return code;
	}
	*out = m;
	return 0;
}

void maps_free(struct maps *m)
{
	if (!m)
		return;
	maps_free_log(m);
	maps_freeze_all(m);
	free(m->interpreters);
	free(m->held);
	processes_fini(&m->procs);
	space_put(m->empty);
	reclaim_wait();
	tasks_free(maps_tasks(m));
	ended_free(m->ended);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

bool maps_process_known(const struct maps *m, const struct process *p)
{
	/* Acquire: pairs with the release after the space was stored. */
	unsigned int flags = atomic_load_explicit(&p->flags, memory_order_acquire);

	if ((flags & PROCESS_KERNEL) || m->no_proc)
		return true;
	return (flags & PROCESS_KNOWN) &&
	       atomic_load_explicit(&p->epoch, memory_order_relaxed) ==
		       atomic_load_explicit(&m->epoch, memory_order_acquire);
}

/* Find the id of @name in @tasks, else TASK_UNKNOWN; store the word it is in to @word. */
static uint32_t known_id(const struct tasks *tasks, const struct thread_name *name, uint64_t *word)
{
	/* Acquire: the entry of the id; pairs with new_id(). */
	*word = atomic_load_explicit(&name->task[tasks->serial & 1], memory_order_acquire);
	return *word >> 32 == tasks->serial ? (uint32_t)*word : TASK_UNKNOWN;
}

/* Give @name an id in place of @word. When another thread is first, our entry is unused. */
static uint32_t new_id(struct tasks *tasks, struct thread_name *name, const struct task *task,
		       uint64_t word)
{
	uint32_t id = tasks_add(tasks, task);

	if (id == TASK_UNKNOWN ||
	    atomic_compare_exchange_strong_explicit(&name->task[tasks->serial & 1], &word,
						    (uint64_t)tasks->serial << 32 | id,
						    memory_order_acq_rel, memory_order_acquire))
		return id;
	return (uint32_t)word;
}

/* Find the thread if it belongs to this incarnation of its process. */
static struct process_thread *find_thread(const struct maps *m, const struct process *p, pid_t tid,
					  uint64_t time_ns)
{
	struct process_thread *th = process_thread_find(&m->procs, p->pid, tid, time_ns);

	/* An older one belongs to the previous owner of the pid. */
	return th && th->birth_ns >= p->birth_ns ? th : NULL;
}

/* Return the name of the main thread of @p at @time_ns; "": unknown. */
static struct safe_text process_comm(const struct maps *m, const struct process *p,
				     uint64_t time_ns)
{
	const struct process_thread *th = find_thread(m, p, p->pid, time_ns);

	return th ? process_thread_name(th, time_ns)->comm : TEXT("");
}

/*
 * Return the id of a thread under its name at @time_ns, given now if this is the first sample of
 * that name.
 */
static uint32_t task_id(const struct maps *m, struct tasks *tasks, const struct process_thread *th,
			const struct process *p, uint64_t time_ns)
{
	struct thread_name *name = process_thread_name(th, time_ns);
	struct task task;
	uint64_t word;
	uint32_t id = known_id(tasks, name, &word);

	if (id != TASK_UNKNOWN)
		return id;
	task = (struct task){
		.pid = th->pid,
		.tid = th->tid,
		.number = name->number,
		.process = p->id,
		.uid = atomic_load_explicit(&p->uid, memory_order_relaxed),
		.parent = atomic_load_explicit(&p->parent, memory_order_relaxed),
		.start_ns = name->birth_ns,
		.comm = name->comm,
		.process_comm = process_comm(m, p, time_ns),
	};
	return new_id(tasks, name, &task, word);
}

/* Of a JVM: the kind of thread @task is. */
static uint8_t jvm_thread(const struct tasks *tasks, uint32_t id)
{
	const struct task *task = tasks_at(tasks, id);

	return task ? task->jvm_thread : LANG_NONE_NO_FRAMES;
}

/* Test whether processes of a recording were left out. */
static bool was_full(const struct maps *m)
{
	return m->no_proc && atomic_load_explicit(&m->procs.nr_refused, memory_order_relaxed);
}

/* Fill @hit for a known process. */
static void fill_hit(struct maps *m, struct tasks *tasks, struct process *p, pid_t tid,
		     uint64_t time_ns, struct maps_hit *hit)
{
	struct process_thread *th;
	const struct lang_desc *lang;

	/* Acquire: pairs with the release in maps_describe(). */
	lang = atomic_load_explicit(&p->lang, memory_order_acquire);
	hit->lang = lang ? &lang->info : NULL;
	hit->process = p->id;
	hit->known = maps_process_known(m, p);
	hit->kernel_thread = atomic_load_explicit(&p->flags, memory_order_relaxed) & PROCESS_KERNEL;
	if (!hit->kernel_thread)
		hit->space = atomic_load_explicit(&p->space, memory_order_acquire);
	th = find_thread(m, p, tid, time_ns);
	if (!th) {
		hit->ask = true;
		th = find_thread(m, p, p->pid, time_ns);
	}
	if (th) {
		hit->task = task_id(m, tasks, th, p, time_ns);
		hit->full = hit->task == TASK_UNKNOWN;
	} else {
		hit->full = was_full(m);
	}
	if (lang && lang->info.kind == LANG_JAVA)
		hit->jvm_thread = jvm_thread(tasks, hit->task);
	if (atomic_load_explicit(&p->uid, memory_order_relaxed) == UINT32_MAX)
		hit->ask = true;
}

void maps_find(struct maps *m, struct tasks *tasks, pid_t pid, pid_t tid, uint64_t time_ns,
	       struct maps_hit *hit)
{
	struct process *p = process_find(&m->procs, pid, time_ns);

	*hit = (struct maps_hit){ .task = TASK_UNKNOWN };
	if (p)
		fill_hit(m, tasks, p, tid, time_ns, hit);
	else
		hit->full = was_full(m);
	hit->outside = m->in_namespace && !pid;
	reclaim_reader_done();
}

bool maps_birth(struct maps *m, pid_t pid, uint64_t time_ns, uint64_t *birth_ns, pid_t *parent)
{
	const struct process *p = process_find(&m->procs, pid, time_ns);

	if (p) {
		*birth_ns = p->birth_ns;
		*parent = atomic_load_explicit(&p->parent, memory_order_relaxed);
	}
	reclaim_reader_done();
	return p != NULL;
}

void maps_no_proc(struct maps *m)
{
	m->no_proc = true;
	processes_limit(&m->procs, RECORDED_MAX);
}

void maps_in_namespace(struct maps *m)
{
	struct process_thread *idle = process_thread_find(&m->procs, 0, 0, 0);

	m->in_namespace = true;
	process_thread_name(idle, 0)->comm = TEXT("[outside]");
}

bool maps_ask(struct maps *m, pid_t pid, uint64_t now_ns)
{
	struct process *p;
	bool due;

	if (pid <= 0 || m->no_proc)
		return false;
	p = process_find(&m->procs, pid, now_ns);
	due = p ? requests_due(&p->asked_ns, now_ns)
		: requests_due_unknown(&m->requests, pid, now_ns);
	reclaim_reader_done();
	return due && requests_put(&m->requests, pid);
}

struct process *maps_begin_process(struct maps *m, pid_t pid, uint64_t birth_ns,
				   struct space *space, const struct process *from)
{
	struct process *p = process_new(&m->procs, pid, birth_ns);

	if (!p) {
		space_put(space);
		return NULL;
	}
	atomic_store_explicit(&p->space, space, memory_order_relaxed);
	if (from)
		atomic_store_explicit(&p->uid,
				      atomic_load_explicit(&from->uid, memory_order_relaxed),
				      memory_order_relaxed);
	return p;
}

struct process *maps_process_at(struct maps *m, pid_t pid, uint64_t time_ns)
{
	struct process *p = process_find(&m->procs, pid, time_ns);

	/* After its end there must be another incarnation; its fork was not seen. */
	if (p && time_ns < p->death_ns)
		return p;
	p = maps_begin_process(m, pid, p ? p->death_ns : 0, space_get(m->empty), NULL);
	if (p)
		process_insert(&m->procs, p);
	return p;
}

struct space_edit *maps_draft(struct maps *m, struct process *p)
{
	if (!p->edit)
		p->edit = space_edit_new(atomic_load_explicit(&p->space, memory_order_relaxed),
					 &m->spaces);
	if (p->edit)
		process_mark_dirty(p, &m->dirty);
	return p->edit;
}

void maps_freeze(struct maps *m, struct process *p)
{
	struct space *old = atomic_load_explicit(&p->space, memory_order_relaxed);
	struct space *next = p->edit ? space_edit_freeze(p->edit, m->keep_from_ns) : NULL;

	p->edit = NULL;
	if (!next)
		return;
	/* Release: the space and its nodes; pairs with maps_find(). */
	atomic_store_explicit(&p->space, next, memory_order_release);
	space_put(old);
}

struct space *maps_fork_space(struct maps *m, struct process *parent, uint64_t time_ns)
{
	struct space *published = atomic_load_explicit(&parent->space, memory_order_relaxed);
	struct space_edit *edit;
	struct space *next;

	if (!published || (!parent->edit && !space_has_old(published)))
		return space_get(published ? published : m->empty);
	/* A program that maps and forks in a loop would take memory for each child. */
	if (atomic_load_explicit(&m->spaces.bytes, memory_order_relaxed) > SPACE_BYTES_MAX &&
	    space_nr_mappings(published)) {
		atomic_fetch_add_explicit(&m->nr_forks_shared, 1, memory_order_relaxed);
		return space_get(published);
	}
	edit = maps_draft(m, parent);
	next = edit ? space_edit_fork(edit, time_ns) : NULL;
	return next ? next : space_get(published);
}

void maps_freeze_all(struct maps *m)
{
	while (m->dirty) {
		struct process *p = m->dirty;

		process_mark_clean(p);
		maps_freeze(m, p);
	}
	while (m->nr_held)
		object_put(m->held[--m->nr_held]);
}

void maps_hold(struct maps *m, struct object *object)
{
	/* Without memory the object is kept for good. */
	if (array_reserve(&m->held, &m->room_held, m->nr_held + 1ULL))
		m->held[m->nr_held++] = object;
}

struct object *maps_anon(struct maps *m, const struct process *p, uint64_t start, uint64_t end)
{
	const struct object_identity identity = { .kind = OBJECT_ANON, .owner = p->id };

	return objects_hold(m->objects, &identity, "//anon", 6, p->pid, start, end);
}

/* Have all processes read again if records were lost, with growing pauses in a storm. */
static void handle_losses(struct maps *m, uint64_t now_ns)
{
	uint64_t due_ns = m->lost_ns ? m->lost_ns + m->rest_ns : 0;

	if (!m->lost)
		return;
	if (now_ns < due_ns) {
		atomic_store_explicit(&m->reread_ns, due_ns, memory_order_relaxed);
		return;
	}
	m->rest_ns = now_ns < due_ns + m->rest_ns ? MIN(2 * m->rest_ns, REREAD_MAX_NS)
						  : REREAD_MIN_NS;
	m->lost_ns = now_ns;
	m->lost = false;
	m->sweep = true;
	atomic_store_explicit(&m->reread_ns, UINT64_MAX, memory_order_relaxed);
	/* Last: processes of this drain are also read again. */
	atomic_fetch_add_explicit(&m->epoch, 1, memory_order_release);
}

void maps_publish(struct maps *m, uint64_t now_ns, uint64_t keep_ns)
{
	pthread_mutex_lock(&m->lock);
	m->keep_from_ns = now_ns > keep_ns ? now_ns - keep_ns : 0;
	m->now_ns = now_ns;
	maps_apply_log(m);
	maps_freeze_all(m);
	handle_losses(m, now_ns);
	/* The samples of a recording may be of any time. */
	processes_reap(&m->procs, m->keep_from_ns,
		       m->no_proc || now_ns < CROWD_NS ? 0 : now_ns - CROWD_NS);
	tasks_grow(maps_tasks(m));
	pthread_mutex_unlock(&m->lock);
}

bool maps_due(const struct maps *m, uint64_t now_ns)
{
	return maps_due_ns(m) <= now_ns ||
	       atomic_load_explicit(&m->reread_ns, memory_order_relaxed) <= now_ns;
}

struct tasks *maps_tasks(const struct maps *m)
{
	/* Acquire: the empty table; pairs with maps_renew_tasks(). */
	return atomic_load_explicit(&m->tasks, memory_order_acquire);
}

const struct task *maps_task(const struct maps *m, uint32_t id)
{
	return tasks_at(maps_tasks(m), id);
}

uint32_t maps_nr_tasks(const struct maps *m)
{
	return tasks_nr(maps_tasks(m));
}

uint32_t maps_max_tasks(const struct maps *m)
{
	return maps_tasks(m)->max;
}

struct tasks *maps_renew_tasks(struct maps *m)
{
	struct tasks *old = maps_tasks(m), *next = tasks_new(old->max, old->serial + 1);

	if (!next)
		return NULL;
	/* Under the lock, since tasks_grow() runs there. */
	pthread_mutex_lock(&m->lock);
	atomic_store_explicit(&m->tasks, next, memory_order_release);
	pthread_mutex_unlock(&m->lock);
	return old;
}

/* Find the name that @task was made of; NULL if it is dropped. */
static struct thread_name *name_of(const struct maps *m, const struct task *task)
{
	struct process_thread *th =
		process_thread_find(&m->procs, task->pid, task->tid, task->start_ns);
	struct thread_name *name = th ? process_thread_name(th, task->start_ns) : NULL;

	return name && name->number == task->number ? name : NULL;
}

/* Move a task. An id that samples gave its name before is kept. */
static uint32_t move_task(struct maps *m, const struct task *task)
{
	struct tasks *to = maps_tasks(m);
	struct thread_name *name = name_of(m, task);
	uint64_t word;
	uint32_t id;

	if (!name)
		return tasks_add(to, task);
	id = known_id(to, name, &word);
	return id != TASK_UNKNOWN ? id : new_id(to, name, task, word);
}

uint32_t maps_move_task(struct maps *m, const struct tasks *from, uint32_t id)
{
	const struct task *task = id == TASK_UNKNOWN ? NULL : tasks_at(from, id);
	uint32_t moved;

	if (!task)
		return TASK_UNKNOWN;
	moved = move_task(m, task);
	if (moved == TASK_UNKNOWN) {
		pthread_mutex_lock(&m->lock);
		tasks_grow(maps_tasks(m));
		pthread_mutex_unlock(&m->lock);
		moved = move_task(m, task);
	}
	reclaim_reader_done();
	return moved;
}

/* Test whether the process of @task has ended, or runs another program. */
static bool has_ended(const struct maps *m, const struct task *task)
{
	const struct process *p = process_find(&m->procs, task->pid, UINT64_MAX);

	return !p || p->id != task->process;
}

/* Find or make the task of all ended ones of this name. */
static uint32_t merge_task(struct maps *m, const struct task *task,
			   const struct process_details *known)
{
	struct ended_ids ids;
	uint32_t id;

	if (!m->ended)
		m->ended = ended_new();
	if (!m->ended)
		return TASK_UNKNOWN;
	pthread_mutex_lock(&m->lock);
	tasks_grow(maps_tasks(m));
	ids = (struct ended_ids){ .process = m->procs.next_id + 1,
				  .number = m->procs.next_number + 1 };
	id = ended_task(m->ended, maps_tasks(m), task, known, &ids);
	m->procs.next_id += ids.process_used;
	m->procs.next_number += ids.number_used;
	pthread_mutex_unlock(&m->lock);
	return id;
}

uint32_t maps_merge_task(struct maps *m, const struct tasks *from, uint32_t id,
			 struct details *details, struct text_arena *texts)
{
	const struct task *task = id == TASK_UNKNOWN ? NULL : tasks_at(from, id);
	struct process_details known = { 0 };
	bool ended;

	if (!task)
		return TASK_UNKNOWN;
	if (maps_merged(m, task->process, &known))
		return merge_task(m, task, &known);
	ended = has_ended(m, task);
	reclaim_reader_done();
	if (!ended)
		return maps_move_task(m, from, id);
	if (details)
		details_known(details, task->process, texts, &known);
	return merge_task(m, task, &known);
}

bool maps_merged(const struct maps *m, uint32_t process, struct process_details *out)
{
	return m->ended && ended_details(m->ended, process, out);
}

void maps_drop_tasks(struct tasks *old)
{
	tasks_free(old);
}

void maps_stats(const struct maps *m, struct maps_stats *out)
{
	*out = (struct maps_stats){
		.nr_processes = atomic_load_explicit(&m->procs.nr_processes, memory_order_relaxed),
		.nr_spaces = atomic_load_explicit(&m->spaces.nr_spaces, memory_order_relaxed),
		.nr_mappings = atomic_load_explicit(&m->spaces.nr_mappings, memory_order_relaxed),
		.nr_reads = atomic_load_explicit(&m->nr_reads, memory_order_relaxed),
		.nr_read_failed = atomic_load_explicit(&m->nr_read_failed, memory_order_relaxed),
		.nr_names_dropped =
			atomic_load_explicit(&m->procs.nr_names_dropped, memory_order_relaxed),
		.nr_programs_dropped =
			atomic_load_explicit(&m->procs.nr_programs_dropped, memory_order_relaxed),
		.space_bytes = atomic_load_explicit(&m->spaces.bytes, memory_order_relaxed),
		.nr_forks_shared = atomic_load_explicit(&m->nr_forks_shared, memory_order_relaxed),
	};
}
