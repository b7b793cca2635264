// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Files that a key writes: never through a symbolic link or into a FIFO, never
 * half, and never with the screen waiting.
 * Live: waits for threads or processes.
 */
#include "tests/prelude.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ui/cli/cli.h"
#include "symbols/base/base.h"

struct place_on_disk {
	char dir[64], file[96], other[96];
};

static void disk_init(struct place_on_disk *d)
{
	snprintf(d->dir, sizeof(d->dir), "/tmp/proftop-file-work-XXXXXX");
	assert_non_null(mkdtemp(d->dir));
	snprintf(d->file, sizeof(d->file), "%s/file", d->dir);
	snprintf(d->other, sizeof(d->other), "%s/other", d->dir);
}

static void disk_fini(struct place_on_disk *d)
{
	unlink(d->file);
	unlink(d->other);
	/* Fails if a temporary file was left behind. */
	assert_int_equal(rmdir(d->dir), 0);
}

static void assert_content(const char *path, const char *want)
{
	char got[64] = "";
	FILE *in = fopen(path, "re");

	assert_non_null(in);
	got[fread(got, 1, sizeof(got) - 1, in)] = '\0';
	fclose(in);
	assert_string_equal(got, want);
}

static void put(const char *path, const char *text)
{
	FILE *out = fopen(path, "we");

	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

TEST(test_new_and_replace)
{
	struct place_on_disk d;
	struct err e;

	disk_init(&d);
	assert_int_equal(file_work_write_text(d.file, "one", 3, false, &e), 0);
	assert_content(d.file, "one");
	assert_int_equal(file_work_write_text(d.file, "two", 3, false, &e), -EEXIST);
	assert_content(d.file, "one");
	assert_int_equal(file_work_write_text(d.file, "three", 5, true, &e), 0);
	assert_content(d.file, "three");
	disk_fini(&d);
}

TEST(test_links)
{
	struct place_on_disk d;
	struct err e;

	disk_init(&d);
	put(d.other, "precious");
	assert_int_equal(symlink(d.other, d.file), 0);
	assert_int_equal(file_work_write_text(d.file, "x", 1, true, &e), -EINVAL);
	assert_non_null(strstr(e.text, "not a regular file"));
	assert_int_equal(file_work_write_text(d.file, "x", 1, false, &e), -EINVAL);
	assert_content(d.other, "precious");
	/* A dangling one makes no file. */
	unlink(d.other);
	assert_int_equal(file_work_write_text(d.file, "x", 1, true, &e), -EINVAL);
	assert_int_equal(file_work_write_text(d.file, "x", 1, false, &e), -EINVAL);
	assert_int_not_equal(access(d.other, F_OK), 0);
	disk_fini(&d);
}

TEST(test_fifo_and_errors)
{
	struct place_on_disk d;
	struct err e;

	disk_init(&d);
	assert_int_equal(mkfifo(d.file, 0600), 0);
	assert_int_equal(file_work_write_text(d.file, "x", 1, true, &e), -EINVAL);
	assert_int_equal(file_work_write_text("/nowhere/to/be", "x", 1, true, &e), -ENOENT);
	assert_int_equal(file_work_write_text("/dev/full", "x", 1, true, &e), -EINVAL);
	disk_fini(&d);
}

/* Wait for the result as the loop of the screen does. */
static int wait_result(struct file_worker *f, struct err *e)
{
	struct pollfd fd = { .fd = file_worker_fd(f), .events = POLLIN };
	int code = 1;

	for (int i = 0; i < 100 && !file_worker_take(f, &code, e); i++)
		poll(&fd, 1, 100);
	return code;
}

TEST(test_worker)
{
	struct file_worker *f = file_worker_new();
	struct place_on_disk d;
	struct err e;

	disk_init(&d);
	for (int i = 0; i < 20; i++) {
		struct file_work *w = file_work_text(d.file, strdup("text"), 4, true, "saved");

		assert_int_equal(file_worker_start(f, w, 1, &e), 0);
		assert_int_equal(wait_result(f, &e), 0);
		assert_string_equal(e.text, "saved");
		assert_content(d.file, "text");
	}
	assert_int_equal(file_worker_start(f, file_work_text("/nowhere/x", strdup(""), 0, true, ""),
					   1, &e),
			 0);
	assert_int_equal(wait_result(f, &e), -ENOENT);
	file_worker_free(f, 0);
	/* Without a worker it is done at the call. */
	assert_int_equal(file_worker_start(NULL,
					   file_work_text(d.file, strdup("here"), 4, true, "ok"), 1,
					   &e),
			 1);
	assert_string_equal(e.text, "ok");
	assert_content(d.file, "here");
	disk_fini(&d);
}

/* A file system that does not answer. */
struct hanging {
	struct file_work work;
	sem_t *go, *freed;
	const char *path;
};

static int run_hanging(struct file_work *w, struct err *e)
{
	sem_wait(((struct hanging *)w)->go);
	return 0;
}

static void free_hanging(struct file_work *w)
{
	sem_post(((struct hanging *)w)->freed);
	free(w);
}

TEST(test_hang)
{
	struct file_worker *f = file_worker_new();
	struct hanging *h = calloc(1, sizeof(*h));
	struct err e;
	sem_t go, freed;
	int code;

	sem_init(&go, 0, 0);
	sem_init(&freed, 0, 0);
	*h = (struct hanging){ { .run = run_hanging, .free = free_hanging }, &go, &freed, NULL };
	assert_int_equal(file_worker_start(f, &h->work, 1, &e), 0);
	assert_false(file_worker_take(f, &code, &e));
	assert_int_equal(file_worker_start(f, file_work_text("/x", strdup(""), 0, true, ""), 1, &e),
			 -EBUSY);
	/* The end does not wait for the work; its memory is freed when it returns. */
	file_worker_free(f, 20000000);
	sem_post(&go);
	sem_wait(&freed);
	sem_destroy(&go);
	sem_destroy(&freed);
}

static int start_text(struct file_worker *f, const char *path, uint64_t now_ns, struct err *e)
{
	return file_worker_start(f, file_work_text(path, strdup("text"), 4, true, "saved"), now_ns,
				 e);
}

/* Work that hangs does not keep others from their files, unless it goes on or many hang. */
TEST(test_left)
{
	const uint64_t s = 1000000000;
	struct file_worker *f = file_worker_new();
	struct hanging *h = NULL;
	struct place_on_disk d;
	uint64_t now_ns = s;
	sem_t go, freed;
	struct err e;
	int code;

	disk_init(&d);
	sem_init(&go, 0, 0);
	sem_init(&freed, 0, 0);
	for (int i = 0; i < 9; i++) {
		h = calloc(1, sizeof(*h));
		*h = (struct hanging){
			{ .run = run_hanging, .free = free_hanging }, &go, &freed, NULL
		};
		assert_int_equal(file_worker_start(f, &h->work, now_ns, &e), 0);
		assert_int_equal(start_text(f, d.file, now_ns + 9 * s, &e), -EBUSY);
		/* Progress after 9 s. */
		atomic_store(i % 2 ? &h->work.permille : &h->work.steps, 500);
		assert_int_equal(start_text(f, d.file, now_ns + 15 * s, &e), -EBUSY);
		assert_int_equal(start_text(f, d.file, now_ns + 24 * s, &e), -EBUSY);
		if (i == 8)
			break;
		assert_int_equal(start_text(f, d.file, now_ns + 26 * s, &e), 0);
		assert_true(atomic_load(&h->work.left));
		assert_int_equal(wait_result(f, &e), -ETIMEDOUT);
		assert_string_equal(e.text, "writing the file hangs: it is left; saved");
		assert_content(d.file, "text");
		now_ns += 26 * s;
	}
	assert_int_equal(start_text(f, d.file, now_ns + 100 * s, &e), -EBUSY);
	for (int i = 0; i < 9; i++)
		sem_post(&go);
	/* The one that was not left has its result; the others wake the loop, which finds none. */
	assert_int_equal(wait_result(f, &e), 0);
	assert_false(file_worker_take(f, &code, &e));
	file_worker_free(f, 60 * s);
	for (int i = 0; i < 9; i++)
		sem_wait(&freed);
	disk_fini(&d);
	sem_destroy(&go);
	sem_destroy(&freed);
}

/* Replaces a file when it was left: an older file would be there then. */
static int run_late(struct file_work *w, struct err *e)
{
	struct hanging *h = (struct hanging *)w;

	sem_wait(h->go);
	return file_work_write_text(h->path, "old", 3, true, e);
}

/* Work that was left replaces no file. */
TEST(test_left_late)
{
	const uint64_t s = 1000000000;
	struct file_worker *f = file_worker_new();
	struct hanging *h = calloc(1, sizeof(*h));
	struct place_on_disk d;
	sem_t go, freed;
	struct err e;

	disk_init(&d);
	sem_init(&go, 0, 0);
	sem_init(&freed, 0, 0);
	*h = (struct hanging){ { .run = run_late, .free = free_hanging }, &go, &freed, d.file };
	assert_int_equal(file_worker_start(f, &h->work, s, &e), 0);
	assert_int_equal(start_text(f, d.file, 12 * s, &e), 0);
	assert_int_equal(wait_result(f, &e), -ETIMEDOUT);
	sem_post(&go);
	file_worker_free(f, 60 * s);
	sem_wait(&freed);
	assert_content(d.file, "text");
	disk_fini(&d);
	sem_destroy(&go);
	sem_destroy(&freed);
}

/* Work that is done is not left, however late its result is taken. */
TEST(test_done_late)
{
	const uint64_t s = 1000000000;
	struct file_worker *f = file_worker_new();
	struct pollfd fd = { .fd = file_worker_fd(f), .events = POLLIN };
	struct hanging *h = calloc(1, sizeof(*h));
	sem_t go, freed;
	struct err e;

	sem_init(&go, 0, 1);
	sem_init(&freed, 0, 0);
	*h = (struct hanging){
		{ .run = run_hanging, .free = free_hanging, .done = "done" }, &go, &freed, NULL
	};
	assert_int_equal(file_worker_start(f, &h->work, s, &e), 0);
	assert_int_equal(poll(&fd, 1, 60000), 1);
	assert_int_equal(start_text(f, "/nowhere/x", 60 * s, &e), -EBUSY);
	assert_int_equal(wait_result(f, &e), 0);
	assert_string_equal(e.text, "done");
	file_worker_free(f, 60 * s);
	sem_wait(&freed);
	sem_destroy(&go);
	sem_destroy(&freed);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
