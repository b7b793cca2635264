// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * counters: on made-up system calls (what is asked for, failures at the n-th
 * call for every n, no fd left open), and on real ones where perf_event_open
 * is permitted.
 */
#include "sampler/counters.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sampler/attr.h"
#include "sampler/idmap.h"

#define MAX_FDS	  4096
#define FIRST_FD  1000
#define REGS_MASK 0xff0fffULL

/* A kernel made of arrays. */
struct fake_fd {
	bool open, enabled, hung_up;
	struct perf_event_attr attr;
	pid_t tid;
	int cpu, output;
	uint64_t period;
};

struct fake {
	struct fake_fd fds[MAX_FDS];
	int nr_fds;			/* ever opened */
	int nr_open, nr_calls;
	int fail_at, fail_code;		/* the n-th call of all, counted from 1 */
	uint64_t refuse_format;		/* EINVAL if any of these is in read_format */
	bool refuse_idle;
	unsigned int max_precise;
	size_t max_ring;		/* EPERM above */
	size_t rings[64];
	int nr_rings;
	pid_t gone, forbidden;
	pid_t tree[8];
	uint32_t nr_tree;
	struct perf_event_mmap_page page;
	uint8_t data[64];
};

static int fake_call(struct fake *f)
{
	return ++f->nr_calls == f->fail_at ? f->fail_code : 0;
}

static struct fake_fd *fake_fd(struct fake *f, int fd)
{
	assert_in_range(fd, FIRST_FD, FIRST_FD + f->nr_fds - 1);
	assert_true(f->fds[fd - FIRST_FD].open);
	return &f->fds[fd - FIRST_FD];
}

static int fake_perf_open(void *ctx, struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd,
			  unsigned long flags)
{
	struct fake *f = ctx;
	int code = fake_call(f);

	assert_int_equal(group_fd, -1);
	assert_int_equal(flags, PERF_FLAG_FD_CLOEXEC);
	if (code)
		return code;
	if (pid > 0 && pid == f->gone)
		return -ESRCH;
	if (pid > 0 && pid == f->forbidden)
		return -EACCES;
	if (attr->read_format & f->refuse_format || (attr->exclude_idle && f->refuse_idle))
		return -EINVAL;
	if (attr->precise_ip > f->max_precise)
		return -EOPNOTSUPP;
	assert_true(f->nr_fds < MAX_FDS);
	f->fds[f->nr_fds] = (struct fake_fd){
		.open = true, .attr = *attr, .tid = pid, .cpu = cpu, .output = -1,
		.enabled = !attr->disabled, .period = attr->sample_period,
	};
	f->nr_open++;
	return FIRST_FD + f->nr_fds++;
}

static int fake_ioctl(void *ctx, int fd, unsigned long request, uint64_t arg)
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
	} else {
		fail_msg("ioctl %lx", request);
	}
	return 0;
}

static ssize_t fake_read(void *ctx, int fd, void *buf, size_t size)
{
	struct fake *f = ctx;
	struct fake_fd *ff = fake_fd(f, fd);
	uint64_t v[5] = { 1000 + (uint64_t)fd, ff->enabled ? 7 : 0, 5, (uint64_t)fd * 10, 3 };
	size_t nr = ff->attr.read_format & PERF_FORMAT_LOST ? 40 : 32;

	assert_true(size >= nr);
	memcpy(buf, v, nr);
	return (ssize_t)nr;
}

static int fake_ring_open(void *ctx, struct ring *ring, int fd, size_t size)
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

static int fake_close(void *ctx, int fd)
{
	struct fake *f = ctx;

	fake_fd(f, fd)->open = false;
	f->nr_open--;
	return 0;
}

static int fake_poll(void *ctx, struct pollfd *fds, nfds_t nr)
{
	int ready = 0;

	for (nfds_t i = 0; i < nr; i++) {
		fds[i].revents = fake_fd(ctx, fds[i].fd)->hung_up ? POLLHUP : 0;
		ready += !!fds[i].revents;
	}
	return ready;
}

static int fake_list_tasks(void *ctx, const pid_t *tids, uint32_t nr, pid_t **out)
{
	struct fake *f = ctx;

	*out = malloc(sizeof(f->tree));
	memcpy(*out, f->tree, sizeof(f->tree));
	return (int)f->nr_tree;
}

static struct counters_sys fake_sys(struct fake *f)
{
	return (struct counters_sys){
		.perf_open = fake_perf_open, .ioctl = fake_ioctl, .read = fake_read,
		.ring_open = fake_ring_open, .close = fake_close, .poll = fake_poll,
		.list_tasks = fake_list_tasks, .ctx = f,
	};
}

static struct fake *fake_new(void)
{
	struct fake *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->max_ring = SIZE_MAX;
	f->max_precise = 3;
	return f;
}

static struct event parse(const char *text)
{
	struct event ev;

	assert_int_equal(event_parse(&ev, text, NULL), 0);
	return ev;
}

static const int two_cpus[] = { 0, 3 };

static struct counters_config system_config(const struct event *events, uint32_t nr)
{
	return (struct counters_config){
		.cpus = two_cpus, .nr_cpus = 2, .events = events, .nr_events = nr, .hz = 999,
		.stack_size = 16384, .regs_mask = REGS_MASK, .exclude_idle = true,
	};
}

static struct counters *open_fake(struct fake *f, const struct counters_config *config)
{
	struct counters_sys sys = fake_sys(f);
	struct counters *c;
	struct err e = { "" };

	if (counters_open(&c, config, &sys, &e))
		fail_msg("%s", e.text);
	return c;
}

static unsigned int lines(const char *text)
{
	unsigned int nr = 1;

	for (; *text; text++)
		nr += *text == '\n';
	return nr;
}

/* The open fds that are of this type and config, in order. */
static uint32_t find_open(struct fake *f, const struct event *ev, struct fake_fd **out)
{
	uint32_t nr = 0;

	for (int i = 0; i < f->nr_fds; i++)
		if (f->fds[i].open && f->fds[i].attr.type == ev->type &&
		    f->fds[i].attr.config == ev->config)
			out[nr++] = &f->fds[i];
	return nr;
}

