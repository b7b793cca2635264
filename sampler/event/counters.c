// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * All events of a session: for each CPU a sample ring and a side-band ring; each event on all its
 * tasks and CPUs (a slot), opened, also where a task holds the call up; changes while they run.
 *
 * Runs on: set-up, then the builder; look-ups by id from any. Invariant: a counters_open() that
 * fails undoes everything.
 */
#include "sampler/event/internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/types.h>
#include <unistd.h>

#include "sampler/ring/ring.h"
#include "symbols/base/base.h"

/* As read(2) gives it for our read_format. */
struct slot_reading {
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

static bool slot_is_busy(const struct slot *s, pid_t tid)
{
	return task_find(s->busy, s->nr_busy, tid) < s->nr_busy;
}

/* Note that the task is to be added later. Once, however often it is noted. */
static void slot_note_busy(struct slot *s, pid_t tid)
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

static void slot_forget_busy(struct slot *s, pid_t tid)
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

static void slot_close_fd(struct slot_env *env, int *fd);

/* Add a task; it becomes the last one. 0, or -errno and nothing is left open. */
static int slot_add_task(struct slot *s, struct slot_env *env, const struct slot *leader, pid_t tid)
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

/* Note that a task is left out. */
static void slot_refuse(struct slot_env *env, pid_t tid, int code)
{
	assert(code < 0);
	if (env->refused_code)
		return;
	env->refused = tid;
	env->refused_code = code;
}

/* A sampling event, the one of wake-ups, of switches, a side-band event: nothing opened yet. */
static void slot_init(struct slot *s, const struct slot_env *env, const struct event *ev, double hz)
{
	assert(hz >= 0);
	*s = (struct slot){ .event = *ev, .hz = hz };
	attr_sample(&s->attr, &env->attr, ev, hz);
	if (env->no_lost)
		s->attr.read_format &= ~(uint64_t)PERF_FORMAT_LOST;
}

static void slot_init_waking(struct slot *s, const struct slot_env *env, const struct event *ev)
{
	*s = (struct slot){ .event = *ev, .whole = true };
	attr_waking(&s->attr, ev);
	if (env->no_lost)
		s->attr.read_format &= ~(uint64_t)PERF_FORMAT_LOST;
}

static void slot_init_switches(struct slot *s)
{
	*s = (struct slot){ .event = { .name = "dummy" }, .settled = true };
	attr_switches(&s->attr);
}

static void slot_init_side(struct slot *s, const struct slot_env *env, size_t ring_size)
{
	*s = (struct slot){ .event = { .name = "dummy" }, .side = true, .settled = true };
	attr_side(&s->attr, &env->attr, ring_size);
}

static void slot_close(struct slot *s, struct slot_env *env);

/*
 * Open it on @tids (NULL: on the CPUs), in the group of @leader (open; NULL: alone). Tasks that are
 * gone or forbidden are left out: *@nr_out forbidden ones; tasks that hang in an exec are left out
 * and noted as busy; -errno when none is left or something else fails, with env->refusal filled and
 * nothing left open.
 */
static int slot_open(struct slot *s, struct slot_env *env, const struct slot *leader,
		     const pid_t *tids, uint32_t nr_tids, uint32_t *nr_out)
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

static void slot_close(struct slot *s, struct slot_env *env)
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

/* Sum over all tasks, closed ones included. */
static int slot_read(const struct slot *s, const struct slot_env *env, uint32_t cpu,
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

/* Report whether it was opened on this task. Linear. */
static bool slot_has_task(const struct slot *s, pid_t tid)
{
	return task_find(s->tids, s->nr_tasks, tid) < s->nr_tasks;
}

/* Close the fds of a task, if it has any, and note it as busy. */
static void slot_leave(struct slot *s, struct slot_env *env, pid_t tid)
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
static void slot_reap(struct slot *s, struct slot_env *env)
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

/* Take over the counts of @old. */
static void slot_inherit_sums(struct slot *s, const struct slot *old, const struct slot_env *env)
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

static bool needs_twin(const struct slot *s, uint8_t wake)
{
	return wake == COUNTERS_WAKE_ALL || (wake && !s->programmed);
}

static int slot_open_twin(struct slot *s, struct slot_env *env, struct slot_fd *fd, pid_t tid,
			  const struct counters_cpu *cpu);

/* Open the twins that env->wake wants. 0 or the first -errno: these wake at the watermark. */
static int slot_open_twins(struct slot *s, struct slot_env *env)
{
	bool inherits = env->attr.tasks && !env->attr.no_inherit && !s->programmed;
	int first = 0;

	if (s->event.group || s->event.counted)
		return 0;
	for (size_t i = 0; i < (size_t)s->nr_tasks * env->nr_cpus; i++) {
		uint32_t cpu = (uint32_t)(i % env->nr_cpus);
		int code = 0;

		/* On all CPUs where children inherit it: later it would be too late for them. */
		if (env->wake && (needs_twin(s, env->wake[cpu]) || inherits) && s->fds[i].fd >= 0 &&
		    s->fds[i].wake_fd < 0)
			code = slot_open_twin(s, env, &s->fds[i], s->tids[i / env->nr_cpus],
					      &env->cpus[cpu]);
		first = first ? first : code;
	}
	return first;
}

/* Turn that one of each pair on that env->wake wants, if the slot runs (@on), and the other off. */
static void slot_wake(struct slot *s, struct slot_env *env, bool on)
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

/*
 * Close the fds of tasks that are gone with all their children; keep the sums. Forget busy tasks
 * that are gone.
 */
static int slot_enable(struct slot *s, struct slot_env *env, uint32_t first_task, bool on)
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
static int slot_set_rate(struct slot *s, struct slot_env *env, double hz)
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

static int slot_perf_open(struct slot_env *env, struct perf_event_attr *attr, pid_t tid, int cpu)
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

/* The leader and side-band fds are opened and closed by the same functions. fd or -errno. */
static void slot_close_fd(struct slot_env *env, int *fd)
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
static int connect_fd(struct slot *s, struct slot_env *env, int fd, int ring, uint64_t *id)
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
	/* Not every kind of event takes a program. */
	if (!code && env->program_fd && !s->side)
		s->programmed = !sys->ioctl(sys->ctx, fd, PERF_EVENT_IOC_SET_BPF,
					    (uint64_t)env->program_fd) &&
				(s->event.wait || s->attr.freq || s->attr.sample_period != 1);
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

/* Which events the records in the rings belong to. A recorder calls this after each change. */
static void each_slot(const struct counters *c, const struct slot *s, counters_attr_fn fn,
		      void *ctx)
{
	size_t nr = (size_t)s->nr_tasks * c->env.nr_cpus, nr_ids = 0;
	uint64_t *ids = xcalloc(MAX(2 * nr, 1u), sizeof(*ids));

	for (size_t i = 0; i < nr; i++) {
		if (s->fds[i].fd >= 0)
			ids[nr_ids++] = s->fds[i].id;
		if (s->fds[i].wake_fd >= 0)
			ids[nr_ids++] = s->fds[i].wake_id;
	}
	fn(ctx, s->event.name, &s->attr, ids, nr_ids);
	free(ids);
}

/* For the whole system the owners of the side-band rings are the side-band events; read their ids.
 */
static void side_leaders(const struct counters *c, counters_attr_fn fn, void *ctx)
{
	const struct counters_sys *sys = &c->env.sys;
	uint64_t *ids = xcalloc(c->env.nr_cpus, sizeof(*ids)), id;
	struct perf_event_attr attr;
	size_t nr = 0;

	for (uint32_t i = 0; i < c->env.nr_cpus; i++)
		if (!sys->ioctl(sys->ctx, c->cpus[i].side_fd, PERF_EVENT_IOC_ID,
				(uint64_t)(uintptr_t)&id))
			ids[nr++] = id;
	attr_side(&attr, &c->env.attr, c->side_size);
	fn(ctx, "dummy:u", &attr, ids, nr);
	free(ids);
}

void counters_each_attr(const struct counters *c, counters_attr_fn fn, void *ctx)
{
	for (uint32_t i = 0; i < c->nr_slots; i++)
		each_slot(c, &c->slots[i], fn, ctx);
	if (c->waking.nr_tasks)
		each_slot(c, &c->waking, fn, ctx);
	if (c->switches.nr_tasks)
		each_slot(c, &c->switches, fn, ctx);
	if (c->env.attr.tasks)
		each_slot(c, &c->side, fn, ctx);
	else
		side_leaders(c, fn, ctx);
}

/* Get the events of tasks one by one: the side-band's, then slots 0 to nr_slots - 1. */
static inline struct slot *counters_slot(struct counters *c, uint32_t at)
{
	assert(at <= c->nr_slots);
	return at ? &c->slots[at - 1] : &c->side;
}

/* Beside the slot, in the table of ids: the event's samples have the read layout. */
#define ID_READ 0x100

#define ID_GONE	     (-3)
#define ID_GONE_READ (-4)
#define ID_WAKING    (-5)

#define SIDE_RING_MIN (16u << 10)

/* A data ring holds so much of a full rate: the reader may be kept waiting on a busy machine. */
#define RING_SECONDS 0.15

/* Close the rings, and the leaders that own them. */
static void close_rings(struct counters *c)
{
	for (uint32_t i = 0; i < c->env.nr_cpus; i++) {
		struct counters_cpu *cpu = &c->cpus[i];

		ring_close(&cpu->data);
		ring_close(&cpu->side);
		slot_close_fd(&c->env, &cpu->data_fd);
		slot_close_fd(&c->env, &cpu->side_fd);
	}
}

/*
 * The two owners of rings on one CPU. They are events of this process: they need no permission, and
 * they do not hang up. Side-band events of a whole CPU own their ring themselves.
 */
static int open_leaders(struct counters *c, struct counters_cpu *cpu)
{
	struct perf_event_attr attr;

	c->env.refusal.event[0] = '\0';
	attr_leader(&attr, c->side_size / 8);
	if (!c->env.attr.tasks)
		attr_side(&attr, &c->env.attr, c->side_size);
	cpu->side_fd = slot_perf_open(&c->env, &attr, c->env.attr.tasks ? getpid() : -1, cpu->cpu);
	if (cpu->side_fd < 0)
		return cpu->side_fd;
	attr_leader(&attr, c->ring_size / 4);
	cpu->data_fd = slot_perf_open(&c->env, &attr, getpid(), cpu->cpu);
	return cpu->data_fd < 0 ? cpu->data_fd : 0;
}

/* Open all rings with one size, or none. *@mapping: it was mmap that failed. */
static int open_rings(struct counters *c, bool *mapping)
{
	const struct counters_sys *sys = &c->env.sys;
	int code = 0;

	*mapping = false;
	for (uint32_t i = 0; i < c->env.nr_cpus && !code; i++) {
		struct counters_cpu *cpu = &c->cpus[i];

		code = open_leaders(c, cpu);
		if (code)
			break;
		*mapping = true;
		code = sys->ring_open(sys->ctx, &cpu->side, cpu->side_fd, c->side_size);
		if (!code)
			code = sys->ring_open(sys->ctx, &cpu->data, cpu->data_fd, c->ring_size);
		*mapping = code;
	}
	if (code)
		close_rings(c);
	return code;
}

static size_t power_of_two(size_t size)
{
	size_t p = (size_t)sysconf(_SC_PAGESIZE);

	while (p < size && p << 1)
		p <<= 1;
	return p;
}

/*
 * One size for all CPUs: more for one would be less for another. The
 * leaders are opened again for each size, as it sets their watermark.
 */
static int size_rings(struct counters *c, size_t min, struct err *e)
{
	bool mapping;
	int code;

	for (;;) {
		code = open_rings(c, &mapping);
		if (!code)
			return 0;
		if (!mapping)
			return limits_explain_open(e, code, &c->env.refusal);
		if (code != -EPERM && code != -ENOMEM)
			break;
		if (c->ring_size / 2 >= min)
			c->ring_size /= 2;
		else if (c->side_size / 2 >= SIDE_RING_MIN)
			c->side_size /= 2;
		else
			break;
	}
	return limits_explain_ring(e, code, c->ring_size + c->side_size, c->env.nr_cpus);
}

/*
 * After a loss the kernel writes the record about that with the next sample, and fills a ring to
 * all but one byte: in a ring without that room no sample is ever written again. The record: its
 * header, identifier and number; pid, time, identifier and CPU.
 */
#define LOSS_ROOM (3 * sizeof(uint64_t) + 5 * sizeof(uint64_t) + 1)

/* At least two samples, so that one can be written while one is read. */
static int choose_ring_size(struct counters *c, const struct counters_config *config, struct err *e)
{
	size_t sample = attr_sample_max(&c->env.attr);
	size_t min = power_of_two(2 * sample);

	c->side_size = limits_side_ring(config->deferred);
	if (!config->ring_size) {
		size_t want = (size_t)((double)sample * config->hz * RING_SECONDS);

		c->ring_wanted = MAX(limits_wanted_ring(config->nr_cpus, want), min);
		c->ring_size = MAX(limits_data_ring(config->nr_cpus, c->side_size, want), min);
		return size_rings(c, min, e);
	}
	if (config->ring_size < sample + LOSS_ROOM)
		return err_set(e, -EINVAL,
			       "a ring of %zu bytes cannot hold one sample of up to %zu bytes\n"
			       "  a sample carries %u bytes of stack, registers and the call "
			       "chain\n"
			       "  --ring %zu or more, or a smaller --stack-size",
			       config->ring_size, sample, config->stack_size,
			       power_of_two(sample + LOSS_ROOM));
	c->ring_size = c->ring_wanted = power_of_two(config->ring_size);
	return size_rings(c, MIN(min, c->ring_size), e);
}

/* Return the meaning of the ids of @slot, as number @at of the events. */
static int counters_id_value(struct counters *c, const struct slot *slot, uint32_t at)
{
	if (!slot->event.read)
		return (int)at;
	/* Known once the first of them is open; the same for all. */
	c->read_layout.read_format = slot->attr.read_format;
	atomic_store_explicit(&c->any_read, true, memory_order_relaxed);
	return (int)at | ID_READ;
}

/* Append the ids of @slot; room was made. */
static size_t put_ids(const struct slot *s, uint32_t nr_cpus, uint64_t *ids, int *values, size_t at,
		      int value)
{
	for (size_t i = 0; i < (size_t)s->nr_tasks * nr_cpus; i++) {
		if (s->fds[i].fd < 0)
			continue;
		ids[at] = s->fds[i].id;
		values[at++] = value;
		if (s->fds[i].wake_fd < 0)
			continue;
		ids[at] = s->fds[i].wake_id;
		values[at++] = value;
	}
	return at;
}

/*
 * Return the software event that other sessions may also have, if this one has just one. The kernel
 * (seen on 6.18) fills in a sample once for all events that the same fault or switch hits, so ours
 * may carry the id of another's. Timers are not shared, and hardware events have an interrupt each.
 */
static int find_shared_slot(const struct counters *c)
{
	int found = -1;

	for (uint32_t i = 0; i < c->nr_slots; i++) {
		const struct event *ev = &c->slots[i].event;

		if (ev->hardware || ev->clock || ev->counted)
			continue;
		if (found >= 0)
			return -1;
		found = (int)i | (ev->read ? ID_READ : 0);
	}
	return found;
}

bool counters_has_waking(const struct counters *c)
{
	return c->waking.nr_tasks > 0;
}

static int find_wait_slot(const struct counters *c)
{
	for (uint32_t i = 0; i < c->nr_slots; i++)
		if (c->slots[i].event.wait)
			return (int)i;
	return -1;
}

int counters_wait_slot(const struct counters *c)
{
	return atomic_load_explicit(&c->wait_slot, memory_order_relaxed);
}

/* Fill in the ids of all slots and of the slots that are @gone, and no others. */
static void counters_fill_ids(struct counters *c, const struct slot *gone, uint32_t nr_gone)
{
	size_t nr = 0, at = 0;
	uint64_t *ids;
	int *slots;

	for (uint32_t i = 0; i < c->nr_slots; i++)
		nr += 2 * (size_t)c->slots[i].nr_tasks * c->env.nr_cpus;
	for (uint32_t i = 0; i < nr_gone; i++)
		nr += 2 * (size_t)gone[i].nr_tasks * c->env.nr_cpus;
	nr += 2 * (size_t)c->waking.nr_tasks * c->env.nr_cpus;
	ids = xcalloc(nr, sizeof(*ids));
	slots = xcalloc(nr, sizeof(*slots));
	for (uint32_t i = 0; i < nr_gone; i++)
		at = put_ids(&gone[i], c->env.nr_cpus, ids, slots, at,
			     gone[i].event.read ? ID_GONE_READ : ID_GONE);
	for (uint32_t i = 0; i < c->nr_slots; i++)
		at = put_ids(&c->slots[i], c->env.nr_cpus, ids, slots, at,
			     counters_id_value(c, &c->slots[i], i));
	at = put_ids(&c->waking, c->env.nr_cpus, ids, slots, at, ID_WAKING);
	idmap_replace(&c->ids, ids, slots, at);
	atomic_store_explicit(&c->shared_slot, find_shared_slot(c), memory_order_relaxed);
	atomic_store_explicit(&c->wait_slot, find_wait_slot(c), memory_order_relaxed);
	free(ids);
	free(slots);
}

/* The fds that the session takes, for the sentence when there are too few. */
static uint32_t fds_wanted(const struct counters *c, uint32_t nr_events, uint32_t nr_tids)
{
	uint32_t per_cpu = 2 + (c->env.attr.tasks ? nr_tids * (nr_events + 1) : nr_events);

	return per_cpu * c->env.nr_cpus;
}

static int check_config(const struct counters_config *config, struct err *e)
{
	if (!config->nr_events || config->nr_events > EVENTS_MAX)
		return err_set(e, -EINVAL,
			       "invalid number of events: %u, must be 1 to %d\n  they are sampled "
			       "at the same time\n  choose fewer with -e",
			       config->nr_events, EVENTS_MAX);
	if (config->stack_size % 8 || config->stack_size > 65528)
		return err_set(e, -EINVAL,
			       "invalid stack size: %u bytes\n"
			       "  must be a multiple of 8 up to 65528\n  --stack-size 16384 is the "
			       "default",
			       config->stack_size);
	if (!config->nr_cpus || (config->tids && !config->nr_tids && !config->may_be_empty))
		return err_set(e, -EINVAL,
			       "there is nothing to sample\n"
			       "  no CPU, or no task\n  choose others");
	for (uint32_t i = 0; i < config->nr_events; i++) {
		int code = config->events[i].hz > 0 ? limits_check_rate(config->events[i].hz, e)
						    : 0;

		if (code)
			return code;
	}
	return config->period ? 0 : limits_check_rate(config->hz, e);
}

static struct counters *counters_new(const struct counters_config *config,
				     const struct counters_sys *sys)
{
	struct counters *c = xcalloc(1, sizeof(*c));

	c->cpus = xcalloc(config->nr_cpus, sizeof(*c->cpus));
	for (uint32_t i = 0; i < config->nr_cpus; i++)
		c->cpus[i] = (struct counters_cpu){ .cpu = config->cpus[i],
						    .data_fd = -1,
						    .side_fd = -1 };
	if (config->cores)
		c->cores = *config->cores;
	c->env = (struct slot_env){
		.cores = &c->cores,
		.ids = &c->ids,
		.sys = *sys,
		.cpus = c->cpus,
		.nr_cpus = config->nr_cpus,
		.may_be_empty = config->may_be_empty,
		.nr_named = config->nr_named,
		.cgroup_fd = config->cgroup ? config->cgroup_fd : -1,
		.group_fd = -1,
		.program_fd = config->program_fd,
		.attr = {
			.tasks = config->tids,
			.no_inherit = config->no_inherit,
			.enable_on_exec = config->enable_on_exec,
			.exclude_idle = config->exclude_idle,
			.data_maps = config->data_maps,
			.stack_size = config->stack_size,
			.regs_mask = config->regs_mask,
			.no_chain = config->no_chain,
			.deferred = config->deferred,
			.period = config->period,
		},
	};
	c->layout = (struct record_layout){ .sample_type = attr_sample_type(&c->env.attr),
					    .id_all = true };
	if (config->stack_size)
		c->layout.regs_mask = config->regs_mask;
	c->waking_layout =
		(struct record_layout){ .sample_type = ATTR_WAKING_TYPE, .id_all = true };
	c->read_layout = c->layout;
	c->read_layout.sample_type |= PERF_SAMPLE_READ;
	atomic_init(&c->any_read, false);
	c->side_layout = (struct record_layout){ .sample_type = ATTR_SIDE_TYPE, .id_all = true };
	c->run = config->enable_on_exec ? RUN_AT_EXEC : RUN_OFF;
	idmap_init(&c->ids);
	atomic_init(&c->shared_slot, -1);
	atomic_init(&c->wait_slot, -1);
	atomic_init(&c->any_waking, false);
	return c;
}

/* Return the leader of the group of event @at of @events; NULL: it leads, or is alone. */
static const struct slot *counters_leader(const struct event *events, const struct slot *slots,
					  uint32_t at)
{
	uint32_t first = event_group_first(events, at);

	return first == at ? NULL : &slots[first];
}

/* Open the event of switches, disabled, if waits of whole CPUs are measured. 0 or -errno. */
static int counters_open_switches(struct counters *c)
{
	uint32_t opened;

	if (find_wait_slot(c) < 0 || c->switches.nr_tasks || c->env.attr.tasks)
		return 0;
	slot_init_switches(&c->switches);
	return slot_open(&c->switches, &c->env, NULL, NULL, 0, &opened);
}

/* Open the event of wake-ups, disabled, if waits are measured and it may be opened. */
static void counters_open_waking(struct counters *c)
{
	struct event ev;
	uint32_t refused;

	if (find_wait_slot(c) < 0 || c->waking.nr_tasks || !c->env.sys.waking ||
	    c->env.sys.waking(&ev))
		return;
	slot_init_waking(&c->waking, &c->env, &ev);
	/* Without the right to it a wait ends with the switch in. */
	if (slot_open(&c->waking, &c->env, NULL, NULL, 0, &refused) || !c->waking.nr_tasks)
		return;
	atomic_store_explicit(&c->any_waking, true, memory_order_relaxed);
	/* It has no task that could enable it. */
	if (c->run == RUN_AT_EXEC)
		slot_enable(&c->waking, &c->env, 0, true);
}

/*
 * Close both if waits are no longer measured; the last samples of wake-ups are still known by their
 * ids.
 */
static void counters_close_waits(struct counters *c)
{
	if (find_wait_slot(c) >= 0)
		return;
	slot_close(&c->waking, &c->env);
	slot_close(&c->switches, &c->env);
}

/*
 * Close what was opened on a task before it began to hang in an exec, or after: it gets all its
 * events together, so that its children inherit all of them or none.
 */
static void leave_busy(struct counters *c)
{
	for (pid_t tid = 0; counters_busy(c, tid, &tid, 1);)
		for (uint32_t i = 0; i <= c->nr_slots; i++)
			slot_leave(counters_slot(c, i), &c->env, tid);
}

/* Side-band first: no sample may precede the records of its process. */
static int open_events(struct counters *c, const struct counters_config *config, struct err *e)
{
	uint32_t refused;
	int code = 0;

	if (c->env.attr.tasks) {
		slot_init_side(&c->side, &c->env, c->side_size);
		code = slot_open(&c->side, &c->env, NULL, config->tids, config->nr_tids, &refused);
	}
	for (uint32_t i = 0; i < config->nr_events && !code; i++) {
		slot_init(&c->slots[i], &c->env, &config->events[i], config->hz);
		code = slot_open(&c->slots[i], &c->env,
				 counters_leader(config->events, c->slots, i), config->tids,
				 config->nr_tids, &refused);
		c->nr_slots += !code;
		c->nr_refused = MAX(c->nr_refused, refused);
	}
	code = code ? code : counters_open_switches(c);
	if (code)
		return limits_explain_open(e, code, &c->env.refusal);
	leave_busy(c);
	counters_open_waking(c);
	counters_fill_ids(c, NULL, 0);
	return 0;
}

/* Refuse deferred chains where the kernel does not know them: other refusals have no reason. */
static int check_deferred(struct counters *c, struct err *e)
{
	struct perf_event_attr attr;
	int fd;

	if (!c->env.attr.deferred)
		return 0;
	attr_leader(&attr, 0);
	attr_set_flag(&attr, RECORD_DEFER_CHAIN);
	fd = slot_perf_open(&c->env, &attr, getpid(), c->cpus[0].cpu);
	if (fd == -EINVAL)
		return err_set(e, -EOPNOTSUPP,
			       "-g defer: this kernel has no deferred call chains\n"
			       "  Linux 6.19 and newer have them\n"
			       "  use -g fp, or -g dwarf");
	slot_close_fd(&c->env, &fd);
	return 0;
}

int counters_open(struct counters **out, const struct counters_config *config,
		  const struct counters_sys *sys, struct err *e)
{
	struct counters *c;
	int code = check_config(config, e);

	if (code)
		return code;
	limits_raise_files();
	c = counters_new(config, sys);
	c->env.refusal.nr_wanted = fds_wanted(c, config->nr_events, config->nr_tids);
	code = check_deferred(c, e);
	if (!code)
		code = choose_ring_size(c, config, e);
	if (!code)
		code = open_events(c, config, e);
	if (code) {
		counters_close(c);
		return code;
	}
	c->env.nr_named = 0; /* they may exit */
	*out = c;
	return 0;
}

void counters_close(struct counters *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; i < c->nr_slots; i++)
		slot_close(&c->slots[i], &c->env);
	slot_close(&c->waking, &c->env);
	slot_close(&c->switches, &c->env);
	slot_close(&c->side, &c->env);
	close_rings(c);
	idmap_fini(&c->ids);
	free(c->cpus);
	free(c->wake);
	free(c);
}

void counters_unmap(struct counters *c)
{
	for (uint32_t i = 0; i < c->env.nr_cpus; i++)
		ring_close(&c->cpus[i].data);
}

uint32_t counters_nr_cpus(const struct counters *c)
{
	return c->env.nr_cpus;
}

struct counters_cpu *counters_cpu(struct counters *c, uint32_t index)
{
	assert(index < c->env.nr_cpus);
	return &c->cpus[index];
}

const struct record_layout *counters_layout(const struct counters *c)
{
	return &c->layout;
}

const struct record_layout *counters_side_layout(const struct counters *c)
{
	return &c->side_layout;
}

size_t counters_ring_size(const struct counters *c)
{
	return c->ring_size;
}

size_t counters_ring_wanted(const struct counters *c)
{
	return c->ring_wanted;
}

const char *counters_core_type(const struct counters *c, uint32_t cpu_index)
{
	const struct core_type *type;

	assert(cpu_index < c->env.nr_cpus);
	type = core_types_of(&c->cores, c->cpus[cpu_index].cpu);
	return type ? type->name : "";
}

bool counters_has_lost(const struct counters *c)
{
	return !c->env.no_lost;
}

uint32_t counters_nr_refused(const struct counters *c)
{
	uint32_t nr_busy = c->side.nr_busy;

	for (uint32_t i = 0; i < c->nr_slots; i++)
		nr_busy = MAX(nr_busy, c->slots[i].nr_busy);
	return c->nr_refused + nr_busy;
}

pid_t counters_refused(const struct counters *c, int *code)
{
	pid_t tid = c->env.refused;

	*code = c->env.refused_code;
	if (c->nr_refused)
		return tid;
	*code = -EINTR;
	return counters_busy(c, 0, &tid, 1) ? tid : 0;
}

/* Ids are unique in the whole system: one table serves all CPUs. */
static int value_of(const struct counters *c, uint64_t id)
{
	int value = idmap_find(&c->ids, id);

	/* Only our events write to our rings. */
	return value != IDMAP_UNKNOWN ? value
				      : atomic_load_explicit(&c->shared_slot, memory_order_relaxed);
}

int counters_event_of(const struct counters *c, uint32_t cpu_index, uint64_t id)
{
	int value = value_of(c, id);

	assert(cpu_index < c->env.nr_cpus);
	if (value == ID_WAKING)
		return COUNTERS_WAKING;
	if (value == ID_GONE || value == ID_GONE_READ)
		return COUNTERS_GONE;
	return value < 0 ? -1 : value & ~ID_READ;
}

const struct record_layout *counters_layout_of(const struct counters *c,
					       const struct perf_event_header *h)
{
	uint64_t id;
	int value;

	if (h->type != PERF_RECORD_SAMPLE || h->size < sizeof(*h) + sizeof(id) ||
	    !(atomic_load_explicit(&c->any_read, memory_order_relaxed) ||
	      atomic_load_explicit(&c->any_waking, memory_order_relaxed)))
		return &c->layout;
	memcpy(&id, h + 1, sizeof(id));
	value = value_of(c, id);
	if (value == ID_WAKING)
		return &c->waking_layout;
	return value == ID_GONE_READ || (value >= 0 && value & ID_READ) ? &c->read_layout
									: &c->layout;
}

int counters_read(struct counters *c, uint32_t cpu_index, uint32_t event, struct counters_value *v)
{
	if (event >= c->nr_slots || cpu_index >= c->env.nr_cpus)
		return -EINVAL;
	return slot_read(&c->slots[event], &c->env, cpu_index, v);
}

bool counters_has_ended(struct counters *c, uint32_t cpu_index)
{
	struct counters_cpu *cpu = &c->cpus[cpu_index];
	uint64_t got[2] = { 0 }, was_ns = cpu->side_ns; /* a count, and the time */

	assert(cpu_index < c->env.nr_cpus);
	if (c->env.attr.tasks ||
	    c->env.sys.read(c->env.sys.ctx, cpu->side_fd, got, sizeof(got)) != sizeof(got))
		return false;
	cpu->side_ns = got[1];
	if (cpu->ended || !was_ns || was_ns != got[1])
		return false;
	cpu->ended = true;
	return true;
}

int counters_enable(struct counters *c, bool on)
{
	int code = 0;

	for (uint32_t i = 0; i < c->nr_slots; i++) {
		int rc = slot_enable(&c->slots[i], &c->env, 0, on && !c->slots[i].off);

		code = code ? code : rc;
	}
	slot_enable(&c->waking, &c->env, 0, on);
	slot_enable(&c->switches, &c->env, 0, on);
	c->run = on ? RUN_ON : RUN_OFF;
	assert(c->run == (on ? RUN_ON : RUN_OFF));
	return code;
}

/*
 * Changes while events run: their rate, their set, the tasks followed.
 *
 * Runs on: the builder. Invariant: the old events go on until the new ones are
 * all open; after a failure everything is as it was.
 */

/* Return whether the command is past its exec. Then its events have been enabled for some time. */
static bool is_running(const struct counters *c)
{
	struct counters_value v;

	if (c->run != RUN_AT_EXEC)
		return c->run == RUN_ON;
	for (uint32_t i = 0; i < c->env.nr_cpus; i++)
		if (c->nr_slots && !slot_read(&c->slots[0], &c->env, i, &v) && v.enabled_ns)
			return true;
	return false;
}

/*
 * Events that are opened past the exec of a command are enabled by hand. Children inherit the flag,
 * and each exec of theirs would enable an event that was disabled since, or has a twin.
 */
static void forget_exec(const struct counters *c, struct slot *s)
{
	if (s->attr.enable_on_exec && (c->run != RUN_AT_EXEC || is_running(c)))
		s->attr.enable_on_exec = 0;
}

int counters_enable_event(struct counters *c, uint32_t event, bool on)
{
	if (event >= c->nr_slots)
		return -EINVAL;
	c->slots[event].off = !on;
	return slot_enable(&c->slots[event], &c->env, 0, on && is_running(c));
}

/* Bring the twins of all events in line with c->wake, after any change. 0 or the first -errno. */
static int counters_apply_wake(struct counters *c)
{
	int first = 0;

	for (uint32_t i = 0; c->wake && i < c->nr_slots; i++) {
		struct slot *s = &c->slots[i];
		int code;

		/* The reader's own switches would wake it again, and again. */
		if (s->event.wait && !c->env.attr.tasks)
			continue;
		code = slot_open_twins(s, &c->env);
		first = first ? first : code;
		/* Known before it can send a sample. */
		for (size_t k = 0; k < (size_t)s->nr_tasks * c->env.nr_cpus; k++)
			if (s->fds[k].wake_fd >= 0)
				idmap_add(&c->ids, s->fds[k].wake_id, counters_id_value(c, s, i));
		slot_wake(s, &c->env, is_running(c) && !s->off);
	}
	return first;
}

/*
 * List the tasks followed now: the side-band's tasks and their children, except tasks that have no
 * events yet: they get all of them together. NULL: the CPUs.
 */
static pid_t *followed(struct counters *c, uint32_t *nr)
{
	const struct counters_sys *sys = &c->env.sys;
	pid_t *tids = NULL;
	int found;

	*nr = 0;
	if (!c->env.attr.tasks)
		return NULL;
	found = c->env.attr.no_inherit
			? 0
			: sys->list_tasks(sys->ctx, c->side.tids, c->side.nr_tasks, &tids);
	if (found > 0) {
		for (int i = 0; i < found; i++)
			if (!slot_is_busy(&c->side, tids[i]))
				tids[(*nr)++] = tids[i];
		return tids;
	}
	free(tids);
	tids = xcalloc(c->side.nr_tasks, sizeof(*tids));
	memcpy(tids, c->side.tids, c->side.nr_tasks * sizeof(*tids));
	*nr = c->side.nr_tasks;
	return tids;
}

/* Open one more event, not enabled yet. */
static int open_slot(struct counters *c, struct slot *s, const struct slot *leader,
		     const struct event *ev, double hz, const pid_t *tids, uint32_t nr_tids,
		     struct err *e)
{
	uint32_t refused;
	int code = ev->hz > 0 ? limits_check_rate(ev->hz, e) : 0;

