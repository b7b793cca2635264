// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * preemption: instant is one switch without a wait since the last look; the kernel's
 * account of a thread that never slept is not.
 */
#include "sampler/reader/reader.c"

#include "tests/prelude.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct schedstat p = { .fd = -1 };

static bool look(const char *account)
{
	assert_int_equal(pwrite(p.fd, account, strlen(account), 0), strlen(account));
	assert_int_equal(ftruncate(p.fd, (off_t)strlen(account)), 0);
	return schedstat_was_instant(&p);
}

TEST(test_account)
{
	char path[] = "/tmp/preemptionXXXXXX";

	(void)state;
	p.fd = mkstemp(path);
	assert_true(p.fd >= 0);
	unlink(path);
	look("100 5000 7\n");
	assert_true(look("200 5000 8\n"));
	assert_true(look("300 5900 9\n"));
	/* It waited; it was switched in twice; it did not sleep. */
	assert_false(look("400 9000 10\n"));
	assert_false(look("500 9000 12\n"));
	assert_false(look("600 9000 12\n"));
	assert_true(look("700 9000 13\n"));
	/* A kernel without the account. */
	assert_false(look("0 0 0\n"));
	assert_false(look("0 0 0\n"));
	assert_false(look("?"));
	schedstat_close(&p);
	assert_false(schedstat_was_instant(&p));
}

TEST(test_own)
{
	struct schedstat own;

	(void)state;
	schedstat_open(&own);
	if (own.fd < 0)
		skip();
	/* It goes on running, or is switched in after a wait. */
	for (int i = 0; i < 3; i++)
		if (schedstat_was_instant(&own))
			fail_msg("instant without a wake-up");
	schedstat_close(&own);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
