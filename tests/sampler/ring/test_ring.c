// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ring: every wrap offset, hostile heads and sizes, giving space back, and a
 * producer thread that obeys the kernel's protocol.
 */
#include "sampler/ring/ring.h"

#include "tests/prelude.h"
#include "symbols/base/base.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define SIZE 4096u

struct fixture {
	struct perf_event_mmap_page page;
	struct ring ring;
	_Alignas(64) uint8_t data[SIZE];
};

static struct fixture *start_at(uint64_t pos)
{
	struct fixture *f = aligned_alloc(64, (sizeof(*f) + 63) / 64 * 64);

	assert_non_null(f);
	memset(f, 0, sizeof(*f));
	f->page.data_head = f->page.data_tail = pos;
	ring_init(&f->ring, &f->page, f->data, SIZE);
	return f;
}

static void stop(struct fixture *f)
{
	ring_close(&f->ring);
	free(f);
}

static void put_bytes(struct fixture *f, uint64_t pos, const void *src, size_t size)
{
	for (size_t i = 0; i < size; i++)
		f->data[(pos + i) & (SIZE - 1)] = ((const uint8_t *)src)[i];
}

/* A record with the body bytes @seed, @seed + 1, … */
static void put(struct fixture *f, uint16_t size, uint8_t seed)
{
	struct perf_event_header header = { .type = 9, .misc = seed, .size = size };
	uint8_t record[65536];

	memcpy(record, &header, sizeof(header));
	for (size_t i = sizeof(header); i < size; i++)
		record[i] = (uint8_t)(seed + i);
	put_bytes(f, f->page.data_head, record, size);
	f->page.data_head += size;
}

static void expect(struct fixture *f, uint16_t size, uint8_t seed)
{
	const struct perf_event_header *h = ring_next(&f->ring);

	assert_non_null(h);
	assert_int_equal((uintptr_t)h % _Alignof(struct perf_event_header), 0);
	assert_int_equal(h->type, 9);
	assert_int_equal(h->misc, seed);
	assert_int_equal(h->size, size);
	for (size_t i = sizeof(*h); i < size; i++)
		assert_int_equal(((const uint8_t *)h)[i], (uint8_t)(seed + i));
}

/* Records of odd and even sizes, begun at every byte of the ring. */
TEST(test_wrap_everywhere)
{
	static const uint16_t sizes[] = { 8, 16, 9, 24, 133, 8, 520 };

	for (uint64_t pos = 0; pos < SIZE; pos++) {
		struct fixture *f = start_at(pos + 3 * SIZE);

		assert_false(ring_begin(&f->ring));
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
			put(f, sizes[i], (uint8_t)(pos + i));
		assert_true(ring_begin(&f->ring));
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
			expect(f, sizes[i], (uint8_t)(pos + i));
		assert_null(ring_next(&f->ring));
		assert_int_equal(f->ring.nr_bad, 0);
		ring_end(&f->ring);
		assert_int_equal(f->page.data_tail, f->page.data_head);
		stop(f);
	}
}

TEST(test_in_place_unless_wrapping)
{
	struct fixture *f = start_at(SIZE - 64);

	put(f, 64, 1);
	put(f, 64, 2);
	ring_begin(&f->ring);
	assert_ptr_equal(ring_next(&f->ring), f->data + SIZE - 64);
	assert_ptr_equal(ring_next(&f->ring), f->data);
	stop(f);
	f = start_at(SIZE - 56);
	put(f, 64, 1);
	ring_begin(&f->ring);
	assert_ptr_equal(ring_next(&f->ring), f->ring.scratch);
	stop(f);
}

/* The position may pass 2^64. */
TEST(test_position_overflow)
{
	struct fixture *f = start_at(-(uint64_t)24);

	put(f, 16, 1);
	put(f, 16, 2);
	assert_true(ring_begin(&f->ring));
	expect(f, 16, 1);
	expect(f, 16, 2);
	ring_end(&f->ring);
	assert_int_equal(f->page.data_tail, 8);
	assert_int_equal(f->ring.nr_bad, 0);
	stop(f);
}

TEST(test_full_ring)
{
	struct fixture *f = start_at(72);

	put(f, SIZE - 8, 7);
	put(f, 8, 8);
	assert_int_equal(ring_waiting(&f->ring), SIZE);
	assert_true(ring_begin(&f->ring));
	expect(f, SIZE - 8, 7);
	expect(f, 8, 8);
	assert_null(ring_next(&f->ring));
	ring_end(&f->ring);
	assert_int_equal(ring_waiting(&f->ring), 0);
	assert_true(ring_take_high(&f->ring) == 1.0);
	assert_true(ring_take_high(&f->ring) == 0.0);
	stop(f);
}

/* ring_release() keeps the record last returned; the batch ends at its first position. */
TEST(test_release)
{
	struct fixture *f = start_at(0);

	put(f, 32, 1);
	put(f, 48, 2);
	ring_begin(&f->ring);
	put(f, 64, 3);
	expect(f, 32, 1);
	ring_release(&f->ring);
	assert_int_equal(f->page.data_tail, 0);
	expect(f, 48, 2);
	ring_release(&f->ring);
	assert_int_equal(f->page.data_tail, 32);
	assert_null(ring_next(&f->ring));
	ring_release(&f->ring);
	assert_int_equal(f->page.data_tail, 32);
	ring_end(&f->ring);
	assert_int_equal(f->page.data_tail, 80);
	assert_true(ring_begin(&f->ring));
	expect(f, 64, 3);
	ring_end(&f->ring);
	assert_int_equal(f->page.data_tail, 144);
	stop(f);
}

