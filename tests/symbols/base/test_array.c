// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Growable arrays: contents kept, room doubled, limits and failures; memory to be filled, or not.
 */
#include "symbols/base/base.h"

#include <malloc.h>
#include <string.h>

#include "tests/resident.h"

TEST(test_append)
{
	uint32_t room = 0, nr_grown = 0;
	uint64_t *list = NULL;

	for (uint32_t i = 0; i < 100000; i++) {
		uint32_t before = room;

		assert_true(array_reserve(&list, &room, i + 1ull));
		assert_true(room > i);
		nr_grown += room != before;
		list[i] = i * 3ull;
	}
	assert_in_range(nr_grown, 5, 20);
	for (uint32_t i = 0; i < 100000; i++)
		assert_int_equal(list[i], i * 3ull);
	free(list);
}

/* Reserve many at a time, and nothing when enough are free. */
TEST(test_room)
{
	struct item {
		char bytes[24];
	} *list = NULL, *before;
	uint32_t room = 0;

	assert_true(array_reserve(&list, &room, 0));
	assert_null(list);
	assert_true(array_reserve(&list, &room, 1000));
	assert_int_equal(room, 1000);
	before = list;
	assert_true(array_reserve(&list, &room, 1000));
	assert_ptr_equal(list, before);
	assert_true(array_reserve(&list, &room, 1001));
	assert_int_equal(room, 2000);
	free(list);
}

/* A failed allocation leaves the array unchanged. */
TEST(test_refused)
{
	uint32_t room = 0;
	char *list = NULL, *before;

	assert_true(array_reserve(&list, &room, 10));
	before = list;
	before[0] = 'x';
	assert_false(array_reserve(&list, &room, 1ull << 32));
	assert_false(array_reserve_size(&list, &room, UINT32_MAX, SIZE_MAX / 2));
	assert_ptr_equal(list, before);
	assert_int_equal(room, 64);
	assert_int_equal(list[0], 'x');
	free(list);
}

/* Memory of all sizes keeps its bytes, also when it grows and shrinks. */
TEST(test_to_fill)
{
	static const size_t sizes[] = { 1, 4096, (2u << 20) - 1, 2u << 20, (5u << 20) + 3 };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		size_t size = sizes[i];
		uint8_t *p = alloc_to_fill(size);

		assert_non_null(p);
		memset(p, 7, size);
		p = realloc(p, 3 * size);
		assert_non_null(p);
		memset(p + size, 8, 2 * size);
		assert_int_equal(p[0] + p[size - 1] + p[size] + p[3 * size - 1], 7 + 7 + 8 + 8);
		p = realloc(p, size);
		assert_non_null(p);
		assert_int_equal(p[0] + p[size - 1], 7 + 7);
		free(p);
	}
	assert_null(alloc_to_fill(SIZE_MAX / 2));
}

/* Memory that is hardly used is not resident, also when the heap has enough that is free. */
TEST(test_sparse)
{
	static const size_t sizes[] = { 1, 4096, 8u << 20 };
	void *last = leave_free(200, 100 << 10);

	malloc_trim(0);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		long before_kb = resident_kb();
		uint8_t *p = alloc_sparse(sizes[i]);

		assert_non_null(p);
		if (!SANITIZED)
			assert_true(resident_kb() < before_kb + 1024);
		for (size_t k = 0; k < sizes[i]; k += 1000)
			assert_int_equal(p[k], 0);
		memset(p, 7, sizes[i]);
		free_sparse(p, sizes[i]);
	}
	free(last);
	free_sparse(NULL, 1);
	free_sparse(NULL, 8u << 20);
	assert_null(alloc_sparse(SIZE_MAX / 2));
}

/* Pieces of all sizes are zeroed, apart, and their memory goes back when all are freed. */
TEST(test_urgent)
{
	enum { NR = 3000 };
	static uint8_t *pieces[NR];
	uint64_t random = 1;
	long before_kb = resident_kb();

	for (uint32_t round = 0; round < 40000; round++) {
		uint32_t i = (uint32_t)((random = hash_u64(random + round)) % NR);
		/* Mostly small; some beyond the slabs. */
		size_t size = (random >> 20) % ((random >> 40) % 100 ? 700 : 200000) + 8;

		if (pieces[i]) {
			uint64_t end;

			memcpy(&end, pieces[i], sizeof(end));
			assert_int_equal(pieces[i][end], i % 251 + 1);
			urgent_free(pieces[i]);
		}
		pieces[i] = urgent_alloc(size + 1);
		assert_non_null(pieces[i]);
		assert_int_equal((uintptr_t)pieces[i] % 16, 0);
		for (size_t k = 0; k <= size; k++)
			assert_true(!pieces[i][k]);
		memset(pieces[i], 9, size);
		memcpy(pieces[i], &size, sizeof(size));
		pieces[i][size] = (uint8_t)(i % 251 + 1);
	}
	for (uint32_t i = 0; i < NR; i++)
		urgent_free(pieces[i]);
	/* Of each size the beginning of one slab remains. */
	if (!SANITIZED)
		assert_true(resident_kb() < before_kb + 2048);
	urgent_free(NULL);
	assert_null(urgent_alloc(SIZE_MAX / 2));
	assert_null(urgent_alloc(SIZE_MAX - 10));
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
