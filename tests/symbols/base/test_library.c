// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * library: all functions of a library, or none.
 */
#include "symbols/base/base.h"

#include "tests/prelude.h"

struct functions {
	int (*abs)(int v);
	int (*atoi)(const char *text);
};

TEST(test_found)
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

TEST(test_not_found)
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
	return run_unit_tests(NULL, NULL);
}
