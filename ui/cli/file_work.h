/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Write or read one file on a separate thread, so that the screen never blocks on a
 * file system: saved screens, settings, programs with probes. With the rights of the invoking user.
 *
 * The work has copies of all its data. A thread that hangs is abandoned with
 * its work; the process may exit before it ends.
 *
 * Threads: file_work_*() and finish() on the main thread; run() on the worker.
 */
#ifndef UI_CLI_FILE_WORK_H
#define UI_CLI_FILE_WORK_H

#include <stdatomic.h>

#include "symbols/base/base.h"

struct file_work {
	/* Return 0, or -errno with a message in @e. */
	int (*run)(struct file_work *w, struct err *e);
	/*
	 * On the main thread, when run() succeeded: use its results. 0 or -errno, a message in @e.
	 * NULL: the message is @done.
	 */
	int (*finish)(struct file_work *w, struct err *e);
	void (*free)(struct file_work *w);
	char done[256];	   /* message when it succeeded */
	const char *doing; /* of the progress, static; NULL: "writing the file" */
	bool own_rights; /* run() reads no file of the invoking user: keep the rights of proftop */
	atomic_uint permille; /* progress, set by run(); any thread reads it */
	atomic_uint steps;    /* the same of what has no whole */
	atomic_bool left;     /* its result is of no interest any more: no file is replaced */
};

struct file_worker;

/* Return NULL without memory or descriptors: file_worker_start() then runs the work directly. */
struct file_worker *file_worker_new(void);
/* Wait at most @wait_ns for running work, then abandon it. */
void file_worker_free(struct file_worker *f, uint64_t wait_ns);
/* Return a descriptor that is readable when a result is available; -1: none. */
int file_worker_fd(const struct file_worker *f);
/*
 * Take over @w and start it at @now_ns; @f NULL: run it here. Return 0: started, result from
 * file_worker_take(); 1: done, message in @e; -errno with a message: failed, or -EBUSY:
 * previous work still running. Previous work without progress for 10 s is left instead, at most
 * eight times: file_worker_take() says that it hangs.
 */
int file_worker_start(struct file_worker *f, struct file_work *w, uint64_t now_ns, struct err *e);
/*
 * Wait 50 ms for a result, so that keys typed behind the one that started the work find it done.
 * False: it comes later.
 */
bool file_worker_wait(const struct file_worker *f);
/* Return the progress, 0 to 1000, of work that takes longer than half a second; -1: none. */
int file_worker_permille(const struct file_worker *f, uint64_t now_ns);
/* Return the words for the running work. */
const char *file_worker_doing(const struct file_worker *f);
/* Report whether the work of this thread was left, before a file is replaced. */
bool file_work_is_left(void);
/*
 * Take the result of the finished work: return false if there is none, else set *code and
 * the message in @e.
 */
bool file_worker_take(struct file_worker *f, int *code, struct err *e);

/*
 * Create @path with @text, atomically: a temporary file is renamed. @replace: replace a
 * regular file, else an existing path is refused with -EEXIST. Symbolic links are not
 * followed. Return 0 or -errno with a message.
 */
int file_write_text(const char *path, const char *text, size_t size, bool replace, struct err *e);
/*
 * Make work for file_write_text(): copies @path, takes over @text (malloc). Return NULL:
 * no memory, @text is freed.
 */
struct file_work *file_work_text(const char *path, char *text, size_t size, bool replace,
				 const char *done);

#endif
