// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * counters, changed while they run, on a made-up kernel: rates, events, tasks.
 */
#include "sampler/event/counters.h"

#include "tests/prelude.h"

#include <errno.h>

#include "sampler/live.h"
#include "tests/sampler/fake_kernel.h"

/* Count the open, enabled events of the type and config of @ev that record switches. */
static int nr_switches(const struct fake *f, const struct event *ev)
{
	int nr = 0;

	for (int i = 0; i < f->nr_fds; i++)
		nr += f->fds[i].open && f->fds[i].enabled && f->fds[i].attr.context_switch &&
		      f->fds[i].attr.type == ev->type && f->fds[i].attr.config == ev->config;
	return nr;
}

/* Switches of whole CPUs have a separate event, which can be closed for a while. */
TEST(test_switches)
{
	struct event events[] = { parse("cpu-clock"), parse("waits") };
	struct event dummy = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY };
	struct counters_config config = system_config(events, 2);
	struct fake *f = fake_new();
	struct counters_sys sys = fake_sys(f);
	struct counters *c;
	int nr_open;

	assert_int_equal(counters_open(&c, &config, &sys, NULL), 0);
	assert_true(counters_has_switches(c));
	assert_int_equal(nr_switches(f, &dummy), 0);
	assert_int_equal(nr_switches(f, &events[1]), 0);
	counters_enable(c, true);
	assert_int_equal(nr_switches(f, &dummy), 2);
	nr_open = f->nr_open;
	assert_int_equal(counters_set_switches(c, false), 0);
	assert_int_equal(nr_switches(f, &dummy), 0);
	assert_int_equal(f->nr_open, nr_open - 2);
	assert_int_equal(counters_set_switches(c, true), 0);
	assert_int_equal(nr_switches(f, &dummy), 2);
	/* Without waits there are none; with waits again. */
	assert_int_equal(counters_set_events(c, events, 1, 999, NULL), 0);
	assert_int_equal(nr_switches(f, &dummy), 0);
	assert_int_equal(counters_set_events(c, events, 2, 999, NULL), 0);
	assert_int_equal(nr_switches(f, &dummy), 2);
	counters_close(c);
	assert_int_equal(f->nr_open, 0);
	/* Events of tasks have them with the event of waits: both are inherited. */
	config = tasks_config(events, 2);
	assert_int_equal(counters_open(&c, &config, &sys, NULL), 0);
	counters_enable(c, true);
	assert_false(counters_has_switches(c));
	assert_true(nr_switches(f, &events[1]) > 0);
	counters_close(c);
	free(f);
}

