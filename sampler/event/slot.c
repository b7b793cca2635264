// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One event on all its tasks and CPUs: opened, also where a task holds the call up, steered, read,
 * closed; event id → slot, lock-free.
 *
 * Runs on: the thread of counters. Invariant: every fd that was opened is in the table or closed
 * again.
 */
#include "sampler/event/internal.h"

#include <assert.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/thread.h"

/* As read(2) gives it for our read_format. */
struct slot_reading {
	uint64_t count, enabled_ns, running_ns, id, lost;
};

/* The same of a group: how many, the times, then count, id and lost of each. */
#define GROUP_WORDS (3 + 3 * EVENTS_MAX)

/*
 * Event ids -> slots: an open-addressing table that readers never wait for.
 *
 * Threads: see internal.h. Invariant: an entry's slot is written before its id
 * is, and never more than half of a table is used, so a search ends.
 */

struct entry {
	_Atomic uint64_t id; /* 0: empty; release publishes the slot, pairs with find */
	atomic_int slot;
	uint32_t closed_s; /* writer only: when its event was closed; 0: it is open */
};

struct idmap_table {
	struct reclaim reclaim;
	size_t mask, used; /* used: writer only */
	struct entry entries[];
};

static struct idmap_table *table_new(size_t nr)
{
	size_t size = 16;
	struct idmap_table *t;

	while (size < 2 * nr)
		size *= 2;
	t = xcalloc(1, sizeof(*t) + size * sizeof(t->entries[0]));
	t->mask = size - 1;
	return t;
}

/* Return the entry of @id, or the empty one for it. */
static struct entry *table_at(struct idmap_table *t, uint64_t id)
{
	for (size_t i = hash_u64(id) & t->mask;; i = (i + 1) & t->mask) {
		uint64_t seen = atomic_load_explicit(&t->entries[i].id, memory_order_acquire);

		if (seen == id || !seen)
			return &t->entries[i];
	}
}

static void table_put(struct idmap_table *t, uint64_t id, int slot, uint32_t closed_s)
{
	struct entry *entry = table_at(t, id);

	assert(id && t->used <= t->mask);
	t->used += !atomic_load_explicit(&entry->id, memory_order_relaxed);
	entry->closed_s = closed_s;
	atomic_store_explicit(&entry->slot, slot, memory_order_relaxed);
	atomic_store_explicit(&entry->id, id, memory_order_release);
}

static struct idmap_table *current(const struct idmap *m)
{
	return atomic_load_explicit(&m->table, memory_order_acquire);
}

static void free_table(struct reclaim *r)
{
	reclaim_grace_over();
	free((char *)r - offsetof(struct idmap_table, reclaim));
}

/* Replace the table; readers may still be in the old one. */
static void publish(struct idmap *m, struct idmap_table *t)
{
	struct idmap_table *old = current(m);

	atomic_store_explicit(&m->table, t, memory_order_release);
	reclaim_later(&old->reclaim, free_table);
}

void idmap_init(struct idmap *m)
{
	atomic_init(&m->table, table_new(0));
	m->closed_s = 0;
}

void idmap_fini(struct idmap *m)
{
	free(current(m));
	atomic_store_explicit(&m->table, NULL, memory_order_relaxed);
}

/* Return the id of @entry; 0: it is empty, or closed for so long that it is forgotten. */
static uint64_t kept_id(const struct idmap *m, const struct entry *entry)
{
	uint64_t id = atomic_load_explicit(&entry->id, memory_order_relaxed);

	return entry->closed_s && m->closed_s - entry->closed_s > IDMAP_KEPT_S ? 0 : id;
}

/* Copy the ids that are kept to a table with a quarter used at most. */
static void renew(struct idmap *m)
{
	const struct idmap_table *t = current(m);
	struct idmap_table *fresh;
	size_t nr = 0;

	for (size_t i = 0; i <= t->mask; i++)
		nr += kept_id(m, &t->entries[i]) != 0;
	fresh = table_new(2 * nr);
	for (size_t i = 0; i <= t->mask; i++)
		if (kept_id(m, &t->entries[i]))
			table_put(fresh, kept_id(m, &t->entries[i]),
				  atomic_load_explicit(&t->entries[i].slot, memory_order_relaxed),
				  t->entries[i].closed_s);
	publish(m, fresh);
}

