// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Processes, tasks and mappings over time: look-up by (pid, tid, time), side-band records in time
 * order, the merge with /proc/PID, requests to the loader, processes that have ended.
 *
 * Readers walk chains and immutable spaces without a lock. Writers add events or read /proc under
 * one mutex.
 *
 * Runs on: sampler threads (find, request), the side-band drain (publish).
 */
#include "symbols/process/internal.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/table.h"
#include "symbols/base/text.h"
#include "symbols/base/thread.h"
#include "symbols/image/image.h"
#include "symbols/script/script.h"

/* All functions that take a struct maps need its lock, unless noted. */

#define COMM_SIZE 15u /* that the kernel keeps */

static inline uint64_t maps_due_ns(const struct maps *m)
{
	/* Relaxed: written and read by the thread that replays. */
	return atomic_load_explicit(&m->due_ns, memory_order_relaxed);
}

/*
 * Side-band events: kept in a log, applied in the order of time.
 *
 * The rings of the CPUs are drained one after the other, so the exec of a child
 * may be read before its fork. Within a drain sorting solves this; across drains
 * an incarnation and a mapping are placed by their birth.
 *
 * A storm of renames fills no log: a thread with NAMES_MAX names in the log replaces
 * its last one there if they are less than NAME_SPACING_NS apart, as in its list of
 * names.
 *
 * Runs on: the side-band drain.
 */

#define LOG_MAX 65536u /* events in one drain; more are applied early */

enum event_type { EVENT_MMAP, EVENT_CODE, EVENT_COMM, EVENT_EXEC, EVENT_FORK, EVENT_EXIT };

struct maps_event {
	uint64_t time_ns;
	uint32_t seq;
	enum event_type type;
	pid_t pid, tid, ppid, ptid;
	union {
		/* object NULL: anonymous; else with a reference */
		struct mapping mapping;
		struct {
			size_t size;
			char bytes[TASK_COMM_SIZE];
		} comm;
	};
};

static void maps_apply_log(struct maps *m);

/* Append an entry to the log; NULL when out of memory. */
static struct maps_event *log_add(struct maps *m, enum event_type type, uint64_t time_ns)
{
	struct maps_event *ev;

	if (m->nr_log == LOG_MAX)
		maps_apply_log(m);
	if (!array_reserve(&m->log, &m->room_log, m->nr_log + 1ull)) {
		m->lost = true;
		return NULL;
	}
	ev = &m->log[m->nr_log];
	memset(ev, 0, sizeof(*ev));
	ev->type = type;
	ev->time_ns = time_ns;
	ev->seq = m->seq++;
	m->nr_log++;
	return ev;
}

static void maps_free_log(struct maps *m)
{
	free(m->log);
	m->log = NULL;
	m->nr_log = m->room_log = 0;
}

/* Turn a record into a mapping; false: no code. */
static bool make_mapping(struct maps *m, const struct maps_mmap *ev, struct mapping *out)
{
	size_t size = strnlen(ev->filename, ev->filename_size);
	struct object_identity identity = ev->identity;

	if (ev->pid <= 0 || !(ev->prot & PROT_EXEC) || !ev->size ||
	    __builtin_add_overflow(ev->start, ev->size, &out->end))
		return false;
	identity.kind = procfs_kind(ev->filename, size, ev->start, ev->is_private);
	out->start = ev->start;
	out->birth_ns = ev->time_ns;
	out->exec = true;
	out->object = NULL;
	out->offset = ev->start;
	if (identity.kind == OBJECT_ANON)
		return true;
	if (identity.kind != OBJECT_UNKNOWN)
		out->offset = identity.kind == OBJECT_VDSO ? 0 : ev->pgoff;
	out->object = objects_hold(m->objects, &identity, ev->filename, size, ev->pid, out->start,
				   out->end);
	return true;
}

void maps_on_mmap(struct maps *m, const struct maps_mmap *ev)
{
	struct maps_event *entry;
	struct mapping mapping;

	if (!make_mapping(m, ev, &mapping))
		return;
	pthread_mutex_lock(&m->lock);
	entry = log_add(m, EVENT_MMAP, ev->time_ns);
	if (entry) {
		entry->pid = ev->pid;
		entry->mapping = mapping;
	}
	pthread_mutex_unlock(&m->lock);
	if (!entry)
		object_put(mapping.object);
}

void maps_on_code(struct maps *m, const struct object *memory, uint32_t layer, uint64_t start,
		  uint64_t end, uint64_t time_ns)
{
	struct object_identity identity = memory->identity;
	struct maps_event *ev;
	struct object_sighting seen;
	struct object *object;

	objects_sighting(m->objects, memory, &seen);
	free(seen.path);
	identity.layer = layer;
	object = objects_hold(m->objects, &identity, "//anon", 6, seen.pid, start, end);
	if (object->identity.kind != OBJECT_ANON) {
		object_put(object);
		return;
	}
	pthread_mutex_lock(&m->lock);
	ev = log_add(m, EVENT_CODE, time_ns);
	if (ev) {
		ev->pid = seen.pid;
		ev->mapping = (struct mapping){
			.start = start,
			.end = end,
			.offset = start,
			.birth_ns = time_ns,
			.object = object,
			.exec = true,
		};
	}
	if (ev)
		atomic_store_explicit(&m->due_ns, MIN(time_ns, maps_due_ns(m)),
				      memory_order_relaxed);
	pthread_mutex_unlock(&m->lock);
	if (!ev)
		object_put(object);
}

/* Append a rename, or replace the last one of a thread that renames itself in a loop. */
static struct maps_event *log_rename(struct maps *m, pid_t pid, pid_t tid, uint64_t time_ns)
{
	struct maps_rename *r = &m->renames[(uint32_t)tid % MAPS_RENAMES];
	struct maps_event *ev = r->nr ? &m->log[r->last] : NULL, *added;
	uint64_t last_ns = ev ? ev->time_ns : 0;

	if (ev && (ev->tid != tid || ev->pid != pid))
		*r = (struct maps_rename){ 0 };
	if (r->nr >= NAMES_MAX && time_ns >= last_ns && time_ns - r->before_ns < NAME_SPACING_NS) {
		atomic_fetch_add_explicit(&m->procs.nr_names_dropped, 1, memory_order_relaxed);
		ev->time_ns = time_ns;
		ev->seq = m->seq++;
		return ev;
	}
	added = log_add(m, EVENT_COMM, time_ns);
	if (!added)
		return NULL;
	/* log_add() may have applied the log, and with it forgotten the renames. */
	r->before_ns = r->nr ? last_ns : 0;
	r->nr++;
	r->last = m->nr_log - 1;
	return added;
}

