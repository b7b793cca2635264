// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hotspots: JVMs of a recording, of which each record may be hostile.
 * Live: waits for threads or processes.
 */
#include "symbols/java/java.c"

#include "tests/prelude.h"

#include "symbols/script/script.h"
#include "tests/makers/jvm_table.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/jit/jit.h"

/* Make JVM @owner of a recording, and its memory. */
static struct object *recorded_jvm(struct jvm_table *h, uint64_t owner)
{
	const struct object_identity id = { .kind = OBJECT_ANON, .owner = owner };

	return objects_intern(h->objects, &id, "//anon", 6, 1, 4096, 1ULL << 40);
}

/* Begin a replay, and make a JVM; @h is empty. */
static struct object *begin_replay(struct jvm_table *h)
{
	open_table(h);
	h->recorded = true;
	return recorded_jvm(h, 1);
}

/* A sample behind each record of code, or code at falling addresses: not quadratic. */
TEST(test_replay_work)
{
	enum { NR = 20000 };
	const struct code_text text = { .name = "f", .name_size = 1 };
	uint64_t work = 0;
	struct jvm_table h;
	struct object *memory = begin_replay(&h);
	struct jvm_table_entry *e;

	for (uint32_t i = 0; i < NR; i++) {
		struct jvm_table_kept k = { .kind = JVM_TABLE_KEPT_CODE };

		k.start = (1ULL << 30) - i * 64ULL;
		k.end = k.start + 32;
		k.code_kind = JVM_READ_COMPILED;
		jvm_table_replay(&h, memory, &text, &k);
		if (jvm_table_settle(&h, i))
			work += i + 1;
	}
	e = jvm_table_find_entry(&h, memory);
	assert_int_equal(e->reading->vm.nr_blobs, NR);
	assert_false(e->left_out);
	print_message("%u records, %u blobs visited\n", NR, (unsigned int)work);
	assert_in_range(work, NR, (32U << 20) + NR * 2048U);
	close_table(&h);
}

/* Chains are found in the order of their places; too many are left out, with a reason. */
TEST(test_replay_chains)
{
	enum { NR = 20000 };
	static uint8_t table[SCRIPT_FUNCTIONS_TABLE_MAX];
	const struct code_text text = { .table = table, .table_size = sizeof(table) };
	struct jvm_table h;
	struct object *memory = begin_replay(&h);
	struct jvm_table_entry *e;

	for (uint32_t i = 0; i < NR; i++) {
		struct jvm_table_kept k = { .kind = JVM_TABLE_KEPT_CHAIN, .nr = 1 };

		k.start = 4096 + (NR - i) * 64ULL;
		jvm_table_replay(&h, memory, &text, &k);
		assert_true(jvm_table_settle(&h, i));
	}
	e = jvm_table_find_entry(&h, memory);
	assert_in_range(e->nr_recorded * sizeof(table), 200U << 20, 256U << 20);
	assert_non_null(atomic_load(&memory->reason));
	jvm_table_find_recorded(e, 0, 4096 + NR * 64ULL, 77);
	jvm_table_find_recorded(e, 0, 4096 + (NR - 1) * 64ULL, 78);
	jvm_table_find_recorded(e, 0, 4096, 79);
	assert_int_equal(e->nr_found, 2);
	assert_int_equal(e->found[1].place, 78);
	close_table(&h);
}

#define NAME_SIZE 500U
#define CODE	  (1ULL << 30)

/* Replay record @i of @kind, with the longest texts. */
static void replay_long(struct jvm_table *h, struct object *memory, enum jvm_table_kept_kind kind,
			uint32_t i, uint32_t version)
{
	static uint8_t table[SCRIPT_FUNCTIONS_TABLE_MAX];
	static char name[NAME_SIZE];
	const struct code_text text = {
		.name = name, .name_size = NAME_SIZE, .table = table, .table_size = sizeof(table)
	};
	const struct jvm_table_kept k = { .kind = kind,
					  .start = CODE + i * 64ULL,
					  .end = CODE + i * 64ULL + 32,
					  .compile_id = version << 20 | i,
					  .code_kind = JVM_READ_COMPILED,
					  .nr = 1 };

	memset(name, 'x', sizeof(name));
	snprintf(name, sizeof(name), "%u.%u", i, version);
	name[strlen(name)] = 'x';
	jvm_table_replay(h, memory, &text, &k);
}

