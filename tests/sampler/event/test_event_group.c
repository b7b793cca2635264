// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Groups of events: lists and braces as in perf, the requests to a fake kernel, changes while the
 * groups run, and the counts in a leader's samples.
 * Live: reads a clock.
 */
#include "sampler/hot/sampler_thread.c"

#include "sampler/event/internal.h"

#include "tests/prelude.h"

#include <errno.h>

#include "tests/unhash.h"
#include "tests/sampler/fake_kernel.h"
#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/script/script.h"
#include "symbols/code/code.h"
#include "sampler/ring/ring.h"
#include "sampler/profile/profile.h"

static uint32_t parse_list(struct event *events, const char *text)
{
	uint32_t nr = 0;
	struct err e = { "" };

	if (event_parse_list(events, &nr, EVENTS_MAX, text, &e))
		fail_msg("%s: %s", text, e.text);
	return nr;
}

TEST(test_lists)
{
	struct event ev[EVENTS_MAX];

	assert_int_equal(parse_list(ev, "cycles"), 1);
	assert_int_equal(ev[0].group, 0);
	assert_int_equal(parse_list(ev, "cycles:u,mem:0x1000/4:w,cpu-clock/period=5/k,cs"), 4);
	assert_true(ev[0].user && !ev[0].kernel && ev[1].config2 == 4 && ev[2].period == 5 &&
		    !ev[2].user);
	assert_int_equal(parse_list(ev, "{cycles,instructions}"), 2);
	assert_true(ev[0].group && ev[0].group == ev[1].group && !ev[0].read && !ev[1].counted);
	/* modifiers of the group are added to the members' modifiers */
	assert_int_equal(parse_list(ev, "cs,{cycles:k,instructions/freq=9/,r1a8}:uS,faults"), 5);
	assert_true(!ev[0].group && !ev[4].group && ev[1].group == ev[3].group);
	assert_true(ev[1].kernel && ev[1].user && !ev[1].hv);
	assert_true(!ev[2].kernel && ev[2].user && ev[2].hz == 9);
	assert_true(ev[1].read && !ev[1].counted && ev[2].counted && ev[3].counted &&
		    !ev[4].counted);
	assert_string_equal(ev[1].name, "cycles:ku");
	assert_string_equal(ev[3].name, "r1a8:u");
	assert_int_equal(event_group_first(ev, 3), 1);
	assert_int_equal(event_group_nr(ev, 5, 1), 3);
	assert_int_equal(event_group_nr(ev, 5, 0), 1);
	/* two groups side by side are two; one of one is none */
	assert_int_equal(parse_list(ev, "{cycles,cs}:S,{faults,cpu-clock}:pp,{task-clock}:S"), 5);
	assert_true(ev[1].group != ev[2].group && ev[2].precise == 2 && !ev[4].group &&
		    !ev[4].read);
	/* the leader taken out: the next one leads */
	event_groups_tidy(&ev[1], 3);
	assert_true(!ev[1].group && !ev[1].counted && ev[2].group == ev[3].group);
}