/* In place while at most half is used. */
void idmap_add(struct idmap *m, uint64_t id, int slot)
{
	const struct idmap_table *t = current(m);

	assert(!(t->mask & (t->mask + 1)));
	if (!id)
		return;
	if (2 * (t->used + 1) > t->mask + 1)
		renew(m);
	table_put(current(m), id, slot, 0);
}

/*
 * Writer: the event of @id is closed at @now_ns. Its last samples may still be in a ring: the id is
 * known for IDMAP_KEPT_S at least.
 */
static void idmap_close(struct idmap *m, uint64_t id, uint64_t now_ns)
{
	struct entry *entry = id ? table_at(current(m), id) : NULL;

	if (!entry || atomic_load_explicit(&entry->id, memory_order_relaxed) != id)
		return;
	m->closed_s = MAX(m->closed_s, (uint32_t)(now_ns / 1000000000) + 1);
	entry->closed_s = m->closed_s;
}

void idmap_replace(struct idmap *m, const uint64_t *ids, const int *slots, size_t nr)
{
	struct idmap_table *t = table_new(nr + nr / 2);

	for (size_t i = 0; i < nr; i++)
		if (ids[i])
			table_put(t, ids[i], slots[i], 0);
	publish(m, t);
}

int idmap_find(const struct idmap *m, uint64_t id)
{
	struct entry *entry;
	int slot = IDMAP_UNKNOWN;

	if (!id)
		return IDMAP_UNKNOWN;
	entry = table_at(current(m), id);
	if (atomic_load_explicit(&entry->id, memory_order_acquire) == id)
		slot = atomic_load_explicit(&entry->slot, memory_order_relaxed);
	reclaim_reader_done();
	return slot;
}

static struct slot_fd *slot_fds(const struct slot *s, const struct slot_env *env, uint32_t task)
{
	assert(task < s->max_tasks);
	return &s->fds[(size_t)task * env->nr_cpus];
}

static void reserve_task(struct slot *s, const struct slot_env *env, pid_t tid)
{
	struct slot_fd *fds;

	if (s->nr_tasks == s->max_tasks) {
		s->max_tasks = MAX(2 * s->max_tasks, 4);
		s->fds = xrealloc_array(s->fds, (size_t)s->max_tasks * env->nr_cpus,
					sizeof(*s->fds));
		s->tids = xrealloc_array(s->tids, s->max_tasks, sizeof(*s->tids));
	}
	s->tids[s->nr_tasks] = tid;
	fds = slot_fds(s, env, s->nr_tasks++);
	for (uint32_t i = 0; i < env->nr_cpus; i++)
		fds[i] = (struct slot_fd){ .fd = -1, .wake_fd = -1 };
}

/* The leader's events of @tid, one a CPU; NULL: it has none of that task. @at: where to look first.
 */
static const struct slot_fd *leader_fds(const struct slot *leader, const struct slot_env *env,
					pid_t tid, uint32_t at)
{
	if (at < leader->nr_tasks && leader->tids[at] == tid)
		return slot_fds(leader, env, at);
	for (uint32_t i = 0; i < leader->nr_tasks; i++)
		if (leader->tids[i] == tid)
			return slot_fds(leader, env, i);
	return NULL;
}

bool slot_is_busy(const struct slot *s, pid_t tid)
{
	return task_find(s->busy, s->nr_busy, tid) < s->nr_busy;
}

void slot_note_busy(struct slot *s, pid_t tid)
{
	assert(s->nr_busy <= s->max_busy);
	if (slot_is_busy(s, tid))
		return;
	if (s->nr_busy == s->max_busy) {
		s->max_busy = MAX(2 * s->max_busy, 4);
		s->busy = xrealloc_array(s->busy, s->max_busy, sizeof(*s->busy));
	}
	s->busy[s->nr_busy++] = tid;
}

void slot_forget_busy(struct slot *s, pid_t tid)
{
	uint32_t i = task_find(s->busy, s->nr_busy, tid);

	if (i < s->nr_busy)
		s->busy[i] = s->busy[--s->nr_busy];
}

/* Return why @tid has no event of the leader: it hangs in an exec, or was left out for good. */
static int without_leader(const struct slot *leader, pid_t tid)
{
	return slot_is_busy(leader, tid) ? -EINTR : -ESRCH;
}

