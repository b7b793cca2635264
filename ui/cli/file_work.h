/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Write one file on a thread of its own, so that the screen never blocks on a
 * file system. Save the screen, the settings.
 *
 * The work owns a copy of all it needs. A thread that hangs is left behind
 * with its work; the process may end meanwhile.
 *
 * Threads: file_work_*() on the main thread; run() on the worker.
 */
#ifndef UI_CLI_FILE_WORK_H
#define UI_CLI_FILE_WORK_H

#include "symbols/base/base.h"

struct file_work {
	/* Return 0, or -errno with a sentence in @e. */
	int (*run)(struct file_work *w, struct err *e);
	void (*free)(struct file_work *w);
	char done[256]; /* message when it succeeded */
};

struct file_worker;

/* NULL without memory or descriptors: file_worker_start() then runs the work itself. */
struct file_worker *file_worker_new(void);
/* Wait at most @wait_ns for a work in progress, then leave it behind. */
void file_worker_free(struct file_worker *f, uint64_t wait_ns);
/* Readable when a result can be taken; -1: never. */
int file_worker_fd(const struct file_worker *f);
/*
 * Take over @w and start it. @f may be NULL (run here). 0: started, the result
 * comes by file_worker_take(); 1: done, message in @e; -errno with a sentence:
 * failed, or -EBUSY: the last one is still running.
 */
int file_worker_start(struct file_worker *f, struct file_work *w, struct err *e);
/* The result of the finished work: false: none yet; else *code and the message in @e. */
bool file_worker_take(struct file_worker *f, int *code, struct err *e);

/*
 * Create @path with @text, whole or not at all. A new file appears under a
 * temporary name and is renamed; @replace: over a regular file only, else an
 * existing path is refused with -EEXIST. Symbolic links are never followed.
 * 0 or -errno with a sentence.
 */
int file_write_text(const char *path, const char *text, size_t size, bool replace, struct err *e);
/* Work that does that: copies @path, takes over @text (malloc'ed). NULL: no memory, @text is freed.
 */
struct file_work *file_work_text(const char *path, char *text, size_t size, bool replace,
				 const char *done);

#endif
