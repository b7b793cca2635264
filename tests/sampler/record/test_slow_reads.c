// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Mappings beside ones that hang their reader: of one user some do, then none of its others.
 * Live: waits for threads or processes.
 */
#include "sampler/record/recorder.c"

#include <poll.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tests/prelude.h"

#include "symbols/base/base.h"
#include "symbols/base/thread.h"

#define HANG_NS	    50000000ULL
#define PATIENCE_NS 60000000000ULL

static int answer;
static atomic_int nr_begun, nr_ended; /* reads that hang */

/* A process "USER/hang..." does not answer, "USER/none" is not there; others have their path. */
static char *read_fake(const char *path, size_t max, size_t *size)
{
	struct pollfd p = { .fd = answer, .events = POLLIN };
	char status[64], *text;

	snprintf(status, sizeof(status), "Name:\tx\nUid:\t%d\t0\t0\t0\n", atoi(path));
	text = strdup(strstr(path, "/status") ? status : path);
	if (strstr(path, "/hang") && !strstr(path, "/status")) {
		atomic_fetch_add(&nr_begun, 1);
		poll(&p, 1, -1);
		atomic_fetch_add(&nr_ended, 1);
	}
	if (strstr(path, "/none")) {
		free(text);
		return NULL;
	}
	*size = strlen(text);
	return text;
}

/* Read a process once; false: it is left out. */
static bool read_one(struct slow_reads *r, const char *process)
{
	size_t size = 0;
	char path[100], *text = slow_reads_maps(r, process, &size);
	bool found = text;

	snprintf(path, sizeof(path), "%s/maps", process);
	if (found) {
		assert_string_equal(text, path);
		assert_int_equal(size, strlen(path));
	}
	free(text);
	return found;
}

/* Read a process; again if the machine is too busy. */
static bool read_well(struct slow_reads *r, const char *process)
{
	for (uint64_t end_ns = time_now_ns() + PATIENCE_NS; time_now_ns() < end_ns; usleep(1000))
		if (read_one(r, process))
			return true;
	return false;
}

/* Have @nr processes of a user hang. */
static void hang(struct slow_reads *r, int user, int nr)
{
	char process[32];

	for (int i = 0; i < nr; i++) {
		snprintf(process, sizeof(process), "%d/hang%d", user, i);
		assert_false(read_one(r, process));
	}
}

static struct slow_reads *t_start(void)
{
	struct slow_reads *r = slow_reads_new(read_fake, HANG_NS);

	assert_non_null(r);
	wake_clear(answer);
	atomic_store(&nr_begun, 0);
	atomic_store(&nr_ended, 0);
	return r;
}

/* Let the reads that hang end, of which there are at most @max. */
static void let_end(int max)
{
	assert_int_equal(atomic_load(&nr_ended), 0);
	wake_send(answer);
	for (int i = 0; i < 10000 && atomic_load(&nr_ended) < atomic_load(&nr_begun); i++)
		usleep(1000);
	assert_in_range(atomic_load(&nr_ended), 1, max);
}

TEST(test_beside)
{
	const int nr = SLOW_READS_OF_USER;
	struct slow_reads *r = t_start();
	uint64_t left_out;

	read_one(r, "7/none");
	assert_true(read_well(r, "8/good"));
	left_out = slow_reads_left_out(r);
	hang(r, 7, 1);
	assert_true(read_well(r, "7/good"));
	/* It is not read again, and others of its user are until too many hang. */
	hang(r, 7, 1);
	hang(r, 7, nr);
	assert_false(read_one(r, "7/good"));
	assert_true(slow_reads_left_out(r) >= left_out + 1 + 1 + (uint64_t)nr + 1);
	/* More processes than there are helpers: none is waited for. */
	left_out = slow_reads_left_out(r);
	hang(r, 7, 100);
	assert_int_equal(slow_reads_left_out(r), left_out + 100);
	assert_true(read_well(r, "8/good"));
	/* The end does not wait for the others. */
	slow_reads_free(r);
	let_end(nr);
}

/* Users together have all helpers: then each read is left out, and counted. */
TEST(test_all)
{
	const int nr = SLOW_READS_OF_USER;
	struct slow_reads *r = t_start();
	uint64_t left_out;

	for (int user = 1; user <= (int)HELPERS_MAX / nr; user++)
		hang(r, user, nr);
	left_out = slow_reads_left_out(r);
	assert_int_equal(left_out, HELPERS_MAX);
	assert_false(read_one(r, "99/good"));
	assert_int_equal(slow_reads_left_out(r), left_out + 1);
	slow_reads_free(r);
	let_end(HELPERS_MAX);
}

/* Reads that ended count for a while, as each of them had its caller wait; then no longer. */
TEST(test_ended)
{
	struct slow_reads *r = t_start();
	uint64_t begin_ns = time_now_ns();

	hang(r, 7, SLOW_READS_OF_USER);
	let_end(SLOW_READS_OF_USER);
	assert_true(read_well(r, "7/good"));
	assert_true(time_now_ns() - begin_ns >= SLOW_READS_REST * HANG_NS);
	/* It is another process, or goes on. */
	assert_true(read_well(r, "7/hang0"));
	slow_reads_free(r);
}

int main(void)
{
	answer = wake_new();
	return run_unit_tests(NULL, NULL);
}
