// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * line_ends: processes that come and go with the same scripts add nothing; scripts that are not
 * looked up are forgotten, and memory is level.
 * Live: reads a clock.
 */
#include "symbols/script/functions.c"

#include "tests/prelude.h"

#include "symbols/base/base.h"

#define NR 1000U

static void put_script(struct line_ends *l, const struct line_ends_key *key, uint32_t step)
{
	uint32_t ends[NR];

	for (uint32_t i = 0; i < NR; i++)
		ends[i] = (i + 1) * step;
	line_ends_add(l, key, 0, NR / 2, ends, NR / 2, false);
	line_ends_add(l, key, NR / 2, NR, ends + NR / 2, NR / 2, true);
}

/* In each process a script of the same lines at another address: one text. */
TEST(test_equal_scripts)
{
	struct line_ends *l = line_ends_new();
	struct line_ends_key key = { 1, 0x1000, 7 };
	const struct line_ends_text *text;
	uint32_t from;
	size_t memory;

	put_script(l, &key, 10);
	text = line_ends_get(l, &key, &from);
	assert_int_equal(from, NR);
	memory = l->memory;
	for (uint32_t process = 2; process < 200; process++) {
		key = (struct line_ends_key){ process, 0x1000 + process * 16, 7 };
		put_script(l, &key, 10);
		assert_ptr_equal(line_ends_get(l, &key, &from), text);
	}
	assert_in_range(l->memory, memory, memory + 200 * 100);
	assert_int_equal(line_ends_line(text, 15), 2);
	key.address++;
	put_script(l, &key, 11);
	assert_ptr_not_equal(line_ends_get(l, &key, &from), text);
	assert_int_equal(line_ends_line(line_ends_get(l, &key, &from), 10), 1);
	line_ends_free(l);
}

/* Scripts that are made again and again: the one that is looked up has its lines all the time. */
TEST(test_scripts_are_forgotten)
{
	struct line_ends *l = line_ends_new();
	struct line_ends_key used = { 1, 0x1000, 7 }, first = { 2, 0, 1 }, key = first;
	size_t memory = 0;
	uint32_t from;

	put_script(l, &used, 10);
	for (uint32_t i = 0; i < 10 * LINE_ENDS_SCRIPTS_MAX; i++, key.address += 16) {
		uint32_t end = 5;

		if (i == 2 * LINE_ENDS_SCRIPTS_MAX)
			memory = l->memory;
		/* Refused, read to the end, and in part. */
		if (i % 3 == 0)
			line_ends_refuse(l, &key);
		else
			line_ends_add(l, &key, 0, 9, &end, 1, i % 3 == 1);
		assert_int_equal(line_ends_get(l, &key, &from) != NULL, i % 3 != 2);
		if (i % 100 == 0)
			assert_int_equal(line_ends_line(line_ends_get(l, &used, &from), 15), 2);
	}
	assert_in_range(l->memory, memory / 2, 2 * memory);
	assert_null(line_ends_get(l, &first, &from));
	assert_int_equal(from, 0);
	/* As a new one. */
	put_script(l, &first, 3);
	assert_int_equal(line_ends_line(line_ends_get(l, &first, &from), 4), 2);
	line_ends_free(l);
}

/* One process takes an eighth of the memory and no more; others go on. */
TEST(test_memory_of_process)
{
	struct line_ends *l = line_ends_new();
	struct line_ends_key key = { 1, 0x1000, 7 };
	uint32_t from, nr = 0;

	for (uint32_t i = 1; i <= 4000; i++, key.address += 16) {
		put_script(l, &key, i);
		nr += line_ends_line(line_ends_get(l, &key, &from), i + 1) == 2;
	}
	assert_in_range(nr, 1500, LINE_ENDS_PROCESS_MEMORY / (NR * sizeof(uint32_t)));
	assert_in_range(l->memory, LINE_ENDS_PROCESS_MEMORY / 2,
			LINE_ENDS_PROCESS_MEMORY + (1 << 20));
	key.process = 2;
	put_script(l, &key, 5000);
	assert_int_equal(line_ends_line(line_ends_get(l, &key, &from), 5001), 2);
	line_ends_free(l);
}

/* Add scripts in one address space, all refused, and return the CPU time. */
static uint64_t add_scripts(bool chosen)
{
	struct line_ends *l = line_ends_new();
	uint64_t start_ns = time_thread_ns();

	for (uint64_t i = 0; i < LINE_ENDS_SCRIPTS_MAX; i++)
		line_ends_refuse(l, &(struct line_ends_key){
					    0, i, chosen ? hash_u64(i) : i }); /* hash 0 */
	start_ns = time_thread_ns() - start_ns;
	line_ends_free(l);
	return start_ns;
}

/* A process that chooses addresses and stamps makes no look-up slow. */
TEST(test_chosen_hashes)
{
	uint64_t plain_ns = add_scripts(false), chosen_ns = add_scripts(true);

	print_message("%.1f and %.1f ms\n", (double)plain_ns / 1e6, (double)chosen_ns / 1e6);
	assert_in_range(chosen_ns, 0, 10 * plain_ns + 10000000);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
