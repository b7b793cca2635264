// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rules of traps: parsed, and tested with slices.
 * Live: waits for threads or processes.
 */
#include "sampler/tick.c"
#include "sampler/count/internal.h"

#include "tests/prelude.h"

#include <errno.h>

#include "symbols/base/base.h"
#include "symbols/image/image.h"
#include "symbols/process/process.h"
#include "symbols/name/name.h"
#include "symbols/symbols.h"
#include "sampler/ring/ring.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"

#define SECOND	1000000000ULL
#define T_SLICE (SECOND / 10)

TEST(test_parse)
{
	static const struct {
		const char *text;
		struct trap_rule want;
	} good[] = {
		{ "cpu > 80", { TRAP_CPU, "", false, 80, 0, "" } },
		{ "cpu:nginx > 80% for 3s", { TRAP_CPU, "nginx", false, 80, 3 * SECOND, "" } },
		{ "total:burst > 50 for 100ms", { TRAP_TOTAL, "burst", false, 50, T_SLICE, "" } },
		{ "self:operator<<(std::ostream&) < 2.5",
		  { TRAP_SELF, "operator<<(std::ostream&)", true, 2.5, 0, "" } },
		{ " new:main ", { TRAP_NEW, "main ", false, 0, 0, "" } },
		{ "lost", { TRAP_LOST, "", false, 0, 0, "" } },
		{ "lost >1 for 1m", { TRAP_LOST, "", false, 1, 60 * SECOND, "" } },
		{ "wait:nginx > 200 for 1s", { TRAP_WAIT, "nginx", false, 200, SECOND, "" } },
		{ "cpu:my worker > 5", { TRAP_CPU, "my worker", false, 5, 0, "" } },
	};
	static const char *const bad[] = {
		"",
		"cpus > 3",
		"cpu >",
		"cpu > x",
		"cpu > 5 5",
		"self > 5",
		"total: > 5",
		"lost:x",
		"cpu > 5 for",
		"cpu > 5 for 1d",
		"cpu = 5",
		"cpu > -1",
		"cpu:",
		"cpu > 5 for 1s more",
	};
	struct trap_rule r;
	struct err e;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		if (trap_rule_parse(&r, good[i].text, &e))
			fail_msg("%s: %s", good[i].text, e.text);
		assert_int_equal(r.subject, good[i].want.subject);
		assert_string_equal(r.name, good[i].want.name);
		assert_int_equal(r.below, good[i].want.below);
		assert_true(r.percent == good[i].want.percent);
		assert_int_equal(r.for_ns, good[i].want.for_ns);
		assert_string_equal(r.text, good[i].text);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (!trap_rule_parse(&r, bad[i], &e))
			fail_msg("%s is accepted", bad[i]);
		assert_non_null(strstr(e.text, "SUBJECT"));
	}
	/* Too long for the name, and for the text. */
	for (size_t size = 100; size < 1000; size += 100) {
		char text[1100] = "total:";

		memset(text + 6, 'x', size);
		assert_int_equal(trap_rule_parse(&r, text, &e), size < 121 ? 0 : -EINVAL);
	}
}

struct fixture {
	struct traps traps;
	struct objects *objects;
	struct maps *maps;
	struct places *places;
	struct symbols *symbols;
	struct stacks *stacks;
	struct assemble_input tables;
	struct trap_input in;
	struct slice slice;
};

static int setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));
	struct err e;

	assert_int_equal(objects_new(&f->objects), 0);
	assert_int_equal(maps_new(&f->maps, f->objects, 1024), 0);
	assert_int_equal(places_new(&f->places, 1U << 18), 0);
	assert_int_equal(symbols_new(&f->symbols, f->places, f->objects, f->maps, &e), 0);
	assert_int_equal(stacks_new(&f->stacks, 4096, 1 << 20), 0);
	f->tables = (struct assemble_input){ .maps = f->maps,
					     .places = f->places,
					     .symbols = f->symbols,
					     .objects = f->objects,
					     .stacks = f->stacks };
	f->in = (struct trap_input){ &f->tables, .clock = true, .nr_cpus = 2 };
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	traps_clear(&f->traps);
	free(f->slice.bytes);
	symbols_free(f->symbols);
	stacks_free(f->stacks);
	places_free(f->places);
	maps_free(f->maps);
	objects_free(f->objects);
	free(f);
	return 0;
}