static void maps_freeze_all(struct maps *m);

void maps_settle(struct maps *m)
{
	if (m->no_proc)
		return;
	pthread_mutex_lock(&m->lock);
	maps_apply_log(m);
	maps_freeze_all(m);
	pthread_mutex_unlock(&m->lock);
}

void maps_on_comm(struct maps *m, pid_t pid, pid_t tid, const char *comm, size_t size, bool exec,
		  uint64_t time_ns)
{
	struct maps_event *ev;

	if (pid <= 0 || tid <= 0)
		return;
	pthread_mutex_lock(&m->lock);
	ev = exec ? log_add(m, EVENT_EXEC, time_ns) : log_rename(m, pid, tid, time_ns);
	if (ev) {
		ev->pid = pid;
		ev->tid = tid;
		ev->comm.size = strnlen(comm, MIN(size, sizeof(ev->comm.bytes)));
		memcpy(ev->comm.bytes, comm, ev->comm.size);
	}
	pthread_mutex_unlock(&m->lock);
}

static void on_task(struct maps *m, enum event_type type, const pid_t ids[4], uint64_t time_ns)
{
	struct maps_event *ev;

	if (ids[0] <= 0 || ids[2] <= 0)
		return;
	pthread_mutex_lock(&m->lock);
	ev = log_add(m, type, time_ns);
	if (ev) {
		ev->pid = ids[0];
		ev->ppid = ids[1];
		ev->tid = ids[2];
		ev->ptid = ids[3];
	}
	pthread_mutex_unlock(&m->lock);
}

void maps_on_fork(struct maps *m, pid_t pid, pid_t ppid, pid_t tid, pid_t ptid, uint64_t time_ns)
{
	on_task(m, EVENT_FORK, (const pid_t[]){ pid, ppid, tid, ptid }, time_ns);
}

void maps_on_exit(struct maps *m, pid_t pid, pid_t tid, uint64_t time_ns)
{
	on_task(m, EVENT_EXIT, (const pid_t[]){ pid, 0, tid, 0 }, time_ns);
}

void maps_on_lost(struct maps *m)
{
	pthread_mutex_lock(&m->lock);
	m->lost = true;
	pthread_mutex_unlock(&m->lock);
}

static struct process *maps_process_at(struct maps *m, pid_t pid, uint64_t time_ns);
static struct space_edit *maps_draft(struct maps *m, struct process *p);
static void maps_hold(struct maps *m, struct object *object);
static struct object *maps_anon(struct maps *m, const struct process *p, uint64_t start,
				uint64_t end);
static void maps_note_interpreter(struct maps *m, struct process *p, const struct mapping *mapping);

/* Test a name of a program. */
static bool is_match(const struct maps *m, const char *name, size_t size)
{
	char text[NAME_MAX + 1];

	if (!m->match)
		return false;
	size = MIN(size, sizeof(text) - 1);
	memcpy(text, name, size);
	text[size] = '\0';
	return m->match(m->match_ctx, text);
}

static void choose(struct process *p)
{
	atomic_fetch_or_explicit(&p->flags, PROCESS_CHOSEN, memory_order_relaxed);
}

/* Choose a process by the file of its program, mapped first, if its name is cut: 15 bytes fit. */
static void choose_by_file(const struct maps *m, struct process *p, const struct mapping *mapping)
{
	const struct process_thread *th;
	const struct safe_text *comm, *file;

	if (!m->match || !mapping->object || p->edit ||
	    space_nr_mappings(atomic_load_explicit(&p->space, memory_order_relaxed)))
		return;
	th = process_thread_present(&m->procs, p->pid, p->pid);
	comm = th ? &process_thread_name(th, UINT64_MAX)->comm : NULL;
	file = &mapping->object->name;
	if (comm && comm->size == COMM_SIZE && file->size > comm->size &&
	    !memcmp(comm->str, file->str, comm->size) && is_match(m, file->str, file->size))
		choose(p);
}

static void apply_mmap(struct maps *m, const struct maps_event *ev)
{
	struct process *p = maps_process_at(m, ev->pid, ev->time_ns);
	struct mapping mapping = ev->mapping;
	struct space_edit *edit;

	if (p)
		choose_by_file(m, p, &mapping);
	edit = p ? maps_draft(m, p) : NULL;
	if (!edit)
		return;
	/* Not a kernel thread like its parent (pid 1 of a recording): it maps code. */
	atomic_fetch_and_explicit(&p->flags, ~(unsigned int)PROCESS_KERNEL, memory_order_relaxed);
	if (!mapping.object) {
		mapping.object = maps_anon(m, p, mapping.start, mapping.end);
		maps_hold(m, mapping.object);
	}
	if (space_edit_map(edit, &mapping) == SPACE_COVERED)
		atomic_store_explicit(&p->covered_ns, ev->time_ns, memory_order_relaxed);
	maps_note_interpreter(m, p, &mapping);
}

/* Add replaced code, only to the process that owns the memory. */
static void apply_code(struct maps *m, const struct maps_event *ev)
{
	struct process *p = process_find(&m->procs, ev->pid, ev->time_ns);
	struct space_edit *edit;

	if (!p || p->id != ev->mapping.object->identity.owner)
		return;
	edit = maps_draft(m, p);
	if (edit)
		space_edit_add(edit, &ev->mapping);
}

/* Give @th the name that it has from @time_ns on, raw, if that is another one. */
static void maps_rename_thread(struct maps *m, struct process_thread *th, uint64_t time_ns,
			       const char *name, size_t size)
{
	char clean[TASK_COMM_SIZE];
	struct safe_text comm = text_sanitise(clean, sizeof(clean), name, size);
	const struct safe_text *old = &process_thread_name(th, time_ns)->comm;

	if (old->size != comm.size || memcmp(old->str, comm.str, comm.size))
		process_thread_rename(&m->procs, th, time_ns, comm, m->keep_from_ns);
}

