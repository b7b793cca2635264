/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The head of every unit test: cmocka with the headers that it needs, and the list of tests. */
#ifndef TESTS_PRELUDE_H
#define TESTS_PRELUDE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* cmocka 2 has other names for assert_in_range() and more; cmocka 1 does not have these. */
#define CMOCKA_DISABLE_DEPRECATION_WARNINGS
#include <cmocka.h>
#undef stop

#ifdef __has_feature /* of clang */
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif !defined(SANITIZED)
#define SANITIZED 0
#endif

/* The tests of this program; cmocka passes over the empty ones. */
static struct CMUnitTest unit_tests[64];

/* Append to the list of tests, before main(). */
static inline void add_test(struct CMUnitTest test)
{
	size_t i = 0;

	while (unit_tests[i].name)
		if (++i == sizeof(unit_tests) / sizeof(unit_tests[0]))
			abort();
	unit_tests[i] = test;
}

/*
 * Define a test: TEST(test_x) { ... }, TEST(test_x, setup) or TEST(test_x, setup, teardown). The
 * tests run in the order of their lines. @state is the state that the setup left.
 */
#define TEST(fn, ...)                                                                              \
	static void fn(void **state);                                                              \
	__attribute__((constructor(1000 + __LINE__))) static void add_##fn(void)                   \
	{                                                                                          \
		add_test((struct CMUnitTest){ .name = #fn, .test_func = fn, __VA_ARGS__ });        \
	}                                                                                          \
	static void fn(void **state)

/* Run the tests, @setup before and @teardown after all of them. Return the exit code. */
static inline int run_unit_tests(CMFixtureFunction setup, CMFixtureFunction teardown)
{
	return cmocka_run_group_tests(unit_tests, setup, teardown);
}

/*
 * Assert that a look-up found the name @want, or nothing if that is NULL. Return whether there is
 * something found.
 */
static inline bool assert_found(bool found, const char *want, const char *name, size_t size)
{
	if (found != (want != NULL))
		fail_msg("%s, found: %d", want ? want : "none", found);
	if (found && (size != strlen(want) || memcmp(name, want, size)))
		fail_msg("%s, not %.*s", want, (int)size, name);
	return found;
}

/*
 * Leave the running test. The reason is printed by tests/run; STRICT=1 accepts it if it begins with
 * "not installed: " or "not on this machine: ", and refuses "not permitted: ".
 */
#define skip_test(reason)                                                                          \
	do {                                                                                       \
		print_message("skipped: %s\n", reason);                                            \
		skip();                                                                            \
	} while (0)

#endif
