// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Chunked store: entries never move, and readers see complete ones.
 */
#include "symbols/base/table.h"

#include <pthread.h>

#include "tests/prelude.h"

struct item {
	uint64_t a, b;
};

TEST(test_limits)
{
	struct chunked c = { 0 };
	struct item *first;

	chunked_fini(&c); /* of nothing */
	assert_int_equal(chunked_init(&c, sizeof(*first), 3, 20), 0);
	assert_int_equal(chunked_nr(&c), 0);
	first = chunked_reserve(&c, 0);
	assert_non_null(first);
	assert_true(!first->a && !first->b);
	first->a = 7;
	for (uint32_t id = 1; id < 20; id++)
		assert_non_null(chunked_reserve(&c, id));
	assert_null(chunked_reserve(&c, 20));
	assert_int_equal(chunked_nr(&c), 0);
	chunked_publish(&c, 20);
	assert_int_equal(chunked_nr(&c), 20);
	assert_ptr_equal(chunked_at(&c, 0), first);
	assert_int_equal(first->a, 7);
	assert_ptr_equal(chunked_at(&c, 7), first + 7);
	assert_ptr_equal(chunked_reserve(&c, 3), first + 3);
	assert_int_equal(chunked_memory(&c), 3 * sizeof(void *) + 24 * sizeof(struct item));
	chunked_fini(&c);
}

#define NR 200000u

static void *read_all(void *arg)
{
	const struct chunked *c = arg;
	uint32_t nr = 0;

	while (nr < NR) {
		nr = chunked_nr(c);
		for (uint32_t id = nr > 100 ? nr - 100 : 0; id < nr; id++) {
			const struct item *item = chunked_at(c, id);

			if (item->a != id || item->b != ~(uint64_t)id)
				return "incomplete entry";
		}
	}
	return NULL;
}

TEST(test_readers)
{
	pthread_t threads[3];
	struct chunked c;
	void *wrong;

	assert_int_equal(chunked_init(&c, sizeof(struct item), 6, NR), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_all, &c), 0);
	for (uint32_t id = 0; id < NR; id++) {
		struct item *item = chunked_reserve(&c, id);

		*item = (struct item){ id, ~(uint64_t)id };
		chunked_publish(&c, id + 1);
	}
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], &wrong);
		assert_null(wrong);
	}
	chunked_fini(&c);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
