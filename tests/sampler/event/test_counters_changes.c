// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * counters, changed while they run, on a made-up kernel: rates, events, tasks.
 * Live: reads a clock.
 */
#include "sampler/event/counters.c"

#include "tests/prelude.h"

#include <errno.h>

#include "sampler/internal.h"
#include "tests/sampler/fake_kernel.h"
#include "symbols/base/base.h"
#include "sampler/ring/ring.h"
#include "sampler/profile/profile.h"

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
	assert_int_equal(c->env.nr_fds, (uint32_t)f->nr_open);

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

/* Let time pass, and add ids until the table is made again. */
static void make_again(struct counters *c)
{
	idmap_add(&c->ids, 1, 0);
	idmap_close(&c->ids, 1, time_now_ns() + (IDMAP_KEPT_S + 2) * 1000000000ULL);
	for (uint64_t id = 1000000; id < 1001000; id++)
		idmap_add(&c->ids, id, 0);
}

/* The ids of tasks that have ended, and of events that were replaced, are forgotten after a while.
 */
TEST(test_ids_of_closed)
{
	struct event event = parse("cpu-clock");
	struct counters_config config = tasks_config(&event, 1);
	struct fake *f = fake_new();
	struct fake_fd *fds[MAX_FDS];
	struct counters *c = open_fake(f, &config);
	uint64_t ids[3]; /* replaced, ended, open */

	counters_enable(c, true);
	for (int i = 0; i < 3; i++) {
		/* Replaces the ones of before. */
		if (i == 1)
			assert_int_equal(counters_set_rate(c, 0, 100, NULL), 0);
		assert_int_equal(find_open(f, &event, fds), 6);
		ids[i] = (uint64_t)(fds[2 * i] - f->fds + FIRST_FD) * 10;
	}
	fds[2]->hung_up = true;
	assert_int_equal(counters_add_tasks(c, NULL, 0, NULL), 0);
	assert_int_equal(find_open(f, &event, fds), 4);
	for (int i = 0; i < 3; i++)
		assert_int_equal(counters_event_of(c, 0, ids[i]), 0);
	make_again(c);
	assert_int_equal(counters_event_of(c, 0, ids[0]), -1);
	assert_int_equal(counters_event_of(c, 0, ids[1]), -1);
	assert_int_equal(counters_event_of(c, 0, ids[2]), 0);
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
	pid_t busy[3];
	int before, code;

	f->busy = 501;
	c = open_fake(f, &config);
	assert_int_equal(counters_busy(c, 0, busy, 3), 1);
	assert_int_equal(busy[0], 501);
	assert_int_equal(counters_busy(c, 501, busy, 3), 0);
	assert_int_equal(counters_nr_refused(c), 1);
	assert_int_equal(counters_refused(c, &code), 501);
	assert_int_equal(code, -EINTR);
	before = (int)find_open(f, &event, fds);
	f->busy = 600;
	assert_int_equal(counters_add_tasks(c, more, 2, NULL), 0);
	assert_int_equal(find_open(f, &event, fds), before + 2);
	assert_int_equal(counters_busy(c, 0, busy, 3), 2);
	assert_int_equal(busy[1], 600);
	assert_int_equal(counters_nr_refused(c), 2);
	/* Its number may be of another task soon. */
	f->gone = 501;
	assert_int_equal(counters_add_tasks(c, NULL, 0, NULL), 0);
	assert_int_equal(counters_busy(c, 0, busy, 3), 1);
	assert_int_equal(busy[0], 600);
	assert_int_equal(counters_nr_refused(c), 1);
	f->busy = 0;
	assert_int_equal(counters_add_tasks(c, more, 2, NULL), 0);
	assert_int_equal(find_open(f, &event, fds), before + 4);
	assert_int_equal(counters_busy(c, 0, busy, 3), 0);
	assert_int_equal(counters_nr_refused(c), 0);
	assert_int_equal(c->env.nr_fds, (uint32_t)f->nr_open);
	counters_close(c);
	assert_int_equal(f->nr_open, 0);
	free(f);
}

