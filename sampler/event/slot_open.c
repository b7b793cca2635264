// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Open one event on one task and CPU, with the attributes that this kernel takes.
 *
 * Runs on: the thread of counters. Each open fd is counted in env->nr_fds.
 */
#include "sampler/event/slot.h"

#include <assert.h>
#include <errno.h>
#include <sys/ioctl.h>

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

int slot_open_on(struct slot *s, struct slot_env *env, struct slot_fd *out, pid_t tid,
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

int slot_open_twin(struct slot *s, struct slot_env *env, struct slot_fd *fd, pid_t tid,
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