	if (code)
		return code;
	c->env.refusal.nr_wanted = c->env.nr_fds + MAX(nr_tids, 1) * c->env.nr_cpus;
	slot_init(s, &c->env, ev, hz);
	forget_exec(c, s);
	code = slot_open(s, &c->env, leader, tids, nr_tids, &refused);
	if (code)
		return limits_explain_open(e, code, &c->env.refusal);
	/* They lack the other events also. */
	for (uint32_t i = 0; i < c->side.nr_busy; i++)
		slot_note_busy(s, c->side.busy[i]);
	return 0;
}

/* Replace @old: its sums go on; its last samples may still be in the rings. */
static void take_place(struct counters *c, uint32_t event, struct slot *fresh, bool running)
{
	struct slot *old = &c->slots[event];

	assert(event < c->nr_slots);
	for (size_t i = 0; i < (size_t)fresh->nr_tasks * c->env.nr_cpus; i++)
		idmap_add(&c->ids, fresh->fds[i].id, counters_id_value(c, fresh, event));
	if (running) {
		slot_enable(old, &c->env, 0, false);
		slot_enable(fresh, &c->env, 0, !old->off);
	}
	fresh->off = old->off;
	slot_inherit_sums(fresh, old, &c->env);
}

/* The event with another rate, and all of its group with it: members cannot change their leader. */
static int reopen_slot(struct counters *c, uint32_t event, double hz, uint64_t period,
		       struct err *e)
{
	struct event events[EVENTS_MAX];
	struct slot fresh[EVENTS_MAX];
	bool running = is_running(c);
	uint32_t first, nr, nr_tids, i;
	pid_t *tids = followed(c, &nr_tids);
	int code = 0;

