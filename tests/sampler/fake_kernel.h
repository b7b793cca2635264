/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A kernel made of arrays, behind the seam of counters: requests are recorded, and any call can be
 * made to fail.
 */
#ifndef TESTS_SAMPLER_FAKE_KERNEL_H
#define TESTS_SAMPLER_FAKE_KERNEL_H

#include "tests/prelude.h"

#include <errno.h>
#include <linux/perf_event.h>

#include "sampler/event/event.h"
#include "symbols/base/base.h"
#include "sampler/ring/ring.h"

#define MAX_FDS	  4096
#define FIRST_FD  1000
#define REGS_MASK 0xff0fffULL

struct fake_fd {
	bool open, enabled, hung_up;
	struct perf_event_attr attr;
	pid_t tid;
	int cpu, output;
	int leader;  /* fd of its group's; -1: alone */
	int program; /* a BPF program; 0: none */
	uint64_t period;
	uint64_t on_ns; /* of a side-band event */
};

struct fake {
	struct fake_fd fds[MAX_FDS];
	int nr_fds; /* ever opened */
	int nr_open, nr_calls;
	int fail_at, fail_code; /* the n-th call of all, counted from 1 */
	uint64_t refuse_format; /* EINVAL if any of these is in read_format */
	bool refuse_idle;
	bool no_defer;	       /* before Linux 6.19: EINVAL for its flags */
	uint32_t missing_type; /* ENOENT; 0: none */
	bool no_pmu, no_css;   /* ENOENT for hardware events; for every cgroup */
	/* With several types of cores: the type of the PMU of each CPU; 0: all are alike. */
	uint32_t core_types[8];
	bool no_core_types; /* EINVAL for a core type in the config, as old kernels of Arm */
	bool offline[8];    /* ENODEV for events of the whole CPU */
	unsigned int max_precise;
	size_t max_ring; /* EPERM above */
	size_t rings[64];
	int nr_rings;
	pid_t gone, forbidden, busy;
	pid_t last_busy; /* if not 0: all from @busy to this one hang in an exec */
	pid_t tree[8];
	uint32_t nr_tree;
	struct perf_event_mmap_page page;
	uint8_t data[64];
};

static inline int fake_waking(struct event *ev)
{
	*ev = (struct event){ .name = WAKING_NAME,
			      .type = PERF_TYPE_TRACEPOINT,
			      .config = 375,
			      .user = true,
			      .kernel = true };
	return 0;
}

/* Return a flag that older headers do not name. */
static inline bool fake_defers(const struct perf_event_attr *attr, unsigned int bit)
{
	uint64_t flags;

	memcpy(&flags, (const uint8_t *)attr + 40, sizeof(flags));
	return flags >> bit & 1;
}

static inline int fake_call(struct fake *f)
{
	return ++f->nr_calls == f->fail_at ? f->fail_code : 0;
}

static inline struct fake_fd *fake_fd(struct fake *f, int fd)
{
	assert_in_range(fd, FIRST_FD, FIRST_FD + f->nr_fds - 1);
	assert_true(f->fds[fd - FIRST_FD].open);
	return &f->fds[fd - FIRST_FD];
}

/* As the kernel: an event of a PMU opens on the CPUs of that PMU only. */
static inline int fake_core_type(const struct fake *f, const struct perf_event_attr *attr, int cpu)
{
	uint64_t in_config = attr->config >> 32;

	assert_in_range(cpu, 0, 7);
	if (!f->core_types[cpu])
		return 0;
	if (attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_HW_CACHE) {
		if (in_config && f->no_core_types)
			return -EINVAL;
		return in_config && in_config != f->core_types[cpu] ? -ENOENT : 0;
	}
	return attr->type >= PERF_TYPE_RAW && attr->type != PERF_TYPE_BREAKPOINT &&
			       attr->type != f->core_types[cpu]
		       ? -ENOENT
		       : 0;
}

