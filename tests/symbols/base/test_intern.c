// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * intern: bounded probing, tags that collide, ids given back, growth.
 */
#include "tests/prelude.h"
#include "symbols/base/base.h"
#include "symbols/base/table.h"

/* A store of u64 keys with hashes chosen by the test. */
struct store {
	uint64_t key[4096];
	uint32_t capacity;
	bool room_lies; /* as it may, when other keys took the slot */
	uint32_t nr_writes, nr_compares;
	uint64_t (*hash)(uint64_t key);
};

static bool store_same(const void *p, uint32_t id, const void *key)
{
	struct store *s = (struct store *)p;

	s->nr_compares++;
	return s->key[id] == *(const uint64_t *)key;
}

static bool store_room(const void *p, uint32_t id, const void *key)
{
	const struct store *s = p;

	return id < s->capacity || s->room_lies;
}

static bool store_write(void *p, uint32_t id, const void *key)
{
	struct store *s = p;

	if (id >= s->capacity)
		return false;
	s->nr_writes++;
	s->key[id] = *(const uint64_t *)key;
	return true;
}

static const struct intern_ops ops = { store_same, store_room, store_write };

static uint64_t hash_good(uint64_t key)
{
	return hash_u64(key) | 1;
}

static uint64_t hash_one(uint64_t key)
{
	return 0x100000001ULL;
}

/* One home slot in a table of 1024, but all tags differ. */
static uint64_t hash_home(uint64_t key)
{
	return (key << 10 | 5) << 32;
}

static uint32_t get(struct intern *t, struct store *s, uint64_t key)
{
	return intern_get(t, &ops, s, s->hash(key), &key);
}

TEST(test_dense_ids)
{
	struct store s = { .capacity = 4096, .hash = hash_good };
	struct intern t;

	assert_int_equal(intern_init(&t, 4096, 1000), 0);
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(get(&t, &s, i * 3), i);
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(get(&t, &s, i * 3), i);
	assert_int_equal(s.nr_writes, 1000);
	assert_int_equal(intern_nr(&t), 1000);
	/* Beyond max_ids: full, for ever the same number, known keys are found. */
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(get(&t, &s, 1000000 + i), INTERN_FULL);
	assert_int_equal(intern_nr(&t), 1000);
	assert_int_equal(get(&t, &s, 999 * 3), 999);
	intern_fini(&t);
}

TEST(test_equal_hashes)
{
	struct store s = { .capacity = 4096, .hash = hash_one };
	struct intern t;
	uint64_t nr;

	assert_int_equal(intern_init(&t, 4096, 4096), 0);
	for (nr = 0; get(&t, &s, nr) == nr; nr++)
		assert_true(nr < 4096);
	/* The bound on probing stops it, without burning ids. */
	assert_in_range(nr, 64, 1024);
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(get(&t, &s, nr + i), INTERN_FULL);
	assert_int_equal(intern_nr(&t), nr);
	for (uint64_t i = 0; i < nr; i++)
		assert_int_equal(get(&t, &s, i), i);
	intern_fini(&t);
}

TEST(test_tags_spare_compares)
{
	struct store s = { .capacity = 4096, .hash = hash_home };
	struct intern t;

	assert_int_equal(intern_init(&t, 1024, 1024), 0);
	for (uint64_t i = 1; i <= 100; i++)
		assert_int_equal(get(&t, &s, i), i - 1);
	s.nr_compares = 0;
	assert_int_equal(get(&t, &s, 100), 99);
	assert_int_equal(s.nr_compares, 1);
	intern_fini(&t);
}

/*
 * Without growth, keys go on to the larger slots that were made before; growth moves them, from
 * each of the arrays in use, and no id changes.
 */
TEST(test_table_without_growth)
{
	for (uint64_t nr = 9; nr <= 4096; nr = nr * 3 / 2) {
		struct store s = { .capacity = 4096, .hash = hash_good };
		struct intern t;

		assert_int_equal(intern_init(&t, 8, 4096), 0);
		for (uint64_t i = 0; i < nr; i++)
			assert_int_equal(get(&t, &s, i), i);
		for (uint64_t i = 0; i < nr; i++)
			assert_int_equal(get(&t, &s, i), i);
		assert_true(intern_growth(&t) > 0);
		assert_int_equal(intern_grow(&t), 0);
		assert_int_equal(intern_growth(&t), 0);
		assert_in_range(intern_memory(&t), 2 * nr * 8, 4 * nr * 8 + 64);
		assert_int_equal(s.nr_writes, nr);
		for (uint64_t i = 0; i < nr; i++)
			assert_int_equal(get(&t, &s, i), i);
		for (uint64_t i = nr; i < 4096; i++)
			assert_int_equal(get(&t, &s, i), i);
		assert_int_equal(get(&t, &s, 4096), INTERN_FULL);
		intern_fini(&t);
	}
}

TEST(test_ids_come_back_when_storage_is_out)
{
	struct store s = { .capacity = 5, .hash = hash_good };
	struct intern t;

	assert_int_equal(intern_init(&t, 64, 100), 0);
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(get(&t, &s, i), i);
	for (uint64_t i = 0; i < 1000; i++) {
		s.room_lies = i & 1;
		assert_int_equal(get(&t, &s, 5 + i), INTERN_FULL);
	}
	assert_int_equal(intern_nr(&t), 5);
	assert_int_equal(s.nr_writes, 5);
	s.capacity = 100;
	assert_int_equal(get(&t, &s, 5), 5);
	intern_fini(&t);
}

TEST(test_growth_keeps_every_id)
{
	struct store s = { .capacity = 4096, .hash = hash_good };
	struct intern t;
	size_t memory;

	assert_int_equal(intern_init(&t, 8, 4096), 0);
	memory = intern_memory(&t);
	for (uint64_t i = 0; i < 4096; i++) {
		assert_int_equal(get(&t, &s, i), i);
		assert_int_equal(intern_grow(&t), 0);
	}
	/* Never over half full after growing, and not without bound. */
	assert_in_range(intern_memory(&t), 2 * 4096 * 8, 4 * 4096 * 8 + 64);
	assert_true(intern_memory(&t) > memory);
	s.nr_writes = 0;
	for (uint64_t i = 0; i < 4096; i++)
		assert_int_equal(get(&t, &s, i), i);
	assert_int_equal(s.nr_writes, 0);
	intern_fini(&t);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
