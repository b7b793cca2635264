// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sleeping tasks are read on a helper: a process that hangs it is reported, and others are read
 * after it, unless too many hang; when its read has ended it is read as the others.
 * Live: waits for threads or processes.
 */
#include "sampler/waits/waits.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/thread.h"
#include "tests/prelude.h"
#include "symbols/name/name.h"

#define HANGS	   5000 /* pids from here on hang their reader */
#define SECOND	   1000000000ULL
#define PATIENCE_S 60

static pthread_mutex_t blocked = PTHREAD_MUTEX_INITIALIZER;
static atomic_int nr_blocked;
static atomic_int slow_pid; /* hangs its reader as long as this is its pid */

/* In the place of asleep_read(). */
static void fake_read(struct asleep *a)
{
	if (a->pid >= HANGS) {
		atomic_fetch_add(&nr_blocked, 1);
		pthread_mutex_lock(&blocked);
		pthread_mutex_unlock(&blocked);
	}
	if (a->pid == atomic_load(&slow_pid)) {
		atomic_fetch_add(&nr_blocked, 1);
		while (a->pid == atomic_load(&slow_pid))
			usleep(1000);
	}
	a->kind = WAIT_PIPE;
}

/* In the place of asleep_kind(). */
static enum wait_kind fake_kind(pid_t tid)
{
	struct asleep a = { .pid = tid - 1 };

	fake_read(&a);
	return a.kind;
}

static const struct sleep_reader_calls fake = { fake_read, fake_kind };

static struct waits_sleeper task_of(pid_t pid)
{
	return (struct waits_sleeper){ .pid = pid, .tid = pid + 1, .look = LOOK_BEFORE };
}

/* Wait until @nr jobs have hung in all, then look a second later. */
static enum sleep_reader_state look_after_hang(struct sleep_reader *r, int nr)
{
	for (uint64_t end = time_now_ns() + PATIENCE_S * SECOND;
	     atomic_load(&nr_blocked) < nr && time_now_ns() < end;)
		usleep(1000);
	assert_int_equal(atomic_load(&nr_blocked), nr);
	return sleep_reader_look(r, time_now_ns() + SECOND);
}

static void expect_none_hung(struct sleep_reader *r)
{
	for (uint64_t end = time_now_ns() + PATIENCE_S * SECOND;
	     sleep_reader_hung(r).nr && time_now_ns() < end; usleep(1000))
		sleep_reader_look(r, time_now_ns());
	assert_int_equal(sleep_reader_hung(r).nr, 0);
	assert_int_equal(sleep_reader_look(r, time_now_ns()), SLEEP_READER_IDLE);
}

static void expect_copies(struct sleep_reader *r, pid_t first, uint32_t nr, bool stacks)
{
	const struct sleep_copy *copies;
	uint32_t nr_copies;

	for (uint64_t end = time_now_ns() + PATIENCE_S * SECOND;
	     sleep_reader_look(r, time_now_ns()) == SLEEP_READER_BUSY && time_now_ns() < end;)
		usleep(1000);
	assert_int_equal(sleep_reader_look(r, time_now_ns()), SLEEP_READER_DONE);
	copies = sleep_reader_copies(r, &nr_copies);
	assert_int_equal(nr_copies, nr);
	for (uint32_t i = 0; i < nr; i++) {
		assert_int_equal(copies[i].task.pid, first + (pid_t)i);
		assert_int_equal(copies[i].kind, WAIT_PIPE);
		assert_int_equal(copies[i].copy != NULL, stacks);
		if (stacks)
			assert_int_equal(copies[i].copy->tid, first + (pid_t)i + 1);
	}
	sleep_reader_drop(r);
	assert_int_equal(sleep_reader_look(r, time_now_ns()), SLEEP_READER_IDLE);
}

