// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * File work on a thread: see cli.h.
 *
 * Invariant: struct shared has one reference of the main thread and one of the
 * running thread; the last one frees it, so neither waits for the other.
 */
#include "ui/cli/internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/thread.h"
#include "ui/cli/cli.h"

#define NAME_TRIES 16
#define LONG_NS	   500000000ull
#define WAIT_MS	   50 /* a key may take 100 ms */

/* Work without progress for this long hangs: it is left for the next one, at most LEFT_MAX times.
 */
#define HANG_NS 10000000000ull

#define LEFT_MAX 8

/* Bytes of one write(2), a step of progress. */
#define PART_SIZE ((size_t)1 << 20)

struct shared {
	atomic_uint refs;
	atomic_bool
		done; /* release by the thread, acquire by the main thread: result is complete */
	int fd;	      /* eventfd: done */
	int code;
	struct err e;
	struct file_work *work;
};

struct file_worker {
	struct shared *running; /* NULL: none */
	int fd;			/* ours; the threads have duplicates */
	uint64_t started_ns;	/* of @running */
	/* When the progress of @running was another one than before, as far as it was looked at. */
	uint64_t moved_ns;
	unsigned int progress; /* then */
	struct shared *left[LEFT_MAX];
	unsigned int nr_left;
	const char *left_doing; /* of the one that was left last, to be said; NULL: none */
};

/* The work that this thread runs; NULL: none. */
static _Thread_local struct file_work *own_work;

struct file_worker *file_worker_new(void)
{
	struct file_worker *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->fd = wake_new();
	if (f->fd < 0) {
		free(f);
		return NULL;
	}
	return f;
}

static void shared_put(struct shared *s)
{
	/* Acquire and release: all writes of the other owner happen before the free. */
	if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
		return;
	s->work->free(s->work);
	close(s->fd);
	free(s);
}

/* Run @w with the rights of the invoking user; leave the message in @e, also when it succeeded. */
static int run(struct file_work *w, struct err *e)
{
	struct invoker_saved saved;
	int code = w->own_rights ? 0 : invoker_begin(&saved, e);

	if (code)
		return code;
	own_work = w;
	code = w->run(w, e);
	own_work = NULL;
	if (!w->own_rights)
		invoker_end(&saved);
	if (!code)
		err_set(e, 0, "%s", w->done);
	return code;
}

static void *file_work_main(void *arg)
{
	struct shared *s = arg;

	prctl(PR_SET_NAME, "file-work");
	s->code = run(s->work, &s->e);
	atomic_store_explicit(&s->done, true, memory_order_release);
	wake_send(s->fd);
	shared_put(s);
	return NULL;
}

/* Start the thread, detached. 0 or -errno. */
static int start_thread(struct shared *s)
{
	pthread_t thread;
	int code = thread_start(&thread, 0, file_work_main, s);

	if (!code)
		pthread_detach(thread);
	return code;
}

static int run_here(struct file_work *w, struct err *e)
{
	int code = run(w, e);

	if (!code && w->finish)
		code = w->finish(w, e);
	w->free(w);
	return code ? code : 1;
}

static bool is_done(const struct shared *s)
{
	/* Acquire: pairs with the release in file_work_main(). */
	return atomic_load_explicit(&s->done, memory_order_acquire);
}

/* Drop work that was left and has ended. */
static void drop_ended(struct file_worker *f)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < f->nr_left; i++)
		if (is_done(f->left[i]))
			shared_put(f->left[i]);
		else
			f->left[kept++] = f->left[i];
	f->nr_left = kept;
}

static const char *doing_of(const struct file_work *w)
{
	return w->doing ? w->doing : "writing the file";
}

/* Leave work that hangs to its thread. Return false if it goes on or is done, or too many hang. */
static bool leave_hung(struct file_worker *f, uint64_t now_ns)
{
	struct file_work *w = f->running->work;
	unsigned int progress = atomic_load_explicit(&w->permille, memory_order_relaxed) +
				atomic_load_explicit(&w->steps, memory_order_relaxed);

	if (progress != f->progress) {
		f->progress = progress;
		f->moved_ns = now_ns;
	}
	drop_ended(f);
	if (is_done(f->running) || now_ns < f->moved_ns + HANG_NS || f->nr_left == LEFT_MAX)
		return false;
	/* Relaxed: it may have been tested a moment before. */
	atomic_store_explicit(&w->left, true, memory_order_relaxed);
	f->left_doing = doing_of(w);
	f->left[f->nr_left++] = f->running;
	f->running = NULL;
	/* Said with the next result; there may be none. */
	wake_send(f->fd);
	return true;
}