/* What is asked of the kernel for a sampling event, bit by bit. */
static void test_attr_sample(void **state)
{
	struct event cycles = parse("cycles"), clock = parse("cpu-clock:u");
	struct attr_config config = { .exclude_idle = true,
				      .stack_size = 8192,
				      .regs_mask = REGS_MASK };
	struct perf_event_attr attr, expected = {
		.size = sizeof(expected), .type = PERF_TYPE_HARDWARE, .config = 0,
		.freq = 1, .sample_freq = 999, .disabled = 1, .exclude_guest = 1,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
			PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
			PERF_FORMAT_ID | PERF_FORMAT_LOST,
		.sample_regs_user = REGS_MASK, .sample_stack_user = 8192,
		.exclude_callchain_user = 1, .sample_id_all = 1, .use_clockid = 1,
		.clockid = CLOCK_MONOTONIC, .watermark = 1,
	};

	attr_sample(&attr, &config, &cycles, 999);
	assert_memory_equal(&attr, &expected, sizeof(attr));

	/* a clock of tasks without stacks: a period in ns, no idle, user only */
	config =
		(struct attr_config){ .tasks = true, .enable_on_exec = true, .exclude_idle = true };
	attr_sample(&attr, &config, &clock, 999);
	expected.type = PERF_TYPE_SOFTWARE;
	expected.freq = 0;
	expected.sample_period = 1001001;
	expected.exclude_kernel = expected.exclude_hv = expected.exclude_callchain_kernel = 1;
	expected.exclude_idle = expected.inherit = expected.enable_on_exec = 1;
	expected.sample_type &= ~(uint64_t)RECORD_STACK_TYPE;
	expected.sample_regs_user = expected.sample_stack_user = 0;
	expected.exclude_callchain_user = 0;
	assert_memory_equal(&attr, &expected, sizeof(attr));

	config.period = 12345;
	attr_sample(&attr, &config, &cycles, 999);
	assert_int_equal(attr.freq, 0);
	assert_int_equal(attr.sample_period, 12345);
}

static void test_attr_side(void **state)
{
	struct perf_event_attr attr, expected = {
		.size = sizeof(expected),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.inherit = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.watermark = 1,
		.wakeup_watermark = 8192,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};

	attr_side(&attr, true, 65536);
	assert_memory_equal(&attr, &expected, sizeof(attr));
}

static void test_attr_rate(void **state)
{
	struct event clock = parse("task-clock"), cycles = parse("cycles");

	assert_int_equal(attr_rate(&clock, 1000), 1000000);
	assert_int_equal(attr_rate(&clock, 9973), 100271);
	assert_int_equal(attr_rate(&clock, 0.5), 2000000000);
	assert_int_equal(attr_rate(&cycles, 9973), 9973);
	assert_int_equal(attr_rate(&cycles, 0.2), 1);
}

static void test_system(void **state)
{
	struct event events[] = { parse("cycles"), parse("cpu-clock") };
	struct counters_config config = system_config(events, 2);
	struct fake *f = fake_new();
	struct counters *c = open_fake(f, &config);

	/* per CPU: side-band event, leader, two events */
	assert_int_equal(f->nr_open, 8);
	assert_int_equal(counters_nr_fds(c), 8);
	assert_int_equal(counters_nr_cpus(c), 2);
	assert_true(counters_has_lost(c));
	for (uint32_t i = 0; i < 2; i++) {
		struct counters_cpu *cpu = counters_cpu(c, i);
		struct fake_fd *side = fake_fd(f, cpu->side_fd), *data = fake_fd(f, cpu->data_fd);

		assert_int_equal(cpu->cpu, two_cpus[i]);
		assert_int_equal(side->cpu, two_cpus[i]);
		assert_int_equal(side->tid, -1);
		assert_true(side->enabled && side->attr.mmap2);
		assert_int_equal(data->tid, getpid());
		assert_true(!data->enabled && !data->attr.mmap);
		assert_int_equal(data->attr.wakeup_watermark, counters_ring_size(c) / 4);
	}
	for (uint32_t i = 0; i < 2; i++) {
		struct fake_fd *fds[MAX_FDS];

		assert_int_equal(find_open(f, &events[i], fds), 2);
		for (uint32_t k = 0; k < 2; k++) {
			uint64_t id = (uint64_t)(fds[k] - f->fds + FIRST_FD) * 10;

			assert_int_equal(fds[k]->tid, -1);
			assert_int_equal(fds[k]->output, counters_cpu(c, k)->data_fd);
			assert_false(fds[k]->enabled);
			assert_int_equal(counters_event_of(c, k, id), i);
		}
	}
	assert_int_equal(counters_event_of(c, 0, 0), -1);
	assert_int_equal(counters_event_of(c, 0, 12345), -1);
	assert_int_equal(counters_layout(c)->regs_mask, REGS_MASK);
	counters_close(c);
	assert_int_equal(f->nr_open, 0);
	free(f);
}

/* Each call in turn fails, with each errno that may come: a sentence, and nothing stays open. */
static void test_fail_everywhere(void **state)
{
	static const int codes[] = { -EMFILE, -EPERM, -EINVAL, -EACCES, -ENOENT, -ENODEV, -ENOMEM };
	static const pid_t tids[] = { 501, 502, 503 };
	struct event events[] = { parse("cycles:P"), parse("cpu-clock") };

	for (unsigned int i = 0; i < 2 * ARRAY_SIZE(codes); i++) {
		struct counters_config config = system_config(events, 2);
		int at, failed = 0;

		if (i & 1) {
			config.tids = tids;
			config.nr_tids = 3;
		}
		for (at = 1;; at++) {
			struct fake *f = fake_new();
			struct counters_sys sys = fake_sys(f);
			struct counters *c = NULL;
			struct err e = { "" };
			int code;

			f->fail_at = at;
			f->fail_code = codes[i / 2];
			code = counters_open(&c, &config, &sys, &e);
			if (code) {
				failed++;
				assert_int_equal(code, codes[i / 2]);
				assert_null(c);
				if (lines(e.text) != 3)
					fail_msg("not three lines: %s", e.text);
				if (code == -EMFILE)
					assert_non_null(strcasestr(e.text, "too many open files"));
			} else {
				counters_close(c);
			}
			assert_int_equal(f->nr_open, 0);
			code = f->nr_calls < at;
			free(f);
			if (code)
				break;
		}
		/* EMFILE is nothing to get around; the others may be */
		if (codes[i / 2] == -EMFILE)
			assert_int_equal(failed, at - 1);
		assert_true(at > 10);
	}
}

static void test_old_kernel(void **state)
{
	struct event events[] = { parse("cpu-clock"), parse("task-clock") };
	struct counters_config config = system_config(events, 2);
	struct fake_fd *fds[MAX_FDS];
	struct counters_value v;

	for (int idle = 0; idle < 2; idle++) {
		struct fake *f = fake_new();
		struct counters *c;

		f->refuse_format = PERF_FORMAT_LOST;
		f->refuse_idle = idle;
		c = open_fake(f, &config);
		assert_false(counters_has_lost(c));
		assert_int_equal(find_open(f, &events[1], fds), 2);
		assert_int_equal(fds[1]->attr.exclude_idle, !idle);
		assert_int_equal(counters_read(c, 0, 0, &v), 0);
		assert_int_equal(v.lost, 0);
		counters_close(c);
		assert_int_equal(f->nr_open, 0);
		free(f);
	}
}

