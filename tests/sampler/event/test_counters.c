// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * counters, opened on a fake kernel: the requests, failures at the n-th call for every n, no fd
 * left open; refusals, and their messages.
 * Live: some parts need root.
 */
#include "sampler/event/counters.c"

#include "tests/prelude.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sampler/fake_kernel.h"
#include "symbols/base/base.h"
#include "sampler/ring/ring.h"

/* -g defer: the flags of Linux 6.19, at bits of the header of 7.2; older kernels refuse them. */
TEST(test_deferred)
{
	struct event events[] = { parse("cpu-clock"), parse("waits") };
	struct counters_config config = system_config(events, 2);
	struct fake *f = fake_new();
	struct counters *c = NULL;
	struct fake_fd *fds[MAX_FDS];
	struct counters_sys sys;
	struct err e;

	config.stack_size = 0;
	for (int deferred = 0; deferred < 2; deferred++) {
		config.deferred = deferred;
		c = open_fake(f, &config);
		for (int i = 0; i < 2; i++) {
			int nr = find_open(f, &events[i], fds);

			assert_true(nr > 0);
			while (nr--) {
				assert_int_equal(fake_defers(&fds[nr]->attr, 38), deferred && !i);
				assert_false(fake_defers(&fds[nr]->attr, 39));
			}
		}
		for (uint32_t i = 0; i < counters_nr_cpus(c); i++)
			assert_int_equal(fake_defers(&fake_fd(f, counters_cpu(c, i)->side_fd)->attr,
						     39),
					 deferred);
		counters_close(c);
		assert_int_equal(f->nr_open, 0);
	}
	f->no_defer = true;
	sys = fake_sys(f);
	assert_int_equal(counters_open(&c, &config, &sys, &e), -EOPNOTSUPP);
	assert_non_null(strstr(e.text, "no deferred call chains\n  Linux 6.19"));
	assert_int_equal(f->nr_open, 0);
	free(f);
}