/* Wake-ups are of whole CPUs, and open as long as waits are; their ids are known longer. */
TEST(test_waking)
{
	struct event events[] = { parse("cpu-clock"), parse("waits") }, waking;
	struct counters_config config = tasks_config(events, 2);
	struct perf_event_header sample = { PERF_RECORD_SAMPLE, 0, 64 };
	struct fake *f = fake_new();
	struct counters_sys sys = fake_sys(f);
	struct fake_fd *fds[MAX_FDS];
	struct counters *c;
	uint64_t id, bytes[8] = { 0 };

	sys.waking = fake_waking;
	fake_waking(&waking);
	assert_int_equal(counters_open(&c, &config, &sys, NULL), 0);
	assert_int_equal(find_open(f, &waking, fds), 2);
	assert_true(counters_has_waking(c));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fds[i]->tid, -1);
		assert_int_equal(fds[i]->cpu, two_cpus[i]);
		assert_int_equal(fds[i]->output, counters_cpu(c, (uint32_t)i)->data_fd);
		assert_int_equal(fds[i]->attr.sample_type & PERF_SAMPLE_CALLCHAIN, 0);
	}
	assert_false(fds[0]->enabled);
	counters_enable(c, true);
	assert_true(fds[0]->enabled && fds[1]->enabled);
	id = (uint64_t)(fds[1] - f->fds + FIRST_FD) * 10;
	assert_int_equal(counters_event_of(c, 1, id), COUNTERS_WAKING);
	memcpy(bytes, &sample, sizeof(sample));
	bytes[1] = id;
	assert_true(counters_layout_of(c, (void *)bytes)->sample_type & PERF_SAMPLE_RAW);
	assert_int_equal(counters_set_events(c, events, 1, 999, NULL), 0);
	assert_int_equal(find_open(f, &waking, fds), 0);
	assert_false(counters_has_waking(c));
	assert_int_equal(counters_event_of(c, 1, id), COUNTERS_WAKING);
	assert_int_equal(counters_set_events(c, events, 2, 999, NULL), 0);
	assert_int_equal(find_open(f, &waking, fds), 2);
	assert_true(fds[0]->enabled && fds[1]->enabled);
	/* Left out at high rates: the last samples are still known. */
	id = (uint64_t)(fds[1] - f->fds + FIRST_FD) * 10;
	counters_set_waking(c, false);
	assert_int_equal(find_open(f, &waking, fds), 0);
	assert_int_equal(counters_event_of(c, 1, id), COUNTERS_WAKING);
	counters_set_waking(c, true);
	assert_int_equal(find_open(f, &waking, fds), 2);
	assert_true(fds[0]->enabled && fds[1]->enabled);
	id = (uint64_t)(fds[1] - f->fds + FIRST_FD) * 10;
	assert_int_equal(counters_event_of(c, 1, id), COUNTERS_WAKING);
	/* Refused: waits are measured without them. */
	counters_close(c);
	f->missing_type = PERF_TYPE_TRACEPOINT;
	assert_int_equal(counters_open(&c, &config, &sys, NULL), 0);
	assert_false(counters_has_waking(c));
	counters_close(c);
	assert_int_equal(f->nr_open, 0);
	free(f);
}

TEST(test_rate_of_system)
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

/* For tasks the event is opened again, on all followed tasks, and no sum decreases. */
TEST(test_rate_of_tasks)
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

TEST(test_set_events)
{
	struct event first[] = { parse("cpu-clock"), parse("page-faults") };
	struct event next[] = { parse("cycles"), parse("cpu-clock") };
	struct counters_config config = system_config(first, 2);
	struct fake *f = fake_new();
	struct fake_fd *fds[MAX_FDS] = { NULL }, *kept;
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
	assert_int_equal(counters_event_of(c, 0, gone_id), COUNTERS_GONE);
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

TEST(test_add_and_reap)
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
	/* the pid is reused by another task */
	assert_int_equal(counters_add_tasks(c, (pid_t[]){ 501 }, 1, NULL), 0);
	assert_int_equal(find_open(f, &event, fds), 6);
	counters_close(c);
	assert_int_equal(f->nr_open, 0);
	free(f);
}

/* A task that hangs in an exec is left out, and may be added when it goes on. */
TEST(test_busy)
{
	static const pid_t more[] = { 600, 601 };
	struct event event = parse("cpu-clock");
	struct counters_config config = tasks_config(&event, 1);
	struct fake *f = fake_new();
	struct fake_fd *fds[MAX_FDS];
	struct counters *c;
	int before;

	f->busy = 501;
	c = open_fake(f, &config);
	assert_int_equal(counters_busy(c, 0), 501);
	assert_int_equal(counters_busy(c, 1), 0);
	before = (int)find_open(f, &event, fds);
	f->busy = 600;
	assert_int_equal(counters_add_tasks(c, more, 2, NULL), 0);
	assert_int_equal(find_open(f, &event, fds), before + 2);
	assert_int_equal(counters_busy(c, 0), 600);
	f->busy = 0;
	assert_int_equal(counters_add_tasks(c, more, 2, NULL), 0);
	assert_int_equal(find_open(f, &event, fds), before + 4);
	assert_int_equal(counters_busy(c, 0), 0);
	assert_int_equal(counters_nr_fds(c), (uint32_t)f->nr_open);
	counters_close(c);
	assert_int_equal(f->nr_open, 0);
	free(f);
}