/* What is dropped is what was refused, no more. */
static void test_no_exclude_idle(void **state)
{
	struct event event = parse("cpu-clock");
	struct counters_config config = system_config(&event, 1);
	struct fake *f = fake_new();
	struct fake_fd *fds[MAX_FDS];
	struct counters *c;

	f->refuse_idle = true;
	c = open_fake(f, &config);
	assert_true(counters_has_lost(c));
	assert_int_equal(find_open(f, &event, fds), 2);
	assert_int_equal(fds[0]->attr.exclude_idle, 0);
	counters_close(c);
	free(f);
}

static void test_precise(void **state)
{
	for (unsigned int max = 0; max <= 3; max++) {
		struct event event = parse("cycles:P"), fixed = parse("cycles:ppp");
		struct counters_config config = system_config(&event, 1);
		struct fake *f = fake_new();
		struct counters_sys sys = fake_sys(f);
		struct fake_fd *fds[MAX_FDS];
		struct counters *c;

		f->max_precise = max;
		c = open_fake(f, &config);
		assert_int_equal(find_open(f, &event, fds), 2);
		assert_int_equal(fds[1]->attr.precise_ip, max);
		counters_close(c);
		config.events = &fixed;
		assert_int_equal(counters_open(&c, &config, &sys, NULL), max < 3 ? -EOPNOTSUPP : 0);
		if (max == 3)
			counters_close(c);
		assert_int_equal(f->nr_open, 0);
		free(f);
	}
}

/* Halved together until all fit; the watermark is of the size that came out. */
static void test_ring_sizes(void **state)
{
	static const struct { size_t asked, limit, got; } cases[] = {
		{ 8 << 20, SIZE_MAX, 8 << 20 },
		{ (1 << 20) + 1, SIZE_MAX, 2 << 20 },
		{ 8 << 20, 1 << 20, 1 << 20 },
		{ 8 << 20, 300 << 10, 256 << 10 },
		{ 0, 64 << 10, 64 << 10 },
		{ 32 << 10, SIZE_MAX, 32 << 10 },
	};
	struct event event = parse("cpu-clock");

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct counters_config config = system_config(&event, 1);
		struct fake *f = fake_new();
		struct counters *c;

		config.ring_size = cases[i].asked;
		f->max_ring = cases[i].limit;
		c = open_fake(f, &config);
		assert_int_equal(counters_ring_size(c), cases[i].got);
		assert_int_equal(f->rings[f->nr_rings - 1], cases[i].got);
		assert_int_equal(f->rings[f->nr_rings - 3], cases[i].got);
		for (uint32_t k = 0; k < 2; k++)
			assert_int_equal(
				fake_fd(f, counters_cpu(c, k)->data_fd)->attr.wakeup_watermark,
				cases[i].got / 4);
		counters_close(c);
		assert_int_equal(f->nr_open, 0);
		free(f);
	}
}

static void refuse(const struct counters_config *config, size_t max_ring, int code,
		   const char *says)
{
	struct fake *f = fake_new();
	struct counters_sys sys = fake_sys(f);
	struct counters *c;
	struct err e = { "" };

	f->max_ring = max_ring;
	assert_int_equal(counters_open(&c, config, &sys, &e), code);
	if (!strstr(e.text, says) || lines(e.text) != 3)
		fail_msg("no '%s' in: %s", says, e.text);
	assert_int_equal(f->nr_open, 0);
	free(f);
}

static void test_refused_configs(void **state)
{
	struct event event = parse("cpu-clock");
	struct counters_config good = system_config(&event, 1), bad = good;

	bad.ring_size = 16384;
	refuse(&bad, SIZE_MAX, -EINVAL, "--ring 32768");
	refuse(&good, 1000, -EPERM, "perf_event_mlock_kb");
	bad = good;
	bad.hz = 0;
	refuse(&bad, SIZE_MAX, -EINVAL, "0 Hz");
	bad.hz = NAN;
	refuse(&bad, SIZE_MAX, -EINVAL, "Hz cannot be");
	bad.hz = -1;
	refuse(&bad, SIZE_MAX, -EINVAL, "Hz cannot be");
	bad.hz = 99e6;
	refuse(&bad, SIZE_MAX, -EINVAL, "perf_event_max_sample_rate");
	bad = good;
	bad.stack_size = 65536;
	refuse(&bad, SIZE_MAX, -EINVAL, "65528");
	bad.stack_size = 1001;
	refuse(&bad, SIZE_MAX, -EINVAL, "multiple of 8");
	bad = good;
	bad.nr_events = 0;
	refuse(&bad, SIZE_MAX, -EINVAL, "events");
	bad.nr_events = EVENTS_MAX + 1;
	refuse(&bad, SIZE_MAX, -EINVAL, "events");
	bad = good;
	bad.tids = &(pid_t){ 1 };
	refuse(&bad, SIZE_MAX, -EINVAL, "nothing to sample");
}

static void test_permission_sentence(void **state)
{
	struct event event = parse("cpu-clock");
	struct counters_config config = system_config(&event, 1);
	struct fake *f = fake_new();
	struct counters_sys sys = fake_sys(f);
	struct counters *c;
	struct err e;

	f->fail_at = 1;
	f->fail_code = -EACCES;
	assert_int_equal(counters_open(&c, &config, &sys, &e), -EACCES);
	assert_int_equal(lines(e.text), 3);
	assert_true(strlen(e.text) < sizeof(e.text) - 1);
	assert_non_null(strstr(e.text, "kernel.perf_event_paranoid is "));
	assert_non_null(strstr(e.text, "least power first"));
	free(f);
}

static const pid_t tids[] = { 501, 502, 503 };

static struct counters_config tasks_config(const struct event *events, uint32_t nr)
{
	struct counters_config config = system_config(events, nr);

	config.tids = tids;
	config.nr_tids = 3;
	return config;
}