TEST(test_system)
{
	struct event events[] = { parse("cycles"), parse("cpu-clock") };
	struct counters_config config = system_config(events, 2);
	struct fake *f = fake_new();
	struct counters *c = open_fake(f, &config);

	/* per CPU: side-band event, leader, two events */
	assert_int_equal(f->nr_open, 8);
	assert_int_equal(c->env.nr_fds, 8);
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

/* Fail each call with each possible errno: a message, and no descriptor is left open. */
TEST(test_fail_everywhere)
{
	static const int codes[] = { -EMFILE, -EPERM, -EINVAL, -EACCES, -ENOENT, -ENODEV, -ENOMEM };
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

TEST(test_old_kernel)
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

/* Only refused events are dropped, no others. */
TEST(test_no_exclude_idle)
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

TEST(test_precise)
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

/* Halved together until all fit; the watermark is of the final size. */
TEST(test_ring_sizes)
{
	static const struct {
		size_t asked, limit, got;
	} cases[] = {
		{ 8 << 20, SIZE_MAX, 8 << 20 }, { (1 << 20) + 1, SIZE_MAX, 2 << 20 },
		{ 8 << 20, 1 << 20, 1 << 20 },	{ 8 << 20, 300 << 10, 256 << 10 },
		{ 0, 64 << 10, 64 << 10 },	{ 32 << 10, SIZE_MAX, 32 << 10 },
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

TEST(test_refused_configs)
{
	struct event event = parse("cpu-clock");
	struct counters_config good = system_config(&event, 1), bad = good;

	bad.ring_size = 16384;
	refuse(&bad, SIZE_MAX, -EINVAL, "--ring 32768");
	/* The sample alone has room, but not with the record of a loss. */
	bad.ring_size = 65536;
	bad.stack_size = 65528;
	refuse(&bad, SIZE_MAX, -EINVAL, "--ring 131072");
	bad.stack_size = good.stack_size;
	refuse(&good, 1000, -ENOLCK, "perf_event_mlock_kb");
	bad = good;
	bad.hz = 0;
	refuse(&bad, SIZE_MAX, -EINVAL, "0 Hz");
	bad.hz = NAN;
	refuse(&bad, SIZE_MAX, -EINVAL, "must be more than 0");
	bad.hz = -1;
	refuse(&bad, SIZE_MAX, -EINVAL, "must be more than 0");
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

TEST(test_permission_sentence)
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

/* The message for one event that the kernel refuses; @f is the failure. */
static void refuse_event(struct fake *f, const char *name, struct counters_config config,
			 const char *says)
{
	struct event event = parse(name);
	struct counters_sys sys = fake_sys(f);
	struct counters *c;
	struct err e = { "" };

	config.events = &event;
	assert_true(counters_open(&c, &config, &sys, &e) < 0);
	if (!strstr(e.text, says) || lines(e.text) != 3)
		fail_msg("no '%s' in: %s", says, e.text);
	assert_int_equal(f->nr_open, 0);
}

/* ENOENT has a separate reason for each kind of event. */
TEST(test_missing_sentences)
{
	struct event event = parse("cpu-clock");
	struct counters_config config = system_config(&event, 1), cgroup = config;
	struct fake *f = fake_new();

	f->missing_type = PERF_TYPE_HW_CACHE;
	refuse_event(f, "LLC-loads", config, "the PMU of this machine has no such event");
	f->no_pmu = true;
	refuse_event(f, "LLC-loads", config, "this machine has no PMU");
	refuse_event(f, "cycles", config, "this machine has no PMU");
	cgroup.cgroup_fd = 5;
	cgroup.cgroup = true;
	f->no_css = true;
	refuse_event(f, "cpu-clock", cgroup, "no perf_event controller");
	free(f);
}

/* A probe of the kernel, made by hand: this machine may have none. */
TEST(test_probe_sentences)
{
	static const struct {
		int code;
		const char *event, *says;
	} all[] = {
		{ ENOENT, "kprobe:no_such", "no such function in this kernel" },
		{ EILSEQ, "kprobe:do_exit+1", "not the start of an instruction" },
		{ EILSEQ, "uprobe:/bin/sh:0x1001", "not the start of an instruction" },
		{ EADDRNOTAVAIL, "kprobe:twice", "several functions have this name" },
		{ EINVAL, "kretprobe:do_int3", "allows no probe there" },
		{ EACCES, "kprobe:do_exit", "cannot set the probe 'kprobe:do_exit'" },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct limits_refusal r = { .probe = true, .tid = -1 };
		struct err e = { "" };

		strcpy(r.event, all[i].event);
		assert_int_equal(limits_explain_open(&e, -all[i].code, &r), -all[i].code);
		if (!strstr(e.text, all[i].says) || lines(e.text) != 3 ||
		    strstr(e.text, "paranoid"))
			fail_msg("no '%s' in: %s", all[i].says, e.text);
	}
}

/* As another user, with kernel.perf_event_paranoid 0 in a mount namespace of the child. */
static void in_child(const char *file)
{
	struct limits_refusal r = { .event = "cpu-clock", .tid = -1, .kernel = true };
	struct err e = { "" };

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount(file, "/proc/sys/kernel/perf_event_paranoid", NULL, MS_BIND, NULL) ||
	    setresuid(65534, 65534, 65534))
		_exit(77);
	limits_explain_open(&e, -EACCES, &r);
	if (strstr(e.text, "perf_event_paranoid=0") || !strstr(e.text, "perf_event_paranoid is 0 "
								       "and allows it")) {
		fprintf(stderr, "%s\n", e.text);
		_exit(1);
	}
	_exit(0);
}

/* There is no advice to set paranoid to 0 when it is 0. */
TEST(test_followed_advice)
{
	char file[] = "/tmp/proftop-paranoid-XXXXXX";
	int fd = mkstemp(file), status;
	pid_t pid;

	assert_int_equal(write(fd, "0\n", 2), 2);
	assert_int_equal(fchmod(fd, 0644), 0);
	close(fd);
	pid = fork();
	if (!pid)
		in_child(file);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	unlink(file);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip_test("not permitted: a mount namespace");
	assert_int_equal(status, 0);
}

TEST(test_tasks)
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

/* The times of a cgroup's events go on without its tasks: the time of a clock is its count. */
TEST(test_time_of_cgroup)
{
	struct event events[2] = { parse("cpu-clock"), parse("page-faults") };
	struct counters_config config = system_config(events, 2);
	struct counters_value v;
	struct fake *f = fake_new();
	struct counters *c;

	config.cgroup_fd = 5;
	config.cgroup = true;
	c = open_fake(f, &config);
	assert_int_equal(counters_read(c, 1, 0, &v), 0);
	assert_true(v.count > 1000 && v.running_ns == v.count && v.enabled_ns == v.count);
	assert_int_equal(counters_read(c, 1, 1, &v), 0);
	assert_int_equal(v.running_ns, 5);
	counters_close(c);
	free(f);
}

TEST(test_tasks_left_out)
{
	struct event event = parse("cpu-clock");
	struct counters_config config = tasks_config(&event, 1);
	struct fake *f = fake_new();
	struct counters_sys sys = fake_sys(f);
	struct fake_fd *fds[MAX_FDS];
	struct counters *c;
	struct err e;
	int code;

	f->gone = 501;
	f->forbidden = 503;
	c = open_fake(f, &config);
	/* One that has ended has nothing to sample. */
	assert_int_equal(counters_nr_refused(c), 1);
	assert_int_equal(counters_refused(c, &code), 503);
	assert_int_equal(code, -EACCES);
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

/* Rings of many CPUs: no more than 256 MiB of all, unless the rate needs them. */
TEST(test_rings_of_many_cpus)
{
	const size_t mib = 1u << 20;

	assert_int_equal(limits_wanted_ring(1, 0), 2 * mib);
	assert_int_equal(limits_wanted_ring(128, mib), 2 * mib);
	assert_int_equal(limits_wanted_ring(256, mib / 2), mib);
	assert_int_equal(limits_wanted_ring(512, mib / 4), mib / 2);
	assert_int_equal(limits_wanted_ring(4096, 1000), mib / 2);
	assert_int_equal(limits_wanted_ring(512, 3 * mib), 2 * mib);
	assert_int_equal(limits_wanted_ring(8, 3 * mib), 4 * mib);
	assert_int_equal(limits_wanted_ring(64, 30 * mib), 4 * mib);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
