// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Ratios of events: which ones a set of events gives, their values by function and by tick, and all
 * the ways in which there is none.
 */
#include "sampler/event/event.c"

#include "tests/prelude.h"
#include "tests/sampler/profile_of.h"

#include <math.h>

#include "sampler/profile/profile.h"
#include "symbols/base/base.h"

static struct profile_event events[EVENTS_MAX];

/* Parse "a,b" into @events. */
static uint32_t parse_events(const char *text)
{
	struct event parsed[EVENTS_MAX];
	struct err e = { "" };
	uint32_t nr = 0;

	if (event_parse_list_at("", parsed, &nr, EVENTS_MAX, text, &e))
		fail_msg("%s", e.text);
	for (uint32_t i = 0; i < nr; i++)
		events[i] = (struct profile_event){ .event = parsed[i] };
	return nr;
}

/* The keys of the ratios of these events, joined by spaces. */
static const char *keys_of(const char *text)
{
	static char keys[256];
	struct ratio_use uses[RATIOS_MAX];
	uint32_t nr = ratios_find(events, parse_events(text), uses);

	keys[0] = '\0';
	for (uint32_t i = 0; i < nr; i++)
		snprintf(keys + strlen(keys), sizeof(keys) - strlen(keys), "%s%s", i ? " " : "",
			 uses[i].ratio->key);
	return keys;
}

TEST(test_found)
{
	assert_string_equal(keys_of("{cycles,instructions,cache-misses}"), "insn_per_cycle "
									   "cache_mpki");
	assert_string_equal(keys_of("instructions:u,cpu-cycles:u"), "insn_per_cycle");
	assert_string_equal(keys_of("cycles,cache-references,cache-misses,instructions"), "insn_"
											  "per_"
											  "cycle "
											  "cache_"
											  "miss_"
											  "rate");
	assert_string_equal(keys_of("branches,branch-misses"), "branch_miss_rate");
	assert_string_equal(keys_of("dTLB-loads,dTLB-load-misses"), "dtlb_miss_rate");
	assert_string_equal(keys_of("cycles,cpu-clock,page-faults"), "");
	/* Other levels count other code. */
	assert_string_equal(keys_of("cycles,instructions:u"), "");
	assert_string_equal(keys_of("cycles,cycles:u,instructions:u"), "insn_per_cycle");
}

/* Events that the kernel describes, of x86 and Arm; not across PMUs. */
TEST(test_of_pmus)
{
	static const char *const names[] = { "slots", "topdown-retiring", "topdown-fe-bound" };

	for (uint32_t i = 0; i < 3; i++) {
		events[i] = (struct profile_event){ .event = { .type = 4, .config = 1000 + i } };
		snprintf(events[i].event.name, EVENT_NAME_MAX, "cpu_core/%s/u", names[i]);
	}
	struct ratio_use uses[RATIOS_MAX];

	assert_int_equal(ratios_find(events, 3, uses), 2);
	assert_string_equal(uses[0].ratio->key, "retiring");
	assert_int_equal(uses[0].part, 1);
	assert_int_equal(uses[0].whole, 0);
	assert_string_equal(uses[1].ratio->key, "frontend_bound");
	assert_true(ratios_has_event(uses, 2, 0));
	assert_false(ratios_has_event(uses, 1, 2));
	events[0].event.type = 10;
	assert_int_equal(ratios_find(events, 3, uses), 0);
	strcpy(events[0].event.name, "armv8_pmuv3_0/inst_retired/");
	strcpy(events[1].event.name, "armv8_pmuv3_0/cpu_cycles/");
	events[1].event.type = 10;
	assert_int_equal(ratios_find(events, 3, uses), 1);
	assert_string_equal(uses[0].ratio->key, "insn_per_cycle");
}

static struct profile_function functions[3];
static struct profile_process processes[1];
static struct profile_task tasks[2];
static uint32_t frames[] = { 0, 1, 0, 2 };
static struct profile_stack stacks[] = { { 0, 1 }, { 1, 2 }, { 3, 1 }, { 0, 0 } };

static struct profile profile_of(struct profile_count *counts, uint32_t nr, uint32_t nr_events)
{
	struct profile p = PROFILE_OF(counts, nr, nr_events);

	memcpy(p.events, events, sizeof(events));
	return p;
}