static void test_tasks(void **state)
{
	struct event event = parse("cpu-clock"), dummy = parse("dummy");
	struct counters_config config = tasks_config(&event, 1);
	struct fake *f = fake_new();
	struct fake_fd *fds[MAX_FDS];
	struct counters_value v;
	struct counters *c = open_fake(f, &config);

	/* 2 CPUs x (2 leaders + 3 tasks x (side-band + event)) */
	assert_int_equal(f->nr_open, 16);
	assert_int_equal(find_open(f, &dummy, fds), 10);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(fds[i]->tid, getpid());
		assert_true(!fds[i]->enabled && !fds[i]->attr.inherit);
	}
	for (int i = 4; i < 10; i++) {
		assert_int_equal(fds[i]->tid, tids[(i - 4) / 2]);
		assert_int_equal(fds[i]->output, counters_cpu(c, (uint32_t)i % 2)->side_fd);
		assert_true(fds[i]->enabled && fds[i]->attr.inherit && fds[i]->attr.task);
	}
	assert_int_equal(find_open(f, &event, fds), 6);
	for (int i = 0; i < 6; i++)
		assert_true(fds[i]->attr.inherit && !fds[i]->enabled);
	assert_int_equal(counters_enable(c, true), 0);
	for (int i = 0; i < 6; i++)
		assert_true(fds[i]->enabled);
	assert_int_equal(counters_read(c, 1, 0, &v), 0);
	assert_int_equal(v.enabled_ns, 21);
	assert_int_equal(v.lost, 9);
	assert_int_equal(counters_read(c, 2, 0, &v), -EINVAL);
	assert_int_equal(counters_read(c, 0, 1, &v), -EINVAL);
	counters_close(c);
	assert_int_equal(f->nr_open, 0);
	free(f);
}

static void test_tasks_left_out(void **state)
{
	struct event event = parse("cpu-clock");
	struct counters_config config = tasks_config(&event, 1);
	struct fake *f = fake_new();
	struct counters_sys sys = fake_sys(f);
	struct fake_fd *fds[MAX_FDS];
	struct counters *c;
	struct err e;

	f->gone = 501;
	f->forbidden = 503;
	c = open_fake(f, &config);
	assert_int_equal(counters_nr_refused(c), 2);
	assert_int_equal(find_open(f, &event, fds), 2);
	assert_int_equal(fds[0]->tid, 502);
	counters_close(c);
	config.nr_tids = 1;
	assert_int_equal(counters_open(&c, &config, &sys, &e), -ESRCH);
	assert_non_null(strstr(e.text, "no process with pid 501"));
	f->gone = 0;
	f->forbidden = 501;
	assert_int_equal(counters_open(&c, &config, &sys, &e), -EACCES);
	assert_non_null(strstr(e.text, "process 501"));
	assert_int_equal(f->nr_open, 0);
	free(f);
}

static void test_rate_of_system(void **state)
{
	struct event events[] = { parse("cycles"), parse("cpu-clock") };
	struct counters_config config = system_config(events, 2);
	struct fake *f = fake_new();
	struct fake_fd *fds[MAX_FDS];
	struct counters *c = open_fake(f, &config);
	struct err e;

	assert_int_equal(counters_set_rate(c, 0, 4000, &e), 0);
	assert_int_equal(counters_set_rate(c, 1, 4000, &e), 0);
	find_open(f, &events[0], fds);
	assert_int_equal(fds[0]->period, 4000);
	assert_int_equal(fds[1]->period, 4000);
	find_open(f, &events[1], fds);
	assert_int_equal(fds[0]->period, 250000);
	assert_int_equal(fds[1]->period, 250000);
	assert_int_equal(counters_set_rate(c, 2, 4000, &e), -EINVAL);
	assert_int_equal(counters_set_rate(c, 0, 0, &e), -EINVAL);
	assert_int_equal(counters_set_rate(c, 0, 99e6, &e), -EINVAL);
	assert_non_null(strstr(e.text, "perf_event_max_sample_rate"));
	find_open(f, &events[0], fds);
	assert_int_equal(fds[0]->period, 4000);
	assert_int_equal(f->nr_open, 8);
	counters_close(c);
	free(f);
}

/* For tasks the event is opened anew: on all who are followed now, and no sum goes back. */
static void test_rate_of_tasks(void **state)
{
	struct event event = parse("cpu-clock");
	struct counters_config config = tasks_config(&event, 1);
	struct fake *f = fake_new();
	struct fake_fd *fds[MAX_FDS];
	struct counters_value before, after;
	struct counters *c = open_fake(f, &config);
	uint64_t old_id;

	f->tree[0] = 502;
	f->tree[1] = 503;
	f->tree[2] = 700;
	f->tree[3] = 701;
	f->nr_tree = 4;
	counters_enable(c, true);
	find_open(f, &event, fds);
	old_id = (uint64_t)(fds[0] - f->fds + FIRST_FD) * 10;
	counters_read(c, 0, 0, &before);
	assert_int_equal(counters_set_rate(c, 0, 100, NULL), 0);
	assert_int_equal(find_open(f, &event, fds), 8);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(fds[i]->tid, f->tree[i / 2]);
		assert_int_equal(fds[i]->period, 10000000);
		assert_true(fds[i]->enabled);
		assert_int_equal(counters_event_of(c, 0,
						   (uint64_t)(fds[i] - f->fds + FIRST_FD) * 10),
				 0);
	}
	/* a sample of the old one may still be in the ring */
	assert_int_equal(counters_event_of(c, 0, old_id), 0);
	counters_read(c, 0, 0, &after);
	assert_int_equal(after.lost, before.lost + 4 * 3);
	assert_true(after.count > before.count);
	/* a failure leaves the running one alone */
	for (int i = 1; i < 20; i++) {
		int code;

		f->fail_at = f->nr_calls + i;
		f->fail_code = -EMFILE;
		code = counters_set_rate(c, 0, 200, NULL);
		if (!code)
			break;
		assert_int_equal(code, -EMFILE);
		assert_int_equal(find_open(f, &event, fds), 8);
		assert_int_equal(fds[0]->period, 10000000);
		assert_true(fds[7]->enabled);
	}
	counters_close(c);
	assert_int_equal(f->nr_open, 0);
	free(f);
}