static void apply_comm(struct maps *m, const struct maps_event *ev)
{
	struct process *p = maps_process_at(m, ev->pid, ev->time_ns);
	struct safe_text comm = { ev->comm.bytes, (uint16_t)ev->comm.size, 0 };
	struct process_thread *th;
	uint64_t time_ns;

	if (!p)
		return;
	if (ev->tid == ev->pid && is_match(m, comm.str, comm.size))
		choose(p);
	time_ns = MAX(ev->time_ns, p->birth_ns);
	th = process_thread_present(&m->procs, ev->pid, ev->tid);
	if (!th || th->process != p || th->birth_ns > time_ns) {
		process_thread_add(&m->procs, p, ev->tid, time_ns, comm);
		return;
	}
	maps_rename_thread(m, th, time_ns, comm.str, comm.size);
}

static struct process *maps_begin_process(struct maps *m, pid_t pid, uint64_t birth_ns,
					  struct space *space, const struct process *from);

/* Begin a new image: empty, and all its mappings will be events. */
static void apply_exec(struct maps *m, const struct maps_event *ev)
{
	struct process *before = process_find(&m->procs, ev->pid, ev->time_ns);
	struct process *p =
		maps_begin_process(m, ev->pid, ev->time_ns, space_get(m->empty), before);
	struct safe_text comm = { ev->comm.bytes, (uint16_t)ev->comm.size, 0 };
	unsigned int chosen = is_match(m, comm.str, comm.size) ? PROCESS_CHOSEN : 0;

	if (!p)
		return;
	if (before)
		chosen |= atomic_load_explicit(&before->flags, memory_order_relaxed) &
			  PROCESS_CHOSEN;
	atomic_store_explicit(&p->epoch, atomic_load_explicit(&m->epoch, memory_order_relaxed),
			      memory_order_relaxed);
	if (before)
		atomic_store_explicit(&p->parent,
				      atomic_load_explicit(&before->parent, memory_order_relaxed),
				      memory_order_relaxed);
	atomic_store_explicit(&p->flags, PROCESS_KNOWN | chosen, memory_order_relaxed);
	process_insert(&m->procs, p);
	process_thread_add(&m->procs, p, ev->tid, ev->time_ns, comm);
}

/* Find the name that a forked task begins with; NULL: unknown. */
static const struct thread_name *parent_name(const struct maps *m, const struct maps_event *ev)
{
	const struct process_thread *th =
		process_thread_find(&m->procs, ev->ppid, ev->ptid, ev->time_ns);

	if (!th)
		th = process_thread_find(&m->procs, ev->ppid, ev->ppid, ev->time_ns);
	return th ? process_thread_name(th, ev->time_ns) : NULL;
}

static void apply_thread_fork(struct maps *m, const struct maps_event *ev)
{
	struct process *p = process_find(&m->procs, ev->pid, ev->time_ns);
	const struct thread_name *parent = parent_name(m, ev);

	/* The loader reads the threads of an unknown process. */
	if (p && parent)
		process_thread_add(&m->procs, p, ev->tid, MAX(ev->time_ns, p->birth_ns),
				   parent->comm);
}

/* Give the user to a child with an exec that was read before its fork, and choose it also. */
static void pass_on(struct maps *m, const struct process *p)
{
	struct process *child = process_find(&m->procs, p->pid, UINT64_MAX);

	if (!child || child->birth_ns <= p->birth_ns)
		return;
	if (atomic_load_explicit(&p->flags, memory_order_relaxed) & PROCESS_CHOSEN)
		choose(child);
	if (atomic_load_explicit(&child->uid, memory_order_relaxed) == UINT32_MAX)
		atomic_store_explicit(&child->uid,
				      atomic_load_explicit(&p->uid, memory_order_relaxed),
				      memory_order_relaxed);
}

static struct space *maps_fork_space(struct maps *m, struct process *parent, uint64_t time_ns);
static void maps_inherit_interpreter(struct maps *m, struct process *child, struct process *parent);

/* Begin a child with the space that its parent has at this time. */
static void apply_process_fork(struct maps *m, const struct maps_event *ev)
{
	struct process *parent = process_find(&m->procs, ev->ppid, ev->time_ns);
	const struct thread_name *name = parent_name(m, ev);
	struct space *space = parent ? maps_fork_space(m, parent, ev->time_ns)
				     : space_get(m->empty);
	struct process *p = maps_begin_process(m, ev->pid, ev->time_ns, space, parent);

	if (!p)
		return;
	atomic_store_explicit(&p->parent, ev->ppid, memory_order_relaxed);
	if (parent) {
		atomic_store_explicit(&p->epoch,
				      atomic_load_explicit(&parent->epoch, memory_order_relaxed),
				      memory_order_relaxed);
		atomic_store_explicit(&p->flags,
				      atomic_load_explicit(&parent->flags, memory_order_relaxed),
				      memory_order_relaxed);
	}
	if (parent)
		maps_inherit_interpreter(m, p, parent);
	process_insert(&m->procs, p);
	pass_on(m, p);
	if (name)
		process_thread_add(&m->procs, p, ev->tid, ev->time_ns, name->comm);
}

static void apply_fork(struct maps *m, const struct maps_event *ev)
{
	if (ev->pid == ev->ppid)
		apply_thread_fork(m, ev);
	else
		apply_process_fork(m, ev);
}

static void apply_exit(struct maps *m, const struct maps_event *ev)
{
	struct process_thread *th = process_thread_present(&m->procs, ev->pid, ev->tid);
	struct process *p;

	if (th) {
		if (th->birth_ns <= ev->time_ns)
			process_thread_end(&m->procs, th, ev->time_ns);
		return;
	}
	/* The leader of a process with threads that were never read. */
	p = ev->pid == ev->tid ? process_find(&m->procs, ev->pid, ev->time_ns) : NULL;
	if (p && !p->threads && p->birth_ns <= ev->time_ns)
		process_end(&m->procs, p, ev->time_ns);
}

static int by_time(const void *a, const void *b)
{
	const struct maps_event *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return COMPARE(x->time_ns, y->time_ns);
	return COMPARE(x->seq, y->seq);
}

/* Test for an event of the future: a jitdump is read before the samples of a recording. */
static bool waits(const struct maps *m, const struct maps_event *ev)
{
	return m->no_proc && ev->type == EVENT_CODE && ev->time_ns > m->now_ns;
}

static void apply_event(struct maps *m, const struct maps_event *ev)
{
	static void (*const apply[])(struct maps * m, const struct maps_event *ev) = {
		[EVENT_MMAP] = apply_mmap, [EVENT_CODE] = apply_code, [EVENT_COMM] = apply_comm,
		[EVENT_EXEC] = apply_exec, [EVENT_FORK] = apply_fork, [EVENT_EXIT] = apply_exit,
	};

	apply[ev->type](m, ev);
	if ((ev->type == EVENT_MMAP || ev->type == EVENT_CODE) && ev->mapping.object)
		maps_hold(m, ev->mapping.object);
}

