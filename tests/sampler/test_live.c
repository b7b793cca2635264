// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The CPUs that a session opens: all of a list at first, only online ones afterwards; programs of
 * which readers hang.
 */
#include "sampler/live.c"

#include "tests/prelude.h"

#include <string.h>

#include "tests/sampler/fake_kernel.h"
#include "symbols/base/base.h"
#include "sampler/ring/ring.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"

/* No machine has it online. */
#define OFFLINE 1000000

static int open_cpus(struct fake *f, const int *cpus, uint32_t nr, bool skip_offline, struct err *e)
{
	struct counters_sys sys = fake_sys(f);
	struct target t;
	struct sampler_config config = {
		.cpus = cpus,
		.nr_cpus = nr,
		.skip_offline = skip_offline,
		.events = { parse("cpu-clock") },
		.nr_events = 1,
		.hz = 99,
		.call_graph = CALL_GRAPH_OFF,
		.sys = &sys,
	};
	struct counters *c = NULL;
	int code;

	target_init(&t);
	code = live_open_counters(&config, &t, &c, e);
	if (code)
		return code;
	code = (int)counters_nr_cpus(c);
	assert_int_equal(counters_cpu(c, 0)->cpu, 0);
	counters_close(c);
	return code;
}

TEST(test_cpus_of_a_list)
{
	const int cpus[] = { OFFLINE, 0, 0 };
	struct fake *f = fake_new();
	struct err e;

	assert_int_equal(open_cpus(f, cpus + 1, 2, false, &e), 1);
	assert_int_equal(open_cpus(f, cpus, 3, false, &e), -ENODEV);
	assert_non_null(strstr(e.text, "CPU 1000000 is not online"));
	assert_int_equal(open_cpus(f, cpus, 3, true, &e), 1);
	assert_int_equal(open_cpus(f, cpus, 1, true, &e), -ENODEV);
	free(f);
}

/* A program is barred after three readers in short order: not after three stalls of the machine. */
static void test_strikes(void **state)
{
	struct langreaders r = { .nr = 0 };
	uint64_t now_ns = FORGIVE_NS;

	(void)state;
	for (int i = 0; i < 10; i++, now_ns += FORGIVE_NS + 1)
		assert_false(strike(&r, 7, now_ns));
	assert_false(strike(&r, 7, now_ns += FORGIVE_NS - 1));
	assert_false(strike(&r, 8, now_ns));
	assert_false(strike(&r, 7, now_ns += FORGIVE_NS));
	assert_true(strike(&r, 7, now_ns + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strikes),
		cmocka_unit_test(test_cpus_of_a_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