static int slot_open_on(struct slot *s, struct slot_env *env, struct slot_fd *out, pid_t tid,
			const struct counters_cpu *cpu);

int slot_add_task(struct slot *s, struct slot_env *env, const struct slot *leader, pid_t tid)
{
	uint32_t task = s->nr_tasks;
	const struct slot_fd *lead = leader ? leader_fds(leader, env, tid, task) : NULL;
	int code = leader && !lead ? without_leader(leader, tid) : 0;
	bool open = false;

	reserve_task(s, env, tid);
	/* As perf record: a member is on whenever its leader is. */
	if (leader)
		s->attr.disabled = s->attr.enable_on_exec = 0;
	memcpy(env->refusal.event, s->event.name, sizeof(env->refusal.event));
	env->refusal.hardware = s->event.hardware;
	env->refusal.probe = s->event.target[0];
	for (uint32_t i = 0; i < env->nr_cpus && !code; i++) {
		/* Where its leader does not exist, a member would count alone. */
		if ((lead && lead[i].fd < 0) ||
		    (!s->side && !core_types_has(env->cores, &s->event, env->cpus[i].cpu)))
			continue;
		env->group_fd = lead ? lead[i].fd : -1;
		code = slot_open_on(s, env, &slot_fds(s, env, task)[i], tid, &env->cpus[i]);
		open |= !code;
		/* It is offline: all events are opened again when it is back. */
		if (code == -ENODEV && tid < 0)
			code = 0;
	}
	env->group_fd = -1;
	if (!code && !open) {
		env->refusal.cpu = env->cpus[0].cpu;
		code = -ENODEV;
	}
	for (uint32_t i = 0; i < env->nr_cpus && code; i++)
		slot_close_fd(env, &slot_fds(s, env, task)[i].fd);
	s->nr_tasks -= !!code;
	return code;
}

/* Errors that concern one task only. */
static bool is_the_task(int code)
{
	return code == -ESRCH || code == -EACCES || code == -EPERM || code == -EINTR;
}

void slot_refuse(struct slot_env *env, pid_t tid, int code)
{
	assert(code < 0);
	if (env->refused_code)
		return;
	env->refused = tid;
	env->refused_code = code;
}

void slot_init(struct slot *s, const struct slot_env *env, const struct event *ev, double hz)
{
	assert(hz >= 0);
	*s = (struct slot){ .event = *ev, .hz = hz };
	attr_sample(&s->attr, &env->attr, ev, hz);
	if (env->no_lost)
		s->attr.read_format &= ~(uint64_t)PERF_FORMAT_LOST;
}

void slot_init_waking(struct slot *s, const struct slot_env *env, const struct event *ev)
{
	*s = (struct slot){ .event = *ev, .whole = true };
	attr_waking(&s->attr, ev);
	if (env->no_lost)
		s->attr.read_format &= ~(uint64_t)PERF_FORMAT_LOST;
}

void slot_init_switches(struct slot *s)
{
	*s = (struct slot){ .event = { .name = "dummy" }, .settled = true };
	attr_switches(&s->attr);
}

void slot_init_side(struct slot *s, const struct slot_env *env, size_t ring_size)
{
	*s = (struct slot){ .event = { .name = "dummy" }, .side = true, .settled = true };
	attr_side(&s->attr, &env->attr, ring_size);
}

int slot_open(struct slot *s, struct slot_env *env, const struct slot *leader, const pid_t *tids,
	      uint32_t nr_tids, uint32_t *nr_out)
{
	uint32_t nr = tids ? nr_tids : 1, opened = 0;
	struct limits_refusal first = { 0 };
	int first_code = 0;

	*nr_out = 0;
	s->base = xcalloc(env->nr_cpus, sizeof(*s->base));
	for (uint32_t i = 0; i < nr; i++) {
		int code = slot_add_task(s, env, leader, tids ? tids[i] : -1);

		if (code && !first_code) {
			first_code = code;
			first = env->refusal;
		}
		if (code && !(tids && is_the_task(code))) {
			slot_close(s, env);
			return code;
		}
		opened += !code;
		if (code == -EINTR) {
			slot_note_busy(s, tids[i]);
		} else if (code && code != -ESRCH) {
			slot_refuse(env, tids[i], code);
			++*nr_out;
		}
		/* Not permitted: their children alone are not the target. */
		if (i + 1 == env->nr_named && !opened)
			break;
	}
	if (opened || (env->may_be_empty && (!first_code || is_the_task(first_code))))
		return 0;
	slot_close(s, env);
	env->refusal = first;
	return first_code ? first_code : -ESRCH;
}

