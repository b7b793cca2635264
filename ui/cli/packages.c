// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A cache of answers, and one thread at a time that finds the next one.
 *
 * The job is shared with its thread and freed by the last of both; all else is the main thread's.
 */
#include "ui/cli/packages.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/thread.h"

#define INFO	  "/var/lib/dpkg/info"
#define LIST_MAX  (16u << 20) /* bytes of one list */
#define LISTS_MAX 20000
#define PATH_CAP  1024
#define CACHED	  64

struct job {
	atomic_uint nr_owners;
	atomic_bool done;
	bool found;
	char dir[PATH_CAP], path[PATH_CAP];
	char name[PACKAGES_NAME_MAX];
};

struct answer {
	char path[PATH_CAP];
	char name[PACKAGES_NAME_MAX]; /* "": none */
};

struct packages {
	char dir[PATH_CAP];
	struct job *job; /* NULL: none is running */
	struct answer *answers[CACHED];
	uint32_t nr, next;
};

static void job_put(struct job *job)
{
	/* Acquire and release: the other's accesses happen before the free. */
	if (job && atomic_fetch_sub_explicit(&job->nr_owners, 1, memory_order_acq_rel) == 1)
		free(job);
}

struct packages *packages_new(const char *dir)
{
	struct packages *p = calloc(1, sizeof(*p));

	if (p)
		snprintf(p->dir, sizeof(p->dir), "%s", dir ? dir : INFO);
	return p;
}

void packages_free(struct packages *p)
{
	if (!p)
		return;
	job_put(p->job);
	for (uint32_t i = 0; i < p->nr; i++)
		free(p->answers[i]);
	free(p);
}

/* ---- the thread ---- */

/* Test whether the file of the lists is a regular one of root, or ours. */
static bool is_trusted(const struct stat *st)
{
	return S_ISREG(st->st_mode) && (st->st_uid == 0 || st->st_uid == geteuid()) &&
	       st->st_size > 0 && st->st_size <= LIST_MAX;
}

/* Read a list with a newline before it. Return its size, 0: not readable. */
static size_t read_list(int dir, const char *name, char *buf)
{
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	size_t size = 1;
	ssize_t n = 0;

	if (fd < 0)
		return 0;
	buf[0] = '\n';
	if (!fstat(fd, &st) && is_trusted(&st))
		while (size <= LIST_MAX && (n = read(fd, buf + size, LIST_MAX + 1 - size)) > 0)
			size += (size_t)n;
	close(fd);
	return n < 0 ? 0 : size;
}

/* Return whether @path is a line of the list, with or without /usr, which are one in newer systems.
 */
static bool has_path(const char *buf, size_t size, const char *path)
{
	char line[PATH_CAP + 8];
	const char *forms[] = { path, NULL };
	char other[PATH_CAP + 4];

	snprintf(other, sizeof(other), "%s%s", strncmp(path, "/usr/", 5) ? "/usr" : "",
		 strncmp(path, "/usr/", 5) ? path : path + 4);
	forms[1] = other;
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		int n = snprintf(line, sizeof(line), "\n%s\n", forms[i]);

		if (n > 0 && (size_t)n < sizeof(line) && memmem(buf, size, line, (size_t)n))
			return true;
	}
	return false;
}

/* Write the name of the package with the debug symbols for the list @file. Return false if it is
 * not the name of a list. */
static bool name_of(const char *file, char name[static PACKAGES_NAME_MAX])
{
	size_t size = strspn(file, "abcdefghijklmnopqrstuvwxyz0123456789+-.");

	/* "libfoo:amd64.list", "foo.list" */
	if (file[size] != ':') {
		if (size < 6 || file[size] || strcmp(file + size - 5, ".list"))
			return false;
		size -= 5;
	}
	if (size > PACKAGES_NAME_MAX - 16)
		return false;
	/* The C library has a package with another name. */
	snprintf(name, PACKAGES_NAME_MAX, "%.*s%s", (int)size, file,
		 size == 5 && !memcmp(file, "libc6", 5) ? "-dbg" : "-dbgsym");
	return true;
}

static bool is_list(const char *name)
{
	size_t size = strlen(name);

	return size > 5 && !strcmp(name + size - 5, ".list");
}

static void search(struct job *job)
{
	DIR *dir = opendir(job->dir);
	char *buf = malloc(LIST_MAX + 2);
	const struct dirent *entry;

	for (int i = 0; dir && buf && i < LISTS_MAX && (entry = readdir(dir)); i++) {
		size_t size = is_list(entry->d_name) ? read_list(dirfd(dir), entry->d_name, buf)
						     : 0;

		if (size && has_path(buf, size, job->path) && name_of(entry->d_name, job->name)) {
			job->found = true;
			break;
		}
	}
	free(buf);
	if (dir)
		closedir(dir);
}

static void *run(void *arg)
{
	struct job *job = arg;

	search(job);
	/* Release: the result; pairs with take(). */
	atomic_store_explicit(&job->done, true, memory_order_release);
	job_put(job);
	return NULL;
}

/* ---- the main thread ---- */

static struct answer *add_answer(struct packages *p)
{
	struct answer *a;

	if (p->nr < CACHED) {
		a = calloc(1, sizeof(*a));
		if (a)
			p->answers[p->nr++] = a;
		return a;
	}
	p->next = (p->next + 1) % CACHED;
	return p->answers[p->next];
}

/* Take the result of the job, if it is done. */
static void take(struct packages *p)
{
	struct answer *a;

	if (!p->job || !atomic_load_explicit(&p->job->done, memory_order_acquire))
		return;
	a = add_answer(p);
	if (a) {
		memcpy(a->path, p->job->path, sizeof(a->path));
		snprintf(a->name, sizeof(a->name), "%s", p->job->found ? p->job->name : "");
	}
	job_put(p->job);
	p->job = NULL;
}

static void start(struct packages *p, const char *path)
{
	struct job *job = calloc(1, sizeof(*job));
	pthread_t thread;

	if (!job)
		return;
	atomic_init(&job->nr_owners, 2);
	memcpy(job->dir, p->dir, sizeof(job->dir));
	snprintf(job->path, sizeof(job->path), "%s", path);
	if (thread_start(&thread, 0, run, job)) {
		free(job);
		return;
	}
	pthread_detach(thread);
	p->job = job;
}

enum packages_result packages_find(struct packages *p, const char *path,
				   char name[static PACKAGES_NAME_MAX])
{
	*name = '\0';
	if (!p || path[0] != '/' || strlen(path) >= PATH_CAP || strchr(path, '\n'))
		return PACKAGES_NONE;
	take(p);
	for (uint32_t i = 0; i < p->nr; i++) {
		if (strcmp(p->answers[i]->path, path))
			continue;
		snprintf(name, PACKAGES_NAME_MAX, "%s", p->answers[i]->name);
		return *name ? PACKAGES_FOUND : PACKAGES_NONE;
	}
	if (!p->job)
		start(p, path);
	return PACKAGES_PENDING;
}