/* Apply the log in the order of time. */
static void maps_apply_log(struct maps *m)
{
	uint32_t kept = 0;

	if (m->nr_log)
		qsort(m->log, m->nr_log, sizeof(m->log[0]), by_time);
	for (uint32_t i = 0; i < m->nr_log; i++) {
		if (waits(m, &m->log[i]) && kept < LOG_MAX / 2)
			m->log[kept++] = m->log[i];
		else
			apply_event(m, &m->log[i]);
	}
	m->nr_log = kept;
	memset(m->renames, 0, sizeof(m->renames));
	/* Sorted: the first entry is due first. */
	atomic_store_explicit(&m->due_ns, kept ? m->log[0].time_ns : UINT64_MAX,
			      memory_order_relaxed);
}

/*
 * Processes that are interpreters: queued when their files are mapped, described
 * by the loader, published with the process.
 *
 * Runs on: the holder of the lock of the maps.
 */

#define INTERPRETERS_MAX 65536u

/* Queue it for the loader. Without memory its code has no names. */
static void want(struct maps *m, const struct process *p, const struct mapping *mapping)
{
	if (m->nr_interpreters == INTERPRETERS_MAX ||
	    !array_reserve(&m->interpreters, &m->room_interpreters, m->nr_interpreters + 1ull))
		return;
	object_get(mapping->object);
	m->interpreters[m->nr_interpreters++] =
		(struct maps_interpreter){ p->pid, p->id, *mapping };
}

/* A JVM is known by its file: its code cache is read by java.c. */
static void note_jvm(struct process *p)
{
	struct lang_desc *desc;

	if (p->interpreters[0].object || atomic_load_explicit(&p->lang, memory_order_relaxed))
		return;
	desc = calloc(1, sizeof(*desc));
	if (!desc)
		return;
	atomic_init(&desc->refs, 1);
	desc->info.kind = LANG_JAVA;
	/* As in maps_describe(). */
	atomic_store_explicit(&p->lang, desc, memory_order_release);
}

/* @p has mapped @mapping: if that is an interpreter, it is to be looked at. */
static void maps_note_interpreter(struct maps *m, struct process *p, const struct mapping *mapping)
{
	if (mapping->object && mapping->object->identity.kind == OBJECT_FILE &&
	    !strcmp(mapping->object->name.str, "libjvm.so"))
		note_jvm(p);
	if (m->no_proc || !mapping->object || mapping->object->identity.kind != OBJECT_FILE ||
	    detect_kind(mapping->object) == LANG_NONE)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(p->interpreters); i++) {
		if (p->interpreters[i].object == mapping->object)
			return;
		if (p->interpreters[i].object)
			continue;
		object_get(mapping->object);
		p->interpreters[i] = *mapping;
		want(m, p, mapping);
		return;
	}
}

void maps_note_object(struct maps *m, const struct object *object)
{
	pthread_mutex_lock(&m->lock);
	for (uint32_t i = 0; i < PROCS_BUCKETS; i++) {
		struct process *p =
			atomic_load_explicit(&m->procs.processes[i], memory_order_relaxed);

		for (; p; p = atomic_load_explicit(&p->next, memory_order_relaxed)) {
			const struct mapping *mapping = space_find_object(
				atomic_load_explicit(&p->space, memory_order_relaxed), object);

			if (mapping && !p->doomed.is_doomed)
				maps_note_interpreter(m, p, mapping);
		}
	}
	pthread_mutex_unlock(&m->lock);
}

/* @child was forked by @parent: it has the same interpreter, at the same addresses. */
static void maps_inherit_interpreter(struct maps *m, struct process *child, struct process *parent)
{
	struct lang_desc *desc = atomic_load_explicit(&parent->lang, memory_order_relaxed);

	memcpy(child->interpreters, parent->interpreters, sizeof(child->interpreters));
	atomic_store_explicit(&child->lang, lang_desc_get(desc), memory_order_relaxed);
	for (size_t i = 0; i < ARRAY_SIZE(child->interpreters); i++) {
		if (!child->interpreters[i].object)
			continue;
		object_get(child->interpreters[i].object);
		if (!desc || desc->info.reason)
			want(m, child, &child->interpreters[i]);
	}
}

bool maps_is_undescribed(struct maps *m, pid_t pid)
{
	const struct process *p;
	bool is;

	pthread_mutex_lock(&m->lock);
	p = process_find(&m->procs, pid, UINT64_MAX);
	is = p && p->interpreters[0].object &&
	     !atomic_load_explicit(&p->lang, memory_order_relaxed);
	pthread_mutex_unlock(&m->lock);
	return is;
}

bool maps_next_interpreter(struct maps *m, struct maps_interpreter *out)
{
	bool any;

	pthread_mutex_lock(&m->lock);
	any = m->nr_interpreters;
	if (any)
		*out = m->interpreters[--m->nr_interpreters];
	pthread_mutex_unlock(&m->lock);
	return any;
}

/* Return whether @desc is the better one: one that can be read replaces one that cannot. */
static bool is_better(const struct process *p, const struct lang_desc *desc)
{
	const struct lang_desc *before = atomic_load_explicit(&p->lang, memory_order_relaxed);

	return !before || ((before->info.reason || before->info.kind == LANG_GO) &&
			   !desc->info.reason && !p->unread);
}

void maps_describe(struct maps *m, pid_t pid, uint32_t process, struct lang_desc *desc)
{
	struct process *p;

	pthread_mutex_lock(&m->lock);
	p = process_find(&m->procs, pid, UINT64_MAX);
	/* Else: ended, replaced, or described by its other file. */
	if (p && p->id == process && is_better(p, desc)) {
		/* Readers may use the one before. */
		p->unread = atomic_load_explicit(&p->lang, memory_order_relaxed);
		/* Publishes the description; pairs with maps_find(). */
		atomic_store_explicit(&p->lang, desc, memory_order_release);
		desc = NULL;
	}
	pthread_mutex_unlock(&m->lock);
	lang_desc_put(desc);
}

