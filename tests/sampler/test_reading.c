// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The process of a read that hangs is found, and not the next one.
 * Live: takes about a second of CPU time, or more.
 */
#include "sampler/reader/reader.c"

#include "tests/prelude.h"

#include <pthread.h>

#define HANG_NS 50000000ULL
#define NOW_NS	(1ULL << 40)

static struct reading reading;
static atomic_bool stop;

static void *read_both(void *arg)
{
	(void)arg;
	for (uint64_t ns = 1; !atomic_load(&stop); ns++) {
		/* Hangs until now; then the next one, which has just begun. */
		reading_begin(&reading, 1, 101, ns);
		reading_end(&reading);
		reading_begin(&reading, 2, 102, NOW_NS - 1);
		reading_end(&reading);
	}
	return NULL;
}

TEST(test_time)
{
	struct reading r = { .since_ns = 0 };
	uint32_t process;
	pid_t pid;

	assert_false(reading_hangs(&r, NOW_NS, HANG_NS, &pid, &process));
	reading_begin(&r, 7, 77, NOW_NS);
	assert_false(reading_hangs(&r, NOW_NS + HANG_NS - 1, HANG_NS, &pid, &process));
	assert_true(reading_hangs(&r, NOW_NS + HANG_NS, HANG_NS, &pid, &process));
	assert_int_equal(pid, 7);
	assert_int_equal(process, 77);
	reading_end(&r);
	assert_false(reading_hangs(&r, NOW_NS + HANG_NS, HANG_NS, &pid, &process));
}

TEST(test_no_other_is_blamed)
{
	uint32_t process, nr_hangs = 0;
	pthread_t thread;
	pid_t pid;

	assert_int_equal(pthread_create(&thread, NULL, read_both, NULL), 0);
	for (uint64_t i = 0; i < 200000000 || !nr_hangs; i++) {
		if (!reading_hangs(&reading, NOW_NS, HANG_NS, &pid, &process))
			continue;
		nr_hangs++;
		assert_int_equal(pid, 1);
		assert_int_equal(process, 101);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
