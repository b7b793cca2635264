// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * demangler: the memo of names, without a worker and with one.
 * Live: reads a clock.
 */
#include "symbols/name/demangle.c"

#include "tests/prelude.h"

#include <string.h>

#include "symbols/name/name.h"
#include "tests/symbols/sandbox/changed.h"
#include "tests/unhash.h"
#include "symbols/base/base.h"

#define CHOSEN 20000U

/* Add names, and return the CPU time: @chosen such that all have one hash without a key. */
static uint64_t want_names(bool chosen)
{
	uint64_t start_ns = time_thread_ns();
	char name[UNHASH_SIZE + 1];
	struct demangler d = { .nr = 0 };

	for (uint32_t i = 0; i < CHOSEN; i++) {
		if (!chosen)
			snprintf(name, sizeof(name), "_Z%06u_honest", i);
		else if (!unhash_name(name, "_Z", i, hash_u64(UNHASH_SIZE + 1), 0))
			continue;
		demangler_want(&d, 0, name, strlen(name));
		/* Known already. */
		demangler_want(&d, 0, name, strlen(name));
	}
	assert_in_range(d.nr, CHOSEN / 2, CHOSEN);
	demangler_fini(&d);
	return time_thread_ns() - start_ns;
}

/* A process that chooses its names delays the names of no other. */
TEST(test_chosen_hashes)
{
	unhash_compare("names", want_names);
}

/*
 * With a worker, which may be taken over.
 */

#define NR_NAMES 3000U

/* The mangled name of kill::it() ends the worker. */
static int serve_names(struct sandbox_call *c)
{
	if (shared->mode == DIES && !memmem(c->request, c->size, "_ZN4kill", 8)) {
		shared->nr_calls++;
		return demangler_reader.serve(c);
	}
	return serve_changed(&demangler_reader, c);
}

/* Another name for each number. */
static size_t put_name(char *buf, size_t size, uint32_t i)
{
	if (i % 7 == 3)
		return (size_t)snprintf(buf, size, "_RNvCskwGfYPst2Cb_3foo%u%s", 8 + i % 2,
					i % 2 ? "abcdefghi" : "abcdefgh");
	if (i % 7 == 5)
		return (size_t)snprintf(buf, size, "plain_%u", i);
	return (size_t)snprintf(buf, size, "_ZN3foo%zu%s%uEv",
				strlen("bar_") + (i < 10     ? 1
						  : i < 100  ? 2
						  : i < 1000 ? 3
							     : 4),
				"bar_", i);
}

static bool is_right(struct demangler *d, const char *name, size_t size)
{
	char want[TEXT_MAX + 64];
	const char *is = NULL;
	size_t nr = demangle(name, size, want, sizeof(want));

	return demangler_get(d, 0, name, size, &is) == nr && (!nr || !memcmp(is, want, nr));
}

TEST(test_names)
{
	struct demangler d = { .nr = 0 };
	uint32_t calls;
	char name[64];

	shared->mode = HONEST;
	for (uint32_t i = 0; i < NR_NAMES; i++)
		demangler_want(&d, 0, name, put_name(name, sizeof(name), i));
	calls = shared->nr_calls;
	demangler_run(&d);
	assert_in_range(shared->nr_calls - calls, 1, 4); /* 64 KiB of names a call */
	for (uint32_t i = 0; i < NR_NAMES; i++)
		assert_true(is_right(&d, name, put_name(name, sizeof(name), i)));
	assert_in_range(shared->nr_calls - calls, 1, 4);
	/* Not asked before; of the longest kind; cut. */
	memset(name, 0, sizeof(name));
	assert_true(is_right(&d, "_ZN1a1bEv", 9));
	assert_true(is_right(&d, "_Z", 2));
	assert_true(is_right(&d, "", 0));
	demangler_fini(&d);
}

/* The memo is bounded, and names are right after it was forgotten. */
TEST(test_many_names)
{
	struct demangler d = { .nr = 0 };
	char name[4000];

	shared->mode = HONEST;
	for (uint32_t i = 0; i < 4000; i++) {
		size_t size = (size_t)snprintf(name, sizeof(name), "_ZN3foo3000%.*u%sEv", 2990, i,
					       "abcdefghij");

		assert_true(is_right(&d, name, size));
		assert_true(d.texts_size < 12U << 20);
	}
	demangler_fini(&d);
}

TEST(test_changed_names)
{
	for (uint32_t round = 0; round < NR_ROUNDS; round++) {
		struct demangler d = { .nr = 0 };
		char name[64];

		shared->mode = CHANGED;
		shared->seed = round;
		for (uint32_t i = 0; i < 20; i++)
			demangler_want(&d, 0, name, put_name(name, sizeof(name), i));
		demangler_run(&d);
		for (uint32_t i = 0; i < 20; i++) {
			const char *is;
			size_t nr =
				demangler_get(&d, 0, name, put_name(name, sizeof(name), i), &is);

			assert_true(nr < TEXT_MAX + 64);
			assert_true(!nr || (is >= d.texts && is + nr <= d.texts + d.texts_size));
		}
		demangler_fini(&d);
	}
}

/* One name of many ends the worker: that one is raw, the others are not. */
TEST(test_deadly_name)
{
	static const char deadly[] = "_ZN4kill2itEv";
	struct demangler d = { .nr = 0 };
	const char *is;
	char name[64];

	shared->mode = DIES;
	for (uint32_t i = 0; i < 500; i++) {
		demangler_want(&d, 0, name, put_name(name, sizeof(name), i));
		if (i == 123)
			demangler_want(&d, 0, deadly, sizeof(deadly) - 1);
	}
	demangler_run(&d);
	for (uint32_t i = 0; i < 500; i++)
		assert_true(is_right(&d, name, put_name(name, sizeof(name), i)));
	assert_int_equal(demangler_get(&d, 0, deadly, sizeof(deadly) - 1, &is), 0);
	/* Thousands of them do not keep the loader busy: at the limit names are raw. */
	for (uint32_t i = 0; i < NR_NAMES; i++)
		demangler_want(&d, 0, name,
			       (size_t)snprintf(name, sizeof(name), "_ZN4kill4i%03uEv", i % 1000));
	demangler_run(&d);
	assert_in_range(d.nr_lost, 1, 70);
	demangler_fini(&d);
}

/* The time of one call with a new worker is printed: the start takes a few milliseconds at most. */
TEST(test_start_time)
{
	uint64_t best_ns = UINT64_MAX;

	for (int i = 0; i < 20; i++) {
		struct demangler d = { .nr = 0 };
		uint64_t start_ns;
		const char *is;

		shared->mode = DIES;
		demangler_get(&d, 0, "_ZN4kill2itEv", 13, &is);
		shared->mode = HONEST;
		start_ns = time_now_ns();
		assert_int_equal(demangler_get(&d, 0, "_ZN1a1bEv", 9, &is), 4);
		best_ns = MIN(best_ns, time_now_ns() - start_ns);
		demangler_fini(&d);
	}
	print_message("a worker starts and answers in %llu us\n",
		      (unsigned long long)best_ns / 1000);
}

static int set_up(void **state)
{
	static struct sandbox_reader reader;
	static const struct sandbox_reader *const readers[SANDBOX_NR_KINDS] = {
		[SANDBOX_NAMES] = &reader,
	};

	reader = wrap(&demangler_reader, serve_names);
	return start_changed(readers);
}

int main(void)
{
	return run_unit_tests(set_up, stop_changed);
}