static const char *reason_at(const struct object *memory)
{
	const char *reason = atomic_load(&memory->reason);

	return reason ? reason : "";
}

/* One JVM of a recording has the limits of a live one: its code, its names, its methods. */
TEST(test_replay_memory_of_one)
{
	struct jvm_table h;
	struct object *memory = begin_replay(&h);
	struct jvm_table_entry *e;

	(void)state;
	for (uint32_t version = 0; version < 5; version++) {
		for (uint32_t i = 0; i < 20000; i++)
			replay_long(&h, memory, JVM_TABLE_KEPT_CODE, i, version);
		assert_true(jvm_table_settle(&h, 1 + version));
	}
	e = jvm_table_find_entry(&h, memory);
	assert_string_equal(reason_at(memory), "the JVM has too much code: some has no names");
	assert_in_range(jitcode_memory(e->code), 8 << 20, JVM_TABLE_NAMES_MEMORY + (1 << 20));
	assert_false(e->left_out);
	for (uint32_t i = 20000; i < 80000; i++)
		replay_long(&h, memory, JVM_TABLE_KEPT_CODE, i, 0);
	assert_in_range(e->reading->vm.memory, JVM_READ_MEMORY_MAX - 1024,
			JVM_READ_MEMORY_MAX + 1024);
	for (uint32_t i = 0; i < 2 * JVM_TABLE_METHODS_MAX; i++)
		replay_long(&h, memory, JVM_TABLE_KEPT_METHOD, i, 0);
	assert_int_equal(e->reading->nr_methods, JVM_TABLE_METHODS_MAX);
	assert_true(jvm_table_settle(&h, 99));
	assert_string_equal(reason_at(memory), "the recording has too much code: some is left out");
	assert_in_range(jitcode_memory(e->code) + jitcode_memory(e->methods), 8 << 20,
			JVM_TABLE_NAMES_MEMORY + (1 << 20));
	print_message("a JVM with too much code: %.1f MiB\n", (double)e->memory / (1 << 20));
	assert_in_range(e->memory, 32 << 20, 96 << 20);
	assert_int_equal(atomic_load(&h.memory), e->memory);
	close_table(&h);
}

#define JVMS 40U
#define ROOM (1U << 20)

/* Return the bytes that the records of a JVM take, without the sum that is tested. */
static size_t bytes_of(const struct jvm_table_entry *e)
{
	return e ? e->reading->vm.memory + e->reading->nr_methods * (NAME_SIZE + 1) +
			       e->recorded_size
		 : 0;
}

/* Replay few records each of many JVMs, when all but ROOM bytes are taken. */
static void replay_many(enum jvm_table_kept_kind kind)
{
	struct object *memory[JVMS];
	struct jvm_table h;
	struct object *first = begin_replay(&h);
	struct jvm_table_entry *e = jvm_table_add_entry(&h, first);
	size_t sum = 0;

	e->reading->vm.memory = JVM_TABLE_MEMORY_MAX - ROOM;
	jvm_table_count(&h, e);
	for (uint32_t i = 0; i < JVMS; i++) {
		memory[i] = recorded_jvm(&h, i + 2);
		for (uint32_t k = 0; k < 60; k++)
			replay_long(&h, memory[i], kind, k, 0);
		sum += bytes_of(jvm_table_find_entry(&h, memory[i]));
	}
	print_message("records of kind %d: %zu of %u bytes\n", kind, sum, ROOM);
	assert_in_range(sum, ROOM / 4, ROOM + sizeof(memory) + SCRIPT_FUNCTIONS_TABLE_MAX);
	assert_in_range(atomic_load(&h.memory), JVM_TABLE_MEMORY_MAX - ROOM / 4,
			JVM_TABLE_MEMORY_MAX + 4 * SCRIPT_FUNCTIONS_TABLE_MAX);
	assert_true(jvm_table_settle(&h, 1));
	assert_string_equal(reason_at(memory[JVMS - 1]), "the recording has too much code: some is "
							 "left out");
	e->reading->vm.memory = 0;
	close_table(&h);
}

/* All JVMs of a recording have one limit, also if each has few records, and none was settled. */
TEST(test_replay_memory_of_all)
{
	(void)state;
	replay_many(JVM_TABLE_KEPT_CODE);
	replay_many(JVM_TABLE_KEPT_METHOD);
	replay_many(JVM_TABLE_KEPT_CHAIN);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
