/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The head of a unit test whose thread reads what other threads free (urcu-qsbr). */
#ifndef TESTS_PRELUDE_RCU_H
#define TESTS_PRELUDE_RCU_H

#include "tests/prelude.h"

#include <urcu-qsbr.h>

/* The same as run_unit_tests(), in a registered reader. */
static inline int run_rcu_tests(CMFixtureFunction setup, CMFixtureFunction teardown)
{
	int failed;

	urcu_qsbr_register_thread();
	failed = run_unit_tests(setup, teardown);
	urcu_qsbr_unregister_thread();
	return failed;
}

#endif
