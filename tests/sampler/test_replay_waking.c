// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Events of wake-ups in recordings: alone, with records of switches, as a member of a group, and
 * renamed late.
 * Live: waits for threads or processes.
 */
#include "sampler/replay.c"

#include "tests/prelude.h"

#include <linux/perf_event.h>
#include <unistd.h>

#include "tests/makers/perfdata.h"
#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/script/script.h"
#include "symbols/code/code.h"
#include "sampler/ring/ring.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/perfdata/perfdata.h"
#include "sampler/reader/reader.h"
#include "sampler/hot/hot.h"

#define ATTR	       64
#define FINISHED_ROUND 68
#define EVENT_UPDATE   78
#define WAKING	       "sched:sched_waking"

static struct file file;

static void put_name(uint64_t id, const char *name)
{
	char text[24] = "";

	snprintf(text, sizeof(text), "%s", name);
	put_header(&file, EVENT_UPDATE, 8 + 16 + sizeof(text));
	put_u64(&file, 2);
	put_u64(&file, id);
	put(&file, text, sizeof(text));
}

/* Add a tracepoint with this id. @switches: with records of switches. */
static void put_tracepoint(uint64_t id, uint64_t config, const char *name, uint64_t sample_type,
			   bool switches)
{
	struct perf_event_attr attr = attr_of(config);

	attr.type = PERF_TYPE_TRACEPOINT;
	attr.freq = 0;
	attr.sample_period = 1;
	attr.sample_type = sample_type;
	attr.context_switch = switches;
	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	put_header(&file, ATTR, 8 + sizeof(attr) + 8);
	put(&file, &attr, sizeof(attr));
	put_u64(&file, id);
	put_name(id, name);
}

static void put_raw(uint64_t id, uint64_t time)
{
	const uint32_t ids[2] = { 100, 100 }, raw[2] = { 4, 0 };

	put_header(&file, PERF_RECORD_SAMPLE, 8 + 5 * 8 + sizeof(raw));
	put_u64(&file, id);
	put_u64(&file, 0x1000);
	put(&file, ids, sizeof(ids));
	put_u64(&file, time);
	put_u64(&file, 1);
	put(&file, raw, sizeof(raw));
}

static enum file_reading go_on(uint64_t bytes)
{
	return FILE_READING_GO;
}

/* Open standard input, a pipe with @file; *@end: to write more. */
static struct sampler *open_pipe(int *end)
{
	struct sampler_config config = { .tick_ns = 1000000000,
					 .window_ns = 5000000000,
					 .follow = true,
					 .reading = go_on,
					 .replay = "-" };
	int fds[2], was = dup(STDIN_FILENO);
	struct err e = { "" };
	struct sampler *s;

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(dup2(fds[0], STDIN_FILENO), STDIN_FILENO);
	close(fds[0]);
	assert_int_equal(write(fds[1], file.bytes, file.size), file.size);
	if (sampler_new(&s, &config, &e))
		fail_msg("%s", e.text);
	assert_int_equal(dup2(was, STDIN_FILENO), STDIN_FILENO);
	close(was);
	*end = fds[1];
	return s;
}

/* Count the samples of the pipe. */
static struct pipeline_stats count_all(struct sampler *s)
{
	struct pipeline_stats stats = { 0 };
	struct replay_result result;
	bool more = true;

	assert_int_equal(replay_begin(s->replay, &s->store), 0);
	while (more) {
		more = replay_more(s->replay, false);
		assert_int_equal(replay_feed(s->replay, &s->store), 0);
		perfdata_drop(s->replay->data);
	}
	replay_result(s->replay, &s->store, &result);
	for (uint32_t i = 0; i < result.nr_cpus; i++)
		pipeline_add_stats(&stats, &result.cpus[i].samples);
	replay_end(s->replay);
	return stats;
}

