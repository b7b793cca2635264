// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A recording written by the recorder, through the tables: every sample is
 * counted, also when each is a stack of its own, and lost ones once.
 */
#include "sampler/replay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <linux/perf_event.h>
#include <unistd.h>
#include <urcu-qsbr.h>

#include "sampler/assemble.h"
#include "sampler/attr.h"
#include "sampler/hottest.h"
#include "sampler/session.h"
#include "sampler/synth.h"

#define CLOCK_ID 11
#define FAULT_ID 21
#define SIDE_ID	 31
#define KERNEL	 0xffffffff81000000ULL

struct fixture {
	char dir[64], path[96];
	struct recorder *r;
	uint64_t time_ns;
};

static const struct record_layout layout = { .sample_type = RECORD_SAMPLE_TYPE, .id_all = true };

static int setup(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	f.time_ns = 1000000;
	strcpy(f.dir, "/tmp/test_replay.XXXXXX");
	assert_non_null(mkdtemp(f.dir));
	snprintf(f.path, sizeof(f.path), "%s/out.data", f.dir);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	const struct fixture *f = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", f->dir);
	return system(command);
}

static void note(struct recorder *r, const char *name, uint64_t id)
{
	const struct attr_config config = { 0 };
	struct perf_event_attr attr;
	struct event ev;

	assert_int_equal(event_parse(&ev, name, NULL), 0);
	attr_sample(&attr, &config, &ev, 999);
	recorder_note(r, name, &attr, &id, 1);
}

/* Two events and a side-band on two CPUs; @f->dir has no /proc, so nothing was there before. */
static void begin(struct fixture *f, size_t lane_size)
{
	const struct recorder_config config = {
		.path = f->path, .nr_cpus = 2, .lane_size = lane_size, .root = f->dir,
	};
	const uint64_t side = SIDE_ID;
	struct perf_event_attr attr;
	struct err e = { "" };

	assert_int_equal(recorder_open(&f->r, &config, &e), 0);
	note(f->r, "cpu-clock", CLOCK_ID);
	note(f->r, "page-faults", FAULT_ID);
	attr_side(&attr, false, 65536);
	recorder_note(f->r, "dummy:u", &attr, &side, 1);
	assert_int_equal(recorder_start(f->r, &e), 0);
}

static void put(struct fixture *f, uint32_t lane, const void *bytes)
{
	const struct perf_event_header *h = bytes;
	struct record r;

	assert_int_equal(record_decode(&r, &layout, h, h->size), 0);
	recorder_put(recorder_lane(f->r, lane), h, &r);
}

/* In the kernel, at @ip, called from a place that all have. */
static void put_sample(struct fixture *f, uint32_t cpu, uint64_t id, uint64_t ip)
{
	const struct {
		struct perf_event_header h;
		uint64_t id, ip;
		uint32_t pid, tid;
		uint64_t time_ns;
		uint32_t cpu, reserved;
		uint64_t period, nr_chain, chain[3];
	} s = {
		{ PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, sizeof(s) }, id, ip, 42, 43,
		f->time_ns++, cpu, 0, 5, 3, { (uint64_t)PERF_CONTEXT_KERNEL, ip, KERNEL + 0x100 },
	};

	put(f, cpu, &s);
}

static void put_lost(struct fixture *f, uint32_t lane, uint64_t id, uint64_t nr)
{
	const struct {
		struct perf_event_header h;
		uint64_t id, lost;
		struct synth_id trailer;
	} l = { { PERF_RECORD_LOST, 0, sizeof(l) }, id, nr, { 42, 43, f->time_ns++, 1, 0, id } };

	put(f, lane, &l);
}

static void put_throttle(struct fixture *f, uint32_t type, uint64_t time_ns)
{
	const struct {
		struct perf_event_header h;
		uint64_t time_ns, id, stream;
		struct synth_id trailer;
	} t = { { type, 0, sizeof(t) }, time_ns, CLOCK_ID, CLOCK_ID,
		{ 42, 43, time_ns, 1, 0, CLOCK_ID } };

	put(f, 1, &t);
}

static void end(struct fixture *f, uint64_t lost)
{
	struct recorder_stats stats;

	assert_int_equal(recorder_finish(f->r, lost, &stats), 0);
	assert_int_equal(stats.nr_dropped, 0);
	recorder_close(f->r);
}

/* Replay; the sums of all CPUs go to @stats, lost ones to @lost. */
static struct sampler *replay(const struct fixture *f, struct replay_result *result,
			      struct pipeline_stats *stats, uint64_t *lost)
{
	const struct sampler_config config = {
		.replay = f->path, .tick_ns = 1000000000, .window_ns = 5000000000,
	};
	struct sampler *s;
	struct err e = { "" };

	if (sampler_new(&s, &config, &e))
		fail_msg("%s", e.text);
	assert_int_equal(replay_run(s->replay, s, result), 0);
	memset(stats, 0, sizeof(*stats));
	*lost = 0;
	for (uint32_t i = 0; i < result->nr_cpus; i++) {
		pipeline_add_stats(stats, &result->cpus[i].samples);
		*lost += result->cpus[i].lost;
	}
	return s;
}

