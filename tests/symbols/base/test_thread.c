// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Threads without signals, joined in time; wake-ups that are not lost.
 * Live: waits for threads or processes.
 */
#include "symbols/base/base.h"
#include "symbols/base/thread.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "tests/prelude.h"

static void *read_mask(void *arg)
{
	pthread_sigmask(SIG_SETMASK, NULL, arg);
	return NULL;
}

TEST(test_signals)
{
	sigset_t before, after, inside;
	pthread_t thread;

	sigemptyset(&inside);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(thread_start(&thread, 1 << 20, read_mask, &inside), 0);
	pthread_join(thread, NULL);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	assert_true(sigismember(&inside, SIGINT) && sigismember(&inside, SIGTERM));
	for (int i = 1; i < 32; i++)
		assert_int_equal(sigismember(&before, i), sigismember(&after, i));
}

/* A limit of address space is not reported as one of threads: they are raised in different ways. */
TEST(test_no_stack)
{
	pthread_t thread;

	assert_int_equal(thread_start(&thread, (size_t)1 << 48, read_mask, NULL), -ENOMEM);
}

struct sleeper {
	int stop, done; /* wake-ups */
};

static void *sleep_until(void *arg)
{
	const struct sleeper *s = arg;
	struct pollfd p = { .fd = s->stop, .events = POLLIN };

	poll(&p, 1, -1);
	wake_send(s->done);
	return NULL;
}

TEST(test_join)
{
	struct sleeper s = { wake_new(), wake_new() };
	struct pollfd done = { .fd = s.done, .events = POLLIN };
	pthread_t thread;

	assert_true(s.stop >= 0 && s.done >= 0);
	assert_int_equal(thread_start(&thread, 0, sleep_until, &s), 0);
	/* Too early: detached, and it goes on. */
	assert_false(thread_join_until(thread, time_now_ns() + 5000000));
	assert_false(wake_clear(s.done));
	wake_send(s.stop);
	assert_int_equal(poll(&done, 1, 10000), 1);
	assert_true(wake_clear(s.done));
	assert_int_equal(thread_start(&thread, 0, sleep_until, &s), 0);
	assert_true(thread_join_until(thread, time_now_ns() + 10000000000ull));
	assert_true(wake_clear(s.done));
	close(s.stop);
	close(s.done);
}

static void *work_until(void *arg)
{
	uint64_t *end_ns = arg;

	while (time_now_ns() < *end_ns)
		;
	return NULL;
}

/* A thread that works is waited for, one that waits is not. */
TEST(test_join_working)
{
	static uint64_t ends_ns[20]; /* a thread that was left still reads it */
	struct sleeper s = { wake_new(), wake_new() };
	struct pollfd done = { .fd = s.done, .events = POLLIN };
	bool joined = false;
	pthread_t thread;
	uint64_t end_ns;

	/* Without a CPU for 200 naps it looks like one that waits: then once more. */
	for (size_t i = 0; i < ARRAY_SIZE(ends_ns) && !joined; i++) {
		ends_ns[i] = time_now_ns() + 500000000;
		assert_int_equal(thread_start(&thread, 0, work_until, &ends_ns[i]), 0);
		joined = thread_join_working(thread, 200);
		assert_true(!joined || time_now_ns() >= ends_ns[i]);
	}
	assert_true(joined);
	assert_int_equal(thread_start(&thread, 0, sleep_until, &s), 0);
	end_ns = time_now_ns() + 20000000;
	assert_false(thread_join_working(thread, 20));
	assert_true(time_now_ns() >= end_ns);
	wake_send(s.stop);
	assert_int_equal(poll(&done, 1, 10000), 1);
	/* The thread is done with it; ThreadSanitizer does not see that by poll(2). */
	assert_true(wake_clear(s.done));
	close(s.stop);
	close(s.done);
}

TEST(test_wake)
{
	struct pollfd p = { .fd = wake_new(), .events = POLLIN };

	assert_int_equal(poll(&p, 1, 0), 0);
	assert_false(wake_clear(p.fd));
	wake_send(p.fd);
	wake_send(p.fd);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_true(wake_clear(p.fd));
	assert_false(wake_clear(p.fd));
	/* A full counter is a wake-up. */
	assert_int_equal(write(p.fd, &(uint64_t){ UINT64_MAX - 1 }, 8), 8);
	errno = 42;
	wake_send(p.fd);
	assert_int_equal(errno, 42);
	assert_true(wake_clear(p.fd));
	close(p.fd);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