/* By function, of its own samples; few samples, none of the divisor, of the part: no ratio, or 0.
 */
TEST(test_by_function)
{
	struct profile_count counts[] = {
		{ 0, 0, 0, 20, 2000 }, { 0, 0, 1, 30, 3000 }, /* function 0: 1.5 */
		{ 1, 0, 0, 10, 1000 }, { 1, 1, 1, 5, 250 },   /* function 1, called by 0: 0.25 */
		{ 2, 0, 0, 9, 900 },   { 2, 0, 1, 90, 9000 }, /* function 2: 9 samples are few */
		{ 3, 0, 0, 10, 1000 }, { 0, 0, PROFILE_RUNNING, 7, 1e9 },
	};
	struct fold_filter all = { .process = UINT32_MAX, .task = UINT32_MAX };
	struct ratio_use uses[RATIOS_MAX];
	uint32_t nr = parse_events("cycles,instructions,cache-misses");
	struct profile p = profile_of(counts, ARRAY_SIZE(counts), nr);
	double v[3 * RATIOS_MAX];

	nr = ratios_find(p.events, p.nr_events, uses);
	assert_int_equal(nr, 2);
	ratios_fold(&p, &all, uses, nr, v);
	assert_true(v[0] == 1.5);
	assert_true(v[RATIOS_MAX] == 0.25);
	assert_true(isnan(v[2 * RATIOS_MAX]));
	/* No sample of cache-misses at all: the machine may not have it. */
	assert_true(isnan(v[1]));
	counts[7] = (struct profile_count){ 1, 0, 2, 10, 25 };
	ratios_fold(&p, &all, uses, nr, v);
	assert_true(v[1] == 0);
	/* Too few samples of instructions in function 1. */
	assert_true(isnan(v[RATIOS_MAX + 1]));
	/* Of one task. */
	all.task = 0;
	ratios_fold(&p, &all, uses, nr, v);
	assert_true(v[RATIOS_MAX] == 0);
}

TEST(test_by_tick)
{
	struct profile_count counts[] = { { 0, 0, 0, 1, 400 }, { 1, 1, 1, 1, 100 } };
	struct ratio_use uses[RATIOS_MAX];
	uint32_t nr = parse_events("cycles,instructions");
	struct profile p = profile_of(counts, ARRAY_SIZE(counts), nr);

	assert_int_equal(ratios_find(p.events, p.nr_events, uses), 1);
	p.events[0].count = 500;
	p.events[1].count = 600;
	assert_true(ratios_of_tick(&p, &uses[0]) == 1.2);
	p.events[0].count = 0;
	assert_true(isnan(ratios_of_tick(&p, &uses[0])));
	p.events[0].count = NAN;
	assert_true(isnan(ratios_of_tick(&p, &uses[0])));
	/* Not a rate of 0: an event that never counts is not supported. */
	p.events[0].count = 500;
	p.events[1].count = 0;
	assert_true(isnan(ratios_of_tick(&p, &uses[0])));
	/* Of a recording: by its samples. */
	ratios_count_samples(&p);
	assert_true(ratios_of_tick(&p, &uses[0]) == 0.25);
}

/* Arm's slots: an operation or a stall. */
TEST(test_topdown_arm)
{
	static const char *const names[] = { "op_retired", "op_spec", "stall_slot",
					     "stall_slot_frontend", "stall_slot_backend" };
	static const double values[] = { 60, 80, 120, 50, 70 };
	struct profile p = profile_of(NULL, 0, 5);
	struct ratio_use uses[RATIOS_MAX];

	for (uint32_t i = 0; i < 5; i++) {
		p.events[i] = (struct profile_event){ .event = { .type = 8, .config = i },
						      .count = values[i] };
		snprintf(p.events[i].event.name, EVENT_NAME_MAX, "armv8_pmuv3_0/%s/", names[i]);
	}
	assert_int_equal(ratios_find(p.events, 5, uses), 4);
	assert_true(ratios_of_tick(&p, &uses[0]) == 30);
	assert_true(ratios_of_tick(&p, &uses[1]) == 10);
	assert_true(ratios_of_tick(&p, &uses[2]) == 25);
	assert_true(ratios_of_tick(&p, &uses[3]) == 35);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
