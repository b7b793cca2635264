// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * attr: the request to the kernel, bit by bit.
 */
#include "sampler/event/internal.h"

#include "tests/prelude.h"

#include <math.h>
#include <time.h>

#include "sampler/ring/ring.h"
#include "tests/sampler/fake_kernel.h"

/* Check the attributes of a sampling event, bit by bit. */
TEST(test_attr_sample)
{
	struct event cycles = parse("cycles"), clock = parse("cpu-clock:u");
	struct attr_config config = { .exclude_idle = true,
				      .stack_size = 8192,
				      .regs_mask = REGS_MASK };
	struct perf_event_attr attr, expected = {
		.size = sizeof(expected),
		.type = PERF_TYPE_HARDWARE,
		.config = 0,
		.freq = 1,
		.sample_freq = 999,
		.disabled = 1,
		.exclude_guest = 1,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			       PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
			       PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER |
			       PERF_SAMPLE_STACK_USER,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
			       PERF_FORMAT_ID | PERF_FORMAT_LOST,
		.sample_regs_user = REGS_MASK,
		.sample_stack_user = 8192,
		.exclude_callchain_user = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
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

/* dwarf, fp, off: the parts of a user stack that the kernel writes, and their largest size. */
TEST(test_attr_call_graphs)
{
	struct event clock = parse("cpu-clock"), waits = parse("waits");
	struct attr_config dwarf = { .stack_size = 8192, .regs_mask = REGS_MASK }, fp = { 0 },
			   off = { .no_chain = true };
	struct perf_event_attr attr;

	attr_sample(&attr, &dwarf, &clock, 999);
	assert_true(attr.exclude_callchain_user);
	assert_int_equal(attr.sample_type, RECORD_SAMPLE_TYPE | RECORD_STACK_TYPE);
	attr_sample(&attr, &fp, &clock, 999);
	assert_false(attr.exclude_callchain_user);
	assert_int_equal(attr.sample_type, RECORD_SAMPLE_TYPE);
	assert_int_equal(attr.sample_stack_user | attr.sample_regs_user, 0);
	attr_sample(&attr, &off, &clock, 999);
	assert_int_equal(attr.sample_type, RECORD_SAMPLE_TYPE & ~(uint64_t)PERF_SAMPLE_CALLCHAIN);
	/* Waits without stacks: no sample at switches. */
	attr_sample(&attr, &fp, &waits, 999);
	assert_int_equal(attr.config, PERF_COUNT_SW_CONTEXT_SWITCHES);
	attr_sample(&attr, &off, &waits, 999);
	assert_int_equal(attr.config, PERF_COUNT_SW_DUMMY);
	assert_true(attr.task);
	assert_true(attr.comm_exec);
	assert_true(attr_sample_max(&dwarf) > attr_sample_max(&fp) + 8192);
	assert_true(attr_sample_max(&fp) > attr_sample_max(&off) + 8 * 127);
}

TEST(test_attr_side)
{
	struct perf_event_attr attr, expected = {
		.size = sizeof(expected),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED,
		.inherit = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.ksymbol = 1,
		.bpf_event = 1,
		.watermark = 1,
		.wakeup_watermark = 8192,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};

	attr_side(&attr, &(struct attr_config){ .tasks = true }, 65536);
	assert_memory_equal(&attr, &expected, sizeof(attr));
}

TEST(test_attr_rate)
{
	struct event clock = parse("task-clock"), cycles = parse("cycles");

	assert_int_equal(attr_rate(&clock, 1000), 1000000);
	assert_int_equal(attr_rate(&clock, 9973), 100271);
	assert_int_equal(attr_rate(&clock, 0.5), 2000000000);
	assert_int_equal(attr_rate(&cycles, 9973), 9973);
	assert_int_equal(attr_rate(&cycles, 0.2), 1);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
