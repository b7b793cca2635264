// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * symtab: functions that are kept have their ids and texts, dropped ones are gone and get new ids;
 * memory of programs that come and go is level; readers during all that.
 * Live: waits for threads or processes.
 */
#include "tests/prelude_rcu.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/base/table.h"
#include "symbols/base/thread.h"
#include "symbols/name/name.h"
#include "tests/unhash.h"

/* The id of the first function: 0 is in places that were never written. */
#define FIRST 1

#define NR 5000U

static uint32_t add(struct symtab *t, uint32_t object, uint32_t start)
{
	const struct symtab_key key = { .object = object, .start = start };
	char name[32], module[16];
	struct symtab_text text = { name, module, 0, 0, 'u', false };

	text.name_size = (size_t)snprintf(name, sizeof(name), "f%u\t\\%u\xff", start, object);
	text.module_size = (size_t)snprintf(module, sizeof(module), "lib%u", start % 3);
	assert_int_equal(symtab_find(t, &key), SYMBOL_NONE);
	return symtab_add(t, &key, &text);
}

static uint32_t find(const struct symtab *t, uint32_t object, uint32_t start)
{
	return symtab_find(t, &(struct symtab_key){ .object = object, .start = start });
}

static bool is_kept(uint32_t id)
{
	return id % 3 == 1 || (id > 2000 && id < 2100);
}

static void keep(struct symtab *t, bool (*is_wanted)(uint32_t id))
{
	uint32_t nr = symtab_nr(t);
	uint64_t *live = calloc(nr / 64 + 1, sizeof(*live));

	for (uint32_t id = 0; id < nr; id++)
		if (is_wanted(id))
			live[id / 64] |= 1ULL << id % 64;
	assert_int_equal(symtab_keep(t, live), 0);
	assert_int_equal(symtab_nr(t), nr);
	free(live);
}

TEST(test_keep)
{
	static char names[NR][40];
	struct symtab *t;

	assert_int_equal(symtab_new(&t), 0);
	for (uint32_t i = 0; i < NR; i++) {
		assert_int_equal(add(t, 7, i), FIRST + i);
		snprintf(names[i], sizeof(names[i]), "%s", symtab_at(t, FIRST + i)->name.str);
	}
	/* Twice: the second time there are holes. */
	for (int round = 0; round < 2; round++) {
		keep(t, is_kept);
		for (uint32_t i = 0; i < NR; i++) {
			const struct symbol *s = symtab_at(t, FIRST + i);
			bool kept = is_kept(FIRST + i);
			char module[16];

			assert_int_equal(find(t, 7, i), kept ? FIRST + i : SYMBOL_NONE);
			assert_int_equal(s != NULL, kept);
			if (!s)
				continue;
			snprintf(module, sizeof(module), "lib%u", i % 3);
			assert_string_equal(s->name.str, names[i]);
			assert_int_equal(s->name.size, strlen(names[i]));
			assert_string_equal(s->module.str, module);
			assert_int_equal(s->start, i);
		}
	}
	assert_null(symtab_at(t, FIRST + NR));
	assert_int_equal(add(t, 7, 1), FIRST + NR);
	assert_string_equal(symtab_at(t, FIRST + NR)->name.str, names[1]);
	symtab_free(t);
}

static bool is_early(uint32_t id)
{
	return id < FIRST + NR;
}

TEST(test_level)
{
	struct symtab *t;
	size_t memory;

	assert_int_equal(symtab_new(&t), 0);
	for (uint32_t i = 0; i < NR; i++)
		add(t, 7, i);
	keep(t, is_early);
	memory = symtab_memory(t);
	for (uint32_t object = 8; object < 40; object++) {
		for (uint32_t i = 0; i < NR; i++)
			add(t, object, i);
		keep(t, is_early);
		/* And the part of a chunk, and a pointer for each. */
		assert_in_range(symtab_memory(t), memory / 2,
				memory + 256 * sizeof(struct symbol) + symtab_nr(t));
	}
	symtab_free(t);
}

static bool is_rare(uint32_t id)
{
	return id % 200 == 7;
}

