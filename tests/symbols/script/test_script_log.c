// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * code_log: each key once, in order, while others are forgotten; limits of a process and of all.
 */
#include "symbols/script/functions.c"

#include "tests/prelude.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "symbols/base/base.h"

static void add_entry(struct script_log *l, uint32_t process, uint64_t address, const char *name)
{
	const struct code_key key = { process, address, 7 };
	const struct code_text text = {
		.language = LANG_JAVA,
		.name_size = (uint16_t)strlen(name),
		.file_size = 1,
		.table_size = sizeof(address),
		.name = name,
		.file = "-",
		.table = (const uint8_t *)&address,
	};

	script_log_add(l, &key, &text);
}

/* Return how many there are after @last, and check the last one's name and table. */
static uint32_t count_entries(struct script_log *l, uint64_t last, const char *name,
			      uint64_t address)
{
	struct script_log_copy copy;
	uint32_t nr = 0;

	while (script_log_next(l, &last, &copy))
		nr++;
	if (!nr)
		return 0;
	assert_int_equal(copy.text.name_size, strlen(name));
	assert_memory_equal(copy.text.name, name, copy.text.name_size);
	assert_memory_equal(copy.text.file, "-", 1);
	assert_int_equal(copy.text.table_size, sizeof(address));
	assert_memory_equal(copy.text.table, &address, sizeof(address));
	return nr;
}

TEST(test_order)
{
	struct script_log *l = script_log_new();
	struct script_log_copy copy;
	uint64_t last = 0;

	assert_false(script_log_next(l, &last, &copy));
	add_entry(l, 1, 4096, "first");
	add_entry(l, 2, 4096, "second");
	add_entry(l, 1, 4096, "the key of the first");
	assert_int_equal(count_entries(l, 0, "second", 4096), 2);
	assert_true(script_log_next(l, &last, &copy));
	assert_memory_equal(copy.text.name, "first", 5);
	/* A reader goes on where it was, also if that is gone. */
	script_log_forget(l, 1);
	add_entry(l, 3, 8192, "third");
	add_entry(l, 2, 4096, "the key of the second");
	assert_int_equal(count_entries(l, last, "third", 8192), 2);
	script_log_forget(l, 2);
	assert_int_equal(count_entries(l, 0, "third", 8192), 1);
	/* A key that was forgotten may come again. */
	add_entry(l, 1, 4096, "first");
	assert_int_equal(count_entries(l, 0, "first", 4096), 2);
	script_log_forget(l, 1);
	script_log_forget(l, 3);
	assert_int_equal(script_log_memory(l), 0);
	script_log_free(l);
}

/* One process has a part only; processes that come and go need no more memory. */
TEST(test_limits)
{
	static char name[SCRIPT_FUNCTIONS_TEXT_MAX + 1];
	struct script_log *l = script_log_new();
	size_t most;

	for (uint32_t i = 0; i < SCRIPT_LOG_PROCESS_MAX + 100; i++)
		add_entry(l, 1, i, "f");
	assert_int_equal(count_entries(l, 0, "f", SCRIPT_LOG_PROCESS_MAX - 1),
			 SCRIPT_LOG_PROCESS_MAX);
	memset(name, 'x', SCRIPT_FUNCTIONS_TEXT_MAX);
	for (uint32_t i = 0; i < SCRIPT_LOG_PROCESS_MAX; i++)
		add_entry(l, 2, i, name);
	most = script_log_memory(l);
	assert_in_range(most, SCRIPT_LOG_MEMORY_MAX / 2, SCRIPT_LOG_MEMORY_MAX);
	for (uint32_t process = 3; process < 8; process++) {
		script_log_forget(l, process - 1);
		for (uint32_t i = 0; i < SCRIPT_LOG_PROCESS_MAX; i++)
			add_entry(l, process, i, name);
		assert_int_equal(script_log_memory(l), most);
	}
	script_log_free(l);
}

#define PROCESSES 7U
#define ENTRIES	  20000U

/* The process of entry @i. */
static uint32_t owner_of(uint64_t i)
{
	return (uint32_t)(hash_u64(i) >> 33) % PROCESSES;
}

/* Entries of all sizes, over many pages, keep order, names and tables while processes leave. */
TEST(test_moves)
{
	static char name[SCRIPT_FUNCTIONS_TEXT_MAX + 1];
	static struct script_log_copy copy;
	struct script_log *l = script_log_new();
	bool gone[PROCESSES] = { false };

	memset(name, 'n', SCRIPT_FUNCTIONS_TEXT_MAX);
	for (uint64_t i = 1; i <= ENTRIES; i++)
		add_entry(l, owner_of(i), i, name + i % SCRIPT_FUNCTIONS_TEXT_MAX);
	assert_true(script_log_memory(l) > 20UL * 256 * 1024);
	for (uint32_t leave = 0; leave < PROCESSES; leave++) {
		uint64_t last = 0;

		script_log_forget(l, leave * 3 % PROCESSES);
		gone[leave * 3 % PROCESSES] = true;
		for (uint64_t i = 1; i <= ENTRIES; i++) {
			if (gone[owner_of(i)])
				continue;
			assert_true(script_log_next(l, &last, &copy));
			assert_int_equal(last, i);
			assert_int_equal(copy.text.name_size,
					 SCRIPT_FUNCTIONS_TEXT_MAX - i % SCRIPT_FUNCTIONS_TEXT_MAX);
			assert_memory_equal(copy.text.name, name, copy.text.name_size);
			assert_memory_equal(copy.text.table, &i, sizeof(i));
		}
		assert_false(script_log_next(l, &last, &copy));
	}
	assert_int_equal(script_log_memory(l), 0);
	add_entry(l, 1, 1, "again");
	assert_int_equal(count_entries(l, 0, "again", 1), 1);
	script_log_free(l);
}

static atomic_bool stop;

/* A recording goes on while processes come and go. */
static void *read_on(void *arg)
{
	struct script_log_copy copy;
	uint64_t last = 0, before = 0;
	uintptr_t wrong = 0;

	while (!atomic_load(&stop))
		while (script_log_next(arg, &last, &copy)) {
			wrong += last <= before || copy.text.name_size != 1 ||
				 *copy.text.name != 'f';
			before = last;
		}
	return (void *)wrong;
}

TEST(test_threads)
{
	struct script_log *l = script_log_new();
	pthread_t reader;
	void *wrong;

	assert_int_equal(pthread_create(&reader, NULL, read_on, l), 0);
	for (uint32_t process = 1; process < 200; process++) {
		for (uint32_t i = 0; i < 100; i++)
			add_entry(l, process, i, "f");
		if (process > 3)
			script_log_forget(l, process - 3);
	}
	atomic_store(&stop, true);
	assert_int_equal(pthread_join(reader, &wrong), 0);
	assert_null(wrong);
	script_log_free(l);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