/* Close an event and its twin. */
static void close_pair(struct slot_env *env, struct slot_fd *fd, uint64_t now_ns)
{
	idmap_close(env->ids, fd->id, now_ns);
	idmap_close(env->ids, fd->wake_id, now_ns);
	slot_close_fd(env, &fd->fd);
	slot_close_fd(env, &fd->wake_fd);
}

void slot_close(struct slot *s, struct slot_env *env)
{
	uint64_t now_ns = time_now_ns();

	for (size_t i = 0; i < (size_t)s->nr_tasks * env->nr_cpus; i++)
		close_pair(env, &s->fds[i], now_ns);
	free(s->fds);
	free(s->tids);
	free(s->busy);
	free(s->base);
	*s = (struct slot){ 0 };
}

static void add_value(struct counters_value *v, const struct counters_value *more)
{
	v->count += more->count;
	v->enabled_ns += more->enabled_ns;
	v->running_ns += more->running_ns;
	v->lost += more->lost;
}

/* Find the count of this fd among the counts of its group. */
static int read_group(const struct slot *s, const struct slot_env *env, const struct slot_fd *fd,
		      struct counters_value *v)
{
	size_t words = s->attr.read_format & PERF_FORMAT_LOST ? 3 : 2;
	uint64_t got[GROUP_WORDS] = { 0 };
	ssize_t nr = env->sys.read(env->sys.ctx, fd->fd, got, sizeof(got));

	if (nr < 0)
		return (int)nr;
	for (size_t i = 0; i < got[0] && 8 * (3 + (i + 1) * words) <= (size_t)nr; i++) {
		const uint64_t *one = &got[3 + i * words];

		if (one[1] != fd->id)
			continue;
		add_value(v, &(struct counters_value){ one[0], got[1], got[2],
						       words == 3 ? one[2] : 0 });
		return 0;
	}
	return -EIO;
}

/* Add the count of one fd, its inherited events included. */
static int read_one(const struct slot *s, const struct slot_env *env, const struct slot_fd *fd,
		    struct counters_value *v)
{
	bool has_lost = s->attr.read_format & PERF_FORMAT_LOST;
	size_t size = has_lost ? sizeof(struct slot_reading) : offsetof(struct slot_reading, lost);
	struct slot_reading r = { 0 };
	ssize_t nr;

	if (fd->fd < 0)
		return 0;
	if (s->attr.read_format & PERF_FORMAT_GROUP)
		return read_group(s, env, fd, v);
	nr = env->sys.read(env->sys.ctx, fd->fd, &r, sizeof(r));
	if (nr < 0)
		return (int)nr;
	if ((size_t)nr < size)
		return -EIO;
	add_value(v, &(struct counters_value){ r.count, r.enabled_ns, r.running_ns,
					       has_lost ? r.lost : 0 });
	return 0;
}

/* The same of its twin as well. */
static int read_fd(const struct slot *s, const struct slot_env *env, const struct slot_fd *fd,
		   struct counters_value *v)
{
	const struct slot_fd twin = { .fd = fd->wake_fd, .id = fd->wake_id };
	int code = read_one(s, env, fd, v);

	return code || twin.fd < 0 ? code : read_one(s, env, &twin, v);
}

int slot_read(const struct slot *s, const struct slot_env *env, uint32_t cpu,
	      struct counters_value *v)
{
	int code = 0;

	assert(cpu < env->nr_cpus);
	*v = s->base[cpu];
	for (uint32_t i = 0; i < s->nr_tasks; i++) {
		int rc = read_fd(s, env, &slot_fds(s, env, i)[cpu], v);

		code = code ? code : rc;
	}
	/*
	 * The times of a cgroup's event go on while none of its tasks runs (Linux 6.18: up to 3
	 * times too much for tasks that run in short pieces), the count of a clock does not.
	 */
	if (env->cgroup_fd >= 0 && s->event.clock)
		v->running_ns = v->enabled_ns = v->count;
	return code;
}

