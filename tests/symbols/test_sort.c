// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sorting by key: against qsort with the index as the second key, for keys of
 * few and of many bytes, in order, nearly so, and not at all.
 */
#include "symbols/base/sort.h"

#include "tests/prelude.h"
#include "symbols/base/lookup.h"

/* 16 bytes, as struct image_symbol has 24: sizes of their own way. */
struct sort_key {
	uint64_t key;
	uint32_t index;
};

static int compare(const void *a, const void *b)
{
	const struct sort_key *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

static void check(struct sort_key *keys, size_t nr)
{
	struct sort_key *want = calloc(nr + 1, sizeof(*want));

	assert_non_null(want);
	for (size_t i = 0; i < nr; i++)
		keys[i].index = (uint32_t)i;
	memcpy(want, keys, nr * sizeof(*keys));
	qsort(want, nr, sizeof(*want), compare);
	assert_int_equal(sort_records(keys, nr, sizeof(*keys), 0), 0);
	for (size_t i = 0; i < nr; i++) {
		assert_int_equal(keys[i].key, want[i].key);
		assert_int_equal(keys[i].index, want[i].index);
	}
	free(want);
}

static void test_sort(void **state)
{
	static const uint64_t masks[] = {
		0, 1, 0xff, 0xff00, 0xffffffff00ULL, ~0ULL, 1ULL << 63 | 7
	};
	static struct sort_key keys[5000];

	for (size_t m = 0; m < ARRAY_SIZE(masks); m++) {
		for (size_t nr = 0; nr < ARRAY_SIZE(keys); nr = nr * 3 + 1) {
			for (size_t i = 0; i < nr; i++)
				keys[i].key = hash_u64(i + 17 * nr) & masks[m];
			check(keys, nr);
			check(keys, nr); /* in order by now */
			if (nr > 3) {
				keys[nr / 2].key = 0;
				check(keys, nr);
			}
		}
	}
}

/* Keys that fall into few heaps, round after round. */
static void test_uneven(void **state)
{
	static struct sort_key keys[70000];

	for (unsigned int bits = 1; bits < 64; bits += 7) {
		for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
			keys[i].key = hash_u64(i) >> (hash_u64(i + 1) % bits);
		check(keys, ARRAY_SIZE(keys));
		for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
			keys[i].key = 1ULL << (hash_u64(i) % bits) | (i & 1);
		check(keys, ARRAY_SIZE(keys));
	}
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		keys[i].key = ARRAY_SIZE(keys) - i;
	keys[1].key = UINT64_MAX;
	check(keys, ARRAY_SIZE(keys));
}

/* Few keys, as far apart as can be. */
static void test_far_apart(void **state)
{
	static const uint64_t far[] = { UINT64_MAX, 0, UINT64_MAX, 1, 1ULL << 63, 0 };
	struct sort_key some[ARRAY_SIZE(far)];

	for (size_t nr = 2; nr <= ARRAY_SIZE(far); nr++)
		for (size_t from = 0; from + nr <= ARRAY_SIZE(far); from++) {
			for (size_t i = 0; i < nr; i++)
				some[i].key = far[from + i];
			check(some, nr);
		}
}

/* Whole records go where their keys go; those of one key stay as they were. */
static void check_records(uint64_t mask, size_t words)
{
	static uint64_t r[3000 * 5];
	size_t nr = ARRAY_SIZE(r) / words;

	for (size_t i = 0; i < nr; i++) {
		r[i * words] = i;
		r[i * words + 1] = hash_u64(i) & mask;
		for (size_t w = 2; w < words; w++)
			r[i * words + w] = i ^ w;
	}
	assert_int_equal(sort_records(r, nr, words * sizeof(*r), sizeof(*r)), 0);
	for (size_t i = 0; i < nr; i++) {
		const uint64_t *here = &r[i * words], *before = here - words;

		assert_int_equal(here[1], hash_u64(here[0]) & mask);
		for (size_t w = 2; w < words; w++)
			assert_int_equal(here[w], here[0] ^ w);
		assert_true(!i || here[1] > before[1] ||
			    (here[1] == before[1] && here[0] > before[0]));
	}
	assert_int_equal(sort_records(r, 0, words * sizeof(*r), sizeof(*r)), 0);
}

static void test_records(void **state)
{
	for (uint64_t mask = 0; mask < 1 << 20; mask = mask * 7 + 3)
		for (size_t words = 2; words <= 5; words++)
			check_records(mask, words);
}

struct record {
	uint16_t before;
	uint64_t key;
};

/* Between the bounds is the number of records up to a key; and they are close, where keys are
 * spread. */
static void test_lookup(void **state)
{
	static struct record r[3000];
	static const uint32_t sizes[] = { 0, 1, 63, 64, 65, ARRAY_SIZE(r) };
	struct lookup l;

	for (uint64_t gap = 0; gap < 1 << 20; gap = gap * 9 + 1) {
		for (uint32_t s = 0; s < ARRAY_SIZE(sizes); s++) {
			for (uint32_t i = 0; i < sizes[s]; i++)
				r[i].key = 1000 + i * gap + (i == sizes[s] - 1) * (gap << 30);
			lookup_init(&l, r, sizes[s], sizeof(r[0]), offsetof(struct record, key));
			for (uint64_t n = 0; n < 4000; n++) {
				uint64_t key = n < 3000 ? r[n].key + hash_u64(n) % 3 - 1
							: hash_u64(n);
				uint32_t lo, hi;

				lookup_bounds(&l, key, &lo, &hi);
				assert_true(lo <= hi && hi <= sizes[s]);
				assert_true(lo == 0 || r[lo - 1].key <= key);
				assert_true(hi == sizes[s] || r[hi].key > key);
			}
			lookup_fini(&l);
		}
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(r); i++)
		r[i].key = 16 * i + hash_u64(i) % 16;
	lookup_init(&l, r, ARRAY_SIZE(r), sizeof(r[0]), offsetof(struct record, key));
	for (uint32_t i = 0; i < ARRAY_SIZE(r); i++) {
		uint32_t lo, hi;

		lookup_bounds(&l, r[i].key, &lo, &hi);
		assert_true(hi - lo <= 10);
	}
	assert_true(lookup_memory(&l) <= sizeof(uint32_t) * ARRAY_SIZE(r));
	lookup_fini(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sort),	  cmocka_unit_test(test_uneven),
		cmocka_unit_test(test_far_apart), cmocka_unit_test(test_records),
		cmocka_unit_test(test_lookup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