static inline int fake_perf_open(void *ctx, struct perf_event_attr *attr, pid_t pid, int cpu,
				 int group_fd, unsigned long flags)
{
	struct fake *f = ctx;
	int code = fake_call(f);
	assert_int_equal(flags & ~PERF_FLAG_PID_CGROUP, PERF_FLAG_FD_CLOEXEC);
	if (code)
		return code;
	if ((f->missing_type && attr->type == f->missing_type) ||
	    (f->no_css && flags & PERF_FLAG_PID_CGROUP) ||
	    (f->no_pmu && (attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_HW_CACHE)))
		return -ENOENT;
	code = fake_core_type(f, attr, cpu);
	if (code)
		return code;
	if (f->offline[cpu] && (pid < 0 || flags & PERF_FLAG_PID_CGROUP))
		return -ENODEV;
	if (pid > 0 && pid == f->gone)
		return -ESRCH;
	if (pid > 0 && pid == f->forbidden)
		return -EACCES;
	if (pid > 0 && pid >= f->busy && pid <= MAX(f->busy, f->last_busy))
		return -EINTR;
	if (f->no_defer &&
	    (fake_defers(attr, RECORD_DEFER_CHAIN) || fake_defers(attr, RECORD_DEFER_OUTPUT)))
		return -EINVAL;
	if (attr->read_format & f->refuse_format || (attr->exclude_idle && f->refuse_idle))
		return -EINVAL;
	if (attr->precise_ip > f->max_precise)
		return -EOPNOTSUPP;
	/* as the kernel: a group is of one task and CPU, and its leader leads */
	if (group_fd >= 0) {
		assert_int_equal(fake_fd(f, group_fd)->tid, pid);
		assert_int_equal(fake_fd(f, group_fd)->cpu, cpu);
		assert_int_equal(fake_fd(f, group_fd)->leader, -1);
	}
	assert_true(f->nr_fds < MAX_FDS);
	f->fds[f->nr_fds] = (struct fake_fd){
		.open = true,
		.attr = *attr,
		.tid = pid,
		.cpu = cpu,
		.output = -1,
		.leader = group_fd,
		.enabled = !attr->disabled,
		.period = attr->sample_period,
	};
	f->nr_open++;
	return FIRST_FD + f->nr_fds++;
}

static inline int fake_ioctl(void *ctx, int fd, unsigned long request, uint64_t arg)
{
	struct fake *f = ctx;
	struct fake_fd *ff = fake_fd(f, fd);
	int code = fake_call(f);

	if (code)
		return code;
	if (request == PERF_EVENT_IOC_SET_OUTPUT) {
		/* as the kernel: same CPU, same clock */
		assert_int_equal(fake_fd(f, (int)arg)->cpu, ff->cpu);
		assert_int_equal(fake_fd(f, (int)arg)->attr.clockid, ff->attr.clockid);
		ff->output = (int)arg;
	} else if (request == PERF_EVENT_IOC_ID) {
		*(uint64_t *)(uintptr_t)arg = (uint64_t)fd * 10;
	} else if (request == PERF_EVENT_IOC_PERIOD) {
		ff->period = *(uint64_t *)(uintptr_t)arg;
	} else if (request == PERF_EVENT_IOC_ENABLE || request == PERF_EVENT_IOC_DISABLE) {
		ff->enabled = request == PERF_EVENT_IOC_ENABLE;
	} else if (request == PERF_EVENT_IOC_SET_BPF) {
		/* A tracepoint takes programs of another kind. */
		if (ff->attr.type == PERF_TYPE_TRACEPOINT)
			return -EINVAL;
		ff->program = (int)arg;
	} else {
		fail_msg("ioctl %lx", request);
	}
	return 0;
}

/* The counts of a group, from any of its fds: how many, times, then count, id, lost of each.
 */
static inline ssize_t fake_read_group(struct fake *f, int fd, void *buf, size_t size)
{
	int leader = fake_fd(f, fd)->leader < 0 ? fd : fake_fd(f, fd)->leader;
	uint64_t v[64] = { 0, 7, 5 };
	size_t nr = 3;

	for (int i = 0; i < f->nr_fds; i++) {
		if (!f->fds[i].open || (i + FIRST_FD != leader && f->fds[i].leader != leader))
			continue;
		v[0]++;
		v[nr++] = 1000 + (uint64_t)(i + FIRST_FD);
		v[nr++] = (uint64_t)(i + FIRST_FD) * 10;
		v[nr++] = 3;
	}
	assert_true(size >= 8 * nr);
	memcpy(buf, v, 8 * nr);
	return (ssize_t)(8 * nr);
}

