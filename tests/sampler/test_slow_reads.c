// SPDX-License-Identifier: GPL-2.0-or-later
/* Files beside ones that are read for ever. */
#include "sampler/file/slow_reads.h"

#include <poll.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tests/prelude.h"

#include "symbols/base/base.h"
#include "symbols/base/wake.h"

static int answer;
static atomic_int nr_ended;

/* "hang": no answer; "none": not there; else the path itself. */
static char *read_fake(const char *path, size_t max, size_t *size)
{
	struct pollfd p = { .fd = answer, .events = POLLIN };
	char *text;

	if (!strcmp(path, "hang")) {
		poll(&p, 1, -1);
		atomic_fetch_add(&nr_ended, 1);
	}
	if (!strcmp(path, "none"))
		return NULL;
	text = strdup(path);
	*size = strlen(path);
	return text;
}

/* Read "file"; false: it hangs, as on a machine that is too busy. */
static bool read_file(struct slow_reads *r)
{
	size_t size = 0;
	char *text = slow_reads_file(r, "file", 100, &size);
	bool found = text && !strcmp(text, "file") && size == 4;

	free(text);
	return found;
}

TEST(test_beside)
{
	struct slow_reads *r = slow_reads_new(read_fake);
	uint64_t begin_ns = time_now_ns();
	bool found = false;
	size_t size;

	assert_non_null(r);
	assert_null(slow_reads_file(r, "none", 100, &size));
	for (int i = 0; i < 4; i++) {
		assert_null(slow_reads_file(r, "hang", 100, &size));
		found = false;
		for (int k = 0; k < 10 && !found; k++)
			found = read_file(r);
		assert_true(found);
	}
	/* More than there are helpers, and the end. */
	for (int i = 0; i < 100; i++)
		assert_null(slow_reads_file(r, "hang", 100, &size));
	slow_reads_free(r);
	assert_true(time_now_ns() - begin_ns < 20000000000ULL);
	assert_int_equal(atomic_load(&nr_ended), 0);
	wake_send(answer);
	for (int i = 0; i < 10000 && atomic_load(&nr_ended) < 5; i++)
		usleep(1000);
	assert_true(atomic_load(&nr_ended) >= 5);
}

int main(void)
{
	answer = wake_new();
	return run_unit_tests(NULL, NULL);
}