/* An event that has another name after the start still counts. */
TEST(test_renamed)
{
	const uint64_t type = SAMPLE_TYPE | PERF_SAMPLE_RAW;
	struct pipeline_stats stats;
	struct sampler *s;
	int end;

	file.size = 0;
	put(&file, "PERFILE2", 8);
	put_u64(&file, 16);
	put_tracepoint(7, 1, WAKING, type, true);
	put_tracepoint(20, 2, "a:b", type, false);
	put_raw(20, 1000);
	s = open_pipe(&end);
	file.size = 0;
	put_name(20, WAKING);
	for (uint64_t i = 0; i < 10; i++)
		put_raw(20, 2000 + i);
	assert_int_equal(write(end, file.bytes, file.size), file.size);
	close(end);
	stats = count_all(s);
	assert_int_equal(stats.taken, 11);
	assert_int_equal(stats.by_event[0], 11);
	sampler_free(s);
}

/* The samples that are expected. */
struct expected {
	const char *event;
	unsigned int nr;
};

static int check_event(void *ctx, const struct sampler_sample *s)
{
	struct expected *e = ctx;

	assert_string_equal(s->event, e->event);
	e->nr++;
	return 0;
}

/* Make a recording of ten wake-ups, and open it. */
static struct sampler *open_wake_ups(bool switches)
{
	struct sampler *s;
	int end;

	file.size = 0;
	put(&file, "PERFILE2", 8);
	put_u64(&file, 16);
	put_tracepoint(7, 1, WAKING, SAMPLE_TYPE | PERF_SAMPLE_RAW, switches);
	for (uint64_t i = 0; i < 10; i++)
		put_raw(7, 1000 + i);
	s = open_pipe(&end);
	close(end);
	return s;
}

/* Wake-ups are samples as any, unless waits have them. */
TEST(test_counted)
{
	for (int switches = 0; switches < 2; switches++) {
		struct sampler *s = open_wake_ups(switches);
		struct pipeline_stats stats = count_all(s);

		assert_int_equal(stats.taken, switches ? 0 : 10);
		assert_int_equal(stats.by_event[0], switches ? 0 : 10);
		assert_string_equal(s->config.events[0].name, switches ? EVENT_WAITS : WAKING);
		sampler_free(s);
	}
}

/* One by one they are shown in both. */
TEST(test_one_by_one)
{
	for (int switches = 0; switches < 2; switches++) {
		struct sampler *s = open_wake_ups(switches);
		struct expected e = { WAKING, 0 };

		replay_more(s->replay, false);
		assert_int_equal(sampler_each(s, check_event, &e, NULL), 0);
		assert_int_equal(e.nr, 10);
		sampler_free(s);
	}
}

/* Wake-ups that are counted with the samples of another event are not among the shown events. */
TEST(test_member)
{
	const uint32_t ids[2] = { 100, 100 };
	struct expected e = { "a:b", 0 };
	struct sampler *s;
	int end;

	file.size = 0;
	put(&file, "PERFILE2", 8);
	put_u64(&file, 16);
	put_tracepoint(7, 1, WAKING, SAMPLE_TYPE | PERF_SAMPLE_RAW, true);
	put_tracepoint(20, 2, "a:b", SAMPLE_TYPE | PERF_SAMPLE_READ, false);
	put_header(&file, PERF_RECORD_SAMPLE, 8 + 5 * 8 + 5 * 8);
	put_u64(&file, 20);
	put_u64(&file, 0x1000);
	put(&file, ids, sizeof(ids));
	put_u64(&file, 1000);
	put_u64(&file, 1);
	put_u64(&file, 2);
	put_u64(&file, 3); /* count, id */
	put_u64(&file, 20);
	put_u64(&file, 5);
	put_u64(&file, 7);
	s = open_pipe(&end);
	close(end);
	replay_more(s->replay, false);
	assert_int_equal(sampler_each(s, check_event, &e, NULL), 0);
	assert_int_equal(e.nr, 1);
	sampler_free(s);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