/* No file is left for the n-th call, for every n: a sentence, and all left out are counted. */
TEST(test_no_files_for_more)
{
	static const pid_t more[] = { 600, 601, 602 };
	struct event event = parse("cpu-clock");

	for (int at = 1;; at++) {
		struct counters_config config = tasks_config(&event, 1);
		struct fake *f = fake_new();
		struct fake_fd *fds[MAX_FDS];
		struct counters *c = open_fake(f, &config);
		struct err e = { "" };
		uint32_t added;
		int code;

		f->fail_at = f->nr_calls + at;
		f->fail_code = -EMFILE;
		code = counters_add_tasks(c, more, 3, &e);
		added = find_open(f, &event, fds) / 2 - 3;
		assert_int_equal(counters_nr_refused(c), 3 - added);
		assert_int_equal(counters_nr_fds(c), (uint32_t)f->nr_open);
		if (code) {
			assert_int_equal(code, -EMFILE);
			assert_int_equal(lines(e.text), 3);
			assert_non_null(strstr(e.text, "too many open files"));
		}
		counters_close(c);
		assert_int_equal(f->nr_open, 0);
		free(f);
		if (!code) {
			assert_true(at > 12);
			break;
		}
	}
}

/* A command: nothing is enabled by us before its exec, everything immediately after it. */
TEST(test_enable_on_exec)
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
	fds[0]->enabled = fds[1]->enabled = true; /* the exec */
	assert_int_equal(counters_set_events(c, &other, 1, 100, NULL), 0);
	assert_int_equal(find_open(f, &other, fds), 2);
	assert_true(fds[0]->enabled && fds[1]->enabled);
	counters_close(c);
	assert_int_equal(f->nr_open, 0);
	free(f);
}

/* A CPU goes offline between the list of CPUs and its event: the list is read again. */
TEST(test_cpu_goes_offline)
{
	static const int cpu = 0;
	struct fake *f = fake_new();
	struct counters_sys sys = fake_sys(f);
	struct sampler_config config = {
		.cpus = &cpu,
		.nr_cpus = 1,
		.events[0] = parse("cpu-clock"),
		.nr_events = 1,
		.hz = 99,
		.sys = &sys,
	};
	struct target target;
	struct counters *c;
	struct err e = { "" };

	target_init(&target);
	f->fail_at = 3;
	f->fail_code = -ENODEV;
	assert_int_equal(live_open_counters(&config, &target, &c, &e), 0);
	assert_int_equal(counters_nr_cpus(c), 1);
	counters_close(c);
	assert_int_equal(f->nr_open, 0);
	/* One that is not in the machine. */
	f->core_types[cpu] = 77;
	config.events[0].type = 78;
	assert_int_not_equal(live_open_counters(&config, &target, &c, &e), 0);
	assert_true(e.text[0]);
	assert_int_equal(f->nr_open, 0);
	free(f);
}

/* A CPU went offline and came back: its events are on no more, which is said once. */
TEST(test_cpu_was_offline)
{
	struct event event = parse("cpu-clock");
	struct counters_config config = system_config(&event, 1);
	struct fake *f = fake_new();
	struct counters *c = open_fake(f, &config);
	struct fake_fd *first = fake_fd(f, counters_cpu(c, 0)->side_fd);
	struct fake_fd *second = fake_fd(f, counters_cpu(c, 1)->side_fd);

	for (uint64_t s = 1; s <= 6; s++) {
		first->on_ns = s * 1000000000;
		second->on_ns = MIN(s, 3ULL) * 1000000000;
		assert_false(counters_has_ended(c, 0));
		assert_int_equal(counters_has_ended(c, 1), s == 4);
	}
	counters_close(c);
	config = tasks_config(&event, 1);
	c = open_fake(f, &config);
	for (int i = 0; i < 3; i++)
		assert_false(counters_has_ended(c, 0));
	counters_close(c);
	assert_int_equal(f->nr_open, 0);
	free(f);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