/* A batch left early loses nothing. */
TEST(test_early_end)
{
	struct fixture *f = start_at(0);

	put(f, 32, 1);
	put(f, 48, 2);
	ring_begin(&f->ring);
	expect(f, 32, 1);
	ring_end(&f->ring);
	assert_int_equal(f->page.data_tail, 32);
	ring_begin(&f->ring);
	expect(f, 48, 2);
	stop(f);
}

TEST(test_hostile_head)
{
	static const uint64_t jumps[] = { SIZE + 1, SIZE + 8, 1ULL << 40, -(uint64_t)8,
					  -(uint64_t)1 };

	for (size_t i = 0; i < ARRAY_SIZE(jumps); i++) {
		struct fixture *f = start_at(4 * SIZE);

		put(f, 16, 1);
		f->page.data_head = 4 * SIZE + jumps[i];
		assert_false(ring_begin(&f->ring));
		assert_int_equal(f->ring.nr_bad, 1);
		assert_int_equal(f->page.data_tail, 4 * SIZE + jumps[i]);
		assert_null(ring_next(&f->ring));
		/* and on it goes from there */
		put(f, 24, 5);
		assert_true(ring_begin(&f->ring));
		expect(f, 24, 5);
		assert_true(ring_take_high(&f->ring) <= 1.0);
		stop(f);
	}
}

TEST(test_hostile_size)
{
	static const uint16_t sizes[] = { 0, 1, 7, 41, 4095, 65535 };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct perf_event_header bad = { .type = 9, .size = sizes[i] };
		struct fixture *f = start_at(16);

		put(f, 16, 1);
		put_bytes(f, f->page.data_head, &bad, sizeof(bad));
		f->page.data_head += 40;
		assert_true(ring_begin(&f->ring));
		expect(f, 16, 1);
		assert_null(ring_next(&f->ring));
		assert_null(ring_next(&f->ring));
		assert_int_equal(f->ring.nr_bad, 1);
		ring_end(&f->ring);
		assert_int_equal(f->page.data_tail, f->page.data_head);
		stop(f);
	}
}

/* Fewer bytes than a header. */
TEST(test_crumbs)
{
	struct fixture *f = start_at(0);

	f->page.data_head = 7;
	assert_true(ring_begin(&f->ring));
	assert_null(ring_next(&f->ring));
	assert_int_equal(f->ring.nr_bad, 1);
	stop(f);
}

TEST(test_closed)
{
	struct ring r = { 0 };

	assert_false(ring_begin(&r));
	assert_null(ring_next(&r));
	ring_release(&r);
	ring_end(&r);
	assert_int_equal(ring_waiting(&r), 0);
	assert_true(ring_take_high(&r) == 0);
	ring_close(&r);
	assert_int_equal(ring_open(&r, -1, 4097), -EINVAL);
	assert_int_equal(ring_open(&r, -1, 0), -EINVAL);
	assert_int_equal(ring_open(&r, -1, 8192), -EBADF);
}

#define NR_RECORDS 200000u

/* The kernel's side: write where there is room, publish with release. */
static void *produce(void *arg)
{
	struct fixture *f = arg;
	uint64_t head = 0;

	for (uint32_t i = 0; i < NR_RECORDS;) {
		uint16_t size = (uint16_t)(16 + i % 37 * 8);
		struct perf_event_header header = { .type = 9, .misc = (uint16_t)i, .size = size };
		uint64_t tail = atomic_load_explicit((_Atomic __u64 *)&f->page.data_tail,
						     memory_order_acquire);

		if (head + size - tail > SIZE) {
			sched_yield();
			continue;
		}
		put_bytes(f, head, &header, sizeof(header));
		for (uint64_t at = 8; at < size; at += 8) {
			uint64_t word = i + at;

			put_bytes(f, head + at, &word, 8);
		}
		head += size;
		atomic_store_explicit((_Atomic __u64 *)&f->page.data_head, head,
				      memory_order_release);
		i++;
	}
	return NULL;
}

TEST(test_producer_thread)
{
	struct fixture *f = start_at(0);
	const struct perf_event_header *h;
	uint32_t next = 0;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, produce, f), 0);
	while (next < NR_RECORDS) {
		if (!ring_begin(&f->ring)) {
			sched_yield();
			continue;
		}
		while ((h = ring_next(&f->ring))) {
			if (h->misc != (uint16_t)next || h->size != 16 + next % 37 * 8)
				fail_msg("record %u: misc %u size %u", next, h->misc, h->size);
			for (uint64_t at = 8; at < h->size; at += 8) {
				uint64_t word;

				memcpy(&word, (const uint8_t *)h + at, 8);
				if (word != next + at)
					fail_msg("record %u: torn at %lu", next, at);
			}
			if (next++ % 3 == 0)
				ring_release(&f->ring);
		}
		ring_end(&f->ring);
	}
	pthread_join(thread, NULL);
	assert_int_equal(f->ring.nr_bad, 0);
	assert_int_equal(ring_waiting(&f->ring), 0);
	stop(f);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
