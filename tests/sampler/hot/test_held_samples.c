// SPDX-License-Identifier: GPL-2.0-or-later
/* unread: records are handled again in their order, and removed when they are done or old. */
#include "tests/prelude.h"

#include <linux/perf_event.h>
#include <string.h>

#include "sampler/hot/sampler_thread.c"
#include "symbols/base/base.h"

#define MS 1000000ULL

struct seen {
	uint32_t nr, nr_last;
	uint32_t number[8];
	uint32_t done; /* the record with this number is done */
};

struct sample {
	struct perf_event_header header;
	uint32_t number;
	uint8_t rest[60000];
};

static bool handle(void *ctx, const struct perf_event_header *record,
		   const struct unwind_interrupted *more, bool last)
{
	const struct sample *s = (const void *)record;
	struct seen *seen = ctx;

	assert_true(seen->nr < ARRAY_SIZE(seen->number));
	seen->number[seen->nr++] = s->number;
	seen->nr_last += last;
	assert_int_equal(more->size, s->number % 3);
	assert_memory_equal(more->bytes, "xy", more->size);
	return s->number == seen->done;
}

static bool put(struct held_samples *u, uint32_t number, uint16_t size, uint64_t now_ns)
{
	static struct sample s;

	s.header.size = size;
	s.number = number;
	return held_samples_put(u, &s.header,
				&(struct unwind_interrupted){ .bytes = (const uint8_t *)"xy",
							      .size = number % 3 },
				now_ns + HELD_SAMPLES_NS);
}

TEST(test_order)
{
	struct held_samples *u = held_samples_new();
	struct seen seen = { .done = 2 };

	(void)state;
	assert_non_null(u);
	assert_false(held_samples_any(u));
	assert_true(put(u, 1, 13, 0));
	assert_true(put(u, 2, 4000, 100 * MS));
	assert_true(put(u, 3, 12, 100 * MS));
	held_samples_again(u, 110 * MS, false, handle, &seen);
	assert_int_equal(seen.nr, 3);
	assert_int_equal(seen.number[0] * 100 + seen.number[1] * 10 + seen.number[2], 123);
	/* The first is old now, the second was done. */
	seen = (struct seen){ 0 };
	held_samples_again(u, 200 * MS, false, handle, &seen);
	assert_int_equal(seen.number[0] * 10 + seen.number[1], 13);
	assert_int_equal(seen.nr_last, 1);
	assert_true(held_samples_any(u));
	seen = (struct seen){ 0 };
	held_samples_again(u, 210 * MS, true, handle, &seen);
	assert_int_equal(seen.nr, 1);
	assert_int_equal(seen.nr_last, 1);
	assert_false(held_samples_any(u));
	held_samples_free(u);
}

TEST(test_full)
{
	struct held_samples *u = held_samples_new();
	struct seen seen = { 0 };
	uint32_t nr = 0;

	(void)state;
	assert_non_null(u);
	while (put(u, nr, 60000, 0))
		nr++;
	assert_in_range(nr, 2, ARRAY_SIZE(seen.number));
	assert_false(put(u, nr, 60000, 0));
	held_samples_again(u, 0, true, handle, &seen);
	assert_int_equal(seen.nr, nr);
	assert_true(put(u, nr, 60000, 0));
	held_samples_free(u);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
