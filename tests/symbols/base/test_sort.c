// SPDX-License-Identifier: GPL-2.0-or-later
/* Sorting by digits, compared with qsort(): all digits, equal numbers, few and many records. */
#include "symbols/base/base.h"

#include "tests/prelude.h"

struct record {
	uint64_t number;
	uint32_t place; /* before it was sorted */
	uint32_t odd[2];
};

/* Equal numbers keep their order. */
static int by_number(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	if (x->number != y->number)
		return x->number > y->number ? 1 : -1;
	return x->place > y->place ? 1 : -1;
}

/* Numbers that differ in the bits of @mask. */
static void check(uint32_t nr, uint64_t mask)
{
	struct record *records = calloc(nr + 1, sizeof(*records)), *copy;

	assert_non_null(records);
	for (uint32_t i = 0; i < nr; i++) {
		uint64_t random = (uint64_t)rand() << 42 ^ (uint64_t)rand() << 21 ^
				  (uint64_t)rand();

		records[i] = (struct record){ .number = 0x5500000000001234 ^ (random & mask),
					      .place = i,
					      .odd = { i, ~i } };
	}
	copy = malloc((nr + 1) * sizeof(*copy));
	assert_non_null(copy);
	memcpy(copy, records, (nr + 1) * sizeof(*copy));
	qsort(copy, nr, sizeof(*copy), by_number);
	assert_int_equal(sort_by_number(records, nr, sizeof(*records)), 0);
	assert_memory_equal(records, copy, (nr + 1) * sizeof(*copy));
	free(records);
	free(copy);
}

TEST(test_sort)
{
	static const uint64_t masks[] = { 0,	  0x7,	      0xffff,
					  0xff00, 0x3fffffff, 0xff000000000000ff,
					  ~0ULL,  1ULL << 63 };

	srand(7);
	for (size_t m = 0; m < ARRAY_SIZE(masks); m++)
		for (uint32_t nr = 0; nr < 3000; nr = nr < 5 ? nr + 1 : nr * 3)
			check(nr, masks[m]);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