/* Count the open fds on a task of the type and config of @ev. */
static uint32_t nr_on(struct fake *f, const struct event *ev, pid_t tid)
{
	struct fake_fd *fds[MAX_FDS];
	uint32_t nr = find_open(f, ev, fds), found = 0;

	for (uint32_t i = 0; i < nr; i++)
		found += fds[i]->tid == tid;
	return found;
}

static const struct event side = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY };

/* Check that the side-band and all events are on a task, once on each CPU, or none of them. */
static void expect_on(struct fake *f, const struct event *events, uint32_t nr, pid_t tid, bool on)
{
	assert_int_equal(nr_on(f, &side, tid), on ? 2 : 0);
	for (uint32_t i = 0; i < nr; i++)
		assert_int_equal(nr_on(f, &events[i], tid), on ? 2 : 0);
}

/* One event alone, and a group: a member is opened after its leader. */
static void parse_busy(struct event events[3])
{
	events[0] = parse("cpu-clock");
	events[1] = parse("page-faults");
	events[2] = parse("minor-faults");
	events[1].group = events[2].group = 1;
}

/* Add the task again that the fake held up in one call, if it did. It goes on now. */
static uint32_t add_again(struct counters *c)
{
	pid_t busy[2];
	uint32_t nr = counters_busy(c, 0, busy, 2);

	assert_in_range(nr, 0, 1);
	assert_int_equal(counters_nr_refused(c), nr);
	assert_int_equal(counters_add_tasks(c, busy, nr, NULL), 0);
	assert_int_equal(counters_busy(c, 0, busy, 2), 0);
	assert_int_equal(counters_nr_refused(c), 0);
	return nr;
}

/* A task hangs in the n-th call at the start, for every n: it has all events or none, then once. */
TEST(test_busy_at_start)
{
	struct event events[3];
	uint32_t nr_busy = 0;
	bool done = false;

	parse_busy(events);
	for (int at = 1; !done; at++) {
		struct counters_config config = tasks_config(events, 3);
		struct fake *f = fake_new();
		struct counters_sys sys = fake_sys(f);
		struct counters *c;
		struct err e;
		uint32_t nr_left;
		const pid_t *left;

		f->fail_at = at;
		f->fail_code = -EINTR;
		if (!counters_open(&c, &config, &sys, &e)) {
			left = counters_left_out(c, &nr_left);
			for (int i = 0; i < 3; i++)
				expect_on(f, events, 3, tids[i], !nr_left || tids[i] != *left);
			counters_enable(c, true);
			nr_busy += add_again(c);
			for (int i = 0; i < 3; i++)
				expect_on(f, events, 3, tids[i], true);
			counters_close(c);
		}
		done = f->nr_calls < at;
		assert_int_equal(f->nr_open, 0);
		free(f);
	}
	/* Of 3 tasks with 4 events on 2 CPUs: the calls that open each. */
	assert_in_range(nr_busy, 24, UINT32_MAX);
}

/* The same of tasks that are added, also when it hangs again. */
TEST(test_busy_added)
{
	static const pid_t more[] = { 600, 601 };
	struct event events[3];
	bool done = false;

	parse_busy(events);
	for (int at = 1; !done; at++) {
		struct counters_config config = tasks_config(events, 3);
		struct fake *f = fake_new();
		struct counters *c = open_fake(f, &config);
		pid_t busy = 0;

		counters_enable(c, true);
		f->fail_at = f->nr_calls + at;
		f->fail_code = -EINTR;
		assert_int_equal(counters_add_tasks(c, more, 2, NULL), 0);
		done = f->nr_calls < f->fail_at;
		for (int again = 0; counters_busy(c, 0, &busy, 1) && again < 2; again++) {
			expect_on(f, events, 3, busy, false);
			assert_int_equal(c->env.nr_fds, (uint32_t)f->nr_open);
			f->fail_at = f->nr_calls + at;
			assert_int_equal(counters_add_tasks(c, &busy, 1, NULL), 0);
		}
		add_again(c);
		for (int i = 0; i < 2; i++)
			expect_on(f, events, 3, more[i], true);
		counters_close(c);
		assert_int_equal(f->nr_open, 0);
		free(f);
	}
}

