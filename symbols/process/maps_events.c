// SPDX-License-Identifier: GPL-2.0-or-later
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
#include "symbols/process/maps.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "symbols/base/array.h"
#include "symbols/process/maps_state.h"
#include "symbols/process/procfs.h"

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

void maps_free_log(struct maps *m)
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

static void apply_mmap(struct maps *m, const struct maps_event *ev)
{
	struct process *p = maps_process_at(m, ev->pid, ev->time_ns);
	struct mapping mapping = ev->mapping;
	struct space_edit *edit = p ? maps_draft(m, p) : NULL;

	if (!edit)
		return;
	/* Not a kernel thread like its parent (pid 1 of a recording): it maps code. */
	atomic_fetch_and_explicit(&p->flags, ~(unsigned int)PROCESS_KERNEL, memory_order_relaxed);
	if (!mapping.object) {
		mapping.object = maps_anon(m, p, mapping.start, mapping.end);
		maps_hold(m, mapping.object);
	}
	space_edit_add(edit, &mapping);
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

void maps_rename_thread(struct maps *m, struct process_thread *th, uint64_t time_ns,
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
	time_ns = MAX(ev->time_ns, p->birth_ns);
	th = process_thread_present(&m->procs, ev->pid, ev->tid);
	if (!th || th->process != p || th->birth_ns > time_ns) {
		process_thread_add(&m->procs, p, ev->tid, time_ns, comm);
		return;
	}
	maps_rename_thread(m, th, time_ns, comm.str, comm.size);
}

/* Begin a new image: empty, and all its mappings will be events. */
static void apply_exec(struct maps *m, const struct maps_event *ev)
{
	struct process *before = process_find(&m->procs, ev->pid, ev->time_ns);
	struct process *p =
		maps_begin_process(m, ev->pid, ev->time_ns, space_get(m->empty), before);
	struct safe_text comm = { ev->comm.bytes, (uint16_t)ev->comm.size, 0 };

	if (!p)
		return;
	atomic_store_explicit(&p->epoch, atomic_load_explicit(&m->epoch, memory_order_relaxed),
			      memory_order_relaxed);
	if (before)
		atomic_store_explicit(&p->parent,
				      atomic_load_explicit(&before->parent, memory_order_relaxed),
				      memory_order_relaxed);
	atomic_store_explicit(&p->flags, PROCESS_KNOWN, memory_order_relaxed);
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

/* Give the user to a child with an exec that was read before its fork. */
static void pass_on_uid(struct maps *m, const struct process *p)
{
	struct process *child = process_find(&m->procs, p->pid, UINT64_MAX);

	if (child && child->birth_ns > p->birth_ns &&
	    atomic_load_explicit(&child->uid, memory_order_relaxed) == UINT32_MAX)
		atomic_store_explicit(&child->uid,
				      atomic_load_explicit(&p->uid, memory_order_relaxed),
				      memory_order_relaxed);
}

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
	pass_on_uid(m, p);
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

void maps_apply_log(struct maps *m)
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