/* The last task takes the place. */
static void drop_task(struct slot *s, struct slot_env *env, uint32_t task)
{
	struct slot_fd *fds = slot_fds(s, env, task);
	uint64_t now_ns = time_now_ns();

	assert(task < s->nr_tasks);
	for (uint32_t i = 0; i < env->nr_cpus; i++) {
		if (!s->side)
			read_fd(s, env, &fds[i], &s->base[i]);
		close_pair(env, &fds[i], now_ns);
	}
	s->nr_tasks--;
	memmove(fds, slot_fds(s, env, s->nr_tasks), env->nr_cpus * sizeof(*fds));
	s->tids[task] = s->tids[s->nr_tasks];
}

bool slot_has_task(const struct slot *s, pid_t tid)
{
	return task_find(s->tids, s->nr_tasks, tid) < s->nr_tasks;
}

void slot_leave(struct slot *s, struct slot_env *env, pid_t tid)
{
	uint32_t i = task_find(s->tids, s->nr_tasks, tid);

	if (i < s->nr_tasks)
		drop_task(s, env, i);
	slot_note_busy(s, tid);
}

/* Get the fd of a task on the first CPU that has the event. */
static int first_fd(const struct slot *s, const struct slot_env *env, uint32_t task)
{
	const struct slot_fd *fds = slot_fds(s, env, task);
	uint32_t i = 0;

	while (i + 1 < env->nr_cpus && fds[i].fd < 0)
		i++;
	return fds[i].fd;
}

/* The kernel hangs up when the task and all its inherited events are gone; on all CPUs. */
void slot_reap(struct slot *s, struct slot_env *env)
{
	struct pollfd *poll = xcalloc(s->nr_tasks, sizeof(*poll));

	for (uint32_t i = 0; i < s->nr_tasks; i++)
		poll[i].fd = first_fd(s, env, i);
	/* From the end: the task that takes the place of a removed one was checked before. */
	if (env->sys.poll(env->sys.ctx, poll, s->nr_tasks) > 0)
		for (uint32_t i = s->nr_tasks; i-- > 0;)
			if (poll[i].revents & POLLHUP)
				drop_task(s, env, i);
	free(poll);
	/* Before their numbers may be of other tasks. */
	for (uint32_t i = s->nr_busy; i-- > 0;)
		if (!env->sys.exists(env->sys.ctx, s->busy[i]))
			slot_forget_busy(s, s->busy[i]);
}

void slot_inherit_sums(struct slot *s, const struct slot *old, const struct slot_env *env)
{
	struct counters_value v;

	for (uint32_t i = 0; i < env->nr_cpus; i++) {
		slot_read(old, env, i, &v);
		add_value(&s->base[i], &v);
	}
}

/* Get the fd of the pair that is to be on. */
static int wanted_fd(const struct slot_env *env, const struct slot_fd *fd, uint32_t cpu)
{
	assert(cpu < env->nr_cpus);
	return env->wake && env->wake[cpu] && fd->wake_fd >= 0 ? fd->wake_fd : fd->fd;
}

static int slot_open_twin(struct slot *s, struct slot_env *env, struct slot_fd *fd, pid_t tid,
			  const struct counters_cpu *cpu);

int slot_open_twins(struct slot *s, struct slot_env *env)
{
	bool inherits = env->attr.tasks && !env->attr.no_inherit;
	int first = 0;

	if (s->event.group || s->event.counted)
		return 0;
	for (size_t i = 0; i < (size_t)s->nr_tasks * env->nr_cpus; i++) {
		uint32_t cpu = (uint32_t)(i % env->nr_cpus);
		int code = 0;

		/* On all CPUs where children inherit it: later it would be too late for them. */
		if (env->wake && (env->wake[cpu] || inherits) && s->fds[i].fd >= 0 &&
		    s->fds[i].wake_fd < 0)
			code = slot_open_twin(s, env, &s->fds[i], s->tids[i / env->nr_cpus],
					      &env->cpus[cpu]);
		first = first ? first : code;
	}
	return first;
}

