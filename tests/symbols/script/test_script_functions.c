// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * codes: functions of scripts by key; bounded for a process that makes up a million of them, or
 * chooses ones with equal hashes; added by several readers while others look.
 * Live: takes about a second of CPU time, or more.
 */
#include "tests/prelude.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/script/internal.h"
#include "tests/unhash.h"
#include "symbols/base/base.h"

#define MILLION 1000000U
#define THREADS 4
#define EACH	2000U

static uint32_t add_of(struct script_functions *c, uint32_t user, uint32_t process,
		       uint64_t address, const char *name)
{
	const struct code_key key = { process, address, address ^ 7 };
	const struct code_text text = {
		.language = LANG_PYTHON,
		.first_line = 3,
		.name_size = (uint16_t)strlen(name),
		.file_size = 4,
		.name = name,
		.file = "a.py",
		.user = user,
	};

	return script_functions_add(c, &key, &text);
}

/* Each process has a user. */
static uint32_t add(struct script_functions *c, uint32_t process, uint64_t address,
		    const char *name)
{
	return add_of(c, process, process, address, name);
}

/* One process takes a share of the table and no more; others go on. */
TEST(test_million)
{
	struct script_functions *c = script_functions_new();
	uint32_t nr = 0;
	char name[32];

	assert_non_null(c);
	for (uint32_t i = 0; i < MILLION; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		nr += add(c, 1, 4096 + i, name) != CODE_NONE;
	}
	assert_int_equal(nr, SCRIPT_FUNCTIONS_PROCESS_MAX);
	assert_int_equal(script_functions_nr(c), nr);
	assert_int_not_equal(add(c, 2, 4096, "other"), CODE_NONE);
	/* Known ones are found. */
	assert_int_equal(add(c, 1, 4096, "f0"), 0);
	script_functions_free(c);
}

/* Each process that runs the same scripts has the same functions: the table does not grow. */
TEST(test_same_scripts)
{
	struct script_functions *c = script_functions_new();
	const struct code_key last = { 2000, 4096, 4096 ^ 7 }, first = { 1, 4096, 4096 ^ 7 };
	size_t memory = 0;
	char name[32];

	for (uint32_t process = 1; process <= 2000; process++) {
		for (uint32_t i = 0; i < 200; i++) {
			snprintf(name, sizeof(name), "f%u", i);
			assert_int_equal(add(c, process, 4096 + i, name), i);
		}
		memory = memory ? memory : script_functions_memory(c);
	}
	assert_int_equal(script_functions_nr(c), 200);
	assert_int_equal(script_functions_memory(c), memory);
	assert_int_equal(script_functions_find(c, &last), 0);
	/* Its key was forgotten, and it is the same function again. */
	assert_int_equal(script_functions_find(c, &first), CODE_NONE);
	assert_int_equal(add(c, 1, 4096, "f0"), 0);
	script_functions_free(c);
}

/* A function that is looked up is not forgotten, however many others there are. */
TEST(test_used_key)
{
	const struct code_key used = { 1, 4096, 4096 ^ 7 };
	struct script_functions *c = script_functions_new();

	assert_int_equal(add(c, 1, 4096, "used"), 0);
	for (uint32_t i = 0; i < 4 * SCRIPT_FUNCTIONS_KEYS_MAX; i++) {
		assert_int_equal(add(c, 2, 4096 + i, "other"), 1);
		if (!(i % (SCRIPT_FUNCTIONS_KEYS_MAX / 2)))
			assert_int_equal(script_functions_find(c, &used), 0);
	}
	assert_int_equal(script_functions_nr(c), 2);
	script_functions_free(c);
}

#define LARGE 250000U

static uint32_t add_large_of(struct script_functions *c, uint32_t user, uint32_t process,
			     uint32_t i)
{
	static char name[SCRIPT_FUNCTIONS_TEXT_MAX + 1];

	memset(name, 'x', SCRIPT_FUNCTIONS_TEXT_MAX);
	name[snprintf(name, sizeof(name), "%08x", i)] = 'x';
	return add_of(c, user, process, 4096 + i, name);
}

static uint32_t add_large(struct script_functions *c, uint32_t process, uint32_t i)
{
	return add_large_of(c, process, process, i);
}

/* Many processes with large texts fill the memory, and no more. */
TEST(test_memory)
{
	struct script_functions *c = script_functions_new();
	uint32_t nr = 0;

	for (uint32_t i = 0; i < LARGE; i++)
		nr += add_large(c, 1 + i / 6000, i) != CODE_NONE;
	assert_in_range(nr, SCRIPT_FUNCTIONS_MEMORY_MAX / 1024,
			SCRIPT_FUNCTIONS_MEMORY_MAX / SCRIPT_FUNCTIONS_TEXT_MAX);
	assert_true(script_functions_memory(c) <= SCRIPT_FUNCTIONS_MEMORY_MAX + LARGE * 64UL);
	/* Equal texts are stored once: that of another process needs no more. */
	assert_int_not_equal(add_large(c, 99, 0), CODE_NONE);
	script_functions_free(c);
}

#define CHOSEN 20000U

/*
 * Add functions with two words as table, and return the CPU time: @chosen such that all have one
 * hash where a hash has no key.
 */
