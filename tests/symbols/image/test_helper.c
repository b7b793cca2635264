// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * helper: jobs that return, that hang (in a read of a pipe, as in the kernel), that are abandoned
 * and end late; devices: which are set aside, and until when.
 * Live: waits for threads or processes.
 */
#include "symbols/image/image_cache.c"

#include "tests/fake_root.h"
#include "tests/prelude.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/thread.h"

#define MS 1000000ULL

struct fixture {
	struct helpers *helpers;
	int event, pipe[2];
	atomic_int nr_dropped;
};

struct read_job {
	struct job job;
	struct fixture *f;
	bool hangs;
	int sum;
};

static void t_run(struct job *job)
{
	struct read_job *j = (struct read_job *)job;
	char byte;

	if (watch_begin(&job->watch))
		return;
	if (j->hangs && read(j->f->pipe[0], &byte, 1) != 1)
		j->sum = -1;
	watch_end(&job->watch, 100);
	j->sum += 7;
}

static void t_drop(struct job *job)
{
	struct read_job *j = (struct read_job *)job;

	atomic_fetch_add(&j->f->nr_dropped, 1);
	free(j);
}

static struct read_job *job_new(struct fixture *f, bool hangs)
{
	struct read_job *j = calloc(1, sizeof(*j));

	j->job.run = t_run;
	j->job.drop = t_drop;
	j->f = f;
	j->hangs = hangs;
	return j;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->event = eventfd(0, EFD_NONBLOCK);
	assert_int_equal(pipe(f->pipe), 0);
	assert_int_equal(helpers_new(&f->helpers, f->event), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	close(f->event);
	close(f->pipe[0]);
	close(f->pipe[1]);
	free(f);
	return 0;
}

static bool dropped(struct fixture *f, int nr)
{
	for (int i = 0; i < 5000 && atomic_load(&f->nr_dropped) < nr; i++)
		usleep(1000);
	return atomic_load(&f->nr_dropped) == nr;
}

TEST(test_comes_back, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t nr;

	for (int i = 0; i < 1000; i++) {
		struct read_job *j = job_new(f, false);

		assert_int_equal(helpers_start(f->helpers, &j->job), 0);
		assert_true(helpers_wait(f->helpers, &j->job, time_now_ns() + 5000 * MS));
		assert_true(helper_job_done(&j->job));
		assert_int_equal(j->sum, 7);
		assert_int_equal(atomic_load(&j->job.watch.done), 100);
		assert_int_equal(watch_blocked_ns(&j->job.watch, time_now_ns()), 0);
		j->job.drop(&j->job);
	}
	assert_int_equal(read(f->event, &nr, sizeof(nr)), sizeof(nr));
	assert_int_equal(atomic_load(&f->nr_dropped), 1000);
	assert_int_equal(helpers_free(f->helpers, time_now_ns() + 5000 * MS), 0);
}

/* Other jobs continue beside hanging ones; an abandoned job ends late and is dropped once. */
TEST(test_hangs, setup, teardown)
{
	struct fixture *f = *state;
	struct read_job *hang[3], *j;

	for (int i = 0; i < 3; i++) {
		hang[i] = job_new(f, true);
		assert_int_equal(helpers_start(f->helpers, &hang[i]->job), 0);
	}
	/* On a full machine it takes a while before it even gets to hang. */
	for (int i = 0; i < 250 && watch_blocked_ns(&hang[0]->job.watch, time_now_ns()) <= 10 * MS;
	     i++)
		assert_false(helpers_wait(f->helpers, &hang[0]->job, time_now_ns() + 20 * MS));
	assert_true(watch_blocked_ns(&hang[0]->job.watch, time_now_ns()) > 10 * MS);
	j = job_new(f, false);
	assert_int_equal(helpers_call(f->helpers, &j->job, time_now_ns() + 5000 * MS), 0);
	assert_int_equal(j->sum, 7);
	j->job.drop(&j->job);
	helper_job_leave(&hang[0]->job);
	helper_job_leave(&hang[1]->job);
	assert_int_equal(write(f->pipe[1], "xxx", 3), 3);
	assert_true(helpers_wait(f->helpers, &hang[2]->job, time_now_ns() + 5000 * MS));
	assert_true(dropped(f, 3));
	hang[2]->job.drop(&hang[2]->job);
	/* A job that does not return in time is abandoned, and so is its thread. */
	j = job_new(f, true);
	assert_int_equal(helpers_call(f->helpers, &j->job, time_now_ns() + 20 * MS), -ETIME);
	/* The others end, on a full machine some time later. */
	assert_int_equal(helpers_free(f->helpers, time_now_ns() + 5000 * MS), 1);
	assert_int_equal(write(f->pipe[1], "x", 1), 1);
	assert_true(dropped(f, 5));
}

TEST(test_all_hang, setup, teardown)
{
	struct fixture *f = *state;
	struct read_job *hang[HELPERS_MAX], *j = job_new(f, false);
	char bytes[HELPERS_MAX] = { 0 };

	for (unsigned int i = 0; i < HELPERS_MAX; i++) {
		hang[i] = job_new(f, true);
		assert_int_equal(helpers_start(f->helpers, &hang[i]->job), 0);
	}
	assert_int_equal(helpers_start(f->helpers, &j->job), -EAGAIN);
	j->job.drop(&j->job);
	assert_int_equal(write(f->pipe[1], bytes, sizeof(bytes)), sizeof(bytes));
	for (unsigned int i = 0; i < HELPERS_MAX; i++)
		helper_job_leave(&hang[i]->job);
	assert_int_equal(helpers_free(f->helpers, time_now_ns() + 5000 * MS), 0);
	assert_true(dropped(f, HELPERS_MAX + 1));
}

/* The end cancels the reads. */
TEST(test_cancel, setup, teardown)
{
	struct fixture *f = *state;
	struct read_job *j = job_new(f, true);

	assert_int_equal(helpers_start(f->helpers, &j->job), 0);
	usleep(1000);
	helper_job_leave(&j->job);
	assert_int_equal(watch_begin(NULL), 0);
	assert_int_equal(write(f->pipe[1], "x", 1), 1);
	assert_int_equal(helpers_free(f->helpers, time_now_ns() + 5000 * MS), 0);
	assert_true(dropped(f, 1));
}

TEST(test_devices)
{
	struct backoff d = { 0 };
	uint64_t now = 1000 * MS, due;

	assert_int_equal(backoff_rest(&d, 0, 50, now), 0);
	backoff_hang(&d, 0, 50, now);
	assert_int_equal(backoff_rest(&d, 0, 51, now), 0);
	due = backoff_rest(&d, 0, 50, now);
	assert_int_equal(due, now + BACKOFF_REST_MIN_NS);
	/* Once more, then it rests twice as long; and no third job while two hang. */
	now = due;
	assert_int_equal(backoff_rest(&d, 0, 50, now), 0);
	backoff_hang(&d, 0, 50, now);
	due = backoff_rest(&d, 0, 50, now);
	assert_int_equal(due, now + 2 * BACKOFF_REST_MIN_NS);
	assert_true(backoff_rest(&d, 0, 50, due) > due);
	/* The device answers: all its jobs may start immediately. */
	assert_true(backoff_ended(&d, 0, 50, true));
	assert_int_equal(backoff_rest(&d, 0, 50, now), 0);
	assert_false(backoff_ended(&d, 0, 50, true));
	assert_int_equal(d.nr_slow, 0);
}

/* Many hanging file systems take nothing from disks and from devices that have answered. */
TEST(test_many_devices)
{
	struct backoff d = { 0 };
	uint64_t now = 1000 * MS;

	backoff_ended(&d, 0, 7, false);
	for (uint32_t i = 0; i < BACKOFF_SLOW_MAX / 2; i++) {
		assert_int_equal(backoff_rest(&d, 0, 100 + i, now), 0);
		backoff_hang(&d, 0, 100 + i, now);
	}
	assert_true(backoff_rest(&d, 0, 99, now) > now);
	assert_true(backoff_rest(&d, 0, 0, now) > now);
	assert_int_equal(backoff_rest(&d, 0, 7, now), 0);
	assert_int_equal(backoff_rest(&d, 8, 1, now), 0);
	for (uint32_t i = 0; i < BACKOFF_SLOW_MAX / 2; i++)
		backoff_hang(&d, 0, 0, now);
	assert_true(backoff_rest(&d, 8, 1, now) > now);
	/* More devices than it can remember: nothing breaks, resting ones are kept. */
	for (uint32_t i = 0; i < 3 * BACKOFF_MAX; i++)
		backoff_ended(&d, 3, i, false);
	assert_true(backoff_rest(&d, 0, 100, now) > now);
	for (uint32_t i = 0; i < BACKOFF_SLOW_MAX; i++)
		backoff_cancelled(&d, 0, 0);
	assert_int_equal(d.nr_slow, 0);
}

/* A time namespace that began an hour before the kernel did: only waits use its clock. */
TEST(test_time_namespace)
{
	char root[] = "/tmp/test_helper.XXXXXX";
	uint64_t before_ns = time_now_ns();
	struct timespec until;
	uint64_t now_ns;

	assert_non_null(mkdtemp(root));
	fake_put(root, "/proc/self/timens_offsets",
		 "monotonic        3600         5\nboottime        7200         0\n");
	time_read_namespace(root);
	now_ns = time_now_ns();
	assert_true(now_ns < before_ns || before_ns < 3600000000005);
	assert_true(now_ns - (before_ns - 3600000000005) < 600000000000);
	until = time_deadline(999999999);
	assert_true(until.tv_sec == 3601 && until.tv_nsec == 4);
	/* Behind the kernel: negative seconds, positive nanoseconds. */
	fake_put(root, "/proc/self/timens_offsets", "monotonic          -3         700000000\n");
	time_read_namespace(root);
	until = time_deadline(5000000000);
	assert_true(until.tv_sec == 2 && until.tv_nsec == 700000000);
	assert_int_equal(fake_remove(root), 0);
	time_read_namespace(root);
	assert_true(time_now_ns() - before_ns < 600000000000);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