/*
 * Requests of the sampler threads to the loader: read /proc/PID.
 *
 * A small open-addressed set of pids: a second request for a pid is dropped. A
 * filter limits unknown pids to one request a second each.
 *
 * Threads: all lock-free, from any thread; requests_take() from the loader.
 *
 * The set of requests. Runs on: any thread, lock-free.
 *
 * A request is only a pid, so relaxed order is enough: the loader is woken by an
 * eventfd, which orders memory.
 */

#define REQUESTS_EVERY_NS 1000000000ULL
#define PROBES		  32u
#define WAYS		  4u
#define UNIT_BITS	  20
#define EVERY_UNIT	  (REQUESTS_EVERY_NS >> UNIT_BITS)

/* Test if a request at @now_ns may follow one at @last (0: none), and set it: on one thread. */
static bool requests_due(_Atomic uint64_t *last, uint64_t now_ns)
{
	uint64_t then = atomic_load_explicit(last, memory_order_relaxed);

	/*
	 * Samples of two CPUs are not in order: a small step back in time is not a
	 * second.
	 */
	if (then && now_ns < then + REQUESTS_EVERY_NS && now_ns + REQUESTS_EVERY_NS > then)
		return false;
	return atomic_compare_exchange_strong_explicit(last, &then, now_ns ? now_ns : 1,
						       memory_order_relaxed, memory_order_relaxed);
}

/* The same for a pid without a record. */
static bool requests_due_unknown(struct requests *a, pid_t pid, uint64_t now_ns)
{
	uint32_t set = (uint32_t)hash_u64((uint64_t)pid) & (REQUESTS_FILTERS - WAYS);
	uint32_t now = (uint32_t)(now_ns >> UNIT_BITS), longest = 0;
	_Atomic uint64_t *oldest = &a->filters[set];
	uint64_t old = 0;

	for (uint32_t i = 0; i < WAYS; i++) {
		uint64_t f = atomic_load_explicit(&a->filters[set + i], memory_order_relaxed);
		uint32_t age = now - (uint32_t)f;

		if (f >> 32 == (uint32_t)pid && (age < EVERY_UNIT || -age < EVERY_UNIT))
			return false;
		if (!f || f >> 32 == (uint32_t)pid)
			age = UINT32_MAX;
		if (age >= longest) {
			longest = age;
			oldest = &a->filters[set + i];
			old = f;
		}
	}
	/* The loser of the race leaves the request to the winner, or tries again later. */
	return atomic_compare_exchange_strong_explicit(oldest, &old, (uint64_t)pid << 32 | now,
						       memory_order_relaxed, memory_order_relaxed);
}

/* Queue @pid. False: already queued, or the set is full. */
static bool requests_put(struct requests *a, pid_t pid)
{
	uint32_t at = (uint32_t)hash_u64((uint64_t)pid);

	for (uint32_t i = 0; i < PROBES; i++) {
		atomic_int *slot = &a->slots[(at + i) & (REQUESTS_SLOTS - 1)];
		int there = atomic_load_explicit(slot, memory_order_relaxed);

		if (there == pid)
			return false;
		if (!there &&
		    atomic_compare_exchange_strong_explicit(slot, &there, pid, memory_order_relaxed,
							    memory_order_relaxed)) {
			/* Relaxed: the loader is woken after this. */
			atomic_fetch_add_explicit(&a->nr, 1, memory_order_relaxed);
			return true;
		}
		if (there == pid)
			return false;
	}
	return false;
}

/* Take a request out of slot *@pos or a later one; 0: none left. */
static pid_t requests_take(struct requests *a, uint32_t *pos)
{
	/* Mostly empty. */
	if (!atomic_load_explicit(&a->nr, memory_order_relaxed))
		return 0;
	for (; *pos < REQUESTS_SLOTS; (*pos)++) {
		pid_t pid;

		if (!atomic_load_explicit(&a->slots[*pos], memory_order_relaxed))
			continue;
		pid = atomic_exchange_explicit(&a->slots[*pos], 0, memory_order_relaxed);
		if (!pid)
			continue;
		atomic_fetch_sub_explicit(&a->nr, 1, memory_order_relaxed);
		return pid;
	}
	return 0;
}

/* Shortest and longest pause between readings of all processes because of lost records. */

/* A late sample of a process that has ended, while very many end. */
#define CROWD_NS 500000000ull

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

/*
 * Names of ended threads, found by all their texts, by the texts of the process, and by the id of
 * the process: three hashes in one set.
 */
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

static struct ended *ended_new(void)
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

