// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Recordings with fields and events that proftop does not record itself: every
 * sample of the file is in the account.
 */
#include "sampler/replay.h"

#include "tests/prelude.h"

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sampler/sampler.h"
#include "sampler/session.h"

#define FILE_SIZE (1 << 16)
#include "tests/sampler/perfdata_file.h"

static struct file file;

/* Replay @file and return its account; @banner gets the banner. */
static struct pipeline_stats replay(char *banner, size_t size)
{
	struct sampler_config config = { .tick_ns = 1000000000, .window_ns = 5000000000 };
	int fd = memfd_create("perf.data", MFD_CLOEXEC);
	struct pipeline_stats stats = { 0 };
	struct replay_result result;
	struct sampler *s;
	struct err e = { "" };
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(write(fd, file.bytes, file.size), file.size);
	config.replay = path;
	if (sampler_new(&s, &config, &e))
		fail_msg("%s", e.text);
	close(fd);
	assert_int_equal(replay_run(s->replay, &s->store, &result), 0);
	for (uint32_t i = 0; i < result.nr_cpus; i++)
		pipeline_add_stats(&stats, &result.cpus[i].samples);
	snprintf(banner, size, "%s", s->banner);
	sampler_free(s);
	return stats;
}

/* A sample with @nr branches. */
static void put_branches(uint64_t nr, uint64_t time)
{
	const uint32_t ids[2] = { 100, 100 };

	put_header(&file, PERF_RECORD_SAMPLE, (uint16_t)(8 + 5 * 8 + 16 + 24 * nr));
	put_u64(&file, 7);
	put_u64(&file, 0x1000);
	put(&file, ids, sizeof(ids));
	put_u64(&file, time);
	put_u64(&file, 1);
	put_u64(&file, nr);
	put_u64(&file, 0); /* hw_idx */
	for (uint64_t i = 0; i < 3 * nr; i++)
		put_u64(&file, 0x2000);
}

static void test_branch_stacks(void **state)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_CPU_CLOCK);
	struct pipeline_stats stats;
	char banner[256];

	attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_HW_INDEX;
	put_pipe(&file, &attr);
	for (uint64_t i = 0; i < 32; i++)
		put_branches(i, i);
	stats = replay(banner, sizeof(banner));
	assert_int_equal(stats.taken, 32);
	assert_int_equal(stats.by_event[0], 32);
	assert_int_equal(stats.dropped[DROP_BAD_RECORD], 0);
	assert_string_equal(banner, "");
}

/* A sample is dropped by name when its fields do not fit; the banner names a file cut short. */
static void test_bad_samples(void **state)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_CPU_CLOCK);
	struct pipeline_stats stats;
	char banner[256];

	put_pipe(&file, &attr);
	put_sample(&file, 7, 0x1000, 100, 1);
	put_header(&file, PERF_RECORD_SAMPLE, 40);
	for (int i = 0; i < 4; i++)
		put_u64(&file, 7);
	put_sample(&file, 7, 0x1000, 100, 2);
	file.size--;
	stats = replay(banner, sizeof(banner));
	assert_int_equal(stats.taken, 2);
	assert_int_equal(stats.dropped[DROP_BAD_RECORD], 1);
	assert_non_null(strstr(banner, "cut short"));
}

/* Of more events than slots, the ones with most samples are shown, the rest is dropped. */
static void test_many_events(void **state)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_CPU_CLOCK);
	struct pipeline_stats stats;
	uint64_t nr = 0;
	char banner[256];

	put_pipe(&file, &attr);
	for (uint64_t i = 0; i < 12; i++) {
		attr.config = PERF_COUNT_SW_PAGE_FAULTS;
		put_header(&file, 64, 8 + sizeof(attr) + 8);
		put(&file, &attr, sizeof(attr));
		put_u64(&file, 20 + i);
	}
	/* event 20 + i: 2 samples for odd i, else 10; event 7: none */
	for (uint64_t i = 0; i < 12; i++)
		for (uint64_t k = 0; k < (i % 2 ? 2 : 10); k++)
			put_sample(&file, 20 + i, 0x1000, 100, ++nr);
	put_sample(&file, 99, 0x1000, 100, ++nr);
	stats = replay(banner, sizeof(banner));
	assert_int_equal(stats.taken, nr);
	assert_int_equal(stats.dropped[DROP_EVENT_LIMIT], 4 * 2);
	assert_int_equal(stats.dropped[DROP_UNKNOWN_EVENT], 1);
	for (int i = 0; i < EVENTS_MAX; i++)
		assert_int_equal(stats.by_event[i], i < 4 && i % 2 ? 2 : 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_branch_stacks),
		cmocka_unit_test(test_bad_samples),
		cmocka_unit_test(test_many_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
