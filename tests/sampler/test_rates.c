// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rates: a got rate has enough samples and enough busy time behind it.
 */
#include "sampler/tick.c"

#include "tests/prelude.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/waits/waits.h"
#include "sampler/hot/hot.h"

#include <math.h>

#define TICK_NS 250000000ULL
#define HZ	999.0

struct fixture {
	struct rates r;
	struct rates_tick tick;
	uint64_t now_ns, ran_ns;
};

static int setup(void **state)
{
	static struct fixture f;
	struct sampler_config config = { .hz = HZ, .nr_events = 1 };

	memset(&f, 0, sizeof(f));
	assert_int_equal(event_parse(&config.events[0], "cycles", NULL), 0);
	rates_init(&f.r, &config);
	f.r.enabled = true;
	f.r.cpus = rates_new_cpus(1);
	f.tick = (struct rates_tick){ .nr_events = 1, .ring_size = 1 << 20, .lost_known = true };
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	free(f->r.cpus);
	return 0;
}

/* End a tick of a CPU that was so busy; returns the got rate then. */
static double tick(struct fixture *f, double busy, uint64_t samples, uint64_t idle_samples)
{
	struct sampler_thread_stats *stats = calloc(1, sizeof(*stats));
	struct profile_cpu cpu = { .online = true, .busy = busy };
	struct profile_cpu_event ev = { 0 };
	struct profile_event out = { 0 };

	assert_non_null(stats);
	stats->samples.by_event[0] = samples + idle_samples;
	stats->samples.idle[0] = idle_samples;
	f->now_ns += TICK_NS;
	f->ran_ns += TICK_NS;
	f->r.cpus[0].known[0] = true;
	f->r.cpus[0].now[0] =
		(struct counters_value){ .enabled_ns = f->ran_ns, .running_ns = f->ran_ns };
	rates_begin_tick(&f->r);
	rates_add_cpu(&f->r, &f->tick, 0, stats, &cpu, &ev);
	rates_update(&f->r, f->now_ns, 1, 1);
	rates_fill_event(&f->r, 0, 1, &out);
	free(stats);
	return out.got_hz;
}

/* Two samples of an idle machine are no rate. */
TEST(test_too_few, setup, teardown)
{
	struct fixture *f = *state;

	assert_true(isnan(tick(f, 0.06, 2, 0)));
	assert_true(isnan(tick(f, 0, 1, 0)));
	/* Nor are many in one jiffy of /proc/stat. */
	assert_true(isnan(tick(f, 0.06, 30, 0)));
}

/* They are added up until they are enough. */
TEST(test_added_up, setup, teardown)
{
	struct fixture *f = *state;
	double hz = NAN;
	int ticks = 0;

	for (; ticks < 100 && isnan(hz); ticks++)
		hz = tick(f, 0.1, 15, 0);
	assert_in_range(ticks, 2, 8);
	assert_true(fabs(hz - 600) < 1);
}

/* No samples at all in a second of busy time: that is known. */
TEST(test_none_is_a_rate, setup, teardown)
{
	struct fixture *f = *state;
	double hz = NAN;

	for (int i = 0; i < 4; i++)
		hz = tick(f, 1, 0, 0);
	assert_true(hz == 0);
}

TEST(test_full, setup, teardown)
{
	struct fixture *f = *state;

	assert_true(fabs(tick(f, 1, 250, 0) - 1000) < 1);
	assert_true(fabs(f->r.cpus[0].got_hz[0] - 1000) < 1);
}

/* A hardware event that also counts in the idle task: these samples are of no busy time. */
TEST(test_idle_samples, setup, teardown)
{
	struct fixture *f = *state;
	double hz = NAN;

	for (int i = 0; i < 10; i++)
		hz = tick(f, 0.25, 62, 190);
	assert_true(fabs(hz - 992) < 1);
}

/* A change in between: nothing is known of the stretch. */
TEST(test_mixed, setup, teardown)
{
	struct fixture *f = *state;

	assert_false(isnan(tick(f, 1, 250, 0)));
	f->r.mixed = true;
	assert_true(isnan(tick(f, 1, 100, 0)));
	assert_true(fabs(tick(f, 1, 250, 0) - 1000) < 1);
}

/* Add the counter of a CPU; returns the count of the tick. */
static double count(struct fixture *f, uint64_t value, uint64_t enabled_ns, uint64_t running_ns)
{
	static struct sampler_thread_stats stats;
	struct profile_cpu cpu = { .online = true };
	struct profile_cpu_event ev = { 0 };
	struct profile_event out = { 0 };

	f->r.cpus[0].known[0] = true;
	f->r.cpus[0].now[0] = (struct counters_value){ .count = value,
						       .enabled_ns = enabled_ns,
						       .running_ns = running_ns };
	rates_begin_tick(&f->r);
	rates_add_cpu(&f->r, &f->tick, 0, &stats, &cpu, &ev);
	rates_fill_event(&f->r, 0, 1, &out);
	return out.count;
}

/* The count of a tick: the growth, extrapolated to the time that the event was enabled. */
TEST(test_count, setup, teardown)
{
	struct fixture *f = *state;

	assert_true(count(f, 1000, 100, 100) == 1000);
	assert_true(count(f, 1500, 200, 150) == 1000);
	assert_true(count(f, 1500, 300, 150) == 0);
	/* Opened again: it restarts. */
	assert_true(count(f, 10, 400, 250) == 0);
	assert_true(count(f, 30, 500, 350) == 20);
	/* A task's time without its CPU is no multiplexing. */
	f->tick.is_tasks = true;
	assert_true(count(f, 130, 600, 360) == 100);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