static void test_set_events(void **state)
{
	struct event first[] = { parse("cpu-clock"), parse("page-faults") };
	struct event next[] = { parse("cycles"), parse("cpu-clock") };
	struct counters_config config = system_config(first, 2);
	struct fake *f = fake_new();
	struct fake_fd *fds[MAX_FDS], *kept;
	struct counters *c = open_fake(f, &config);
	uint64_t kept_id, gone_id;
	struct err e;

	counters_enable(c, true);
	find_open(f, &first[0], fds);
	kept = fds[0];
	kept_id = (uint64_t)(kept - f->fds + FIRST_FD) * 10;
	find_open(f, &first[1], fds);
	gone_id = (uint64_t)(fds[0] - f->fds + FIRST_FD) * 10;
	assert_int_equal(counters_event_of(c, 0, gone_id), 1);

	/* every call fails once: the old set goes on */
	for (int at = 1;; at++) {
		int code;

		f->fail_at = f->nr_calls + at;
		f->fail_code = -EMFILE;
		code = counters_set_events(c, next, 2, 500, &e);
		if (!code)
			break;
		assert_int_equal(code, -EMFILE);
		assert_int_equal(f->nr_open, 8);
		assert_int_equal(counters_event_of(c, 0, kept_id), 0);
		assert_int_equal(counters_event_of(c, 0, gone_id), 1);
		assert_true(at < 10);
	}
	f->fail_at = 0;
	assert_int_equal(f->nr_open, 8);
	assert_true(kept->open && kept->enabled);
	assert_int_equal(counters_event_of(c, 0, kept_id), 1);
	/* an event that is gone is known to be gone; an id never seen is the kernel's mix-up */
	assert_int_equal(counters_event_of(c, 0, gone_id), -1);
	assert_int_equal(counters_event_of(c, 0, 7777), -1);
	assert_int_equal(counters_set_events(c, (struct event[]){ next[1], first[1] }, 2, 500, &e),
			 0);
	assert_int_equal(counters_event_of(c, 0, 7777), 1);
	assert_int_equal(counters_event_of(c, 0, gone_id), 1);
	assert_int_equal(counters_set_events(c, next, 2, 500, &e), 0);
	assert_int_equal(find_open(f, &first[1], fds), 0);
	assert_int_equal(find_open(f, &next[0], fds), 2);
	assert_int_equal(fds[0]->period, 500);
	assert_int_equal(counters_set_events(c, next, 0, 500, &e), -EINVAL);
	counters_close(c);
	assert_int_equal(f->nr_open, 0);
	free(f);
}

static void test_add_and_reap(void **state)
{
	static const pid_t more[] = { 502, 600, 601 };
	struct event event = parse("cpu-clock");
	struct counters_config config = tasks_config(&event, 1);
	struct fake *f = fake_new();
	struct fake_fd *fds[MAX_FDS];
	struct counters_value before, after;
	struct counters *c = open_fake(f, &config);

	counters_enable(c, true);
	f->forbidden = 601;
	for (int i = 0; i < 5; i++)
		assert_int_equal(counters_add_tasks(c, more, 3, NULL), 0);
	/* 502 is there, 601 may not be: 600 is new, once */
	assert_int_equal(find_open(f, &event, fds), 8);
	assert_int_equal(fds[7]->tid, 600);
	assert_true(fds[7]->enabled);
	assert_int_equal(counters_event_of(c, 1, (uint64_t)(fds[7] - f->fds + FIRST_FD) * 10), 0);
	assert_int_equal(counters_nr_fds(c), (uint32_t)f->nr_open);

	counters_read(c, 0, 0, &before);
	for (int i = 0; i < f->nr_fds; i++)
		f->fds[i].hung_up = f->fds[i].tid == 501 || f->fds[i].tid == 600;
	assert_int_equal(counters_add_tasks(c, NULL, 0, NULL), 0);
	assert_int_equal(find_open(f, &event, fds), 4);
	counters_read(c, 0, 0, &after);
	assert_memory_equal(&before, &after, sizeof(before));
	/* the pid comes back as another task */
	assert_int_equal(counters_add_tasks(c, (pid_t[]){ 501 }, 1, NULL), 0);
	assert_int_equal(find_open(f, &event, fds), 6);
	counters_close(c);
	assert_int_equal(f->nr_open, 0);
	free(f);
}

/* A command: nothing is enabled by us before its exec, everything at once after it. */
static void test_enable_on_exec(void **state)
{
	struct event event = parse("cpu-clock"), other = parse("page-faults");
	struct counters_config config = tasks_config(&event, 1);
	struct fake *f = fake_new();
	struct fake_fd *fds[MAX_FDS];
	struct counters *c;

	config.nr_tids = 1;
	config.enable_on_exec = true;
	c = open_fake(f, &config);
	assert_int_equal(find_open(f, &event, fds), 2);
	assert_true(fds[0]->attr.enable_on_exec && !fds[0]->enabled);
	counters_set_rate(c, 0, 100, NULL);
	find_open(f, &event, fds);
	assert_true(fds[0]->attr.enable_on_exec && !fds[0]->enabled);
	fds[0]->enabled = fds[1]->enabled = true;	/* the exec */
	assert_int_equal(counters_set_events(c, &other, 1, 100, NULL), 0);
	assert_int_equal(find_open(f, &other, fds), 2);
	assert_true(fds[0]->enabled && fds[1]->enabled);
	counters_close(c);
	assert_int_equal(f->nr_open, 0);
	free(f);
}

static void test_idmap(void **state)
{
	struct idmap m;

	idmap_init(&m);
	assert_int_equal(idmap_find(&m, 1), IDMAP_UNKNOWN);
	for (uint64_t id = 1; id < 20000; id++) {
		idmap_add(&m, id * 7, (int)(id % 8));
		if (id % 1000 == 0)
			for (uint64_t k = 1; k <= id; k++)
				assert_int_equal(idmap_find(&m, k * 7), k % 8);
	}
	assert_int_equal(idmap_find(&m, 8), IDMAP_UNKNOWN);
	idmap_add(&m, 7, 5);
	assert_int_equal(idmap_find(&m, 7), 5);
	idmap_replace(&m, (uint64_t[]){ 3, 0, 4 }, (int[]){ 1, 2, 0 }, 3);
	assert_int_equal(idmap_find(&m, 3), 1);
	assert_int_equal(idmap_find(&m, 4), 0);
	assert_int_equal(idmap_find(&m, 0), IDMAP_UNKNOWN);
	assert_int_equal(idmap_find(&m, 7), IDMAP_UNKNOWN);
	idmap_fini(&m);
}

struct finder {
	struct idmap *map;
	atomic_bool stop;
	atomic_ulong wrong, found;
};

/* What was there before we began is found at every moment, with its slot. */
static void *find_always(void *arg)
{
	struct finder *f = arg;

	while (!atomic_load_explicit(&f->stop, memory_order_relaxed))
		for (uint64_t id = 1; id <= 64; id++) {
			if (idmap_find(f->map, id) != (int)(id % 8))
				atomic_fetch_add_explicit(&f->wrong, 1, memory_order_relaxed);
			atomic_fetch_add_explicit(&f->found, 1, memory_order_relaxed);
		}
	return NULL;
}

static void test_idmap_threads(void **state)
{
	struct finder f = { 0 };
	uint64_t ids[64];
	pthread_t threads[3];
	struct idmap m;
	int slots[64];

	idmap_init(&m);
	for (uint64_t i = 0; i < 64; i++) {
		ids[i] = i + 1;
		slots[i] = (int)((i + 1) % 8);
		idmap_add(&m, ids[i], slots[i]);
	}
	f.map = &m;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, find_always, &f), 0);
	for (uint64_t id = 100; id < 60000; id++) {
		idmap_add(&m, id, 1);
		if (id % 5000 == 0)
			idmap_replace(&m, ids, slots, 64);
	}
	while (atomic_load(&f.found) < 100000)
		sched_yield();
	atomic_store(&f.stop, true);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&f.wrong), 0);
	idmap_fini(&m);
}

