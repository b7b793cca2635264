// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * library: all functions of a library, or none.
 */
#include "symbols/base/library.h"

#include "tests/prelude.h"

struct functions {
	int (*abs)(int v);
	int (*atoi)(const char *text);
};

static void test_found(void **state)
{
	static const struct library_function list[] = {
		{ "abs", offsetof(struct functions, abs) },
		{ "atoi", offsetof(struct functions, atoi) },
	};
	struct functions c;

	assert_true(library_find("libc.so.6", &c, list, 2));
	assert_int_equal(c.abs(-3), 3);
	assert_int_equal(c.atoi("42"), 42);
}

static void test_not_found(void **state)
{
	static const struct library_function list[] = {
		{ "abs", offsetof(struct functions, abs) },
		{ "no_such_function", offsetof(struct functions, atoi) },
	};
	struct functions c;

	assert_false(library_find("libc.so.6", &c, list, 2));
	assert_false(library_find("libno_such_library.so.1", &c, list, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),
		cmocka_unit_test(test_not_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