static void t_add(struct fixture *f, const char *text)
{
	struct trap_rule rule;
	struct err e;

	assert_int_equal(trap_rule_parse(&rule, text, &e), 0);
	assert_int_equal(traps_add(&f->traps, &rule), 0);
}

/* The next slice: @ms of CPU time, @lost samples. */
static bool next(struct fixture *f, unsigned int ms, uint64_t lost, struct trap_hit *hit)
{
	struct count c = { STACK_NONE, 0, 0, ms, ms * 1000000ULL, 0 };

	free(f->slice.bytes);
	f->slice.begin_ns = f->slice.end_ns;
	f->slice.end_ns += T_SLICE;
	f->slice.lost = lost;
	assert_int_equal(slice_pack(&f->slice, &c, ms ? 1 : 0), 0);
	set_moment(&f->in, &f->slice, 1);
	return traps_test(&f->traps, &f->in, hit);
}

/* A rule matches once, when its time is over; and again after it did not match. */
TEST(test_cpu, setup, teardown)
{
	struct fixture *f = *state;
	struct trap_hit hit;

	t_add(f, "cpu > 60 for 300ms");
	for (int round = 0; round < 2; round++) {
		uint64_t begin;

		assert_false(next(f, 50, 0, &hit));
		begin = f->slice.end_ns;
		assert_false(next(f, 150, 0, &hit)); /* 75 % of two CPUs */
		assert_false(next(f, 200, 0, &hit));
		assert_true(next(f, 130, 0, &hit));
		assert_int_equal(hit.begin_ns, begin);
		assert_int_equal(hit.end_ns, begin + 3 * T_SLICE);
		assert_true(hit.percent > 64 && hit.percent < 66);
		assert_false(next(f, 200, 0, &hit));
		assert_false(next(f, 120, 0, &hit)); /* not above */
	}
	/* Interrupted: it begins again. */
	assert_false(next(f, 150, 0, &hit));
	assert_false(next(f, 150, 0, &hit));
	assert_false(next(f, 0, 0, &hit));
	assert_false(next(f, 150, 0, &hit));
	assert_false(next(f, 150, 0, &hit));
	assert_true(next(f, 150, 0, &hit));
}

/* Waits are of the slice in which they passed; without any, nothing waits. */
TEST(test_wait, setup, teardown)
{
	struct fixture *f = *state;
	struct trap_hit hit;

	f->in.wait_slot = 0;
	t_add(f, "wait > 250 for 1s");
	t_add(f, "wait:nobody > 0");
	assert_false(next(f, 0, 0, &hit));
	for (int i = 1; i <= 40; i++) {
		/* 3 threads for a second, none or 2 for a second, 3 for two. */
		unsigned int ms = i <= 10 ? 300 : i < 15 ? 0 : i <= 20 ? 200 : 300;
		bool match = next(f, ms, 0, &hit);

		assert_int_equal(match, i == 10 || i == 30);
	}
	assert_true(hit.percent > 299 && hit.percent < 301);
	f->in.wait_slot = 1;
	for (int i = 0; i < 20; i++)
		assert_false(next(f, 5000, 0, &hit));
}

TEST(test_lost, setup, teardown)
{
	struct fixture *f = *state;
	struct trap_hit hit;

	t_add(f, "lost > 10");
	t_add(f, "cpu < 1");
	assert_false(next(f, 100, 0, &hit));
	assert_false(next(f, 100, 10, &hit));
	assert_true(next(f, 100, 20, &hit));
	assert_string_equal(hit.rule->text, "lost > 10");
	assert_true(next(f, 0, 0, &hit));
	assert_string_equal(hit.rule->text, "cpu < 1");
	assert_int_equal(hit.nr_also, 0);
	/* Both in one slice. */
	traps_rearm(&f->traps);
	assert_true(next(f, 0, 20, &hit));
	assert_string_equal(hit.rule->text, "lost > 10");
	assert_int_equal(hit.nr_also, 1);
	assert_string_equal(hit.also[0].rule->text, "cpu < 1");
}