static void expect_cpus(const char *text, int nr, const int *expected)
{
	int *cpus, got = counters_list_cpus(text, &cpus);

	if (got != nr)
		fail_msg("'%s': %d, not %d", text, got, nr);
	if (nr < 0)
		return;
	assert_memory_equal(cpus, expected, (size_t)nr * sizeof(int));
	free(cpus);
}

static void test_list_cpus(void **state)
{
	static const char *const bad[] = { "",	    "\n",      "a",	"1-",
					   "-1",    "3-1",     "1,",	",1",
					   "1 2",   "0-65536", "65536", "99999999999999999999",
					   "1-2-3", "1\n2",    "+1" };

	expect_cpus("0", 1, (int[]){ 0 });
	expect_cpus("0-3,5\n", 5, (int[]){ 0, 1, 2, 3, 5 });
	expect_cpus("7,1,1-2", 3, (int[]){ 1, 2, 7 });
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		expect_cpus(bad[i], -EINVAL, NULL);
}

static void test_online_cpus(void **state)
{
	int *cpus, nr = counters_online_cpus(&cpus, NULL);

	assert_int_equal(nr, sysconf(_SC_NPROCESSORS_ONLN));
	free(cpus);
}

static void *wait_here(void *arg)
{
	pthread_barrier_wait(arg);
	pthread_barrier_wait(arg);
	return NULL;
}

static bool has(const pid_t *list, int nr, pid_t tid)
{
	for (int i = 0; i < nr; i++)
		if (list[i] == tid)
			return true;
	return false;
}

static void test_list_tasks(void **state)
{
	pthread_barrier_t barrier;
	pthread_t threads[5];
	pid_t *list, self = getpid(), child;
	struct err e = { "" };
	int nr;

	pthread_barrier_init(&barrier, NULL, 6);
	for (int i = 0; i < 5; i++)
		pthread_create(&threads[i], NULL, wait_here, &barrier);
	pthread_barrier_wait(&barrier);
	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	/* the same process twice is one process */
	assert_in_range(counters_list_threads((pid_t[]){ self, self }, 2, &list, &e), 6, 8);
	free(list);
	nr = counters_list_threads(&self, 1, &list, &e);
	assert_in_range(nr, 6, 8);	/* a sanitiser may have a thread of its own */
	assert_true(has(list, nr, self));
	assert_false(has(list, nr, child));
	free(list);
	nr = counters_list_tree(&self, 1, &list);
	assert_true(has(list, nr, self) && has(list, nr, child));
	assert_in_range(nr, 7, 9);
	free(list);
	nr = counters_list_user(getuid(), &list, &e);
	assert_true(nr >= 7 && has(list, nr, self) && has(list, nr, child));
	free(list);
	assert_int_equal(counters_list_user(4294000001u, &list, &e), 0);
	free(list);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 5; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(counters_list_threads((pid_t[]){ self, 2099999999 }, 2, &list, &e),
			 -ESRCH);
	assert_non_null(strstr(e.text, "no process with pid 2099999999"));
	assert_null(list);
}

/* From here on: the real kernel. */

static struct counters *open_live(const struct counters_config *config)
{
	struct counters *c;
	struct err e = { "" };
	int code = counters_open(&c, config, &counters_kernel, &e);

	if (code == -EACCES || code == -EPERM || code == -ENOSYS)
		return NULL;
	if (code)
		fail_msg("%s", e.text);
	return c;
}

static void spin(uint64_t ns)
{
	uint64_t until = time_now_ns() + ns;

	while (time_now_ns() < until)
		;
}

struct tally {
	uint32_t pid; /* forks and exits of this process only, not of its threads; 0: all */
	uint64_t samples, stacks, lost, mmaps, comms, forks, exits;
};

/* Read one ring to its end; every record must decode. */
static void drain(struct ring *ring, const struct record_layout *layout, const struct counters *c,
		  struct tally *t)
{
	const struct perf_event_header *h;
	struct record r;

	if (!ring_begin(ring))
		return;
	while ((h = ring_next(ring))) {
		int code = record_decode(&r, layout, h, h->size);

		if (code)
			fail_msg("record of type %u, %u bytes: %d", h->type, h->size, code);
		if (r.type == PERF_RECORD_SAMPLE) {
			t->samples++;
			assert_in_range(counters_event_of(c, 0, r.sample.id), 0, 1);
			assert_true(r.time_ns && r.time_ns <= time_now_ns());
			t->stacks += r.sample.stack_dyn > 0 && r.sample.regs;
		} else if (r.type == PERF_RECORD_LOST || r.type == PERF_RECORD_LOST_SAMPLES) {
			t->lost += r.lost;
		}
		t->mmaps += r.type == PERF_RECORD_MMAP2;
		t->comms += r.type == PERF_RECORD_COMM;
		if (t->pid && (r.task.pid != t->pid || r.task.tid != t->pid))
			continue;
		t->forks += r.type == PERF_RECORD_FORK;
		t->exits += r.type == PERF_RECORD_EXIT;
	}
	ring_end(ring);
	assert_int_equal(ring->nr_bad, 0);
}

static void drain_all(struct counters *c, struct tally *data, struct tally *side)
{
	for (uint32_t i = 0; i < counters_nr_cpus(c); i++) {
		struct counters_cpu *cpu = counters_cpu(c, i);

		drain(&cpu->data, counters_layout(c), c, data);
		drain(&cpu->side, counters_side_layout(c), c, side);
	}
}

static struct counters_config live_config(const struct event *event, const pid_t *self)
{
	static int *cpus;
	static int nr;

	if (!cpus)
		nr = counters_online_cpus(&cpus, NULL);
	return (struct counters_config){
		.cpus = cpus, .nr_cpus = (uint32_t)nr, .tids = self, .nr_tids = 1, .events = event,
		.nr_events = 1, .hz = 999, .stack_size = 8192, .regs_mask = REGS_MASK,
		.exclude_idle = true,
	};
}