/* Functions that remain of many: each does not keep a large chunk. */
TEST(test_spread)
{
	struct symtab *t;
	uint32_t nr;

	assert_int_equal(symtab_new(&t), 0);
	for (uint32_t object = 0; object < 40; object++)
		for (uint32_t i = 0; i < NR; i++)
			add(t, object, i);
	keep(t, is_rare);
	nr = symtab_nr(t);
	print_message("%u of %u functions have %zu KiB\n", nr / 200, nr, symtab_memory(t) >> 10);
	assert_true(symtab_memory(t) < nr / 200 * 24 * sizeof(struct symbol) + (256U << 10));
	symtab_free(t);
}

static struct symtab *shared;
static atomic_bool stop;

static void *read_early(void *arg)
{
	uintptr_t wrong = 0;

	(void)arg;
	urcu_qsbr_register_thread();
	while (!atomic_load(&stop)) {
		for (uint32_t i = 0; i < NR; i++) {
			const struct symbol *s = symtab_at(shared, FIRST + i);

			wrong += !s || s->start != i || s->name.str[0] != 'f';
		}
		for (uint32_t i = FIRST + NR; i < symtab_nr(shared); i += 97) {
			const struct symbol *s = symtab_at(shared, i);

			wrong += s && (s->start >= NR || s->name.str[0] != 'f');
		}
		reclaim_reader_done();
		urcu_qsbr_quiescent_state();
	}
	urcu_qsbr_unregister_thread();
	return (void *)wrong;
}

TEST(test_readers)
{
	pthread_t reader;
	void *wrong;

	assert_int_equal(symtab_new(&shared), 0);
	for (uint32_t i = 0; i < NR; i++)
		add(shared, 7, i);
	assert_int_equal(pthread_create(&reader, NULL, read_early, NULL), 0);
	for (uint32_t object = 8; object < 40; object++) {
		for (uint32_t i = 0; i < NR / 8; i++)
			add(shared, object, i);
		keep(shared, is_early);
		urcu_qsbr_quiescent_state();
	}
	atomic_store(&stop, true);
	urcu_qsbr_thread_offline();
	assert_int_equal(pthread_join(reader, &wrong), 0);
	urcu_qsbr_thread_online();
	assert_null(wrong);
	symtab_free(shared);
}

#define CHOSEN 8000U

/* Add functions of JITs, and return the CPU time: @chosen such that all have one hash without a
 * key. */
static uint64_t add_names(bool chosen)
{
	uint64_t start_ns = time_thread_ns();
	char name[UNHASH_SIZE + 1];
	struct symtab *t;

	assert_int_equal(symtab_new(&t), 0);
	for (uint32_t i = 0; i < CHOSEN; i++) {
		struct symtab_text text = { name, "[perf map]", UNHASH_SIZE, 10, 'j', false };
		struct symtab_key key = { .object = 40 };

		if (!chosen)
			snprintf(name, sizeof(name), "function_%07u", i);
		else if (!unhash_name(name, "f_", i, hash_u64(UNHASH_SIZE + 1), 0))
			continue;
		key.variant = keyhash_name(name, UNHASH_SIZE);
		assert_int_equal(symtab_find_named(t, &key, &text), SYMBOL_NONE);
		assert_int_not_equal(symtab_add(t, &key, &text), SYMBOL_NONE);
	}
	symtab_free(t);
	return time_thread_ns() - start_ns;
}

/* The same of a file, by the starts of its functions. */
static uint64_t add_starts(bool chosen)
{
	const struct symtab_text text = { "f", "file", 1, 4, 'u', false };
	uint64_t start_ns = time_thread_ns(), before = hash_u64(40U << 1);
	struct symtab *t;

	assert_int_equal(symtab_new(&t), 0);
	for (uint32_t i = 0; i < 4 * CHOSEN; i++) {
		struct symtab_key key = { .object = 40,
					  .start = chosen ? unhash_number(before, i) : i };

		assert_int_equal(symtab_find(t, &key), SYMBOL_NONE);
		assert_int_equal(symtab_add(t, &key, &text), FIRST + i);
	}
	symtab_free(t);
	return time_thread_ns() - start_ns;
}

/* A process that chooses its functions delays the names of no other. */
TEST(test_chosen_hashes)
{
	unhash_compare("names", add_names);
	unhash_compare("starts", add_starts);
}

static int start(void **state)
{
	(void)state;
	return reclaim_start();
}

static int end(void **state)
{
	(void)state;
	urcu_qsbr_thread_offline();
	reclaim_wait();
	urcu_qsbr_thread_online();
	return 0;
}

int main(void)
{
	return run_rcu_tests(start, end);
}
