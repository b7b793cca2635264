// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pipeline: a sample whose code has no room in the place table is never counted as its caller's.
 */
#include "sampler/pipeline/pipeline.h"

#include "tests/prelude.h"

#include <linux/perf_event.h>
#include <urcu-qsbr.h>

#define PLACES_MAX 8
#define LEAF	   0xffffffff81001000ULL
#define CALLER	   0xffffffff81002001ULL
#define OUTER	   0xffffffff81003001ULL
#define TIME_NS	   100

struct fixture {
	struct pipeline_tables tables;
	struct unwind_rows *rows;
	struct pipeline *pipeline;
	struct pipeline_stats stats;
};

static int setup(void **state)
{
	static struct fixture f;
	struct pipeline_tables *t = &f.tables;

	memset(&f, 0, sizeof(f));
	assert_int_equal(objects_new(&t->objects), 0);
	assert_int_equal(maps_new(&t->maps, t->objects, 64), 0);
	maps_no_proc(t->maps);
	maps_on_comm(t->maps, 3, 3, "three", 6, true, 1);
	maps_publish(t->maps, 10, 1);
	t->tasks = maps_tasks(t->maps);
	assert_int_equal(places_new(&t->places, PLACES_MAX), 0);
	assert_int_equal(unwind_rows_new(&f.rows, 64), 0);
	assert_int_equal(stacks_new(&t->stacks, 64, 1 << 16), 0);
	assert_int_equal(counts_new(&t->counts, 64, 64), 0);
	t->unwind.rows = f.rows;
	t->own_pid = -1;
	assert_int_equal(pipeline_new(&f.pipeline, t, NULL), 0);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	pipeline_free(f->pipeline);
	counts_free(f->tables.counts);
	stacks_free(f->tables.stacks);
	unwind_rows_free(f->rows);
	maps_free(f->tables.maps);
	places_free(f->tables.places);
	objects_free(f->tables.objects);
	return 0;
}

/* Fill what is left of the place table. */
static void fill_places(struct fixture *f)
{
	for (uint64_t i = 0; i < 64; i++)
		places_intern(f->tables.places, OBJECT_ID_KERNEL, 0xffffffff90000000ULL + i);
}

/* Handle one sample in the kernel: @nr frames of @ips, innermost first. */
static void sample(struct fixture *f, const uint64_t *ips, uint32_t nr)
{
	uint64_t chain[8] = { (uint64_t)PERF_CONTEXT_KERNEL };
	struct record_sample s = { .ip = ips[0], .time_ns = TIME_NS, .pid = 3, .tid = 3 };

	memcpy(chain + 1, ips, nr * sizeof(*ips));
	s.chain = (const uint8_t *)chain;
	s.nr_chain = nr + 1;
	pipeline_sample(f->pipeline, &f->stats, &s, 0, 0);
}

/* The stack of the only cell; returns its number of frames, 0: nothing was counted. */
static uint32_t only_stack(struct fixture *f, const uint32_t **places)
{
	struct count *counts;
	uint32_t nr, frames = 0;

	assert_int_equal(counts_swap(f->tables.counts, &counts, &nr), 0);
	assert_true(nr <= 1);
	if (nr)
		*places = stacks_at(f->tables.stacks, counts[0].stack, &frames);
	free(counts);
	return frames;
}

static void test_innermost_without_room_is_dropped(void **state)
{
	static const uint64_t ips[] = { LEAF, CALLER };
	struct fixture *f = *state;
	const uint32_t *places;

	places_intern(f->tables.places, OBJECT_ID_KERNEL, CALLER - 1);
	fill_places(f);
	sample(f, ips, 2);
	assert_int_equal(f->stats.taken, 1);
	assert_int_equal(f->stats.dropped[DROP_PLACES_FULL], 1);
	assert_int_equal(f->stats.complete, 0);
	assert_int_equal(only_stack(f, &places), 0);
}

/* A caller without room: the stack ends before it, and says so. */
static void test_caller_without_room_cuts_the_stack(void **state)
{
	static const uint64_t ips[] = { LEAF, CALLER, OUTER };
	struct fixture *f = *state;
	const uint32_t *places = NULL;
	uint32_t leaf = places_intern(f->tables.places, OBJECT_ID_KERNEL, LEAF);

	places_intern(f->tables.places, OBJECT_ID_KERNEL, OUTER - 1);
	fill_places(f);
	sample(f, ips, 3);
	assert_int_equal(f->stats.truncated, 1);
	assert_int_equal(f->stats.complete, 0);
	assert_int_equal(only_stack(f, &places), 1);
	assert_int_equal(places[0], leaf);
}

static void test_room_for_all(void **state)
{
	static const uint64_t ips[] = { LEAF, CALLER, OUTER };
	struct fixture *f = *state;
	const uint32_t *places = NULL;

	sample(f, ips, 3);
	assert_int_equal(f->stats.truncated, 0);
	assert_int_equal(f->stats.dropped[DROP_PLACES_FULL], 0);
	assert_int_equal(only_stack(f, &places), 3);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_innermost_without_room_is_dropped),
		TEST(test_caller_without_room_cuts_the_stack),
		TEST(test_room_for_all),
	};
	int failed;

	rcu_register_thread();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rcu_unregister_thread();
	return failed;
}