int file_worker_start(struct file_worker *f, struct file_work *w, uint64_t now_ns, struct err *e)
{
	struct shared *s;

	if (!w)
		return err_set(e, -ENOMEM, "out of memory");
	if (!f)
		return run_here(w, e);
	if (f->running && !leave_hung(f, now_ns)) {
		w->free(w);
		return err_set(e, -EBUSY, "the last file is still being written or read");
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return run_here(w, e);
	s->work = w;
	s->fd = fcntl(f->fd, F_DUPFD_CLOEXEC, 0);
	atomic_init(&s->refs, 2);
	if (s->fd < 0 || start_thread(s)) {
		if (s->fd >= 0)
			close(s->fd);
		free(s);
		return run_here(w, e);
	}
	f->running = s;
	f->started_ns = f->moved_ns = now_ns;
	f->progress = 0;
	return 0;
}

bool file_worker_wait(const struct file_worker *f)
{
	struct pollfd fd = { .fd = file_worker_fd(f), .events = POLLIN };

	return poll(&fd, 1, WAIT_MS) > 0;
}

/* Take the result of the work that is done. */
static int take_result(struct file_worker *f, struct err *e)
{
	int code = f->running->code;

	*e = f->running->e;
	if (!code && f->running->work->finish)
		code = f->running->work->finish(f->running->work, e);
	shared_put(f->running);
	f->running = NULL;
	return code;
}

bool file_worker_take(struct file_worker *f, int *code, struct err *e)
{
	struct err result = { "" };
	bool done;

	if (!f)
		return false;
	/* First: a result is there before its wake-up, which may also be of work that was left. */
	wake_clear(f->fd);
	done = f->running && is_done(f->running);
	if (!done && (f->running || !f->left_doing))
		return false;
	*code = done ? take_result(f, e) : 0;
	if (!f->left_doing)
		return true;
	if (done)
		result = *e;
	*code = err_set(e, -ETIMEDOUT, "%s hangs: it is left%s%s", f->left_doing, done ? "; " : "",
			result.text);
	f->left_doing = NULL;
	return true;
}

int file_worker_permille(const struct file_worker *f, uint64_t now_ns)
{
	return f && f->running && now_ns > f->started_ns + LONG_NS
		       ? (int)atomic_load_explicit(&f->running->work->permille,
						   memory_order_relaxed)
		       : -1;
}

const char *file_worker_doing(const struct file_worker *f)
{
	return doing_of(f->running->work);
}

bool file_work_is_left(void)
{
	return own_work && atomic_load_explicit(&own_work->left, memory_order_relaxed);
}

int file_worker_fd(const struct file_worker *f)
{
	return f ? f->fd : -1;
}

void file_worker_free(struct file_worker *f, uint64_t wait_ns)
{
	const struct timespec step = { .tv_nsec = 5000000 };
	uint64_t until = time_now_ns() + wait_ns;

	if (!f)
		return;
	while (f->running && !is_done(f->running) && time_now_ns() < until)
		nanosleep(&step, NULL);
	if (f->running)
		shared_put(f->running);
	for (unsigned int i = 0; i < f->nr_left; i++)
		shared_put(f->left[i]);
	close(f->fd);
	free(f);
}

static int write_all(int fd, const char *text, size_t size)
{
	while (size) {
		ssize_t n = write(fd, text, MIN(size, PART_SIZE));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (own_work)
			atomic_fetch_add_explicit(&own_work->steps, 1, memory_order_relaxed);
		text += n;
		size -= (size_t)n;
	}
	return 0;
}

/* Check that @path may be replaced: a regular file only. Return 0; -EEXIST: not without @replace;
 * or other -errno. */
static int check_target(const char *path, bool replace, struct err *e)
{
	struct stat st;

	if (lstat(path, &st))
		return errno == ENOENT ? 0 : err_set(e, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "%s: not a regular file: not replaced", path);
	return replace ? 0 : err_set(e, -EEXIST, "%s: %s", path, strerror(EEXIST));
}

/* Create a file beside @path, its name in @name. The descriptor or -errno. */
static int create_beside(const char *path, char *name, size_t size)
{
	static const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd = -EEXIST;

	for (int i = 0; i < NAME_TRIES && fd == -EEXIST; i++) {
		uint64_t salt = hash_u64(time_now_ns() + (uint64_t)getpid() + (uint64_t)i);

		if (snprintf(name, size, "%s.%08x", path, (unsigned int)salt) >= (int)size)
			return -ENAMETOOLONG;
		fd = open(name, flags, 0666);
		fd = fd < 0 ? -errno : fd;
	}
	return fd;
}

/* Give the file its name; without @replace by link(2), which never replaces. */
static int give_name(const char *temporary, const char *path, bool replace)
{
	int code;

	/* A newer file may be there by now. */
	if (file_work_is_left())
		return -ETIMEDOUT;
	if (replace)
		return rename(temporary, path) ? -errno : 0;
	code = link(temporary, path) ? -errno : 0;
	/* A file system without hard links: the name was free a moment ago. */
	if (code == -EPERM || code == -EOPNOTSUPP || code == -ENOSYS)
		return rename(temporary, path) ? -errno : 0;
	unlink(temporary);
	return code;
}

int file_work_write_text(const char *path, const char *text, size_t size, bool replace,
			 struct err *e)
{
	char temporary[4096];
	int fd, code = check_target(path, replace, e);

	assert(path && (text || !size));
	if (code)
		return code;
	fd = create_beside(path, temporary, sizeof(temporary));
	if (fd < 0)
		return err_set(e, fd, "%s: %s", path, strerror(-fd));
	code = write_all(fd, text, size);
	if (close(fd) && !code)
		code = -errno;
	if (!code)
		code = give_name(temporary, path, replace);
	if (!code)
		return 0;
	unlink(temporary);
	return err_set(e, code, "%s: %s", path, strerror(-code));
}

struct text_work {
	struct file_work work; /* first: the two are cast */
	char *path, *text;
	size_t size;
	bool replace;
};

static int run_text(struct file_work *w, struct err *e)
{
	struct text_work *t = (struct text_work *)w;

	return file_work_write_text(t->path, t->text, t->size, t->replace, e);
}

static void free_text(struct file_work *w)
{
	struct text_work *t = (struct text_work *)w;

	free(t->path);
	free(t->text);
	free(t);
}

struct file_work *file_work_text(const char *path, char *text, size_t size, bool replace,
				 const char *done)
{
	struct text_work *t = calloc(1, sizeof(*t));
	char *copy = strdup(path);

	if (!t || !copy || !text) {
		free(t);
		free(copy);
		free(text);
		return NULL;
	}
	*t = (struct text_work){ .work = { .run = run_text, .free = free_text },
				 .path = copy,
				 .text = text,
				 .size = size,
				 .replace = replace };
	snprintf(t->work.done, sizeof(t->work.done), "%s", done);
	return &t->work;
}