void slot_wake(struct slot *s, struct slot_env *env, bool on)
{
	const struct counters_sys *sys = &env->sys;

	for (size_t i = 0; i < (size_t)s->nr_tasks * env->nr_cpus; i++) {
		const struct slot_fd *fd = &s->fds[i];
		int wanted = wanted_fd(env, fd, (uint32_t)(i % env->nr_cpus));

		if (fd->wake_fd < 0)
			continue;
		/* First the other off: of two hardware events only one may find a counter. */
		sys->ioctl(sys->ctx, wanted == fd->fd ? fd->wake_fd : fd->fd,
			   PERF_EVENT_IOC_DISABLE, 0);
		sys->ioctl(sys->ctx, wanted, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE,
			   0);
	}
}

/* Call the ioctl on all fds; return the first error, after all calls. */
static int ioctl_all(struct slot *s, struct slot_env *env, uint32_t first_task,
		     unsigned long request, uint64_t arg)
{
	int code = 0;

	for (size_t i = (size_t)first_task * env->nr_cpus; i < (size_t)s->nr_tasks * env->nr_cpus;
	     i++) {
		int rc;

		if (s->fds[i].fd < 0)
			continue;
		rc = env->sys.ioctl(env->sys.ctx, s->fds[i].fd, request, arg);

		code = code ? code : rc;
		if (s->fds[i].wake_fd < 0)
			continue;
		rc = env->sys.ioctl(env->sys.ctx, s->fds[i].wake_fd, request, arg);
		code = code ? code : rc;
	}
	return code;
}

int slot_enable(struct slot *s, struct slot_env *env, uint32_t first_task, bool on)
{
	int code = 0;

	for (size_t i = (size_t)first_task * env->nr_cpus; i < (size_t)s->nr_tasks * env->nr_cpus;
	     i++) {
		int fd = wanted_fd(env, &s->fds[i], (uint32_t)(i % env->nr_cpus));
		int rc =
			fd < 0 ? 0
			       : env->sys.ioctl(env->sys.ctx, fd,
						on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE,
						0);

		code = code ? code : rc;
	}
	return code;
}

/* Later tasks open at the new rate also. */
int slot_set_rate(struct slot *s, struct slot_env *env, double hz)
{
	uint64_t value = attr_rate(&s->event, hz);
	int code = ioctl_all(s, env, 0, PERF_EVENT_IOC_PERIOD, (uint64_t)(uintptr_t)&value);

	if (code)
		return code;
	s->hz = hz;
	s->attr.sample_period = value;
	return 0;
}

/*
 * Open one event on one task and CPU, with the attributes that this kernel takes.
 *
 * Runs on: the thread of counters. Each open fd is counted in env->nr_fds.
 */

/* Return whether this event opens on the whole CPU. True also if that is forbidden. */
static bool exists(struct slot_env *env, const struct perf_event_attr *attr, int cpu)
{
	struct perf_event_attr copy = *attr;
	int fd = env->sys.perf_open(env->sys.ctx, &copy, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0)
		env->sys.close(env->sys.ctx, fd);
	return fd >= 0 || fd == -EACCES || fd == -EPERM;
}

/* ENOENT has several reasons: find out which one it is. */
static void find_missing(struct slot_env *env, const struct perf_event_attr *attr, int cpu,
			 bool cgroup)
{
	const struct perf_event_attr cycles = { .type = PERF_TYPE_HARDWARE,
						.size = sizeof(cycles),
						.config = PERF_COUNT_HW_CPU_CYCLES,
						.disabled = 1,
						.exclude_kernel = 1,
						.exclude_hv = 1 };

	env->refusal.cgroup = cgroup && exists(env, attr, cpu);
	env->refusal.pmu = !env->refusal.cgroup && env->refusal.hardware &&
			   exists(env, &cycles, cpu);
}

/* Open, of @group_fd, with @flags; a failure is kept in env->refusal. */
static int open_with(struct slot_env *env, struct perf_event_attr *attr, pid_t tid, int cpu,
		     int group_fd, unsigned long flags)
{
	int fd = env->sys.perf_open(env->sys.ctx, attr, tid, cpu, group_fd,
				    flags | PERF_FLAG_FD_CLOEXEC);

	env->refusal.filter = false;
	if (fd >= 0) {
		env->nr_fds++;
		return fd;
	}
	if (flags)
		tid = -1;
	env->refusal.tid = tid;
	env->refusal.cpu = cpu;
	env->refusal.nr_fds = env->nr_fds;
	env->refusal.kernel = !attr->exclude_kernel;
	if (fd == -ENOENT)
		find_missing(env, attr, cpu, flags);
	return fd;
}

