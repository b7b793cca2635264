/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The includes of every unit test: cmocka, and the headers that cmocka needs before it. */
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

#include <cmocka.h>

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