/* Without a clock busy CPUs are computed from the rate; of a name that does not run: nothing. */
TEST(test_rate, setup, teardown)
{
	struct fixture *f = *state;
	struct trap_hit hit;

	f->in.clock = false;
	f->in.hz = 1000;
	t_add(f, "cpu:nginx > 0");
	t_add(f, "total:main > 0");
	assert_false(next(f, 100, 0, &hit));
	t_add(f, "cpu > 49");
	assert_true(next(f, 100, 0, &hit));
	assert_true(hit.percent > 49.9 && hit.percent < 50.1);
}

/* A rule that is armed again matches from the next slice on. */
TEST(test_rearm, setup, teardown)
{
	struct fixture *f = *state;
	struct trap_hit hit;

	t_add(f, "cpu > 60");
	assert_true(next(f, 150, 0, &hit));
	assert_false(next(f, 150, 0, &hit));
	traps_rearm(&f->traps);
	assert_true(next(f, 150, 0, &hit));
	assert_int_equal(hit.begin_ns, f->slice.begin_ns);
	assert_false(next(f, 150, 0, &hit));
}

/* The rules in the order in which they were set; of a long list the first ones. */
TEST(test_list, setup, teardown)
{
	struct fixture *f = *state;
	char text[160];

	assert_non_null(strstr(traps_list(&f->traps, text, sizeof(text)), "no traps are set"));
	t_add(f, "lost > 1");
	assert_string_equal(traps_list(&f->traps, text, sizeof(text)), "1 trap (':trap off' "
								       "removes all): lost > 1");
	t_add(f, "total:burst > 20 for 100ms");
	assert_string_equal(traps_list(&f->traps, text, sizeof(text)), "2 traps (':trap off' "
								       "removes all): lost > 1; "
								       "total:burst > 20 for "
								       "100ms");
	for (int i = 0; i < 8; i++)
		t_add(f, "total:burst > 20 for 100ms");
	traps_list(&f->traps, text, sizeof(text));
	assert_string_equal(text + strlen(text) - 10, "100ms; ...");
	traps_clear(&f->traps);
	assert_non_null(strstr(traps_list(&f->traps, text, sizeof(text)), "no traps are set"));
}

TEST(test_too_many, setup, teardown)
{
	struct fixture *f = *state;
	struct trap_rule rule;
	struct err e;

	for (int i = 0; i < TRAP_RULES_MAX; i++)
		t_add(f, "lost");
	assert_int_equal(trap_rule_parse(&rule, "lost", &e), 0);
	assert_int_equal(traps_add(&f->traps, &rule), -ENOSPC);
}

#define STACKS 100u
#define FRAMES 50u

/* Return the place of a function of a perf map. */
static uint32_t place_of(struct fixture *f, const char *name)
{
	const struct symbols_kept kept = { .name = name,
					   .module = "map",
					   .name_size = strlen(name),
					   .module_size = 3,
					   .kind = 'j' };
	uint32_t place = symbols_keep_function(f->symbols, f->places, f->objects, &kept);

	assert_int_not_equal(place, PLACE_NONE);
	return place;
}

/* A rule is tested with all slices of a moment: one of them has too few samples for a share. */
TEST(test_moment, setup, teardown)
{
	struct fixture *f = *state;
	uint32_t stack = 0, place = place_of(f, "burst");
	struct slice slices[2] = { { .begin_ns = SECOND, .end_ns = SECOND + SECOND / 20 },
				   { .begin_ns = SECOND + SECOND / 20,
				     .end_ns = SECOND + SECOND / 10 } };
	struct trap_hit hit;

	stack = stacks_intern(f->stacks, &place, 1);
	for (int i = 0; i < 2; i++) {
		struct count c = { stack, 0, 0, 5, 5000000, 0 };

		assert_int_equal(slice_pack(&slices[i], &c, 1), 0);
	}
	t_add(f, "total:burst > 50 for 100ms");
	set_moment(&f->in, slices, 1);
	assert_false(traps_test(&f->traps, &f->in, &hit));
	set_moment(&f->in, slices, 2);
	assert_true(traps_test(&f->traps, &f->in, &hit));
	assert_int_equal(hit.begin_ns, SECOND);
	assert_int_equal(hit.end_ns, SECOND + SECOND / 10);
	/* CPU time of both: 10 ms in 100 ms of two CPUs. */
	t_add(f, "cpu > 4.9");
	t_add(f, "cpu > 5.1");
	assert_true(traps_test(&f->traps, &f->in, &hit));
	assert_string_equal(hit.rule->text, "cpu > 4.9");
	assert_int_equal(hit.nr_also, 0);
	free(slices[0].bytes);
	free(slices[1].bytes);
}

