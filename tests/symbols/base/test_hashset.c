// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Hash table of ids: against an array that knows all, with equal and unequal hashes.
 */
#include "symbols/base/base.h"
#include "symbols/base/table.h"

#include "tests/prelude.h"

/* How often @id is found under @hash. */
static unsigned int times(const struct hashset *s, uint64_t hash, uint32_t id)
{
	uint32_t at = 0, found;
	unsigned int nr = 0;

	while ((found = hashset_next(s, hash, &at)) != HASHSET_NONE)
		nr += found == id;
	return nr;
}

TEST(test_empty)
{
	struct hashset s = { 0 };
	uint32_t at = 0;

	assert_int_equal(hashset_next(&s, 5, &at), HASHSET_NONE);
	assert_int_equal(hashset_memory(&s), 0);
	hashset_clear(&s);
	hashset_fini(&s);
}

TEST(test_many)
{
	struct hashset s = { 0 };
	const uint32_t nr = 100000;

	for (uint32_t id = 0; id < nr; id++) {
		assert_int_equal(hashset_reserve(&s, 1), 0);
		hashset_add(&s, hash_u64(id), id);
	}
	assert_int_equal(s.nr, nr);
	assert_true(s.nr_slots >= 2 * nr);
	for (uint32_t id = 0; id < nr; id++)
		assert_int_equal(times(&s, hash_u64(id), id), 1);
	for (uint32_t id = 0; id < nr; id++)
		assert_int_equal(times(&s, hash_u64(id + nr), id), 0);
	/* The same id under another hash is kept. */
	assert_int_equal(hashset_reserve(&s, 1), 0);
	hashset_add(&s, hash_u64(77) + s.nr_slots, 77);
	hashset_replace(&s, hash_u64(77) + s.nr_slots, 77, 5);
	assert_int_equal(times(&s, hash_u64(77), 77), 1);
	hashset_replace(&s, hash_u64(77), 77, nr);
	assert_int_equal(times(&s, hash_u64(77), 77), 0);
	assert_int_equal(times(&s, hash_u64(77), nr), 1);
	hashset_clear(&s);
	assert_int_equal(times(&s, hash_u64(5), 5), 0);
	assert_int_equal(s.nr, 0);
	hashset_fini(&s);
}

/* Keys of one hash, and of hashes that begin their search in one slot, around the end. */
TEST(test_equal_hashes)
{
	struct hashset s = { 0 };

	assert_int_equal(hashset_reserve(&s, 20), 0);
	for (uint32_t id = 0; id < 10; id++) {
		hashset_add(&s, s.nr_slots - 1, id);
		hashset_add(&s, 2ull * s.nr_slots - 1, id + 100);
	}
	for (uint32_t id = 0; id < 10; id++) {
		assert_int_equal(times(&s, s.nr_slots - 1, id), 1);
		assert_int_equal(times(&s, s.nr_slots - 1, id + 100), 0);
		assert_int_equal(times(&s, 2ull * s.nr_slots - 1, id + 100), 1);
	}
	assert_int_equal(hashset_reserve(&s, 200), 0);
	for (uint32_t id = 0; id < 10; id++)
		assert_int_equal(times(&s, 63, id), 1);
	hashset_fini(&s);
}

/* Ids are removed at random, also from runs around the end: the others are still found. */
TEST(test_remove)
{
	struct hashset s = { 0 };
	bool is_in[300] = { false };
	uint64_t random = 1;

	hashset_remove(&s, 5, 5);
	assert_int_equal(hashset_reserve(&s, ARRAY_SIZE(is_in)), 0);
	for (uint32_t i = 0; i < 200000; i++) {
		uint32_t id = (uint32_t)((random = hash_u64(random + i)) % ARRAY_SIZE(is_in));
		/* Ten ids a hash, all in a few runs, one of which begins before the end. */
		uint64_t hash = s.nr_slots - 5 + id / 10;

		if (is_in[id])
			hashset_remove(&s, hash, id);
		else
			hashset_add(&s, hash, id);
		is_in[id] = !is_in[id];
		hashset_remove(&s, hash + 1, id);
		assert_int_equal(times(&s, hash, id), is_in[id]);
		for (uint32_t k = 0; k < ARRAY_SIZE(is_in) && i % 64 == 0; k++)
			assert_int_equal(times(&s, s.nr_slots - 5 + k / 10, k), is_in[k]);
	}
	for (uint32_t k = 0; k < ARRAY_SIZE(is_in); k++)
		hashset_remove(&s, s.nr_slots - 5 + k / 10, k);
	assert_int_equal(s.nr, 0);
	hashset_fini(&s);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
