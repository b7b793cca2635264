// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * jitcode: layers against a model that paints each address, the last layer, repeated records,
 * limits.
 */
#include "tests/prelude.h"

#include <errno.h>

#include "symbols/jit/internal.h"
#include "symbols/base/base.h"

#define SPACE 4096U
#define LOADS 6000U

static int add(struct jitcode *c, uint64_t start, uint64_t size, const char *name, uint64_t time_ns)
{
	const struct jitcode_load load = {
		.start = start,
		.size = size,
		.time_ns = time_ns,
		.name = name,
		.name_size = strlen(name),
	};

	return jitcode_add(c, &load);
}

static void assert_name(const struct jitcode *c, const struct jitcode_function *f, const char *name)
{
	if (!name) {
		assert_null(f);
		return;
	}
	assert_non_null(f);
	assert_string_equal(jitcode_text(c, f->name), name);
}

/* Each address has had a stack of names; that of a layer never changes once it is there. */
TEST(test_model)
{
	static uint32_t painted[SPACE][JITCODE_LAYERS + 1]; /* load + 1; 0: nothing */
	static char names[LOADS][16];
	struct jitcode *c;
	uint32_t over = 0, got = 0;

	memset(painted, 0, sizeof(painted));
	assert_int_equal(jitcode_new(&c), 0);
	srand(1);
	for (uint32_t i = 0; i < LOADS / 8; i++) {
		uint32_t size = 1 + (uint32_t)rand() % 24;
		uint32_t start = (uint32_t)rand() % (SPACE - size), layer = 0;

		snprintf(names[i], sizeof(names[i]), "f%u", i);
		for (uint32_t at = start; at < start + size; at++)
			for (uint32_t l = 0; l < JITCODE_LAYERS; l++)
				if (painted[at][l])
					layer = MAX(layer, l + 1);
		assert_true(layer < JITCODE_LAYERS);
		assert_int_equal(add(c, start, size, names[i], i), 0);
		for (uint32_t at = start; at < start + size; at++)
			painted[at][layer] = i + 1;
		over += layer > 0;
	}
	for (uint32_t at = 0; at < SPACE; at++) {
		const char *last = NULL;

		for (uint32_t l = 0; l < JITCODE_LAYERS; l++) {
			const char *name = painted[at][l] ? names[painted[at][l] - 1] : NULL;

			assert_name(c, jitcode_find(c, l, at), name);
			last = name ? name : last;
		}
		assert_name(c, jitcode_latest(c, at), last);
	}
	while (jitcode_next_over(c))
		got++;
	assert_int_equal(got, over);
	jitcode_free(c);
}

/* Many functions that do not overlap, in no order: one layer, all found. */
TEST(test_many)
{
	struct jitcode *c;
	char name[32];

	assert_int_equal(jitcode_new(&c), 0);
	for (uint64_t i = 0; i < 50000; i++) {
		uint64_t at = i * 7919 % 50000;

		snprintf(name, sizeof(name), "g%llu", (unsigned long long)at);
		assert_int_equal(add(c, 0x1000 + at * 16, 16, name, 0), 0);
	}
	assert_null(jitcode_next_over(c));
	for (uint64_t at = 0; at < 50000; at++) {
		snprintf(name, sizeof(name), "g%llu", (unsigned long long)at);
		assert_name(c, jitcode_find(c, 0, 0x1000 + at * 16 + at % 16), name);
	}
	assert_null(jitcode_find(c, 0, 0xfff));
	assert_null(jitcode_find(c, 0, 0x1000 + 50000 * 16));
	assert_int_equal(jitcode_nr(c), 50000);
	jitcode_free(c);
}

TEST(test_same)
{
	struct jitcode *c;

	assert_int_equal(jitcode_new(&c), 0);
	assert_int_equal(add(c, 100, 10, "one", 1), 0);
	assert_int_equal(add(c, 100, 10, "one", 2), 0);
	assert_int_equal(jitcode_nr(c), 1);
	assert_null(jitcode_next_over(c));
	assert_int_equal(add(c, 100, 10, "two", 3), 0);
	assert_int_equal(jitcode_next_over(c)->time_ns, 3);
	/* Reported again, it may be in memory that was freed since: added again. */
	assert_int_equal(add(c, 100, 10, "two", 4), 0);
	assert_int_equal(jitcode_next_over(c)->layer, 1);
	assert_null(jitcode_next_over(c));
	assert_int_equal(jitcode_nr(c), 2);
	jitcode_free(c);
}

/* The last layer forgets replaced code, the others do not. */
TEST(test_last_layer)
{
	struct jitcode *c;
	char name[16];

	assert_int_equal(jitcode_new(&c), 0);
	for (unsigned int i = 0; i < 3 * JITCODE_LAYERS; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		assert_int_equal(add(c, 1000 - i % 3, 10, name, i), 0);
	}
	snprintf(name, sizeof(name), "n%u", 3 * JITCODE_LAYERS - 1);
	assert_name(c, jitcode_latest(c, 1000), name);
	assert_name(c, jitcode_find(c, JITCODE_LAYERS - 1, 1000), name);
	assert_name(c, jitcode_find(c, 0, 1000), "n0");
	assert_name(c, jitcode_find(c, 5, 1000), "n5");
	assert_null(jitcode_find(c, JITCODE_LAYERS, 1000));
	jitcode_free(c);
}

TEST(test_refused)
{
	char longer[JITCODE_NAME_MAX + 100];
	struct jitcode *c;

	assert_int_equal(jitcode_new(&c), 0);
	assert_int_equal(add(c, 1, 0, "empty", 0), -EINVAL);
	assert_int_equal(add(c, 1, JITCODE_SIZE_MAX + 1ULL, "large", 0), -EINVAL);
	assert_int_equal(add(c, UINT64_MAX - 1, 2, "around", 0), -EINVAL);
	assert_int_equal(add(c, 1, 1, "", 0), -EINVAL);
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(add(c, 1, 1, longer, 0), 0);
	assert_int_equal(jitcode_find(c, 0, 1)->name_size, JITCODE_NAME_MAX);
	assert_int_equal(strlen(jitcode_text(c, jitcode_find(c, 0, 1)->name)), JITCODE_NAME_MAX);
	assert_int_equal(add(c, UINT64_MAX - 2, 1, "end", 0), 0);
	assert_name(c, jitcode_find(c, 0, UINT64_MAX - 2), "end");
	assert_null(jitcode_find(c, 0, UINT64_MAX));
	jitcode_free(c);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