static inline ssize_t fake_read(void *ctx, int fd, void *buf, size_t size)
{
	struct fake *f = ctx;
	struct fake_fd *ff = fake_fd(f, fd);
	uint64_t v[5] = { 1000 + (uint64_t)fd, ff->enabled ? 7 : 0, 5, (uint64_t)fd * 10, 3 };
	size_t nr = ff->attr.read_format & PERF_FORMAT_LOST ? 40 : 32;

	if (ff->attr.read_format == PERF_FORMAT_TOTAL_TIME_ENABLED) {
		v[1] = ff->on_ns;
		nr = 16;
	}
	if (ff->attr.read_format & PERF_FORMAT_GROUP)
		return fake_read_group(f, fd, buf, size);
	assert_true(size >= nr);
	memcpy(buf, v, nr);
	return (ssize_t)nr;
}

static inline int fake_ring_open(void *ctx, struct ring *ring, int fd, size_t size)
{
	struct fake *f = ctx;
	int code = fake_call(f);

	fake_fd(f, fd);
	if (code)
		return code;
	if (size > f->max_ring)
		return -EPERM;
	assert_true(f->nr_rings < 64);
	f->rings[f->nr_rings++] = size;
	ring_init(ring, &f->page, f->data, sizeof(f->data));
	return 0;
}

static inline int fake_close(void *ctx, int fd)
{
	struct fake *f = ctx;

	fake_fd(f, fd)->open = false;
	f->nr_open--;
	return 0;
}

static inline int fake_poll(void *ctx, struct pollfd *fds, nfds_t nr)
{
	int ready = 0;

	for (nfds_t i = 0; i < nr; i++) {
		fds[i].revents = fake_fd(ctx, fds[i].fd)->hung_up ? POLLHUP : 0;
		ready += !!fds[i].revents;
	}
	return ready;
}

static inline int fake_list_tasks(void *ctx, const pid_t *tids, uint32_t nr, pid_t **out)
{
	struct fake *f = ctx;

	*out = malloc(sizeof(f->tree));
	memcpy(*out, f->tree, sizeof(f->tree));
	return (int)f->nr_tree;
}

static inline bool fake_exists(void *ctx, pid_t tid)
{
	const struct fake *f = ctx;

	return tid != f->gone;
}

static inline struct counters_sys fake_sys(struct fake *f)
{
	return (struct counters_sys){
		.perf_open = fake_perf_open,
		.ioctl = fake_ioctl,
		.read = fake_read,
		.ring_open = fake_ring_open,
		.close = fake_close,
		.poll = fake_poll,
		.list_tasks = fake_list_tasks,
		.exists = fake_exists,
		.ctx = f,
	};
}

static inline struct fake *fake_new(void)
{
	struct fake *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->max_ring = SIZE_MAX;
	f->max_precise = 3;
	return f;
}

static inline struct event parse(const char *text)
{
	struct event ev;

	assert_int_equal(event_parse(&ev, text, NULL), 0);
	return ev;
}

static const int two_cpus[] = { 0, 3 };

static inline struct counters_config system_config(const struct event *events, uint32_t nr)
{
	return (struct counters_config){
		.cpus = two_cpus,
		.nr_cpus = 2,
		.events = events,
		.nr_events = nr,
		.hz = 999,
		.stack_size = 16384,
		.regs_mask = REGS_MASK,
		.exclude_idle = true,
	};
}

static inline struct counters *open_fake(struct fake *f, const struct counters_config *config)
{
	struct counters_sys sys = fake_sys(f);
	struct counters *c;
	struct err e = { "" };

	if (counters_open(&c, config, &sys, &e))
		fail_msg("%s", e.text);
	return c;
}

static inline unsigned int lines(const char *text)
{
	unsigned int nr = 1;

	for (; *text; text++)
		nr += *text == '\n';
	return nr;
}

/* The open fds that are of this type and config, in order. */
static inline uint32_t find_open(struct fake *f, const struct event *ev, struct fake_fd **out)
{
	uint32_t nr = 0;

	for (int i = 0; i < f->nr_fds; i++)
		if (f->fds[i].open && f->fds[i].attr.type == ev->type &&
		    f->fds[i].attr.config == ev->config)
			out[nr++] = &f->fds[i];
	return nr;
}

static const pid_t tids[] = { 501, 502, 503 };

static inline struct counters_config tasks_config(const struct event *events, uint32_t nr)
{
	struct counters_config config = system_config(events, nr);

	config.tids = tids;
	config.nr_tids = 3;
	return config;
}

#endif
