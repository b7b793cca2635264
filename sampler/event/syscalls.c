// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The real system calls behind counters: errno becomes a return value. -EINTR: a task that is held
 * up by its exec.
 *
 * Runs on: the thread of counters. No state.
 */
#include "sampler/event/counters.h"
#include "sampler/event/in_time.h"
#include "sampler/event/task_list.h"
#include "sampler/event/waking.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int kernel_perf_open(void *ctx, struct perf_event_attr *attr, pid_t pid, int cpu,
			    int group_fd, unsigned long flags)
{
	bool task = pid > 0 && !(flags & PERF_FLAG_PID_CGROUP);
	long fd;
	int code;

	if (task)
		in_time_begin();
	fd = syscall(SYS_perf_event_open, attr, pid, cpu, group_fd, flags);
	code = fd < 0 ? -errno : (int)fd;
	if (task)
		in_time_end(code == -EINTR);
	return code;
}

static int kernel_ioctl(void *ctx, int fd, unsigned long request, uint64_t arg)
{
	return ioctl(fd, request, arg) < 0 ? -errno : 0;
}

static ssize_t kernel_read(void *ctx, int fd, void *buf, size_t size)
{
	ssize_t nr = read(fd, buf, size);

	return nr < 0 ? -errno : nr;
}

static int kernel_ring_open(void *ctx, struct ring *ring, int fd, size_t size)
{
	return ring_open(ring, fd, size);
}

static int kernel_close(void *ctx, int fd)
{
	return close(fd) ? -errno : 0;
}

static int kernel_poll(void *ctx, struct pollfd *fds, nfds_t nr)
{
	int ready = poll(fds, nr, 0);

	return ready < 0 ? -errno : ready;
}

static int kernel_list_tasks(void *ctx, const pid_t *tids, uint32_t nr, pid_t **out)
{
	return task_list_tree(tids, nr, out);
}

static bool kernel_exists(void *ctx, pid_t tid)
{
	return !kill(tid, 0) || errno != ESRCH;
}

const struct counters_sys counters_kernel = {
	.perf_open = kernel_perf_open,
	.ioctl = kernel_ioctl,
	.read = kernel_read,
	.ring_open = kernel_ring_open,
	.close = kernel_close,
	.poll = kernel_poll,
	.list_tasks = kernel_list_tasks,
	.exists = kernel_exists,
	.waking = waking_event,
};