	assert(event < c->nr_slots);
	for (i = 0; i < c->nr_slots; i++)
		events[i] = c->slots[i].event;
	first = event_group_first(events, event);
	nr = event_group_nr(events, c->nr_slots, first);
	/* Its rate or period is no longer the requested one. */
	events[event].period = period;
	events[event].hz = 0;
	for (i = first; i < first + nr && !code; i++)
		code = open_slot(c, &fresh[i], counters_leader(events, fresh, i), &events[i],
				 i == event ? hz : c->slots[i].hz, tids, nr_tids, e);
	free(tids);
	if (code) {
		while (--i > first)
			slot_close(&fresh[i - 1], &c->env);
		return code;
	}
	for (i = first; i < first + nr; i++)
		take_place(c, i, &fresh[i], running);
	for (i = first; i < first + nr; i++) {
		slot_close(&c->slots[i], &c->env);
		c->slots[i] = fresh[i];
	}
	counters_apply_wake(c);
	return 0;
}

/*
 * Open the events again, on all tasks that are followed now. A twin is inherited by tasks that
 * start after it was opened: children that have inherited the event alone would be without both.
 */
static int reopen_all(struct counters *c, struct err *e)
{
	bool running = is_running(c);
	uint32_t nr_tids;
	pid_t *tids;
	int code = 0;

	if (!c->env.attr.tasks || c->env.attr.no_inherit)
		return 0;
	tids = followed(c, &nr_tids);
	for (uint32_t i = 0; i < c->nr_slots && !code; i++) {
		const struct event event = c->slots[i].event;
		struct slot fresh;

		code = open_slot(c, &fresh, NULL, &event, c->slots[i].hz, tids, nr_tids, e);
		if (code)
			break;
		take_place(c, i, &fresh, running);
		slot_close(&c->slots[i], &c->env);
		c->slots[i] = fresh;
	}
	free(tids);
	return code;
}

int counters_wake(struct counters *c, uint32_t cpu_index, enum counters_wake wake)
{
	bool any = false;

	assert(cpu_index < c->env.nr_cpus);
	for (uint32_t i = 0; i < c->nr_slots; i++) {
		if (!needs_twin(&c->slots[i], (uint8_t)wake))
			continue;
		if (c->slots[i].event.group || c->slots[i].event.counted)
			return -ENOTSUP;
		any = true;
	}
	/* One that is enabled by the exec of a command has no twin that is. */
	if (any && !is_running(c))
		return -EAGAIN;
	/* None has a twin. */
	if (!c->wake && !any)
		return 0;
	if (!c->wake) {
		struct err e = { .text = "" };
		int code = reopen_all(c, &e);

		if (code)
			return code;
		c->wake = xcalloc(c->env.nr_cpus, sizeof(*c->wake));
	}
	c->env.wake = c->wake;
	c->wake[cpu_index] = (uint8_t)wake;
	return counters_apply_wake(c);
}

int counters_set_rate(struct counters *c, uint32_t event, double hz, struct err *e)
{
	int code;

	if (event >= c->nr_slots)
		return err_set(e, -EINVAL, "there is no event %u", event);
	if (c->slots[event].event.counted)
		return err_set(e, -EINVAL,
			       "%.100s is counted whenever its group is sampled\n"
			       "  its rate is that of the group\n"
			       "  change the rate of the member that is sampled",
			       c->slots[event].event.name);
	code = limits_check_rate(hz, e);
	if (code)
		return code;
	/* From a fixed period there is no way back to a rate but a new event. */
	c->env.attr.period = 0;
	/* A clock's samples keep the period that it was opened with: the kernel sets
	 * hw.last_period at their start only, not in PERF_EVENT_IOC_PERIOD. */
	if (c->env.attr.tasks || !c->slots[event].attr.freq)
		return reopen_slot(c, event, hz, 0, e);
	code = slot_set_rate(&c->slots[event], &c->env, hz);
	if (!code)
		c->slots[event].event.hz = c->slots[event].event.period = 0;
	return !code ? 0
		     : err_set(e, code,
			       "%s does not take %.0f Hz: %s\n"
			       "  PERF_EVENT_IOC_PERIOD was refused\n"
			       "  kernel.perf_event_max_sample_rate may have been lowered",
			       c->slots[event].event.name, hz, strerror(-code));
}

int counters_set_period(struct counters *c, uint32_t event, uint64_t period, struct err *e)
{
	if (event >= c->nr_slots)
		return err_set(e, -EINVAL, "there is no event %u", event);
	return reopen_slot(c, event, c->slots[event].hz, period, e);
}

static bool in_group(const struct counters *c, uint32_t at, uint32_t group)
{
	return group && at < c->nr_slots && c->slots[at].event.group == group;
}

/* From slot @at on, are there the same @nr events in the same order, and no others in their group?
 */
static bool same_group(const struct counters *c, uint32_t at, const struct event *events,
		       uint32_t nr)
{
	uint32_t group = c->slots[at].event.group;

	assert(at < c->nr_slots);
	if ((nr > 1) != !!group || at + nr > c->nr_slots || in_group(c, at + nr, group) ||
	    (at && in_group(c, at - 1, group)))
		return false;
	for (uint32_t i = 0; i < nr; i++)
		if (c->slots[at + i].event.group != group ||
		    !event_same(&c->slots[at + i].event, &events[i]))
			return false;
	return true;
}

/* The slots that have the @nr events of a group (or the one alone) already; -1: none. */
static int find_slots(const struct counters *c, const struct event *events, uint32_t nr,
		      uint32_t taken)
{
	for (uint32_t i = 0; i < c->nr_slots; i++)
		if (!(taken & 1u << i) && same_group(c, i, events, nr))
			return (int)i;
	return -1;
}

/* Open the @nr events of a group, or the one; *@i is the one that failed. */
static int open_group(struct counters *c, struct slot *slots, const struct event *events,
		      uint32_t first, uint32_t nr, uint32_t *fresh, double hz, const pid_t *tids,
		      uint32_t nr_tids, struct err *e)
{
	for (uint32_t i = first; i < first + nr; i++) {
		int code = open_slot(c, &slots[i], counters_leader(events, slots, i), &events[i],
				     hz, tids, nr_tids, e);

		if (code)
			return code;
		*fresh |= 1u << i;
	}
	return 0;
}

/* Enable the events of switches and of wake-ups, if they are open. */
static void enable_waits(struct counters *c)
{
	slot_enable(&c->waking, &c->env, 0, true);
	slot_enable(&c->switches, &c->env, 0, true);
}

/* Open the new events; then, when nothing can fail any more, close the old ones. */
int counters_set_events(struct counters *c, const struct event *events, uint32_t nr, double hz,
			struct err *e)
{
	struct slot slots[EVENTS_MAX], gone[EVENTS_MAX];
	uint32_t kept = 0, fresh = 0, nr_gone = 0, nr_tids, i, size;
	bool running = is_running(c);
	pid_t *tids;
	int code = 0;