/* Open an event again, or another one. */
static int reopen(struct counters *c, const struct event *events, bool other)
{
	return other ? counters_set_events(c, events, 3, 999, NULL)
		     : counters_set_rate(c, 1, 100, NULL);
}

/*
 * A task hangs in the n-th call of a change: then it lacks that event alone. A child that inherited
 * the others is not to have them twice.
 */
TEST(test_busy_in_change)
{
	struct event events[3], fresh[3];
	uint32_t nr_busy = 0;
	bool done = false;

	parse_busy(events);
	memcpy(fresh, events, sizeof(fresh));
	fresh[1] = parse("cycles");
	fresh[2] = parse("instructions");
	fresh[1].group = fresh[2].group = 1;
	for (int at = 1, other = 0; other < 2; at = done ? 1 : at + 1, other += done) {
		struct counters_config config = tasks_config(events, 3);
		struct fake *f = fake_new();
		struct counters *c = open_fake(f, &config);

		memcpy(f->tree, tids, sizeof(tids));
		f->tree[3] = 700;
		f->nr_tree = 4;
		counters_enable(c, true);
		f->fail_at = f->nr_calls + at;
		f->fail_code = -EINTR;
		assert_int_equal(reopen(c, other ? fresh : events, other), 0);
		done = f->nr_calls < f->fail_at;
		nr_busy += add_again(c);
		for (int i = 0; i < 3; i++)
			expect_on(f, other ? fresh : events, 3, tids[i], true);
		for (int i = 1; i < 3; i++)
			assert_int_equal(nr_on(f, other ? &fresh[i] : &events[i], 700), 2);
		assert_int_equal(nr_on(f, &events[0], 700), 0);
		assert_int_equal(nr_on(f, &side, 700), 0);
		counters_close(c);
		assert_int_equal(f->nr_open, 0);
		free(f);
	}
	/* Of 4 tasks with 2 events on 2 CPUs, in both ways. */
	assert_in_range(nr_busy, 32, UINT32_MAX);
}

/* Any number of tasks hang; a change opens no event on them, though they go on: then all together.
 */
TEST(test_many_busy)
{
	struct event events[3];
	pid_t more[20], busy[20];

	parse_busy(events);
	for (int way = 0; way < 4; way++) {
		struct counters_config config = tasks_config(events, 3);
		struct fake *f = fake_new();
		struct counters *c = open_fake(f, &config);
		uint32_t nr_left;

		for (int i = 0; i < 20; i++)
			more[i] = 600 + i;
		/* One descends from a task that is followed, where the fake has a tree. */
		memcpy(f->tree, tids, sizeof(tids));
		f->tree[3] = 604;
		f->nr_tree = way & 1 ? 4 : 0;
		f->busy = 600;
		f->last_busy = 619;
		assert_int_equal(counters_add_tasks(c, more, 20, NULL), 0);
		assert_int_equal(counters_nr_refused(c), 20);
		counters_left_out(c, &nr_left);
		assert_int_equal(nr_left, 20);
		f->busy = 0;
		f->last_busy = 0;
		assert_int_equal(reopen(c, events, way & 2), 0);
		for (int i = 0; i < 20; i++)
			expect_on(f, events, 3, more[i], false);
		for (pid_t tid = 0, i = 0; i < 5; i++, tid = busy[3]) {
			assert_int_equal(counters_busy(c, tid, busy, 4), 4);
			assert_memory_equal(busy, &more[4 * i], 4 * sizeof(*busy));
		}
		assert_int_equal(counters_busy(c, 0, busy, 20), 20);
		assert_int_equal(counters_add_tasks(c, busy, 20, NULL), 0);
		for (int i = 0; i < 20; i++)
			expect_on(f, events, 3, more[i], true);
		assert_int_equal(counters_nr_refused(c), 0);
		counters_close(c);
		assert_int_equal(f->nr_open, 0);
		free(f);
	}
}

