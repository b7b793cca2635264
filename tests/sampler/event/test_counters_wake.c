// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * counters with events that wake a reader at each sample, on a made-up kernel: twins, also of
 * events that children have inherited.
 */
#include "sampler/event/event.h"

#include "tests/prelude.h"

#include <errno.h>

#include "tests/sampler/fake_kernel.h"
#include "sampler/ring/ring.h"

/* Count the open events of @tid, or with @enabled the ones that are on. */
static int nr_open(const struct fake *f, const struct event *ev, pid_t tid, bool enabled)
{
	int nr = 0;

	for (int i = 0; i < f->nr_fds; i++) {
		const struct fake_fd *fd = &f->fds[i];

		nr += fd->open && fd->tid == tid && (fd->enabled || !enabled) &&
		      fd->attr.type == ev->type && fd->attr.config == ev->config;
	}
	return nr;
}

/* Fail if an open event of @ev would be enabled by the exec of a child. */
static void expect_no_exec(struct fake *f, const struct event *ev)
{
	struct fake_fd *fds[MAX_FDS];
	uint32_t nr = find_open(f, ev, fds);

	assert_true(nr > 0);
	for (uint32_t i = 0; i < nr; i++)
		assert_false(fds[i]->attr.enable_on_exec);
}

/* After the exec of a command, events are not opened so that an exec of its children enables them.
 */
TEST(test_after_exec)
{
	static const pid_t busy = 502;
	struct event events[] = { parse("cpu-clock"), parse("page-faults") };
	struct counters_config config = tasks_config(events, 1);
	struct fake *f = fake_new();
	struct fake_fd *fds[MAX_FDS];
	struct counters *c;

	config.nr_tids = 2;
	config.enable_on_exec = true;
	f->busy = busy;
	c = open_fake(f, &config);
	assert_int_equal(find_open(f, &events[0], fds), 2);
	assert_int_equal(counters_wake(c, 0, COUNTERS_WAKE_ALL), -EAGAIN);
	/* The exec: the kernel forgets it as well. */
	for (int i = 0; i < 2; i++) {
		fds[i]->enabled = true;
		fds[i]->attr.enable_on_exec = 0;
	}
	f->busy = 0;
	assert_int_equal(counters_add_tasks(c, &busy, 1, NULL), 0);
	assert_int_equal(nr_open(f, &events[0], busy, true), 2);
	expect_no_exec(f, &events[0]);
	f->tree[f->nr_tree++] = 501;
	assert_int_equal(counters_wake(c, 0, COUNTERS_WAKE_ALL), 0);
	assert_int_equal(nr_open(f, &events[0], 501, false), 4);
	assert_int_equal(nr_open(f, &events[0], 501, true), 2);
	expect_no_exec(f, &events[0]);
	assert_int_equal(counters_set_rate(c, 0, 100, NULL), 0);
	expect_no_exec(f, &events[0]);
	assert_int_equal(counters_enable(c, false), 0);
	assert_int_equal(counters_set_events(c, events, 2, 100, NULL), 0);
	expect_no_exec(f, &events[1]);
	assert_int_equal(nr_open(f, &events[1], 501, true), 0);
	counters_close(c);
	assert_int_equal(f->nr_open, 0);
	free(f);
}

/*
 * Children that inherited the event before have a twin also if the first try failed: nothing was
 * sampled, or too many files were open.
 */
TEST(test_wake_after_failure)
{
	struct event event = parse("cpu-clock");
	struct counters_config config = tasks_config(&event, 1);
	struct fake *f = fake_new();
	struct counters *c = open_fake(f, &config);

	f->tree[0] = 501;
	f->tree[1] = 700;
	f->nr_tree = 2;
	assert_int_equal(counters_wake(c, 0, COUNTERS_WAKE_ALL), -EAGAIN);
	assert_int_equal(counters_wake(c, 0, COUNTERS_WAKE_NONE), 0);
	counters_enable(c, true);
	f->fail_at = f->nr_calls + 1;
	f->fail_code = -EMFILE;
	assert_int_equal(counters_wake(c, 0, COUNTERS_WAKE_ALL), -EMFILE);
	assert_int_equal(counters_wake(c, 0, COUNTERS_WAKE_NONE), 0);
	assert_int_equal(nr_open(f, &event, 501, true), 2);
	assert_int_equal(nr_open(f, &event, 700, false), 0);
	assert_int_equal(counters_wake(c, 0, COUNTERS_WAKE_ALL), 0);
	assert_int_equal(nr_open(f, &event, 700, false), 4);
	assert_int_equal(nr_open(f, &event, 700, true), 2);
	counters_close(c);
	assert_int_equal(f->nr_open, 0);
	free(f);
}

/*
 * Events with a program at their samples need no twin, and are not opened again for them: the
 * program wakes, and at waits nobody has to. Others do.
 */
TEST(test_programs_wake)
{
	struct event events[] = { parse("cpu-clock"), parse("page-faults"),
				  parse("context-switches") };
	struct counters_config config = tasks_config(events, 3);
	struct fake *f = fake_new();
	struct fake_fd *fds[MAX_FDS];
	struct counters *c;
	int nr;

	events[1].type = PERF_TYPE_TRACEPOINT;
	events[2].wait = true;
	config.nr_tids = 1;
	config.program_fd = 1000;
	c = open_fake(f, &config);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(find_open(f, &events[i], fds), 2);
		assert_int_equal(fds[0]->program, i == 1 ? 0 : 1000);
	}
	/* Nothing runs, but nothing is opened for an event with a program. */
	assert_int_equal(counters_wake(c, 0, COUNTERS_WAKE_OTHERS), -EAGAIN);
	counters_enable(c, true);
	assert_int_equal(counters_wake(c, 0, COUNTERS_WAKE_OTHERS), 0);
	assert_int_equal(nr_open(f, &events[0], 501, false), 2);
	assert_int_equal(nr_open(f, &events[1], 501, false), 4);
	assert_int_equal(nr_open(f, &events[1], 501, true), 2);
	assert_int_equal(nr_open(f, &events[2], 501, false), 2);
	/* Each page fault: no program wakes at that period. */
	events[1] = parse("page-faults");
	events[1].period = 1;
	assert_int_equal(counters_set_events(c, events, 3, 100, NULL), 0);
	assert_int_equal(nr_open(f, &events[1], 501, false), 4);
	assert_int_equal(nr_open(f, &events[2], 501, false), 2);
	/* Where no copies are made all need one. */
	assert_int_equal(counters_wake(c, 1, COUNTERS_WAKE_ALL), 0);
	assert_int_equal(nr_open(f, &events[0], 501, false), 3);
	assert_int_equal(counters_set_events(c, events, 1, 100, NULL), 0);
	assert_int_equal(counters_wake(c, 1, COUNTERS_WAKE_NONE), 0);
	nr = f->nr_open;
	assert_int_equal(counters_wake(c, 1, COUNTERS_WAKE_OTHERS), 0);
	assert_int_equal(nr_open(f, &events[0], 501, true), 2);
	assert_int_equal(f->nr_open, nr);
	counters_close(c);
	assert_int_equal(f->nr_open, 0);
	free(f);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
