// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * chains: stored chains are found, also from other threads; files by path, within a limit.
 * Live: takes about a second of CPU time, or more.
 */
#include "symbols/dwarf/lines.c"
#include "symbols/symbols.c"

#include "tests/prelude_rcu.h"

#include <errno.h>
#include <pthread.h>

#include "symbols/image/image.h"
#include "symbols/name/name.h"

#define NR 20000U

TEST(test_put_and_find)
{
	struct symbol_frame frames[32];
	struct inlines *c;
	uint32_t nr;

	assert_int_equal(inlines_new(&c), 0);
	for (uint32_t i = 0; i < 32; i++)
		frames[i] = (struct symbol_frame){ i, i + 1, i + 2 };
	assert_null(inlines_at(c, 0, &nr));
	assert_int_equal(nr, 0);
	for (uint32_t i = 0; i < NR; i++)
		assert_int_equal(inlines_put(c, i * 7, frames, 1 + i % 32), 0);
	for (uint32_t i = 0; i < NR; i++) {
		const struct symbol_frame *is = inlines_at(c, i * 7, &nr);

		assert_int_equal(nr, 1 + i % 32);
		assert_memory_equal(is, frames, nr * sizeof(*is));
		assert_null(inlines_at(c, i * 7 + 1, &nr));
	}
	assert_int_equal(inlines_put(c, UINT32_MAX, frames, 1), -ENOSPC);
	assert_null(inlines_at(c, UINT32_MAX, &nr));
	assert_true(inlines_memory(c) > NR * 12);
	inlines_free(c);
}

/* Code that a JIT makes again, at other addresses, has the chains of before. */
TEST(test_equal)
{
	const struct symbol_frame a[] = { { 1, 2, 3 }, { SYMBOL_NONE, 4, 5 } };
	const struct symbol_frame b[] = { { 1, 2, 3 }, { SYMBOL_NONE, 4, 6 } };
	const struct symbol_frame *first, *other;
	struct inlines *c;
	size_t memory;
	uint32_t nr;

	assert_int_equal(inlines_new(&c), 0);
	assert_int_equal(inlines_put(c, 0, a, 2), 0);
	assert_int_equal(inlines_put(c, 1, b, 2), 0);
	assert_int_equal(inlines_put(c, 2, b, 1), 0);
	first = inlines_at(c, 0, &nr);
	other = inlines_at(c, 1, &nr);
	assert_true(other[1].line == 6 && inlines_at(c, 2, &nr) != first && nr == 1);
	memory = inlines_memory(c);
	for (uint32_t i = 3; i < 4000; i++) {
		assert_int_equal(inlines_put(c, i, i % 2 ? a : b, 2), 0);
		assert_ptr_equal(inlines_at(c, i, &nr), i % 2 ? first : other);
	}
	assert_int_equal(inlines_memory(c), memory);
	inlines_free(c);
}

TEST(test_files)
{
	struct inlines *c;
	char path[64];

	assert_int_equal(inlines_new(&c), 0);
	for (uint32_t i = 0; i < NR; i++) {
		snprintf(path, sizeof(path), "/src/%u.c", i);
		assert_int_equal(inlines_intern_file(c, 1, path), i);
	}
	for (uint32_t i = 0; i < NR; i++) {
		snprintf(path, sizeof(path), "/src/%u.c", i);
		assert_int_equal(inlines_intern_file(c, 1, path), i);
		assert_string_equal(inlines_file(c, i).str, path);
	}
	assert_int_equal(inlines_nr_files(c), NR);
	/* Foreign bytes are cleaned. */
	assert_string_equal(inlines_file(c, inlines_intern_file(c, 1, "a\033b")).str, "a\u00b7b");
	assert_string_equal(inlines_file(c, NR + 1).str, "");
	inlines_free(c);
}

/* The memory for chains is limited; stored chains remain. */
TEST(test_limit)
{
	struct symbol_frame frames[32] = { { 1, 2, 3 } };
	uint32_t place = 0, nr;
	struct inlines *c;

	assert_int_equal(inlines_new(&c), 0);
	while (!inlines_put(c, place, frames, 32))
		frames[1].symbol = ++place;
	assert_true(inlines_memory(c) <= INLINES_MEMORY_MAX + (4UL << 20));
	assert_true((size_t)place * sizeof(frames) > INLINES_MEMORY_MAX / 2);
	assert_int_equal(inlines_at(c, 0, &nr)->line, 3);
	assert_int_equal(nr, 32);
	inlines_free(c);
}

/* Make distinct paths of 1 KiB, as debug information can. Return how many have ids. */
static uint32_t intern_long(struct inlines *c, uint32_t object, uint32_t nr)
{
	char path[1024];
	uint32_t kept = 0;

	memset(path, 'd', sizeof(path));
	for (uint32_t i = 0; i < nr; i++) {
		snprintf(path + 1000, sizeof(path) - 1000, "/%u-%u.c", object, i);
		kept += inlines_intern_file(c, object, path) != SYMBOL_NO_FILE;
	}
	return kept;
}

