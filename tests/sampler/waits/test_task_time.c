// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The states of a task: each nanosecond counts once, whatever the records are.
 */
#include "sampler/waits/waits.c"

#include "tests/prelude.h"

#include "symbols/base/base.h"

#define SEED 4711u

static void expect(struct task_time *t, enum task_step step, uint64_t time_ns,
		   enum task_state state, uint64_t ns)
{
	struct task_span s = task_time_step(t, step, time_ns);

	assert_int_equal(s.ns, ns);
	if (ns)
		assert_int_equal(s.state, state);
}

TEST(test_life)
{
	struct task_time t = { 0 };

	expect(&t, STEP_BORN, 100, TASK_NEW, 0);
	expect(&t, STEP_IN, 130, TASK_RUNNABLE, 30);
	expect(&t, STEP_PREEMPTED, 200, TASK_RUNNING, 70);
	expect(&t, STEP_IN, 250, TASK_RUNNABLE, 50);
	expect(&t, STEP_OUT, 260, TASK_RUNNING, 10);
	expect(&t, STEP_WOKEN, 300, TASK_SLEEPING, 40);
	expect(&t, STEP_IN, 305, TASK_RUNNABLE, 5);
	expect(&t, STEP_EXIT, 400, TASK_RUNNING, 95);
	/* Its last switch follows its end. */
	expect(&t, STEP_OUT, 410, TASK_GONE, 0);
	assert_int_equal(t.nr_odd, 0);
	expect(&t, STEP_BORN, 500, TASK_GONE, 0);
	expect(&t, STEP_IN, 600, TASK_RUNNABLE, 100);
	assert_int_equal(t.nr_odd, 0);
}

/* A task that was there before: the first switch shows what it was doing. */
TEST(test_found)
{
	struct task_time a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };
	struct task_span s;

	expect(&a, STEP_FOUND, 100, TASK_NEW, 0);
	expect(&a, STEP_IN, 150, TASK_RUNNABLE, 50);
	expect(&b, STEP_FOUND, 100, TASK_NEW, 0);
	expect(&b, STEP_OUT, 150, TASK_RUNNING, 50);
	expect(&c, STEP_ASLEEP, 100, TASK_NEW, 0);
	expect(&c, STEP_IN, 150, TASK_SLEEPING, 50);
	/* No switch at all in a tick. */
	expect(&d, STEP_FOUND, 100, TASK_NEW, 0);
	s = task_time_until(&d, 1000);
	assert_int_equal(s.state, TASK_RUNNING);
	assert_int_equal(s.ns, 900);
}

TEST(test_late_and_lost)
{
	struct task_time t = { 0 };

	expect(&t, STEP_IN, 100, TASK_NEW, 0);
	expect(&t, STEP_OUT, 90, TASK_NEW, 0); /* of the time before: ignored */
	assert_int_equal(t.nr_late, 1);
	/* Of a time that was returned: it counts from then on. */
	assert_int_equal(task_time_until(&t, 200).ns, 100);
	expect(&t, STEP_OUT, 150, TASK_RUNNING, 0);
	assert_int_equal(t.nr_late, 1);
	assert_int_equal(task_time_until(&t, 230).ns, 30);
	assert_int_equal(t.state, TASK_SLEEPING);
	t = (struct task_time){ .since_ns = 100, .step_ns = 100, .state = TASK_RUNNING };
	assert_int_equal(t.state, TASK_RUNNING);
	expect(&t, STEP_IN, 200, TASK_RUNNING, 100); /* the switch out was lost */
	assert_int_equal(t.nr_odd, 1);
	expect(&t, STEP_OUT, 300, TASK_RUNNING, 100);
	expect(&t, STEP_OUT, 400, TASK_SLEEPING, 100); /* the switch in was lost */
	assert_int_equal(t.nr_odd, 2);
}

/* Any steps at any times, with ends of ticks between: the states add up to the life. */
TEST(test_any)
{
	srand(SEED);
	for (int round = 0; round < 2000; round++) {
		uint64_t now = 1000, counted = 0, lived = 0;
		struct task_time t = { 0 };

		for (int i = 0; i < 200; i++) {
			enum task_state was = t.state;
			uint64_t since = t.since_ns;
			struct task_span s;

			now += (uint64_t)(rand() % 1000);
			s = rand() % 5 ? task_time_step(&t, (enum task_step)(rand() % STEP_NR),
							now - (uint64_t)(rand() % 7 ? 0 : 500))
				       : task_time_until(&t, now);
			assert_true(t.since_ns >= since);
			assert_in_range(t.state, TASK_NEW, TASK_GONE);
			if (was != TASK_NEW && was != TASK_GONE)
				lived += t.since_ns - since;
			counted += s.ns;
			/* Of a task found, only the end of the state shows which it was. */
			if (s.ns)
				assert_in_range(s.state, TASK_RUNNING, TASK_SLEEPING);
			if (t.state != TASK_FOUND && was != TASK_FOUND)
				assert_int_equal(counted, lived);
		}
	}
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