/* CPU time of @ns spent, however long that takes on a busy machine. */
static void burn(uint64_t ns)
{
	uint64_t now, start = 0;
	struct timespec ts;

	for (;;) {
		/* the clock is a system call: most of the time must be the user's */
		for (volatile int i = 0; i < 100000; i++)
			;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
		now = (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
		start = start ? start : now;
		if (now - start >= ns)
			return;
	}
}

static uint64_t sum_lost(struct counters *c, uint64_t *count)
{
	uint64_t lost = 0;

	*count = 0;
	for (uint32_t i = 0; i < counters_nr_cpus(c); i++) {
		struct counters_value v;

		assert_int_equal(counters_read(c, i, 0, &v), 0);
		lost += v.lost;
		*count += v.count;
	}
	return lost;
}

static void test_live_clock(void **state)
{
	struct event event = parse("cpu-clock:u");
	pid_t self = getpid();
	struct counters_config config = live_config(&event, &self);
	struct counters *c = open_live(&config);
	struct tally data = { 0 }, side = { 0 }, slow = { 0 };
	uint64_t count;

	if (!c)
		skip();
	assert_int_equal(counters_enable(c, true), 0);
	/* pieces, so that no ring can fill up */
	for (int i = 0; i < 10; i++) {
		burn(30000000);
		drain_all(c, &data, &side);
	}
	assert_int_equal(counters_enable(c, false), 0);
	drain_all(c, &data, &side);
	if (data.samples < 150 || data.samples > 400)
		fail_msg("%lu samples of 300 ms at 999 Hz", data.samples);
	assert_int_equal(data.stacks, data.samples);
	if (counters_has_lost(c))
		assert_int_equal(sum_lost(c, &count), 0);

	assert_int_equal(counters_set_rate(c, 0, 97, NULL), 0);
	spin(20000000);
	drain_all(c, &slow, &side);
	assert_int_equal(slow.samples, 0);	/* stopped is stopped */
	assert_int_equal(counters_enable(c, true), 0);
	for (int i = 0; i < 10; i++) {
		burn(30000000);
		drain_all(c, &slow, &side);
	}
	if (slow.samples < 10 || slow.samples > 50)
		fail_msg("%lu samples of 300 ms at 97 Hz", slow.samples);
	counters_close(c);
}

struct burner {
	atomic_bool stop;
	pthread_barrier_t ready;
};

static void *burn_on(void *arg)
{
	struct burner *b = arg;

	pthread_barrier_wait(&b->ready);
	while (!atomic_load_explicit(&b->stop, memory_order_relaxed))
		;
	return NULL;
}

/* A new rate reaches threads that inherited the event, too. */
static void test_live_rate_of_children(void **state)
{
	struct event event = parse("cpu-clock:u");
	pid_t self = getpid();
	struct counters_config config = live_config(&event, &self);
	struct counters *c = open_live(&config);
	struct tally fast = { 0 }, slow = { 0 }, side = { 0 };
	struct burner b = { 0 };
	pthread_t thread;

	if (!c)
		skip();
	counters_enable(c, true);
	pthread_barrier_init(&b.ready, NULL, 2);
	pthread_create(&thread, NULL, burn_on, &b);
	pthread_barrier_wait(&b.ready);
	for (int i = 0; i < 15; i++) {
		usleep(20000);
		drain_all(c, &fast, &side);
	}
	assert_int_equal(counters_set_rate(c, 0, 49, NULL), 0);
	drain_all(c, &fast, &side);
	for (int i = 0; i < 15; i++) {
		usleep(20000);
		drain_all(c, &slow, &side);
	}
	atomic_store(&b.stop, true);
	pthread_join(thread, NULL);
	if (fast.samples < 40 || slow.samples > 45)
		fail_msg("%lu samples at 999 Hz, %lu at 49 Hz", fast.samples, slow.samples);
	assert_true(side.forks >= 1);
	counters_close(c);
}

/* The side-band tells of fork, exec and exit of a child that was never named to us. */
static void test_live_side_band(void **state)
{
	struct event event = parse("cpu-clock:u");
	pid_t self = getpid(), child;
	struct counters_config config = live_config(&event, &self);
	struct counters *c = open_live(&config);
	struct tally data = { 0 }, side = { 0 };

	if (!c)
		skip();
	child = fork();
	if (!child) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	waitpid(child, NULL, 0);
	side.pid = (uint32_t)child;	/* a sanitiser's threads come and go, too */
	drain_all(c, &data, &side);
	assert_int_equal(data.samples, 0);
	assert_int_equal(side.forks, 1);
	assert_int_equal(side.exits, 1);
	assert_true(side.comms >= 1);
	assert_true(side.mmaps >= 3);
	assert_int_equal(side.lost, 0);
	counters_close(c);
}

/* A stopped reader and the smallest ring: what was counted is what was delivered and what was lost.
 */
static void test_live_lost_is_exact(void **state)
{
	struct event event = parse("page-faults:u");
	pid_t self = getpid();
	struct counters_config config = live_config(&event, &self);
	struct tally data = { 0 }, side = { 0 };
	size_t page = (size_t)sysconf(_SC_PAGESIZE), nr = 5000;
	uint64_t count, lost;
	struct counters *c;
	uint8_t *memory;

	config.period = 1;
	config.ring_size = 16384;
	c = open_live(&config);
	if (!c)
		skip();
	assert_int_equal(counters_ring_size(c), 16384);
	if (!counters_has_lost(c)) {
		counters_close(c);
		skip();
	}
	memory = mmap(NULL, nr * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(memory != MAP_FAILED);
	madvise(memory, nr * page, MADV_NOHUGEPAGE);
	counters_enable(c, true);
	for (size_t i = 0; i < nr; i++) {
		memory[i * page] = 1;
		if (i == 2000)
			drain_all(c, &data, &side);
	}
	counters_enable(c, false);
	drain_all(c, &data, &side);
	lost = sum_lost(c, &count);
	munmap(memory, nr * page);
	assert_true(count >= nr);
	assert_true(data.samples >= 2 && lost > nr / 2);
	if (count != data.samples + lost)
		fail_msg("%lu counted, %lu delivered, %lu lost", count, data.samples, lost);
	/* LOST records alone tell less */
	assert_true(data.lost <= lost);
	counters_close(c);
}

static void touch(uint8_t *memory, size_t nr, size_t page, size_t every, struct counters *c,
		  struct tally *data)
{
	struct tally side = { 0 };

	for (size_t i = 0; i < nr; i++) {
		memory[i * page] = 1;
		if (every && i % every == 0)
			drain_all(c, data, &side);
	}
}

/*
 * Ring by ring and drain by drain, of one process and of all: count = delivered
 * + lost. For the whole machine it is only nearly so: the kernel counts faults
 * of some tasks that it shows to nobody (1 in 10^4 or so; never seen on our own).
 */
static void account(bool system, size_t ring_size, size_t every)
{
	struct event event = parse(system ? "page-faults" : "page-faults:u");
	pid_t self = getpid();
	struct counters_config config = live_config(&event, system ? NULL : &self);
	size_t page = (size_t)sysconf(_SC_PAGESIZE), nr = 2000;
	struct tally data = { 0 }, side = { 0 };
	uint64_t lost, count, shown;
	struct counters *c;
	uint8_t *memory;

	config.period = 1;
	config.stack_size = 0;
	config.ring_size = ring_size;
	c = open_live(&config);
	if (!c || !counters_has_lost(c)) {
		counters_close(c);
		skip();
	}
	memory = mmap(NULL, nr * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(memory != MAP_FAILED);
	madvise(memory, nr * page, MADV_NOHUGEPAGE);
	counters_enable(c, true);
	touch(memory, nr, page, every, c, &data);
	counters_enable(c, false);
	munmap(memory, nr * page);
	drain_all(c, &data, &side);
	lost = sum_lost(c, &count);
	shown = data.samples + lost;
	assert_true(count >= nr);
	if (shown > count || (shown < count && !system) || shown + 20 + count / 100 < count)
		fail_msg("ring %zu, drain every %zu: %lu counted, %lu delivered, %lu lost",
			 ring_size, every, count, data.samples, lost);
	if (ring_size == 8192 && !every)
		assert_true(lost > 0);
	counters_close(c);
}

static void test_live_account(void **state)
{
	for (size_t ring = 8192; ring <= 262144; ring *= 2)
		for (size_t every = 0; every <= 1200; every += 300) {
			account(false, ring, every);
			if (geteuid() == 0)
				account(true, ring, every);
		}
}

/* Another set of events under the same rings; what stays keeps counting. */
static void test_live_system_events(void **state)
{
	struct event first = parse("cpu-clock"),
		     next[] = { parse("page-faults"), parse("cpu-clock") };
	struct counters_config config = live_config(&first, NULL);
	struct tally data = { 0 }, side = { 0 };
	struct counters_value before, after;
	struct counters *c;

	config.nr_tids = 0;
	c = open_live(&config);
	if (!c)
		skip();
	counters_enable(c, true);
	burn(50000000);
	drain_all(c, &data, &side);
	assert_true(data.samples > 20);
	counters_read(c, 0, 0, &before);
	assert_int_equal(counters_set_events(c, next, 2, 999, NULL), 0);
	assert_int_equal(counters_nr_fds(c), 4 * counters_nr_cpus(c));
	burn(50000000);
	counters_read(c, 0, 1, &after);
	assert_true(after.enabled_ns > before.enabled_ns + 10000000);
	counters_read(c, 0, 0, &after);
	assert_true(after.enabled_ns > 10000000);
	assert_int_equal(counters_set_rate(c, 1, 49, NULL), 0);
	counters_close(c);
}

/* Two sessions with the same software event: each knows its samples, whatever id the kernel wrote.
 */
static void test_live_two_sessions(void **state)
{
	struct event event = parse("page-faults:u");
	pid_t self = getpid();
	struct counters_config config = live_config(&event, &self);
	struct counters *first, *second;
	struct tally a = { 0 }, b = { 0 }, side = { 0 };
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory;

	config.period = 1;
	config.stack_size = 0;
	config.ring_size = 262144;
	first = open_live(&config);
	if (!first)
		skip();
	second = open_live(&config);
	memory = mmap(NULL, 100 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(second && memory != MAP_FAILED);
	madvise(memory, 100 * page, MADV_NOHUGEPAGE);
	counters_enable(first, true);
	counters_enable(second, true);
	touch(memory, 100, page, 0, NULL, NULL);
	counters_enable(first, false);
	counters_enable(second, false);
	munmap(memory, 100 * page);
	/* drain() wants an event slot for every sample */
	drain_all(first, &a, &side);
	drain_all(second, &b, &side);
	assert_true(a.samples >= 100 && b.samples >= 100);
	counters_close(first);
	counters_close(second);
}

/* A target that is gone: its figures stay, its fds go. */
static void test_live_gone(void **state)
{
	struct event event = parse("cpu-clock:u");
	struct counters_value before = { 0 }, after;
	struct tally data = { 0 }, side = { 0 };
	uint64_t count, count_after;
	struct counters_config config;
	struct counters *c;
	pid_t child = fork();

	if (!child) {
		for (;;)
			burn(1000000);
	}
	config = live_config(&event, &child);
	c = open_live(&config);
	if (!c) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		skip();
	}
	counters_enable(c, true);
	usleep(100000);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	sum_lost(c, &count);
	assert_true(count > 0);
	for (uint32_t i = 0; i < counters_nr_cpus(c); i++) {
		struct pollfd p = { .fd = counters_cpu(c, i)->data_fd, .events = POLLIN };

		poll(&p, 1, 0);
		assert_int_equal(p.revents & (POLLHUP | POLLERR), 0);
	}
	counters_read(c, 0, 0, &before);
	assert_int_equal(counters_add_tasks(c, NULL, 0, NULL), 0);
	assert_int_equal(counters_nr_fds(c), 2 * counters_nr_cpus(c));
	counters_read(c, 0, 0, &after);
	assert_memory_equal(&before, &after, sizeof(before));
	sum_lost(c, &count_after);
	assert_int_equal(count_after, count);
	drain_all(c, &data, &side);
	assert_true(data.samples > 5 && side.exits >= 1);
	assert_int_equal(counters_set_events(c, &event, 1, 100, NULL), 0);
	counters_close(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_attr_sample),
		cmocka_unit_test(test_attr_side),
		cmocka_unit_test(test_attr_rate),
		cmocka_unit_test(test_system),
		cmocka_unit_test(test_fail_everywhere),
		cmocka_unit_test(test_old_kernel),
		cmocka_unit_test(test_no_exclude_idle),
		cmocka_unit_test(test_precise),
		cmocka_unit_test(test_ring_sizes),
		cmocka_unit_test(test_refused_configs),
		cmocka_unit_test(test_permission_sentence),
		cmocka_unit_test(test_tasks),
		cmocka_unit_test(test_tasks_left_out),
		cmocka_unit_test(test_rate_of_system),
		cmocka_unit_test(test_rate_of_tasks),
		cmocka_unit_test(test_set_events),
		cmocka_unit_test(test_add_and_reap),
		cmocka_unit_test(test_enable_on_exec),
		cmocka_unit_test(test_idmap),
		cmocka_unit_test(test_idmap_threads),
		cmocka_unit_test(test_list_cpus),
		cmocka_unit_test(test_online_cpus),
		cmocka_unit_test(test_list_tasks),
		cmocka_unit_test(test_live_clock),
		cmocka_unit_test(test_live_rate_of_children),
		cmocka_unit_test(test_live_side_band),
		cmocka_unit_test(test_live_lost_is_exact),
		cmocka_unit_test(test_live_gone),
		cmocka_unit_test(test_live_account),
		cmocka_unit_test(test_live_two_sessions),
		cmocka_unit_test(test_live_system_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