static uint64_t add_tables(bool chosen)
{
	struct script_functions *c = script_functions_new();
	uint64_t start_ns = time_thread_ns(), begin;

	begin = hash_u64(hash_u64((uint64_t)1 << 16 | LANG_PYTHON << 8 | 11));
	begin = hash_u64(begin ^ 'f') + 1;
	begin = hash_u64(begin ^ 'a') + 1;
	for (uint64_t i = 0; i < CHOSEN; i++) {
		uint64_t table[2] = { i, chosen ? unhash_u64(77) ^ (hash_u64(begin ^ i) + 16) : 0 };
		const struct code_text text = {
			.language = LANG_PYTHON,
			.version = 11,
			.first_line = 1,
			.name = "f",
			.name_size = 1,
			.file = "a",
			.file_size = 1,
			.table = (const uint8_t *)table,
			.table_size = sizeof(table),
		};

		assert_int_equal(script_functions_add(c, &(struct code_key){ 7, 4096 + 8 * i, i },
						      &text),
				 i);
	}
	start_ns = time_thread_ns() - start_ns;
	script_functions_free(c);
	return start_ns;
}

/* The same with one text that is at many addresses: the hashes of the keys. */
static uint64_t add_keys(bool chosen)
{
	struct script_functions *c = script_functions_new();
	uint64_t start_ns = time_thread_ns();

	for (uint64_t i = 0; i < CHOSEN; i++) {
		const struct code_key key = { 0, i, chosen ? hash_u64(i) : i };
		const struct code_text text = {
			.language = LANG_PYTHON,
			.name = "f",
			.name_size = 1,
			.file = "a",
			.file_size = 1,
		};

		assert_int_equal(script_functions_add(c, &key, &text), 0);
	}
	start_ns = time_thread_ns() - start_ns;
	script_functions_free(c);
	return start_ns;
}

/* A process that chooses its functions makes no look-up slow: all readers wait for the table. */
TEST(test_chosen_hashes)
{
	unhash_compare("tables", add_tables);
	unhash_compare("keys", add_keys);
}

/* One process takes an eighth of the memory and no more. */
TEST(test_memory_of_process)
{
	struct script_functions *c = script_functions_new();
	uint32_t nr = 0;

	for (uint32_t i = 0; i < SCRIPT_FUNCTIONS_PROCESS_MAX; i++)
		nr += add_large(c, 1, i) != CODE_NONE;
	assert_in_range(nr, SCRIPT_FUNCTIONS_PROCESS_MEMORY / 1024,
			SCRIPT_FUNCTIONS_PROCESS_MEMORY / SCRIPT_FUNCTIONS_TEXT_MAX);
	assert_int_equal(add_large(c, 2, nr), nr);
	/* Functions of others are found by it as well. */
	assert_int_equal(add_large(c, 1, nr), nr);
	script_functions_free(c);
}

/* Processes of one user take three quarters of the memory and no more; others go on. */
TEST(test_memory_of_user)
{
	struct script_functions *c = script_functions_new();
	uint32_t nr = 0;

	for (uint32_t i = 0; i < LARGE; i++)
		nr += add_large_of(c, 1000, 1 + i / 6000, i) != CODE_NONE;
	assert_in_range(nr, SCRIPT_FUNCTIONS_USER_MEMORY / 1024,
			SCRIPT_FUNCTIONS_USER_MEMORY / SCRIPT_FUNCTIONS_TEXT_MAX);
	assert_int_equal(add_large_of(c, 1000, 99, LARGE), CODE_NONE);
	assert_int_equal(add_large_of(c, 1001, 100, LARGE), nr);
	script_functions_free(c);
}

/* Functions have names also when their tables of lines are too large. */
TEST(test_without_table)
{
	static const uint8_t table[SCRIPT_FUNCTIONS_TABLE_MAX];
	struct script_functions *c = script_functions_new();
	uint32_t nr_tables = 0;

	for (uint32_t i = 0; i < 1000; i++) {
		const struct code_text text = {
			.language = LANG_PYTHON,
			.first_line = i,
			.name = "f",
			.name_size = 1,
			.file = "<string>",
			.file_size = 8,
			.table = table,
			.table_size = sizeof(table),
		};

		assert_int_equal(script_functions_add(c, &(struct code_key){ 7, i, i }, &text), i);
		assert_int_equal(script_functions_at(c, i)->first_line, i);
		nr_tables += script_functions_at(c, i)->table_size > 0;
	}
	assert_in_range(nr_tables, SCRIPT_FUNCTIONS_PROCESS_MEMORY / sizeof(table) / 2,
			SCRIPT_FUNCTIONS_PROCESS_MEMORY / sizeof(table) * 3 / 4);
	script_functions_free(c);
}

static struct script_functions *shared;

static void *add_many(void *arg)
{
	uint32_t process = (uint32_t)(uintptr_t)arg;
	char name[32];

	for (uint32_t i = 0; i < EACH; i++) {
		/* Two threads for each process: both add the same. */
		struct code_key key = { process / 2, 4096 + i, (4096 + i) ^ 7 };
		const struct code_text *text;
		uint32_t id;

		snprintf(name, sizeof(name), "p%u_f%u", process / 2, i);
		id = add(shared, process / 2, 4096 + i, name);
		text = script_functions_at(shared, id);
		if (script_functions_find(shared, &key) != id || !text ||
		    text->name_size != strlen(name) || memcmp(text->name, name, text->name_size))
			return (void *)1;
	}
	return NULL;
}

TEST(test_threads)
{
	pthread_t threads[THREADS];
	void *failed;

	shared = script_functions_new();
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, add_many, (void *)(i + 2)), 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	assert_int_equal(script_functions_nr(shared), THREADS / 2 * EACH);
	script_functions_free(shared);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