TEST(test_hang)
{
	const struct waits_sleeper tasks[] = { task_of(10), task_of(HANGS), task_of(11) };
	struct sleep_reader *r = sleep_reader_new(fake);
	const int nr_max = HELPERS_MAX / 2;
	const struct sleep_copy *copies;
	uint32_t nr;

	assert_non_null(r);
	assert_int_equal(sleep_reader_look(r, time_now_ns()), SLEEP_READER_IDLE);
	assert_false(sleep_reader_start(r, tasks, 0, true));
	atomic_store(&nr_blocked, 0);
	pthread_mutex_lock(&blocked);
	assert_true(sleep_reader_start(r, tasks, 3, true));
	assert_int_equal(look_after_hang(r, 1), SLEEP_READER_HUNG);
	assert_int_equal(sleep_reader_hung(r).nr, 1);
	assert_int_equal(sleep_reader_hung(r).pids[0], HANGS);
	/* Tasks that were read before it count. */
	copies = sleep_reader_copies(r, &nr);
	assert_int_equal(nr, 1);
	assert_int_equal(copies[0].kind, WAIT_PIPE);
	sleep_reader_drop(r);
	/* The others are read on another helper. */
	assert_int_equal(sleep_reader_look(r, time_now_ns()), SLEEP_READER_IDLE);
	assert_true(sleep_reader_start(r, (struct waits_sleeper[]){ task_of(10), task_of(11) }, 2,
				       true));
	expect_copies(r, 10, 2, true);
	/* One after the other, each in another process. */
	for (int i = 1; i < nr_max; i++) {
		const struct waits_sleeper task = task_of(HANGS + i);

		assert_false(sleep_reader_stopped(r));
		assert_true(sleep_reader_start(r, &task, 1, i % 2));
		assert_int_equal(look_after_hang(r, i + 1), SLEEP_READER_HUNG);
		assert_int_equal(sleep_reader_hung(r).pids[i], HANGS + i);
		sleep_reader_drop(r);
	}
	assert_true(sleep_reader_stopped(r));
	assert_int_equal(sleep_reader_look(r, time_now_ns()), SLEEP_READER_STOPPED);
	assert_false(sleep_reader_start(r, tasks, 1, true));
	pthread_mutex_unlock(&blocked);
	/* They end. */
	expect_none_hung(r);
	assert_false(sleep_reader_stopped(r));
	assert_true(sleep_reader_start(r, &tasks[1], 1, true));
	expect_copies(r, HANGS, 1, true);
	sleep_reader_free(r);
}

/* One of several reads ends: its process is read again, and no other one. */
TEST(test_ended)
{
	const struct waits_sleeper slow = task_of(10), task = task_of(HANGS);
	struct sleep_reader *r = sleep_reader_new(fake);

	assert_non_null(r);
	atomic_store(&nr_blocked, 0);
	atomic_store(&slow_pid, 10);
	pthread_mutex_lock(&blocked);
	assert_true(sleep_reader_start(r, &slow, 1, true));
	assert_int_equal(look_after_hang(r, 1), SLEEP_READER_HUNG);
	/* The same until it is dropped. */
	assert_int_equal(sleep_reader_look(r, time_now_ns()), SLEEP_READER_HUNG);
	sleep_reader_drop(r);
	assert_true(sleep_reader_start(r, &task, 1, true));
	assert_int_equal(look_after_hang(r, 2), SLEEP_READER_HUNG);
	sleep_reader_drop(r);
	assert_int_equal(sleep_reader_hung(r).nr, 2);
	atomic_store(&slow_pid, 0);
	for (uint64_t end = time_now_ns() + PATIENCE_S * SECOND;
	     sleep_reader_hung(r).nr != 1 && time_now_ns() < end; usleep(1000))
		assert_int_equal(sleep_reader_look(r, time_now_ns()), SLEEP_READER_IDLE);
	assert_int_equal(sleep_reader_hung(r).nr, 1);
	assert_int_equal(sleep_reader_hung(r).pids[0], HANGS);
	pthread_mutex_unlock(&blocked);
	expect_none_hung(r);
	sleep_reader_free(r);
}

/* All tasks of a job are read. */
TEST(test_whole_job)
{
	static struct waits_sleeper tasks[SLEEP_READER_KINDS];
	struct sleep_reader *r = sleep_reader_new(fake);

	assert_non_null(r);
	for (int i = 0; i < SLEEP_READER_KINDS; i++)
		tasks[i] = task_of(20 + i);
	assert_true(sleep_reader_start(r, tasks, SLEEP_READER_TASKS, true));
	expect_copies(r, 20, SLEEP_READER_TASKS, true);
	assert_true(sleep_reader_start(r, tasks, SLEEP_READER_KINDS, false));
	expect_copies(r, 20, SLEEP_READER_KINDS, false);
	sleep_reader_free(r);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
