// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One event on all its tasks and CPUs: opened, steered, read, closed.
 *
 * Runs on: the thread of counters. Invariant: every fd that was opened is in the table or closed
 * again.
 */
#include "sampler/event/slot.h"
#include "sampler/event/task_set.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

/* As read(2) gives it for our read_format. */
struct reading {
	uint64_t count, enabled_ns, running_ns, id, lost;
};

/* The same of a group: how many, the times, then count, id and lost of each. */
#define GROUP_WORDS (3 + 3 * EVENTS_MAX)

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
	if (env->refused_code)
		return;
	env->refused = tid;
	env->refused_code = code;
}

void slot_init(struct slot *s, const struct slot_env *env, const struct event *ev, double hz)
{
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
	attr_side(&s->attr, env->attr.tasks, ring_size);
	s->attr.mmap_data = env->attr.data_maps;
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
	size_t size = has_lost ? sizeof(struct reading) : offsetof(struct reading, lost);
	struct reading r = { 0 };
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

	*v = s->base[cpu];
	for (uint32_t i = 0; i < s->nr_tasks; i++) {
		int rc = read_fd(s, env, &slot_fds(s, env, i)[cpu], v);

		code = code ? code : rc;
	}
	return code;
}

/* The last task takes the place. */
static void drop_task(struct slot *s, struct slot_env *env, uint32_t task)
{
	struct slot_fd *fds = slot_fds(s, env, task);
	uint64_t now_ns = time_now_ns();

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
	return env->wake && env->wake[cpu] && fd->wake_fd >= 0 ? fd->wake_fd : fd->fd;
}

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
