// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A call that waits for ever, interrupted; in a thread that blocks all signals.
 * Live: waits for threads or processes.
 */
#include "sampler/event/rights.c"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "tests/prelude.h"

#include "symbols/base/base.h"
#include "symbols/base/thread.h"

#define NR 8

struct waiter {
	int fd;
	int nr_interrupted;
	uint64_t first_ns, last_ns; /* of the calls */
	bool blocked;		    /* all signals are, after the calls */
};

static uint64_t read_once(struct waiter *w)
{
	uint64_t begin_ns = time_now_ns();
	char byte;
	bool interrupted;

	in_time_begin();
	interrupted = read(w->fd, &byte, 1) < 0 && errno == EINTR;
	in_time_end(interrupted);
	w->nr_interrupted += interrupted;
	return time_now_ns() - begin_ns;
}

static void *wait_often(void *arg)
{
	struct waiter *w = arg;
	sigset_t set;

	w->first_ns = read_once(w);
	for (int i = 1; i < NR; i++)
		w->last_ns = read_once(w);
	pthread_sigmask(SIG_SETMASK, NULL, &set);
	w->blocked = sigismember(&set, SIGRTMIN + 5) && sigismember(&set, SIGTERM);
	return NULL;
}

TEST(test_interrupted)
{
	struct waiter w = { 0 };
	pthread_t thread;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	w.fd = fds[0];
	assert_int_equal(thread_start(&thread, 0, wait_often, &w), 0);
	assert_true(thread_join_until(thread, time_now_ns() + 30000000000ULL));
	assert_int_equal(w.nr_interrupted, NR);
	assert_true(w.first_ns >= 50000000);
	/* At least 1.5 ms in the end. */
	assert_true(w.last_ns >= 1000000);
	assert_true(w.blocked);
	close(fds[0]);
	close(fds[1]);
}

/* Calls that do not wait are as without it; so are others after them. */
TEST(test_in_time)
{
	struct waiter w = { 0 };
	int fds[2];
	char byte;

	assert_int_equal(pipe(fds), 0);
	w.fd = fds[0];
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(write(fds[1], "x", 1), 1);
		read_once(&w);
	}
	assert_int_equal(w.nr_interrupted, 0);
	if (!fork()) {
		usleep(200000);
		_exit(write(fds[1], "x", 1) != 1);
	}
	assert_int_equal(read(fds[0], &byte, 1), 1);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
