// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ring_copy: the first part of a large stack, and all that is beside it; the rest later; both
 * around the end of the ring; records that the kernel comes round to, and hostile sizes.
 */
#include "sampler/reader/reader.c"

#include "tests/prelude.h"

#include <linux/perf_event.h>

#include "symbols/base/base.h"
#include "sampler/ring/ring.h"

#define SIZE  (32U << 10)
#define STACK (16U << 10)

static const struct record_layout layout = {
	.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_STACK_USER,
};

struct fixture {
	struct perf_event_mmap_page page;
	struct ring ring;
	struct ring_copy copy;
	uint8_t record[RING_COPY_MAX], data[SIZE];
	size_t size;
};

/* A sample at @pos with a stack of @stack bytes, which says that it has @said. */
static struct fixture *t_start(uint64_t pos, uint64_t stack, uint64_t said)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct perf_event_header h = { .type = PERF_RECORD_SAMPLE };

	assert_non_null(f);
	f->size = sizeof(h) + 3 * 8 + stack + 8;
	h.size = (uint16_t)f->size;
	for (size_t i = 0; i < f->size; i++)
		f->record[i] = (uint8_t)(i * 7 >> 3);
	memcpy(f->record, &h, sizeof(h));
	memcpy(f->record + sizeof(h) + 16, &said, sizeof(said));
	memcpy(f->record + f->size - 8, &stack, sizeof(stack));
	for (size_t i = 0; i < f->size; i++)
		f->data[(pos + i) & (SIZE - 1)] = f->record[i];
	ring_init(&f->ring, &f->page, f->data, SIZE);
	f->page.data_head = pos + f->size;
	memset(f->copy.bytes, 0xee, sizeof(f->copy.bytes));
	return f;
}

static bool take_copy(struct fixture *f, uint64_t pos)
{
	return ring_copy_record(&f->copy, &f->ring, &layout, pos, f->size);
}

static void stop(struct fixture *f)
{
	ring_close(&f->ring);
	free(f);
}

TEST(test_parts)
{
	for (uint64_t pos = 0; pos < 2ULL * SIZE; pos += 1000) {
		struct fixture *f = t_start(pos, STACK, STACK);
		size_t here = sizeof(struct perf_event_header) + 3 * 8 + RING_COPY_STACK;

		assert_true(take_copy(f, pos));
		assert_int_equal(f->copy.rest_size, STACK - RING_COPY_STACK);
		assert_memory_equal(f->copy.bytes, f->record, here);
		assert_int_equal(f->copy.bytes[here], 0xee);
		assert_int_equal(f->copy.bytes[f->size - 9], 0xee);
		assert_memory_equal(f->copy.bytes + f->size - 8, f->record + f->size - 8, 8);
		ring_copy_rest(&f->copy);
		assert_memory_equal(f->copy.bytes, f->record, f->size);
		assert_int_equal(f->copy.rest_size, 0);
		assert_false(f->copy.overwritten);
		stop(f);
	}
}

TEST(test_small_and_hostile)
{
	static const struct {
		uint64_t stack, said;
	} whole[] = { { 0, 0 },
		      { 64, 64 },
		      { RING_COPY_STACK, RING_COPY_STACK },
		      { STACK, UINT64_MAX },
		      { STACK, STACK + 9 },
		      { 64, STACK } };

	for (size_t i = 0; i < ARRAY_SIZE(whole); i++) {
		struct fixture *f = t_start(SIZE - 20, whole[i].stack, whole[i].said);

		assert_true(take_copy(f, SIZE - 20));
		assert_int_equal(f->copy.rest_size, 0);
		assert_memory_equal(f->copy.bytes, f->record, f->size);
		f->size = RING_COPY_MAX + 8;
		assert_false(take_copy(f, SIZE - 20));
		stop(f);
	}
}

TEST(test_overwritten)
{
	struct fixture *f = t_start(0, STACK, STACK);

	f->page.data_head = SIZE + 8;
	assert_false(take_copy(f, 0));
	f->page.data_head = SIZE;
	assert_true(take_copy(f, 0));
	f->page.data_head = SIZE + 8;
	ring_copy_rest(&f->copy);
	assert_true(f->copy.overwritten);
	stop(f);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