static void test_each_its_own_stack(void **state)
{
	struct fixture *f = *state;
	const uint64_t nr = 50000;
	struct replay_result result;
	struct pipeline_stats stats;
	struct cell *cells;
	uint64_t lost, counted = 0;
	uint32_t nr_cells;
	struct sampler *s;

	begin(f, 16 << 20);
	for (uint64_t i = 0; i < nr; i++)
		put_sample(f, i % 2, CLOCK_ID, KERNEL + 0x1000 + 8 * i);
	for (uint64_t i = 0; i < 10; i++)
		put_sample(f, 0, FAULT_ID, KERNEL + 0x1000);
	end(f, 0);
	s = replay(f, &result, &stats, &lost);
	assert_int_equal(stats.taken, nr + 10);
	assert_int_equal(stats.by_event[0], nr);
	assert_int_equal(stats.by_event[1], 10);
	for (int i = 0; i < DROP_NR; i++)
		assert_int_equal(stats.dropped[i], 0);
	assert_int_equal(lost, 0);
	assert_int_equal(result.nr_bad, 0);
	assert_int_equal(result.cpus[0].samples.taken, nr / 2 + 10);
	assert_int_equal(result.cpus[1].samples.taken, nr / 2);
	assert_int_equal(result.span_ns, nr + 10 - 1);
	assert_int_equal(cells_swap(s->cells, &cells, &nr_cells), 0);
	assert_int_equal(nr_cells, nr + 1);
	for (uint32_t i = 0; i < nr_cells; i++)
		counted += cells[i].count;
	assert_int_equal(counted, nr + 10);
	free(cells);
	sampler_free(s);
}

/* One place among many others, on one CPU of two: it stands out there, and there alone. */
static void test_hottest(void **state)
{
	struct fixture *f = *state;
	struct replay_result result;
	struct pipeline_stats stats;
	struct profile_cpu cpu = { 0 };
	uint32_t place;
	struct sampler *s;
	uint64_t lost;

	begin(f, 16 << 20);
	for (uint64_t i = 0; i < 4000; i++)
		put_sample(f, 1, CLOCK_ID, KERNEL + (i % 2 ? 0x2000 : 0x10000 + 8 * i));
	end(f, 0);
	s = replay(f, &result, &stats, &lost);
	assert_int_equal(stats.kernel, 4000);
	hottest_fill(&cpu, &result.cpus[1].samples, s->places);
	assert_int_equal(cpu.kernel, 4000);
	/* What fell into its slot by chance is taken off; others of its function may be added. */
	assert_in_range(cpu.hot_samples, 1900, 4000);
	place = places_intern(s->places, DSO_ID_KERNEL, KERNEL + 0x2000);
	/* No symbol covers it where kallsyms tells nothing: then it is known by its place. */
	if (cpu.hot & ASSEMBLE_PLACE)
		assert_int_equal(cpu.hot, ASSEMBLE_PLACE | place);
	else
		assert_int_equal(cpu.hot, atomic_load(&places_at(s->places, place)->symbol));
	hottest_fill(&cpu, &result.cpus[0].samples, s->places);
	assert_int_equal(cpu.hot_samples, 0);
	sampler_free(s);
}

/* LOST records tell 7, the sum at the end 10; of the side-band's losses none is a sample. */
static void test_lost_once(void **state)
{
	struct fixture *f = *state;
	struct replay_result result;
	struct pipeline_stats stats;
	struct sampler *s;
	uint64_t lost;

	begin(f, 1 << 20);
	put_sample(f, 0, CLOCK_ID, KERNEL + 0x1000);
	put_lost(f, 1, CLOCK_ID, 4);
	put_lost(f, 0, FAULT_ID, 3);
	put_lost(f, 2, SIDE_ID, 1000);
	put_sample(f, 1, CLOCK_ID, KERNEL + 0x2000);
	end(f, 10);
	s = replay(f, &result, &stats, &lost);
	assert_int_equal(stats.taken, 2);
	assert_int_equal(lost, 10);
	assert_int_equal(result.cpus[1].lost, 7);	/* as the records' CPU says */
	sampler_free(s);
}

static void test_throttled(void **state)
{
	struct fixture *f = *state;
	struct replay_result result;
	struct pipeline_stats stats;
	struct sampler *s;
	uint64_t lost;

	begin(f, 1 << 20);
	put_sample(f, 1, CLOCK_ID, KERNEL + 0x1000);
	put_throttle(f, PERF_RECORD_THROTTLE, 2000000);
	put_throttle(f, PERF_RECORD_UNTHROTTLE, 2500000);
	put_throttle(f, PERF_RECORD_UNTHROTTLE, 2600000);	/* of nothing */
	end(f, 0);
	s = replay(f, &result, &stats, &lost);
	assert_int_equal(result.nr_cpus, 2);
	assert_int_equal(result.cpus[1].throttled, 1);
	assert_int_equal(result.cpus[1].throttled_ns, 500000);
	assert_int_equal(stats.taken, 1);
	sampler_free(s);
}

/* What no event of the file has as its id is told, not guessed. */
static void test_unknown_event(void **state)
{
	struct fixture *f = *state;
	struct replay_result result;
	struct pipeline_stats stats;
	struct sampler *s;
	uint64_t lost;

	begin(f, 1 << 20);
	put_sample(f, 0, 4711, KERNEL + 0x1000);
	put_sample(f, 0, CLOCK_ID, KERNEL + 0x1000);
	end(f, 0);
	s = replay(f, &result, &stats, &lost);
	assert_int_equal(stats.taken, 2);
	assert_int_equal(stats.dropped[DROP_UNKNOWN_EVENT], 1);
	sampler_free(s);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_each_its_own_stack),
		TEST(test_hottest),
		TEST(test_lost_once),
		TEST(test_throttled),
		TEST(test_unknown_event),
	};
	int failed;

	rcu_register_thread();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rcu_unregister_thread();
	return failed;
}
