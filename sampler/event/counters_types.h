/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by counters and the slots of their events: the system calls, one CPU, one value.
 */
#ifndef SAMPLER_EVENT_COUNTERS_TYPES_H
#define SAMPLER_EVENT_COUNTERS_TYPES_H

#include <linux/perf_event.h>
#include <poll.h>
#include <sys/types.h>

#include "sampler/event/event_type.h"
#include "sampler/perf/ring.h"
#include "symbols/base/base.h"

/* System calls behind one seam, so that tests can fail the n-th of them. */
struct counters_sys {
	int (*perf_open)(void *ctx, struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd,
			 unsigned long flags);
	int (*ioctl)(void *ctx, int fd, unsigned long request, uint64_t arg);
	ssize_t (*read)(void *ctx, int fd, void *buf, size_t size);
	int (*ring_open)(void *ctx, struct ring *ring, int fd, size_t size);
	int (*close)(void *ctx, int fd);
	int (*poll)(void *ctx, struct pollfd *fds, nfds_t nr); /* never waits */
	/* task_list_tree(), or the like: the tasks followed now. */
	int (*list_tasks)(void *ctx, const pid_t *tids, uint32_t nr, pid_t **out);
	bool (*exists)(void *ctx, pid_t tid); /* never waits; called for busy tasks alone */
	/* waking_event(), or the like; NULL: there is none. */
	int (*waking)(struct event *ev);
	void *ctx;
};

struct counters_cpu {
	int cpu;
	struct ring data; /* poll(2) on data_fd: wakes at a watermark of a quarter */
	struct ring side; /* poll(2) on side_fd: wakes at an eighth */
	int data_fd, side_fd;
	uint64_t side_ns; /* how long the side-band event had been on, when it was last read */
	bool ended;	  /* the events of this CPU ended, and that was reported */
};

/* Since open, for one event on one CPU, over all tasks. */
struct counters_value {
	uint64_t count; /* of the event (ns for clocks) */
	uint64_t enabled_ns, running_ns;
	uint64_t lost; /* PERF_FORMAT_LOST (kernel 6.0), else 0: count LOST records */
};

#endif
