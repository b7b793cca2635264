// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * feed: slots are found in order and whole, also around the end of the ring;
 * earlier ones are dropped; a full ring refuses.
 */
#include "tests/prelude.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "sampler/pipeline/feed.h"

static struct lang_frame frames[LANG_FRAMES_MAX];

static bool put(struct feed *f, uint64_t time_ns, uint16_t nr)
{
	const struct lang_slot slot = { .time_ns = time_ns, .pid = 1, .tid = 2, .nr = nr };

	for (uint32_t i = 0; i < nr; i++)
		frames[i].code = (uint32_t)time_ns + i;
	return feed_put(f, &slot, frames);
}

static void expect(struct feed *f, uint64_t time_ns, uint16_t nr)
{
	const struct lang_slot *slot = feed_find(f, time_ns, 1, 2);

	assert_non_null(slot);
	assert_int_equal(slot->nr, nr);
	for (uint32_t i = 0; i < nr; i++)
		assert_int_equal(slot->frames[i].code, (uint32_t)time_ns + i);
}

TEST(test_order)
{
	struct feed f;

	assert_int_equal(feed_init(&f), 0);
	assert_null(feed_find(&f, 5, 1, 2));
	assert_true(put(&f, 10, 3));
	assert_true(put(&f, 20, 0));
	assert_true(put(&f, 30, 512));
	assert_null(feed_find(&f, 5, 1, 2));
	expect(&f, 10, 3);
	expect(&f, 10, 3);
	assert_null(feed_find(&f, 20, 1, 3));
	expect(&f, 30, 512);
	assert_null(feed_find(&f, 31, 1, 2));
	assert_null(feed_find(&f, 10, 1, 2));
	feed_fini(&f);
}

TEST(test_around)
{
	struct feed f;

	assert_int_equal(feed_init(&f), 0);
	for (uint64_t t = 1; t < 5000; t++) {
		assert_true(put(&f, t, (uint16_t)(t * 37 % 513)));
		if (t > 3)
			expect(&f, t - 3, (uint16_t)((t - 3) * 37 % 513));
	}
	feed_fini(&f);
}

TEST(test_full)
{
	struct feed f;
	uint64_t t = 1;

	assert_int_equal(feed_init(&f), 0);
	while (put(&f, t, 100))
		t++;
	assert_in_range(t, 100, FEED_SIZE / 1600);
	expect(&f, t - 1, 100);
	assert_true(put(&f, t, 100));
	expect(&f, t, 100);
	feed_fini(&f);
}

#define PUTS 20000U

static void *put_all(void *arg)
{
	for (uint64_t t = 1; t <= PUTS; t++)
		while (!put(arg, t, (uint16_t)(t * 37 % 200)))
			sched_yield();
	return NULL;
}

/* A reader puts while the sampler thread looks: what is found is whole. */
TEST(test_threads)
{
	struct feed f;
	pthread_t reader;

	assert_int_equal(feed_init(&f), 0);
	assert_int_equal(pthread_create(&reader, NULL, put_all, &f), 0);
	for (uint64_t t = 1; t <= PUTS; t++) {
		const struct lang_slot *slot;

		while (!(slot = feed_find(&f, t, 1, 2)))
			sched_yield();
		assert_int_equal(slot->nr, t * 37 % 200);
		for (uint32_t i = 0; i < slot->nr; i++)
			assert_int_equal(slot->frames[i].code, (uint32_t)t + i);
	}
	pthread_join(reader, NULL);
	feed_fini(&f);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
