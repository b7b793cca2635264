/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An oracle of a fuzz target. */
#ifndef TESTS_FUZZ_REQUIRE_H
#define TESTS_FUZZ_REQUIRE_H

#include <stdlib.h>

#define REQUIRE(cond)                                                                              \
	do {                                                                                       \
		if (!(cond))                                                                       \
			abort();                                                                   \
	} while (0)

#endif