int slot_perf_open(struct slot_env *env, struct perf_event_attr *attr, pid_t tid, int cpu)
{
	return open_with(env, attr, tid, cpu, -1, 0);
}

/* The same for an event that samples: of the cgroup's tasks, where there is one. */
static int open_sample(struct slot_env *env, struct perf_event_attr *attr, pid_t tid, int cpu)
{
	if (env->cgroup_fd >= 0)
		return open_with(env, attr, env->cgroup_fd, cpu, env->group_fd,
				 PERF_FLAG_PID_CGROUP);
	return open_with(env, attr, tid, cpu, env->group_fd, 0);
}

void slot_close_fd(struct slot_env *env, int *fd)
{
	if (*fd < 0)
		return;
	assert(env->nr_fds);
	env->sys.close(env->sys.ctx, *fd);
	env->nr_fds--;
	*fd = -1;
}

/*
 * The attr to open with on @cpu: slots are moved about, and a probe's points into its event; and
 * cores may be of several types.
 */
static struct perf_event_attr attr_of(const struct slot *s, const struct slot_env *env, int cpu)
{
	struct perf_event_attr attr = s->attr;

	if (s->event.target[0])
		attr.config1 = (uint64_t)(uintptr_t)s->event.target;
	if (!s->side)
		core_types_set(env->cores, &s->event, cpu, s->plain, &attr);
	return attr;
}

static int open_fd(const struct slot *s, struct slot_env *env, struct perf_event_attr *attr,
		   pid_t tid, int cpu)
{
	return s->side || s->whole ? slot_perf_open(env, attr, tid, cpu)
				   : open_sample(env, attr, tid, cpu);
}

/* Try to open with less requested: bit 0 no exclude_idle, bit 1 no PERF_FORMAT_LOST. */
static int try_open(struct slot *s, struct slot_env *env, pid_t tid, int cpu, unsigned int less)
{
	struct perf_event_attr attr = attr_of(s, env, cpu);
	int fd;

	if (less & 1)
		attr.exclude_idle = 0;
	if (less & 2)
		attr.read_format &= ~(uint64_t)PERF_FORMAT_LOST;
	fd = open_fd(s, env, &attr, tid, cpu);
	if (fd < 0)
		return fd;
	s->attr.exclude_idle = attr.exclude_idle;
	s->attr.read_format = attr.read_format;
	return fd;
}

/*
 * Open the first fd of an event and find out which attributes this kernel supports. EINVAL has no
 * reason, so request less and less.
 */
static int settle_typed(struct slot *s, struct slot_env *env, pid_t tid, int cpu)
{
	int fd = -EINVAL, first = 0;

	for (;;) {
		for (unsigned int less = 0; less < 4; less++) {
			if ((less & 1 && !s->attr.exclude_idle) || (less & 2 && env->no_lost))
				continue;
			fd = try_open(s, env, tid, cpu, less);
			if (fd >= 0) {
				env->no_lost |= !(s->attr.read_format & PERF_FORMAT_LOST);
				s->settled = true;
				return fd;
			}
			if (!first)
				first = fd;
			if (fd != -EINVAL)
				break;
		}
		if (!s->event.precise_max || !s->attr.precise_ip ||
		    (fd != -EINVAL && fd != -EOPNOTSUPP))
			return first;
		s->attr.precise_ip--;
	}
}

/* The same; then without the type of the core in the config, which some kernels refuse. */
static int settle(struct slot *s, struct slot_env *env, pid_t tid, int cpu)
{
	const struct perf_event_attr before = s->attr;
	int fd = settle_typed(s, env, tid, cpu), again;

	if ((fd != -EINVAL && fd != -ENOENT) || s->side ||
	    attr_of(s, env, cpu).config == s->attr.config)
		return fd;
	s->attr = before;
	s->plain = true;
	again = settle_typed(s, env, tid, cpu);
	s->plain = again >= 0;
	return again >= 0 ? again : fd;
}