/* One object takes a share of the memory for files, many of them not all that is left. */
TEST(test_files_limit)
{
	uint32_t kept, nr = 0;
	struct inlines *c;

	assert_int_equal(inlines_new(&c), 0);
	kept = intern_long(c, 1, 100000);
	assert_in_range(kept, 3000, 4000);
	assert_true(inlines_memory(c) < INLINES_FILES_MEMORY_MAX / 7);
	/* Known ones have their ids. */
	assert_int_equal(intern_long(c, 1, kept), kept);
	/* One of 4,096 has the slot of object 1, and its share. */
	assert_true(intern_long(c, 2, 1000) == 1000 || intern_long(c, 3, 1000) == 1000);
	for (uint32_t object = 4; object < 60; object++)
		kept += intern_long(c, object, 1000);
	for (uint32_t object = 60; object < 70; object++) {
		char path[16];

		snprintf(path, sizeof(path), "/honest%u.c", object);
		nr += inlines_intern_file(c, object, path) != SYMBOL_NO_FILE;
	}
	assert_in_range(nr, 5, 10);
	for (uint32_t object = 70; object < 270; object++)
		kept += intern_long(c, object, 1000);
	assert_in_range(kept, 20000, 32768);
	assert_true(inlines_memory(c) < INLINES_FILES_MEMORY_MAX + (256U << 10));
	inlines_free(c);
}

/* Files that no moved place has leave, and others get their room. */
TEST(test_files_move)
{
	struct symbol_frame frame = { SYMBOL_NONE, 0, 1 };
	const struct symbol_frame *is;
	struct objects *objects;
	struct symtab *symtab;
	struct places *from, *to;
	struct places_move *m;
	uint32_t file, id, nr;
	struct inlines *c;

	assert_int_equal(objects_new(&objects), 0);
	assert_int_equal(symtab_new(&symtab), 0);
	assert_int_equal(places_new(&from, 1 << 16), 0);
	assert_int_equal(places_new(&to, 1 << 16), 0);
	assert_int_equal(inlines_new(&c), 0);
	for (uint32_t object = 1; object < 400; object++)
		intern_long(c, object, 500);
	assert_int_equal(intern_long(c, 400, 1000), 0);
	file = frame.file = inlines_nr_files(c) - 1;
	for (uint32_t i = 0; i < 2; i++) {
		id = places_intern(from, 7 + i, 16);
		assert_int_equal(inlines_put(c, id, &frame, 1), 0);
	}
	m = places_move_new(from, to, c, objects, symtab);
	assert_non_null(m);
	for (uint32_t i = 0; i <= id; i++) {
		is = inlines_at(m->to_chains, places_move_one(m, i), &nr);
		assert_int_equal(nr, 1);
		assert_string_equal(inlines_file(m->to_chains, is->file).str,
				    inlines_file(c, file).str);
	}
	assert_int_equal(inlines_nr_files(m->to_chains), 1);
	assert_true(inlines_memory(m->to_chains) < INLINES_FILES_MEMORY_MAX / 8);
	assert_int_equal(intern_long(m->to_chains, 400, 1000), 1000);
	inlines_free(m->to_chains);
	places_move_free(m);
	inlines_free(c);
	places_free(from);
	places_free(to);
	symtab_free(symtab);
	objects_free(objects);
}

/* These have one 64-bit FNV-1a: a hash is no proof that a path is the same. */
TEST(test_files_of_one_hash)
{
	struct inlines *c;
	uint32_t id;

	assert_int_equal(inlines_new(&c), 0);
	id = inlines_intern_file(c, 1, "8yn0iYCKYHlIj4-BwPqk");
	assert_int_not_equal(inlines_intern_file(c, 1, "GReLUrM4wMqfg9yzV3KQ"), id);
	assert_int_equal(inlines_nr_files(c), 2);
	assert_int_equal(inlines_intern_file(c, 1, "8yn0iYCKYHlIj4-BwPqk"), id);
	inlines_free(c);
}

/* Read while it is written: whatever is there is whole. */
static void *read_all(void *arg)
{
	const struct inlines *c = arg;
	uint32_t seen = 0, nr;

	while (seen < NR) {
		seen = 0;
		for (uint32_t i = 0; i < NR; i++) {
			const struct symbol_frame *is = inlines_at(c, i, &nr);

			if (!is)
				continue;
			seen++;
			if (nr != 2 || is[0].symbol != i || is[1].line != i + 1 ||
			    !inlines_file(c, is[0].file).size)
				return arg;
		}
	}
	return NULL;
}

TEST(test_threads)
{
	struct inlines *c;
	pthread_t reader;
	void *bad;
	char path[32];

	assert_int_equal(inlines_new(&c), 0);
	assert_int_equal(pthread_create(&reader, NULL, read_all, c), 0);
	for (uint32_t i = 0; i < NR; i++) {
		struct symbol_frame frames[2] = { { i, 0, 5 }, { SYMBOL_NONE, 0, i + 1 } };

		snprintf(path, sizeof(path), "%u.c", i / 3);
		frames[0].file = inlines_intern_file(c, 1, path);
		assert_int_equal(inlines_put(c, i, frames, 2), 0);
	}
	pthread_join(reader, &bad);
	assert_null(bad);
	inlines_free(c);
}

int main(void)
{
	return run_rcu_tests(NULL, NULL);
}