static void ended_free(struct ended *e)
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
static struct name *find_ended(const struct ended *e, const struct task *t,
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

/*
 * Return the task in @to that @task, with its cgroup and container in @known, is part of; its pid
 * is -1. TASK_UNKNOWN: there are too many, or @to has no room.
 */
static uint32_t ended_task(struct ended *e, struct tasks *to, const struct task *task,
			   const struct process_details *known, struct ended_ids *ids)
{
	const struct process_details unplaced = { .cgroup = TEXT(""), .container = TEXT("") };
	struct task t = *task;
	struct name *n;

	/* The first sample was of a thread, and the name of the process is not known. */
	if (!t.process_comm.size)
		t.process_comm = t.comm;
	t.process_comm = details_name(t.process_comm, known->program);
	n = find_ended(e, &t, known, true);
	if (!n && e->nr >= ENDED_PLACED_MAX) {
		known = &unplaced;
		n = find_ended(e, &t, known, true);
	}
	if (!n)
		n = add(e, &t, known, find_ended(e, &t, known, false), ids);
	if (!n)
		return TASK_UNKNOWN;
	count(e, n, task, to->serial);
	if (n->word >> 32 != to->serial || !(uint32_t)n->word)
		n->word = (uint64_t)to->serial << 32 | tasks_add(to, &n->task);
	return (uint32_t)n->word;
}

/* Get user, cgroup and container of @process, an id of ended_task(). False: it is none. */
static bool ended_details(const struct ended *e, uint32_t process, struct process_details *out)
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

/* Test whether the maps of @p are complete. Any thread. */
static bool maps_process_known(const struct maps *m, const struct process *p)
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

/* Return the id of a thread under its name at @time_ns, given now if this is the first sample of
 * that name. */
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

/* Of a JVM or V8: the kind of thread @task is. */
static uint8_t own_thread(const struct tasks *tasks, uint32_t id)
{
	const struct task *task = tasks_at(tasks, id);

	return task ? task->own_thread : LANG_NO_FRAMES;
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
	if (lang && (lang->info.kind == LANG_JAVA || lang->info.kind == LANG_NODE))
		hit->own_thread = own_thread(tasks, hit->task);
	hit->ask |= atomic_load_explicit(&p->uid, memory_order_relaxed) == UINT32_MAX ||
		    atomic_load_explicit(&p->covered_ns, memory_order_relaxed);
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

void maps_choose(struct maps *m, pid_t pid, uint64_t now_ns)
{
	struct process *p;

	pthread_mutex_lock(&m->lock);
	p = process_find(&m->procs, pid, now_ns);
	/* It may have ended since it was found. */
	if (!p)
		p = maps_process_at(m, pid, now_ns);
	if (p)
		choose(p);
	pthread_mutex_unlock(&m->lock);
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

/* Make an incarnation of a process; takes over one reference of @space. NULL: no memory. */
static struct process *maps_begin_process(struct maps *m, pid_t pid, uint64_t birth_ns,
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

/* Find the incarnation of an event at @time_ns; begin one, unknown, if there is none. */
static struct process *maps_process_at(struct maps *m, pid_t pid, uint64_t time_ns)
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

/* Return the draft of the next space of @p; NULL when out of memory. */
static struct space_edit *maps_draft(struct maps *m, struct process *p)
{
	if (!p->edit)
		p->edit = space_edit_new(atomic_load_explicit(&p->space, memory_order_relaxed),
					 &m->spaces);
	if (p->edit)
		process_mark_dirty(p, &m->dirty);
	return p->edit;
}

/* Publish the draft of @p, if it has one. */
static void maps_freeze(struct maps *m, struct process *p)
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

/* Return the space that a child of @parent begins with at @time_ns, with a reference. */
static struct space *maps_fork_space(struct maps *m, struct process *parent, uint64_t time_ns)
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

/* Publish all drafts. */
static void maps_freeze_all(struct maps *m)
{
	while (m->dirty) {
		struct process *p = m->dirty;

		process_mark_clean(p);
		maps_freeze(m, p);
	}
	while (m->nr_held)
		object_put(m->held[--m->nr_held]);
}

/* Take over a reference of @object, which a draft has without one. */
static void maps_hold(struct maps *m, struct object *object)
{
	/* Without memory the object is kept for good. */
	if (array_reserve(&m->held, &m->room_held, m->nr_held + 1ULL))
		m->held[m->nr_held++] = object;
}

/* Return the object of anonymous memory of @p, with a reference. */
static struct object *maps_anon(struct maps *m, const struct process *p, uint64_t start,
				uint64_t end)
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

/*
 * Read /proc/PID: without the lock, merged under it.
 *
 * A reading belongs to the incarnation of its begin. Later side-band events win;
 * mappings of earlier events that /proc contradicts were lost or unmapped, and
 * are replaced.
 *
 * Runs on: the loader (or set-up).
 */

#define THREADS_MAX	65536u
#define STATUS_SIZE_MAX (64u << 10)
#define OTHERS_MAX	8u /* threads to try for maps when the leader has ended */

struct found_thread {
	pid_t tid;
	size_t size;
	char comm[TASK_COMM_SIZE];
};

struct maps_load_reading {
	pid_t pid;
	int dir_fd; /* of /proc/PID: refers to one process also if the pid is reused */
	uint64_t began_ns;
	unsigned int epoch;
	uint32_t uid;
	bool kernel;
	int maps_code;	      /* errno of reading maps; 0 */
	struct mapping *maps; /* executable ones; object NULL: anonymous */
	uint32_t nr_maps, room_maps;
	struct found_thread *threads; /* with names to merge */
	uint32_t nr_threads, room_threads;
};

static int read_status(struct maps_load_reading *r)
{
	uint64_t uid, flags;
	char *text;
	size_t size;
	int code = untrusted_read_at(r->dir_fd, "status", STATUS_SIZE_MAX, &text, &size);

	if (code)
		return code;
	r->uid = procfs_status_number(text, size, "Uid", &uid) ? (uint32_t)uid : UINT32_MAX;
	if (procfs_status_number(text, size, "Kthread", &flags)) {
		r->kernel = flags == 1;
		free(text);
		return 0;
	}
	free(text);
	/* Before kernel 6.8. */
	code = untrusted_read_at(r->dir_fd, "stat", STATUS_SIZE_MAX, &text, &size);
	if (code)
		return code;
	r->kernel = procfs_stat_flags(text, size, &flags) && (flags & PROCFS_PF_KTHREAD);
	free(text);
	return 0;
}

/* Add a mapping; @seen: a line with the same file, to open it by. */
static void add_map(struct maps *m, struct maps_load_reading *r, const struct procfs_map *line,
		    const struct procfs_map *seen)
{
	struct object_identity identity = { .maj = line->maj, .min = line->min, .ino = line->ino };
	struct mapping mapping = {
		.start = line->start, .end = line->end, .exec = true, .writable = line->writable
	};
	char path[PATH_SIZE_MAX];
	size_t size = procfs_unescape(path, sizeof(path), line->path, line->path_size);

	if (!array_reserve(&r->maps, &r->room_maps, r->nr_maps + 1ull))
		return;
	identity.kind = procfs_kind(path, size, line->start, line->is_private);
	mapping.offset = identity.kind == OBJECT_FILE	? line->offset
			 : identity.kind == OBJECT_VDSO ? 0
							: line->start;
	if (identity.kind != OBJECT_ANON)
		mapping.object = objects_hold(m->objects, &identity, path, size, r->pid,
					      seen->start, seen->end);
	r->maps[r->nr_maps++] = mapping;
}

#define MOVED_MAX 16 /* executable mappings without a file between two of one file */

/* Lines that may be text of a file, which the program has moved to other memory (huge pages). */
struct moved {
	struct procfs_map file; /* the line below them; end 0: none */
	struct procfs_map lines[MOVED_MAX];
	uint32_t nr;
};

/* Return true if @line is of @file, as far above it as in the file: both are of one image. */
static bool continues(const struct procfs_map *file, const struct procfs_map *line)
{
	return line->ino == file->ino && line->maj == file->maj && line->min == file->min &&
	       line->offset - file->offset == line->start - file->start;
}

/* Add the lines since the last file: as its text if @next continues it. */
static void add_moved(struct maps *m, struct maps_load_reading *r, struct moved *moved,
		      const struct procfs_map *next)
{
	bool same = next && continues(&moved->file, next);

	for (uint32_t i = 0; i < moved->nr; i++) {
		struct procfs_map line = moved->file;

		line.start = moved->lines[i].start;
		line.end = moved->lines[i].end;
		line.offset += line.start - moved->file.start;
		add_map(m, r, same ? &line : &moved->lines[i],
			same ? &moved->file : &moved->lines[i]);
	}
	moved->nr = 0;
}

/* Take a line; an executable one without a file waits for the next line of a file. */
static void take_map(struct maps *m, struct maps_load_reading *r, struct moved *moved,
		     const struct procfs_map *line)
{
	const struct procfs_map *below = moved->nr ? &moved->lines[moved->nr - 1] : &moved->file;
	bool fits = below->end && below->end == line->start;
	bool file = line->ino && line->path_size && line->path[0] == '/' &&
		    !(line->exec && !line->is_private);

	if (!file && line->exec && fits && moved->nr < MOVED_MAX) {
		moved->lines[moved->nr++] = *line;
		return;
	}
	add_moved(m, r, moved, file && fits ? line : NULL);
	if (line->exec)
		add_map(m, r, line, line);
	moved->file = file ? *line : (struct procfs_map){ .end = 0 };
}

/* Read the executable mappings of one maps file; *@lines counts all lines. */
static int read_maps(struct maps *m, struct maps_load_reading *r, const char *name, uint32_t *lines)
{
	struct moved moved = { .nr = 0 };
	struct procfs_text text;
	struct procfs_map line;
	char *bytes;
	size_t size;
	int code = untrusted_read_at(r->dir_fd, name, PROCFS_MAPS_SIZE_MAX, &bytes, &size);

	if (code)
		return code;
	text = (struct procfs_text){ .at = bytes, .end = bytes + size };
	while (r->nr_maps < SPACE_MAPPINGS_MAX && procfs_next_map(&text, &line)) {
		(*lines)++;
		take_map(m, r, &moved, &line);
	}
	add_moved(m, r, &moved, NULL);
	text = (struct procfs_text){ .at = bytes, .end = bytes + size };
	procfs_find_copies(m->objects, r->dir_fd, r->pid, r->maps, r->nr_maps, text);
	free(bytes);
	return 0;
}

/* Read the maps of other threads: the maps of a leader that has ended are empty. */
static void read_maps_of_threads(struct maps *m, struct maps_load_reading *r, const pid_t *tids,
				 uint32_t nr)
{
	uint32_t lines = 0;
	char name[64];

	for (uint32_t i = 0; i < MIN(nr, OTHERS_MAX) && !lines; i++) {
		snprintf(name, sizeof(name), "task/%d/maps", tids[i]);
		read_maps(m, r, name, &lines);
	}
}

/* List the ids of all threads in *@tids, malloc'ed; return their number. */
static uint32_t list_threads(const struct maps_load_reading *r, pid_t **tids)
{
	int fd = openat(r->dir_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	uint32_t nr = 0, room = 0;
	struct dirent *entry;

	*tids = NULL;
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while (nr < THREADS_MAX && (entry = readdir(dir))) {
		long tid = strtol(entry->d_name, NULL, 10);

		if (tid > 0 && array_reserve(tids, &room, nr + 1ull))
			(*tids)[nr++] = (pid_t)tid;
	}
	closedir(dir);
	return nr;
}

/* Read the name of a thread. */
static void read_thread(struct maps_load_reading *r, pid_t tid)
{
	struct found_thread *t;
	char name[64], *text;
	size_t size;

	snprintf(name, sizeof(name), "task/%d/comm", tid);
	if (!array_reserve(&r->threads, &r->room_threads, r->nr_threads + 1ull) ||
	    untrusted_read_at(r->dir_fd, name, TASK_COMM_SIZE, &text, &size))
		return;
	if (size && text[size - 1] == '\n')
		size--;
	t = &r->threads[r->nr_threads++];
	t->tid = tid;
	t->size = MIN(size, sizeof(t->comm));
	memcpy(t->comm, text, t->size);
	free(text);
}

/*
 * Keep the @tids without a record, and of a process that is read again the main thread: an exec may
 * be among the lost records. Return their number.
 */
static uint32_t keep_unknown(struct maps *m, const struct maps_load_reading *r, pid_t *tids,
			     uint32_t nr)
{
	const struct process *p;
	uint32_t kept = 0;
	bool again;

	pthread_mutex_lock(&m->lock);
	p = process_find(&m->procs, r->pid, r->began_ns);
	again = p && (atomic_load_explicit(&p->flags, memory_order_relaxed) & PROCESS_KNOWN);
	for (uint32_t i = 0; i < nr; i++)
		if ((again && tids[i] == r->pid) ||
		    !process_thread_present(&m->procs, r->pid, tids[i]))
			tids[kept++] = tids[i];
	pthread_mutex_unlock(&m->lock);
	return kept;
}

/* Read all that is used of /proc/PID. 0, or why the process cannot be read. */
static int read_process(struct maps *m, struct maps_load_reading *r)
{
	uint32_t nr, lines = 0;
	pid_t *tids;
	int code = read_status(r);

	if (code)
		return code;
	if (!r->kernel)
		r->maps_code = read_maps(m, r, "maps", &lines);
	nr = list_threads(r, &tids);
	if (!r->kernel && !r->maps_code && !lines && nr > 1)
		read_maps_of_threads(m, r, tids, nr);
	nr = keep_unknown(m, r, tids, nr);
	for (uint32_t i = 0; i < nr; i++)
		read_thread(r, tids[i]);
	free(tids);
	return r->maps_code == -ESRCH ? -ESRCH : 0;
}

/* Set the user; tasks named before it was known get new ids. */
static void set_uid(struct maps *m, struct process *p, uint32_t uid)
{
	if (atomic_load_explicit(&p->uid, memory_order_relaxed) == uid)
		return;
	atomic_store_explicit(&p->uid, uid, memory_order_relaxed);
	for (struct process_thread *th = p->threads; th; th = th->next_sibling)
		process_thread_forget_tasks(th);
}

void maps_set_user(struct maps *m, pid_t pid, uid_t uid, uint64_t time_ns)
{
	struct process *p;

	pthread_mutex_lock(&m->lock);
	p = process_find(&m->procs, pid, time_ns);
	if (p)
		set_uid(m, p, uid);
	pthread_mutex_unlock(&m->lock);
}

static void merge_maps(struct maps *m, struct process *p, struct maps_load_reading *r)
{
	struct space_edit *edit = r->nr_maps ? maps_draft(m, p) : NULL;

	for (uint32_t i = 0; edit && i < r->nr_maps; i++) {
		struct mapping *mapping = &r->maps[i];

		if (!mapping->object)
			mapping->object = maps_anon(m, p, mapping->start, mapping->end);
		space_edit_merge(edit, mapping, r->began_ns);
		maps_note_interpreter(m, p, mapping);
	}
	maps_freeze(m, p);
}

/* Name the threads of the reading; events after its begin know more. */
static void merge_threads(struct maps *m, struct process *p, const struct maps_load_reading *r)
{
	for (uint32_t i = 0; i < r->nr_threads; i++) {
		const struct found_thread *t = &r->threads[i];
		struct process_thread *th = process_thread_present(&m->procs, r->pid, t->tid);

		if (!th)
			process_thread_add(&m->procs, p, t->tid, p->birth_ns,
					   (struct safe_text){ t->comm, (uint16_t)t->size, 0 });
		else if (process_thread_name(th, UINT64_MAX)->birth_ns < r->began_ns)
			maps_rename_thread(m, th, r->began_ns, t->comm, t->size);
	}
}

/* Merge the reading into its process. Under the lock. */
static int merge(struct maps *m, struct maps_load_reading *r)
{
	struct process *p = process_find(&m->procs, r->pid, r->began_ns);
	unsigned int chosen;

	/* A newer image has begun: its events know more. */
	if (p && p->birth_ns > r->began_ns)
		return maps_process_known(m, p) ? 0 : -EAGAIN;
	/* Ended: /proc has a zombie. */
	if (p && p->doomed.is_doomed && !r->kernel && !r->nr_maps && !r->maps_code)
		return -ESRCH;
	p = maps_process_at(m, r->pid, r->began_ns);
	if (!p)
		return -ENOMEM;
	merge_maps(m, p, r);
	merge_threads(m, p, r);
	set_uid(m, p, r->uid);
	atomic_store_explicit(&p->epoch, r->epoch, memory_order_relaxed);
	if (atomic_load_explicit(&p->covered_ns, memory_order_relaxed) < r->began_ns)
		atomic_store_explicit(&p->covered_ns, 0, memory_order_relaxed);
	/* Release: the space and its threads; pairs with maps_process_known(). */
	chosen = atomic_load_explicit(&p->flags, memory_order_relaxed) & PROCESS_CHOSEN;
	atomic_store_explicit(&p->flags, PROCESS_KNOWN | chosen | (r->kernel ? PROCESS_KERNEL : 0),
			      memory_order_release);
	return r->maps_code;
}

/* End a process that is gone: its samples need not wait. */
static void merge_gone(struct maps *m, const struct maps_load_reading *r)
{
	struct process *p = process_find(&m->procs, r->pid, r->began_ns);

	if (p && (p->birth_ns > r->began_ns || maps_process_known(m, p)))
		return;
	if (!p)
		p = maps_process_at(m, r->pid, r->began_ns);
	if (!p)
		return;
	atomic_store_explicit(&p->epoch, r->epoch, memory_order_relaxed);
	atomic_fetch_or_explicit(&p->flags, PROCESS_KNOWN, memory_order_release);
	process_end(&m->procs, p, r->began_ns);
}

/* Read /proc/PID/{maps,status,task}. 0 or -errno (ESRCH, EACCES are normal). */
static int maps_load(struct maps *m, pid_t pid)
{
	struct maps_load_reading r = { .pid = pid, .uid = UINT32_MAX };
	int code;

	r.began_ns = time_now_ns();
	r.epoch = atomic_load_explicit(&m->epoch, memory_order_acquire);
	r.dir_fd = untrusted_open_proc(pid);
	code = r.dir_fd < 0 ? r.dir_fd : read_process(m, &r);
	atomic_fetch_add_explicit(&m->nr_reads, 1, memory_order_relaxed);
	pthread_mutex_lock(&m->lock);
	if (!code)
		code = merge(m, &r);
	else if (code == -ESRCH)
		merge_gone(m, &r);
	tasks_grow(maps_tasks(m));
	pthread_mutex_unlock(&m->lock);
	if (code)
		atomic_fetch_add_explicit(&m->nr_read_failed, 1, memory_order_relaxed);
	if (r.dir_fd >= 0)
		close(r.dir_fd);
	for (uint32_t i = 0; i < r.nr_maps; i++)
		object_put(r.maps[i].object);
	free(r.maps);
	free(r.threads);
	return code;
}

/* Exits were lost: end the processes that are gone. */
static void sweep(struct maps *m)
{
	uint32_t nr = 0, room = 0;
	pid_t *pids = NULL;
	char path[32];

	pthread_mutex_lock(&m->lock);
	m->sweep = false;
	for (uint32_t i = 0; i < PROCS_BUCKETS; i++)
		for (struct process *p =
			     atomic_load_explicit(&m->procs.processes[i], memory_order_relaxed);
		     p; p = atomic_load_explicit(&p->next, memory_order_relaxed))
			if (p->pid && !p->doomed.is_doomed &&
			    array_reserve(&pids, &room, nr + 1ull))
				pids[nr++] = p->pid;
	pthread_mutex_unlock(&m->lock);
	for (uint32_t i = 0; i < nr; i++) {
		struct process *p;
		uint64_t now_ns = time_now_ns();

		snprintf(path, sizeof(path), "/proc/%d", pids[i]);
		if (!access(path, F_OK) || errno != ENOENT)
			continue;
		pthread_mutex_lock(&m->lock);
		p = process_find(&m->procs, pids[i], now_ns);
		if (p && p->birth_ns <= now_ns)
			process_end(&m->procs, p, now_ns);
		pthread_mutex_unlock(&m->lock);
	}
	free(pids);
}

unsigned int maps_load_asked(struct maps *m)
{
	unsigned int nr = 0;
	uint32_t pos = 0;
	bool lost;
	pid_t pid;

	while ((pid = requests_take(&m->requests, &pos))) {
		nr++;
		if (!proc_watch_begin(pid))
			continue;
		maps_load(m, pid);
		if (!proc_watch_end())
			return nr;
	}
	pthread_mutex_lock(&m->lock);
	lost = m->sweep;
	pthread_mutex_unlock(&m->lock);
	if (lost)
		sweep(m);
	return nr;
}
