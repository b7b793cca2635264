// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kallsyms_job: a list that a helper reads, one that cannot be read, one that is not needed any
 * more while it is read, and a time when no helper is free.
 * Live: waits for threads or processes.
 */
#include "tests/prelude.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "symbols/kernel/kernel.h"
#include "symbols/base/base.h"
#include "symbols/base/thread.h"

#define NR_LINES 100000U

struct fixture {
	struct helpers *helpers;
	int event, pipe[2];
	char dir[64], list[96];
};

/* A job that hangs in a read. */
struct hang {
	struct job job;
	int fd;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	FILE *file;

	assert_non_null(f);
	f->event = eventfd(0, EFD_NONBLOCK);
	assert_int_equal(pipe(f->pipe), 0);
	assert_int_equal(helpers_new(&f->helpers, f->event), 0);
	strcpy(f->dir, "/tmp/test_kallsyms_job.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->list, sizeof(f->list), "%s/list", f->dir);
	file = fopen(f->list, "w");
	assert_non_null(file);
	for (unsigned int i = 0; i < NR_LINES; i++)
		fprintf(file, "ffffffff%08x T function_%u\n", 0x81000000 + 16 * i, i);
	assert_int_equal(fclose(file), 0);
	*state = f;
	return 0;
}

/* All left jobs are dropped by then: none is leaked. */
static int tear_down(void **state)
{
	struct fixture *f = *state;

	close(f->pipe[1]);
	assert_int_equal(helpers_free(f->helpers, time_now_ns() + 20000000000U), 0);
	close(f->pipe[0]);
	close(f->event);
	unlink(f->list);
	rmdir(f->dir);
	free(f);
	return 0;
}

/* Take the whole list, of @job or read here. */
static void take_list(const struct fixture *f, struct kallsyms_job *job)
{
	struct kallsyms_job_result result;
	uint64_t before = time_now_ns();

	kallsyms_job_take(job, NULL, f->list, false, &result);
	assert_int_equal(result.rc, 0);
	assert_int_equal(kallsyms_nr(result.list), NR_LINES);
	assert_true(result.cost_ns > 0);
	assert_true(result.start_ns <= time_now_ns());
	assert_true(job || result.start_ns >= before);
	kallsyms_free(result.list);
}

TEST(test_take, set_up, tear_down)
{
	const struct fixture *f = *state;
	struct kallsyms_job *job = kallsyms_job_start(NULL, f->list, f->helpers);

	assert_non_null(job);
	take_list(f, job);
	take_list(f, NULL);
}

/* An unreadable list: its reason is reported, and no list. */
TEST(test_unreadable, set_up, tear_down)
{
	const struct fixture *f = *state;
	char missing[128];
	const struct {
		const char *path;
		int rc;
	} cases[] = { { missing, -ENOENT },
		      { f->dir, -EISDIR },
		      { "/dev/null", -EINVAL },
		      { "/dev/zero", -EINVAL } };

	snprintf(missing, sizeof(missing), "%s/missing", f->dir);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct kallsyms_job *job = kallsyms_job_start(NULL, cases[i].path, f->helpers);
		struct kallsyms_job_result result;

		assert_non_null(job);
		kallsyms_job_take(job, NULL, cases[i].path, false, &result);
		assert_int_equal(result.rc, cases[i].rc);
		assert_null(result.list);
		kallsyms_job_take(NULL, NULL, cases[i].path, false, &result);
		assert_int_equal(result.rc, cases[i].rc);
		assert_null(result.list);
	}
}

/* Left before it began, while it reads, and when it is done. */
TEST(test_leave, set_up, tear_down)
{
	const struct fixture *f = *state;

	kallsyms_job_leave(NULL);
	for (unsigned int wait_us = 0; wait_us < 16000; wait_us = wait_us * 2 + 250) {
		struct kallsyms_job *job = kallsyms_job_start(NULL, f->list, f->helpers);

		assert_non_null(job);
		usleep(wait_us);
		kallsyms_job_leave(job);
	}
}

static void hang_run(struct job *job)
{
	char byte;

	if (watch_begin(&job->watch))
		return;
	/* Ends when the other end of the pipe is closed. */
	assert_int_equal(read(((struct hang *)job)->fd, &byte, 1), 0);
	watch_end(&job->watch, 1);
}

static void hang_drop(struct job *job)
{
	free(job);
}

/* All helpers hang: the requesting thread reads the list. */
TEST(test_no_helper, set_up, tear_down)
{
	const struct fixture *f = *state;
	struct hang *hangs[HELPERS_MAX];

	for (size_t i = 0; i < HELPERS_MAX; i++) {
		hangs[i] = calloc(1, sizeof(*hangs[i]));
		assert_non_null(hangs[i]);
		hangs[i]->job.run = hang_run;
		hangs[i]->job.drop = hang_drop;
		hangs[i]->fd = f->pipe[0];
		assert_int_equal(helpers_start(f->helpers, &hangs[i]->job), 0);
	}
	assert_null(kallsyms_job_start(NULL, f->list, f->helpers));
	take_list(f, NULL);
	for (size_t i = 0; i < HELPERS_MAX; i++)
		helper_job_leave(&hangs[i]->job);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
