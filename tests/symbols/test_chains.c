// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * chains: stored chains are found, also from other threads; files by path.
 */
#include "tests/prelude.h"

#include <errno.h>
#include <pthread.h>

#include "symbols/source/chains.h"

#define NR 20000U

TEST(test_put_and_find)
{
	struct symbol_frame frames[32];
	struct chains *c;
	uint32_t nr;

	assert_int_equal(chains_new(&c), 0);
	for (uint32_t i = 0; i < 32; i++)
		frames[i] = (struct symbol_frame){ i, i + 1, i + 2 };
	assert_null(chains_at(c, 0, &nr));
	assert_int_equal(nr, 0);
	for (uint32_t i = 0; i < NR; i++)
		assert_int_equal(chains_put(c, i * 7, frames, 1 + i % 32), 0);
	for (uint32_t i = 0; i < NR; i++) {
		const struct symbol_frame *is = chains_at(c, i * 7, &nr);

		assert_int_equal(nr, 1 + i % 32);
		assert_memory_equal(is, frames, nr * sizeof(*is));
		assert_null(chains_at(c, i * 7 + 1, &nr));
	}
	assert_int_equal(chains_put(c, UINT32_MAX, frames, 1), -ENOSPC);
	assert_null(chains_at(c, UINT32_MAX, &nr));
	assert_true(chains_memory(c) > NR * 12);
	chains_free(c);
}

TEST(test_files)
{
	struct chains *c;
	char path[64];

	assert_int_equal(chains_new(&c), 0);
	for (uint32_t i = 0; i < NR; i++) {
		snprintf(path, sizeof(path), "/src/%u.c", i);
		assert_int_equal(chains_intern_file(c, path), i);
	}
	for (uint32_t i = 0; i < NR; i++) {
		snprintf(path, sizeof(path), "/src/%u.c", i);
		assert_int_equal(chains_intern_file(c, path), i);
		assert_string_equal(chains_file(c, i).str, path);
	}
	assert_int_equal(chains_nr_files(c), NR);
	/* Foreign bytes are cleaned. */
	assert_string_equal(chains_file(c, chains_intern_file(c, "a\033b")).str, "a\u00b7b");
	assert_string_equal(chains_file(c, NR + 1).str, "");
	chains_free(c);
}

/* The memory for chains is limited; stored chains remain. */
TEST(test_limit)
{
	struct symbol_frame frames[32] = { { 1, 2, 3 } };
	uint32_t place = 0, nr;
	struct chains *c;

	assert_int_equal(chains_new(&c), 0);
	while (!chains_put(c, place, frames, 32))
		place++;
	assert_true(chains_memory(c) <= CHAINS_MEMORY_MAX + (4UL << 20));
	assert_true((size_t)place * sizeof(frames) > CHAINS_MEMORY_MAX / 2);
	assert_int_equal(chains_at(c, 0, &nr)->line, 3);
	assert_int_equal(nr, 32);
	chains_free(c);
}

/* Read while it is written: whatever is there is whole. */
static void *read_all(void *arg)
{
	const struct chains *c = arg;
	uint32_t seen = 0, nr;

	while (seen < NR) {
		seen = 0;
		for (uint32_t i = 0; i < NR; i++) {
			const struct symbol_frame *is = chains_at(c, i, &nr);

			if (!is)
				continue;
			seen++;
			if (nr != 2 || is[0].symbol != i || is[1].line != i + 1 ||
			    !chains_file(c, is[0].file).size)
				return arg;
		}
	}
	return NULL;
}

TEST(test_threads)
{
	struct chains *c;
	pthread_t reader;
	void *bad;
	char path[32];

	assert_int_equal(chains_new(&c), 0);
	assert_int_equal(pthread_create(&reader, NULL, read_all, c), 0);
	for (uint32_t i = 0; i < NR; i++) {
		struct symbol_frame frames[2] = { { i, 0, 5 }, { SYMBOL_NONE, 0, i + 1 } };

		snprintf(path, sizeof(path), "%u.c", i / 3);
		frames[0].file = chains_intern_file(c, path);
		assert_int_equal(chains_put(c, i, frames, 2), 0);
	}
	pthread_join(reader, &bad);
	assert_null(bad);
	chains_free(c);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