/* Return the CPU time of a slice with STACKS stacks, of which the last one has @innermost. */
static uint64_t stacks_ns(struct fixture *f, uint32_t innermost, bool match)
{
	static struct count counts[STACKS];
	uint32_t places[FRAMES];
	struct trap_hit hit;
	uint64_t begin_ns;
	char name[32];

	for (uint32_t i = 0; i < STACKS; i++) {
		for (uint32_t k = 0; k < FRAMES; k++) {
			snprintf(name, sizeof(name), "frame%u", (i + k) % 100);
			places[k] = place_of(f, name);
		}
		if (i == STACKS - 1)
			places[0] = innermost;
		counts[i] = (struct count){ .stack = stacks_intern(f->stacks, places, FRAMES),
					    .count = 1,
					    .weight = 1000000 };
	}
	free(f->slice.bytes);
	f->slice.begin_ns = f->slice.end_ns;
	f->slice.end_ns += T_SLICE;
	assert_int_equal(slice_pack(&f->slice, counts, STACKS), 0);
	set_moment(&f->in, &f->slice, 1);
	/* Finds the new functions. */
	assert_int_equal(traps_test(&f->traps, &f->in, &hit), match);
	begin_ns = time_thread_ns();
	for (int i = 0; i < 3; i++)
		traps_test(&f->traps, &f->in, &hit);
	return time_thread_ns() - begin_ns;
}

/* A program that has any number of functions with the name of a rule. */
TEST(test_many_functions, setup, teardown)
{
	struct fixture *f = *state;
	uint32_t first, last = 0;
	uint64_t few_ns, ns;
	char name[32];

	t_add(f, "total:malloc > 0.5");
	t_add(f, "self:malloc > 0.5");
	first = place_of(f, "malloc");
	few_ns = stacks_ns(f, place_of(f, "mallocs"), false);
	stacks_ns(f, first, true);
	for (uint32_t i = 0; i < 100000; i++) {
		snprintf(name, sizeof(name), "malloc(%u)", i);
		last = place_of(f, name);
	}
	ns = stacks_ns(f, place_of(f, "mallocs2"), false);
	print_message("3 slices: %u and %u us\n", (unsigned int)(few_ns / 1000),
		      (unsigned int)(ns / 1000));
	assert_in_range(ns, 0, 10 * few_ns + 20000000);
	stacks_ns(f, last, true);
	/* Another rule: all names are compared again. */
	t_add(f, "self:frame7 > 0.5");
	stacks_ns(f, place_of(f, "mallocs2"), true);
	traps_rearm(&f->traps);
	stacks_ns(f, last, true);
}

/* Two rules that the builder finds together are both set, and a rate is of the newest events. */
TEST(test_requests_together)
{
	static struct control taken[CONTROLS_MAX];
	struct trap_rule *rule;
	struct controls q = { .nr = 0 };
	struct err e;

	assert_int_equal(controls_open(&q, &e), 0);
	controls_send(&q, &(struct control){ .kind = CONTROL_TRAP });
	for (int i = 0; i < 2; i++) {
		rule = xcalloc(1, sizeof(*rule));
		assert_int_equal(trap_rule_parse(rule, i ? "lost" : "total:f > 1", &e), 0);
		controls_send(&q, &(struct control){ .kind = CONTROL_TRAP, .rule = rule });
	}
	assert_int_equal(controls_take(&q, taken), 3);
	assert_null(taken[0].rule);
	assert_string_equal(taken[1].rule->text, "total:f > 1");
	assert_string_equal(taken[2].rule->text, "lost");
	for (int i = 0; i < 3; i++)
		controls_free(&taken[i]);
	controls_send(&q, &(struct control){ .kind = CONTROL_RATE, .hz = 1 });
	controls_send(&q, &(struct control){ .kind = CONTROL_EVENTS });
	controls_send(&q, &(struct control){ .kind = CONTROL_RATE, .hz = 2 });
	assert_int_equal(controls_take(&q, taken), 2);
	assert_int_equal(taken[0].kind, CONTROL_EVENTS);
	assert_true(taken[1].hz == 2);
	controls_close(&q);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