TEST(test_refused)
{
	static const struct {
		const char *text, *words;
	} bad[] = {
		{ "{cycles", "closing brace" },
		{ "{cycles,cs", "closing brace" },
		{ "cycles}", "none that opens" },
		{ "{cycles,cs}x", "after a colon" },
		{ "{cycles,cs}:z", "modifier" },
		{ "{cycles,}", "unknown event" },
		{ "{}", "unknown event" },
		{ "{{cycles}}", "unknown event" },
		{ "cycles,,cs", "unknown event" },
		{ "{cycles:P,cs}:p", "modifier" },
		{ "cs,cs,cs,cs,cs,cs,cs,cs,cs", "limit is 8" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct event ev[EVENTS_MAX];
		struct err e = { "" };
		uint32_t nr = 0;

		assert_int_equal(event_parse_list(ev, &nr, EVENTS_MAX, bad[i].text, &e), -EINVAL);
		if (!strstr(e.text, bad[i].words))
			fail_msg("%s: no '%s' in: %s", bad[i].text, bad[i].words, e.text);
	}
}

/* As perf record opens them: members point at their leader of the same task and CPU, and follow it.
 */
TEST(test_opened)
{
	struct event ev[EVENTS_MAX];
	uint32_t nr = parse_list(ev, "cs,{cycles,instructions,branches}");
	struct counters_config config = system_config(ev, nr);
	struct fake *f = fake_new();
	struct fake_fd *lead[MAX_FDS], *member[MAX_FDS], *alone[MAX_FDS];
	struct counters *c = open_fake(f, &config);

	assert_int_equal(find_open(f, &ev[0], alone), 2);
	assert_int_equal(find_open(f, &ev[1], lead), 2);
	assert_int_equal(find_open(f, &ev[3], member), 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(alone[i]->leader, -1);
		assert_int_equal(lead[i]->leader, -1);
		assert_int_equal(member[i]->leader, lead[i] - f->fds + FIRST_FD);
		assert_int_equal(lead[i]->attr.disabled, 1);
		assert_int_equal(member[i]->attr.disabled, 0);
		assert_true(member[i]->attr.freq && member[i]->attr.sample_freq == 999);
		assert_false(member[i]->attr.sample_type & PERF_SAMPLE_READ);
		assert_false(lead[i]->attr.read_format & PERF_FORMAT_GROUP);
	}
	counters_close(c);
	assert_int_equal(f->nr_open, 0);
	free(f);
}

TEST(test_counted)
{
	struct event ev[EVENTS_MAX];
	uint32_t nr = parse_list(ev, "cs,{cycles,instructions,branches}:S");
	struct counters_config config = system_config(ev, nr);
	struct fake *f = fake_new();
	struct fake_fd *lead[MAX_FDS], *member[MAX_FDS];
	struct counters *c = open_fake(f, &config);
	struct counters_value v;
	struct err e;
	struct {
		struct perf_event_header header;
		uint64_t id;
	} sample = { { .type = PERF_RECORD_SAMPLE, .size = sizeof(sample) }, 0 };

	assert_int_equal(find_open(f, &ev[1], lead), 2);
	assert_int_equal(find_open(f, &ev[3], member), 2);
	assert_true(lead[0]->attr.freq && lead[0]->attr.sample_freq == 999);
	assert_true(!member[0]->attr.freq && !member[0]->attr.sample_period);
	assert_true(member[0]->attr.sample_type & lead[0]->attr.sample_type & PERF_SAMPLE_READ);
	assert_true(member[0]->attr.read_format & lead[0]->attr.read_format & PERF_FORMAT_GROUP);
	/* a separate count each */
	assert_int_equal(counters_read(c, 1, 3, &v), 0);
	assert_int_equal(v.count, 1000 + member[1] - f->fds + FIRST_FD);
	assert_int_equal(v.lost, 3);
	/* only the group's samples carry counts */
	sample.id = (uint64_t)(lead[0] - f->fds + FIRST_FD) * 10;
	assert_true(counters_layout_of(c, &sample.header)->sample_type & PERF_SAMPLE_READ);
	assert_int_equal(counters_event_of(c, 0, sample.id), 1);
	find_open(f, &ev[0], lead);
	sample.id = (uint64_t)(lead[0] - f->fds + FIRST_FD) * 10;
	assert_ptr_equal(counters_layout_of(c, &sample.header), counters_layout(c));
	assert_int_equal(counters_event_of(c, 0, sample.id), 0);
	/* no separate rate; the rate of its leader is set in place */
	assert_int_equal(counters_set_rate(c, 2, 99, &e), -EINVAL);
	assert_non_null(strstr(e.text, "whenever its group is sampled"));
	assert_int_equal(counters_set_rate(c, 1, 99, &e), 0);
	counters_close(c);
	assert_int_equal(f->nr_open, 0);
	free(f);
}

/* Unchanged groups keep their fds; of a changed group nothing is kept. */
TEST(test_changed)
{
	struct event ev[EVENTS_MAX], next[EVENTS_MAX];
	uint32_t nr = parse_list(ev, "{cycles,instructions},{cs,faults}:S");
	struct counters_config config = system_config(ev, nr);
	struct fake *f = fake_new();
	struct fake_fd *kept[MAX_FDS], *fds[MAX_FDS];
	struct counters *c = open_fake(f, &config);
	int opened = f->nr_fds;

	counters_enable(c, true);
	find_open(f, &ev[2], kept);
	nr = parse_list(next, "{cs,faults}:S,{cycles,branches}");
	assert_int_equal(counters_set_events(c, next, nr, 999, NULL), 0);
	assert_int_equal(find_open(f, &ev[2], fds), 2);
	assert_ptr_equal(fds[0], kept[0]);
	assert_int_equal(f->nr_fds, opened + 4);
	assert_int_equal(find_open(f, &next[3], fds), 2);
	assert_true(fds[0]->enabled && fds[0]->leader >= FIRST_FD &&
		    f->fds[fds[0]->leader - FIRST_FD].open);
	/* out of the group: another event, though it has the same name */
	nr = parse_list(next, "cs,faults");
	assert_int_equal(counters_set_events(c, next, nr, 999, NULL), 0);
	assert_int_equal(find_open(f, &next[0], fds), 2);
	assert_ptr_not_equal(fds[0], kept[0]);
	assert_int_equal(fds[0]->leader, -1);
	counters_close(c);
	assert_int_equal(f->nr_open, 0);
	free(f);
}

/* Of tasks a new rate opens the whole group again, and a failure at any call leaves the old one. */
TEST(test_rate_of_tasks)
{
	struct event ev[EVENTS_MAX];
	uint32_t nr = parse_list(ev, "{cycles,instructions}");
	struct counters_config config = system_config(ev, nr);
	struct fake *f = fake_new();
	struct fake_fd *lead[MAX_FDS], *member[MAX_FDS];
	struct counters *c;
	int before, code = -EMFILE;

	config.tids = tids;
	config.nr_tids = 3;
	c = open_fake(f, &config);
	memcpy(f->tree, tids, sizeof(tids));
	f->nr_tree = 3;
	counters_enable(c, true);
	before = f->nr_open;
	for (int i = 1; code; i++) {
		f->fail_at = f->nr_calls + i;
		f->fail_code = -EMFILE;
		code = counters_set_rate(c, 0, 100, NULL);
		assert_int_equal(f->nr_open, before);
		assert_int_equal(find_open(f, &ev[0], lead), 6);
		assert_int_equal(find_open(f, &ev[1], member), 6);
		assert_int_equal(lead[0]->attr.sample_freq, code ? 999 : 100);
		assert_int_equal(member[0]->attr.sample_freq, 999);
		for (int k = 0; k < 6; k++)
			assert_int_equal(member[k]->leader, lead[k] - f->fds + FIRST_FD);
		assert_in_range(i, 1, 60);
	}
	counters_close(c);
	assert_int_equal(f->nr_open, 0);
	free(f);
}

TEST(test_fail_everywhere)
{
	struct event ev[EVENTS_MAX];
	uint32_t nr = parse_list(ev, "cs,{cycles,instructions}:S");
	struct counters_config config = system_config(ev, nr);
	int code = -EMFILE;

	for (int at = 1; code; at++) {
		struct fake *f = fake_new();
		struct counters_sys sys = fake_sys(f);
		struct counters *c;

		f->fail_at = at;
		f->fail_code = -EMFILE;
		code = counters_open(&c, &config, &sys, NULL);
		if (!code)
			counters_close(c);
		assert_int_equal(f->nr_open, 0);
		free(f);
		assert_in_range(at, 1, 60);
	}
}

static int slot_by_id(void *ctx, uint64_t id)
{
	return id < 4 ? (int)id - 1 : -1;
}

TEST(test_deltas)
{
	const uint64_t first[][3] = { { 100, 1, 9 }, { 0, 2, 9 }, { 5, 3, 9 }, { 8, 99, 9 } };
	const uint64_t second[][3] = { { 150, 1, 9 }, { 2, 2, 9 }, { 4, 3, 9 } };
	struct record_sample s = { .reads = (const uint8_t *)first,
				   .nr_reads = 4,
				   .read_size = 24 };
	struct pipeline_member m[EVENTS_MAX];
	struct deltas *d = deltas_new(4);

	assert_int_equal(deltas_of_sample(d, &s, 0, slot_by_id, NULL, m), 2);
	assert_true(m[0].event == 0 && m[0].count == 100 && m[1].event == 2 && m[1].count == 5);
	s.reads = (const uint8_t *)second;
	s.nr_reads = 3;
	/* a count that falls (a hostile file) is no huge one */
	assert_int_equal(deltas_of_sample(d, &s, 0, slot_by_id, NULL, m), 2);
	assert_true(m[0].count == 50 && m[1].event == 1 && m[1].count == 2);
	/* more ids than fit count nothing, and no search is endless */
	for (uint64_t id = 100; id < 200; id++)
		deltas_take(d, id, 0, 7);
	assert_int_equal(deltas_take(d, 1000, 0, 7), 0);
	assert_int_equal(deltas_take(d, 1, 0, 151), 1);
	deltas_free(d);
}

/* A table has space for the number of ids requested, also later, and keeps their counts. */
TEST(test_space)
{
	for (uint32_t nr = 1; nr <= 100; nr++) {
		struct deltas *d = deltas_new(nr);

		for (uint64_t id = 1; id <= nr; id++)
			assert_int_equal(deltas_take(d, id, 0, 7), 7);
		d = deltas_reserve(d, 100);
		for (uint64_t id = 1; id <= nr + 100; id++)
			assert_int_equal(deltas_take(d, id, 0, 9), id <= nr ? 2 : 9);
		deltas_free(d);
	}
}

#define CHOSEN 20000U

static uint64_t deltas_ns(bool chosen)
{
	struct deltas *d = deltas_new(CHOSEN);
	uint64_t begin_ns = time_thread_ns();

	assert_non_null(d);
	for (uint32_t i = 1; i <= CHOSEN; i++)
		assert_int_equal(deltas_take(d, chosen ? unhash_number(0, i) : i, 0, 1), 1);
	begin_ns = time_thread_ns() - begin_ns;
	deltas_free(d);
	return begin_ns;
}

/* Ids that hash_u64() has in one chain, as a recording may have, cost as much as others. */
TEST(test_chosen_ids)
{
	unhash_compare("ids of events", deltas_ns);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