	if (!nr || nr > EVENTS_MAX)
		return err_set(e, -EINVAL, "invalid number of events: %u", nr);
	tids = followed(c, &nr_tids);
	for (i = 0; i < nr && !code; i += size) {
		int was;

		size = event_group_nr(events, nr, i);
		was = find_slots(c, &events[i], size, kept);
		for (uint32_t k = 0; was >= 0 && k < size; k++) {
			slots[i + k] = c->slots[(uint32_t)was + k];
			slots[i + k].event = events[i + k];
			kept |= 1u << ((uint32_t)was + k);
		}
		if (was < 0)
			code = open_group(c, slots, events, i, size, &fresh, hz, tids, nr_tids, e);
	}
	free(tids);
	for (i = 0; i < nr && code; i++)
		if (fresh & 1u << i)
			slot_close(&slots[i], &c->env);
	if (code)
		return code;
	for (i = 0; i < c->nr_slots; i++)
		if (!(kept & 1u << i))
			gone[nr_gone++] = c->slots[i];
	memcpy(c->slots, slots, nr * sizeof(slots[0]));
	c->nr_slots = nr;
	counters_open_switches(c);
	counters_open_waking(c);
	counters_fill_ids(c, gone, nr_gone);
	counters_close_waits(c);
	while (nr_gone)
		slot_close(&gone[--nr_gone], &c->env);
	for (i = 0; i < nr && running; i++)
		if (fresh & 1u << i)
			slot_enable(&c->slots[i], &c->env, 0, true);
	if (running)
		enable_waits(c);
	counters_apply_wake(c);
	return 0;
}

/* Add the ids of wake-ups to the table. */
static void add_waking_ids(struct counters *c)
{
	size_t nr = (size_t)c->waking.nr_tasks * c->env.nr_cpus;

	for (size_t i = 0; i < nr; i++)
		if (c->waking.fds[i].fd >= 0)
			idmap_add(&c->ids, c->waking.fds[i].id, ID_WAKING);
}

bool counters_has_switches(const struct counters *c)
{
	return c->switches.nr_tasks > 0;
}

int counters_set_switches(struct counters *c, bool on)
{
	int code;

	if (!on) {
		slot_close(&c->switches, &c->env);
		return 0;
	}
	code = counters_open_switches(c);
	if (!code && is_running(c))
		slot_enable(&c->switches, &c->env, 0, true);
	return code;
}

void counters_set_waking(struct counters *c, bool on)
{
	if (!on) {
		slot_close(&c->waking, &c->env);
		return;
	}
	if (c->waking.nr_tasks)
		return;
	counters_open_waking(c);
	add_waking_ids(c);
	if (is_running(c))
		slot_enable(&c->waking, &c->env, 0, true);
}

static const struct slot *leader_of(const struct counters *c, uint32_t at)
{
	uint32_t first = at;

	assert(at < c->nr_slots);
	while (first && c->slots[first - 1].event.group == c->slots[at].event.group)
		first--;
	return first == at ? NULL : &c->slots[first];
}

uint32_t counters_busy(const struct counters *c, pid_t after, pid_t *tids, uint32_t nr)
{
	uint32_t found = 0;

	assert(tids || !nr);
	for (; found < nr; found++) {
		pid_t next = 0;

		for (uint32_t i = 0; i <= c->nr_slots; i++) {
			const struct slot *s = i ? &c->slots[i - 1] : &c->side;

			for (uint32_t k = 0; k < s->nr_busy; k++)
				if (s->busy[k] > after && (!next || s->busy[k] < next))
					next = s->busy[k];
		}
		if (!next)
			break;
		tids[found] = after = next;
	}
	assert(found <= nr);
	return found;
}

const pid_t *counters_left_out(const struct counters *c, uint32_t *nr)
{
	*nr = c->side.nr_busy;
	return c->side.busy;
}

const pid_t *counters_tasks(const struct counters *c, uint32_t *nr)
{
	*nr = c->side.nr_tasks;
	return c->side.tids;
}

bool counters_is_busy(const struct counters *c, pid_t tid)
{
	pid_t next;

	return counters_busy(c, tid - 1, &next, 1) && next == tid;
}

/* Open one event on one more task. Its ids are known before it can send a sample. */
static int open_task(struct counters *c, uint32_t at, pid_t tid)
{
	struct slot *s = counters_slot(c, at);
	int code;

	forget_exec(c, s);
	code = slot_add_task(s, &c->env, s->event.group ? leader_of(c, at - 1) : NULL, tid);
	if (code || s->side)
		return code;
	for (uint32_t i = 0; i < c->env.nr_cpus; i++)
		idmap_add(&c->ids, s->fds[(size_t)(s->nr_tasks - 1) * c->env.nr_cpus + i].id,
			  counters_id_value(c, s, at - 1));
	if (is_running(c) && !s->off)
		slot_enable(s, &c->env, s->nr_tasks - 1, true);
	return 0;
}

/*
 * Open the events on a task that it lacks: all if it is new, else where it is busy. If it hangs in
 * an exec, leave it without any of them. @left_out: others were, so their threads and
 * children may have an event that was opened since.
 */
static int add_task(struct counters *c, const struct task_set *there, bool left_out, pid_t tid)
{
	bool is_new = !task_set_has(there, tid) && !counters_is_busy(c, tid);
	bool lacks[EVENTS_MAX + 1];
	int code = 0;

	for (uint32_t i = 0; i <= c->nr_slots; i++) {
		lacks[i] = is_new ? !left_out || !slot_has_task(counters_slot(c, i), tid)
				  : slot_is_busy(counters_slot(c, i), tid);
		if (lacks[i] && !code)
			code = open_task(c, i, tid);
	}
	for (uint32_t i = 0; i <= c->nr_slots; i++) {
		if (lacks[i] && code == -EINTR)
			slot_leave(counters_slot(c, i), &c->env, tid);
		else if (lacks[i])
			slot_forget_busy(counters_slot(c, i), tid);
	}
	return code;
}

/* Add the tasks that are not in @there. */
static int add_tasks(struct counters *c, const struct task_set *there, const pid_t *tids,
		     uint32_t nr, struct err *e)
{
	const bool left_out = c->side.nr_busy;
	uint32_t nr_fds = c->env.nr_fds;

	for (uint32_t i = 0; i < nr; i++) {
		int code = add_task(c, there, left_out, tids[i]);

		if (!code || code == -ESRCH || code == -EINTR)
			continue;
		if (code == -EACCES || code == -EPERM) {
			slot_refuse(&c->env, tids[i], code);
			c->nr_refused++;
			continue;
		}
		c->env.refusal.nr_wanted =
			c->env.nr_fds + (nr - i) * (c->nr_slots + 1) * c->env.nr_cpus;
		slot_refuse(&c->env, tids[i], code);
		/* Nor the others, except that busy ones may be added again. */
		for (; i < nr; i++)
			c->nr_refused += !counters_is_busy(c, tids[i]);
		return limits_explain_open(e, code, &c->env.refusal);
	}
	if (c->env.nr_fds > nr_fds)
		counters_apply_wake(c);
	return 0;
}

int counters_add_tasks(struct counters *c, const pid_t *tids, uint32_t nr, struct err *e)
{
	struct task_set there;
	int code;

	assert(tids || !nr);
	if (!c->env.attr.tasks)
		return nr ? err_set(e, -EINVAL, "the whole system is sampled already") : 0;
	slot_reap(&c->side, &c->env);
	for (uint32_t i = 0; i < c->nr_slots; i++)
		slot_reap(&c->slots[i], &c->env);
	if (!nr)
		return 0;
	task_set_init(&there, c->side.tids, c->side.nr_tasks);
	code = add_tasks(c, &there, tids, nr, e);
	task_set_fini(&there);
	return code;
}