/* A thread of a task that was left out got one event in a change: it gets the others, each once. */
TEST(test_busy_thread_in_change)
{
	struct event events[3];

	parse_busy(events);
	for (int other = 0; other < 2; other++) {
		struct counters_config config = tasks_config(events, 3);
		struct fake *f = fake_new();
		struct counters *c = open_fake(f, &config);

		memcpy(f->tree, tids, sizeof(tids));
		f->tree[3] = 600;
		f->tree[4] = 601;
		f->nr_tree = 5;
		f->busy = 600;
		assert_int_equal(counters_add_tasks(c, (pid_t[]){ 600 }, 1, NULL), 0);
		f->busy = 0;
		assert_int_equal(reopen(c, events, other), 0);
		assert_int_equal(counters_add_tasks(c, (pid_t[]){ 600, 601 }, 2, NULL), 0);
		expect_on(f, events, 3, 600, true);
		expect_on(f, events, 3, 601, true);
		counters_close(c);
		assert_int_equal(f->nr_open, 0);
		free(f);
	}
}

/* No file is left when busy tasks are added: only the one that was tried is given up. */
TEST(test_no_files_for_busy)
{
	struct event event = parse("cpu-clock");
	struct counters_config config = tasks_config(&event, 1);
	struct fake *f = fake_new();
	struct counters *c;
	struct err e;
	pid_t busy[3];

	f->busy = 502;
	f->last_busy = 503;
	c = open_fake(f, &config);
	f->busy = f->last_busy = 0;
	f->fail_at = f->nr_calls + 1;
	f->fail_code = -EMFILE;
	assert_int_equal(counters_add_tasks(c, (pid_t[]){ 502, 503 }, 2, &e), -EMFILE);
	assert_int_equal(counters_nr_refused(c), 2);
	assert_int_equal(counters_busy(c, 0, busy, 3), 1);
	assert_int_equal(busy[0], 503);
	assert_int_equal(counters_add_tasks(c, busy, 1, &e), 0);
	assert_int_equal(counters_nr_refused(c), 1);
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
		assert_int_equal(c->env.nr_fds, (uint32_t)f->nr_open);
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

/* While a CPU is offline, rates and events change on the others. */
TEST(test_change_beside_offline)
{
	struct event events[] = { parse("cpu-clock"), parse("waits"), parse("page-faults") };
	struct counters_config config = system_config(events, 2);
	struct fake *f = fake_new();
	struct fake_fd *fds[MAX_FDS];
	struct counters *c = open_fake(f, &config);
	struct err e = { "" };

	counters_enable(c, true);
	f->offline[3] = true;
	assert_int_equal(counters_set_rate(c, 0, 100, &e), 0);
	assert_int_equal(find_open(f, &events[0], fds), 1);
	assert_int_equal(fds[0]->cpu, 0);
	assert_int_equal(fds[0]->period, 10000000);
	assert_true(fds[0]->enabled);
	assert_int_equal(counters_set_switches(c, false), 0);
	assert_int_equal(counters_set_switches(c, true), 0);
	assert_true(counters_has_switches(c));
	assert_int_equal(counters_set_events(c, events, 3, 999, &e), 0);
	assert_int_equal(find_open(f, &events[2], fds), 1);
	assert_true(fds[0]->enabled);
	/* With none left it is an error, and all goes on. */
	f->offline[0] = true;
	assert_int_equal(counters_set_rate(c, 0, 50, &e), -ENODEV);
	assert_int_equal(find_open(f, &events[0], fds), 1);
	assert_int_equal(fds[0]->period, 10000000);
	counters_close(c);
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