/* Connect a new fd: its ring, its id, its filter. */
static int connect_fd(const struct slot *s, struct slot_env *env, int fd, int ring, uint64_t *id)
{
	const struct counters_sys *sys = &env->sys;
	int code = sys->ioctl(sys->ctx, fd, PERF_EVENT_IOC_SET_OUTPUT, (uint64_t)ring);

	if (!code)
		code = sys->ioctl(sys->ctx, fd, PERF_EVENT_IOC_ID, (uint64_t)(uintptr_t)id);
	if (!code && s->event.filter[0]) {
		code = sys->ioctl(sys->ctx, fd, PERF_EVENT_IOC_SET_FILTER,
				  (uint64_t)(uintptr_t)s->event.filter);
		env->refusal.filter = code;
	}
	return code;
}

/* Open on @cpu and task @tid, into the ring of @cpu. 0, or -errno with env->refusal filled. */
static int slot_open_on(struct slot *s, struct slot_env *env, struct slot_fd *out, pid_t tid,
			const struct counters_cpu *cpu)
{
	struct perf_event_attr attr = attr_of(s, env, cpu->cpu);
	int fd, code;

	fd = s->settled ? open_fd(s, env, &attr, tid, cpu->cpu) : settle(s, env, tid, cpu->cpu);
	if (fd < 0)
		return fd;
	code = connect_fd(s, env, fd, s->side ? cpu->side_fd : cpu->data_fd, &out->id);
	if (code) {
		env->refusal.tid = tid;
		env->refusal.cpu = cpu->cpu;
		slot_close_fd(env, &fd);
		return code;
	}
	out->fd = fd;
	return 0;
}

/* Open the twin of @fd, which wakes the thread that polls the ring at each sample. 0 or -errno. */
static int slot_open_twin(struct slot *s, struct slot_env *env, struct slot_fd *fd, pid_t tid,
			  const struct counters_cpu *cpu)
{
	struct perf_event_attr attr = attr_of(s, env, cpu->cpu);
	int code;

	attr.watermark = 0;
	attr.wakeup_events = 1;
	attr.disabled = 1;
	attr.enable_on_exec = 0;
	env->group_fd = -1;
	fd->wake_fd = open_sample(env, &attr, tid, cpu->cpu);
	if (fd->wake_fd < 0)
		return fd->wake_fd;
	code = connect_fd(s, env, fd->wake_fd, cpu->data_fd, &fd->wake_id);
	if (code)
		slot_close_fd(env, &fd->wake_fd);
	return code;
}

/*
 * One timer for each thread. It fires again and again: the first signal may be just before the
 * call.
 */

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* One that no library uses. */
#define SIGNAL (SIGRTMIN + 5)

/* Halved after each call that was interrupted, down to 1.5 ms. */
#define WAIT_NS 50000000U

#define HALVES_MAX 5U

/* Then calls have their full time again. */
#define FORGET_NS 10000000000ULL

static pthread_once_t once = PTHREAD_ONCE_INIT;

static _Thread_local struct {
	timer_t timer;
	bool made;
	sigset_t before;
	unsigned int nr_late; /* interrupted calls, up to HALVES_MAX */
	uint64_t late_ns;     /* the last one */
} own;

static void do_nothing(int sig)
{
	(void)sig;
}

static void set_handler(void)
{
	const struct sigaction action = { .sa_handler = do_nothing };

	sigaction(SIGNAL, &action, NULL);
}

static void set_timer(unsigned int ns)
{
	const struct itimerspec time = { .it_interval.tv_nsec = ns, .it_value.tv_nsec = ns };

	timer_settime(own.timer, 0, &time, NULL);
}

void in_time_begin(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID };
	sigset_t set;

	pthread_once(&once, set_handler);
	sigemptyset(&set);
	sigaddset(&set, SIGNAL);
	pthread_sigmask(SIG_UNBLOCK, &set, &own.before);
	event.sigev_signo = SIGNAL;
	event.sigev_notify_thread_id = gettid();
	/* Without a timer the call takes as long as it takes. */
	if (!own.made)
		own.made = !timer_create(CLOCK_MONOTONIC, &event, &own.timer);
	if (own.nr_late && time_now_ns() - own.late_ns > FORGET_NS)
		own.nr_late = 0;
	if (own.made)
		set_timer(WAIT_NS >> own.nr_late);
}

void in_time_end(bool interrupted)
{
	if (own.made)
		set_timer(0);
	pthread_sigmask(SIG_SETMASK, &own.before, NULL);
	if (!interrupted)
		return;
	own.nr_late = MIN(own.nr_late + 1, HALVES_MAX);
	own.late_ns = time_now_ns();
}
