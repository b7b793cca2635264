// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * demangler: the memo of names, without a worker.
 * Live: reads a clock.
 */
#include "tests/prelude.h"

#include <string.h>

#include "symbols/name/name.h"
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

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
