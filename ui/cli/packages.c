// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A cache of answers, and one thread at a time that finds the next one.
 *
 * The job is shared with its thread and freed by the last of both; all else is the main thread's.
 */
#include "ui/cli/cli.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
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

/* apt's lists of archives. */
#define SOURCES "/etc/apt"

#define SOURCE_MAX  (256u << 10)
#define SOURCES_MAX 200
#define WORDS_MAX   16

struct packages_job {
	atomic_uint nr_owners;
	atomic_bool done;
	bool found;
	char dir[PATH_CAP], sources[PATH_CAP], path[PATH_CAP];
	char name[PACKAGES_NAME_MAX];
	char archive[PACKAGES_ARCHIVE_MAX];
};

struct answer {
	char path[PATH_CAP];
	char name[PACKAGES_NAME_MAX]; /* "": none */
	char archive[PACKAGES_ARCHIVE_MAX];
};

struct packages {
	char dir[PATH_CAP], sources[PATH_CAP];
	struct packages_job *job; /* NULL: none is running */
	struct answer *answers[CACHED];
	uint32_t nr, next;
};

static void job_put(struct packages_job *job)
{
	/* Acquire and release: the other's accesses happen before the free. */
	if (job && atomic_fetch_sub_explicit(&job->nr_owners, 1, memory_order_acq_rel) == 1)
		free(job);
}

struct packages *packages_new(const char *dir, const char *sources)
{
	struct packages *p = calloc(1, sizeof(*p));

	if (p)
		snprintf(p->dir, sizeof(p->dir), "%s", dir ? dir : INFO);
	if (p)
		snprintf(p->sources, sizeof(p->sources), "%s", sources ? sources : SOURCES);
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

/* Read a list of at most @max bytes with a newline before it. Return its size, 0: not readable. */
static size_t read_list(int dir, const char *name, char *buf, size_t max)
{
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	size_t size = 1;
	ssize_t n = 0;

	if (fd < 0)
		return 0;
	buf[0] = '\n';
	if (!fstat(fd, &st) && is_trusted(&st))
		while (size <= max && (n = read(fd, buf + size, max + 1 - size)) > 0)
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

static void search(struct packages_job *job)
{
	DIR *dir = opendir(job->dir);
	char *buf = malloc(LIST_MAX + 2);
	const struct dirent *entry;

	for (int i = 0; dir && buf && i < LISTS_MAX && (entry = readdir(dir)); i++) {
		size_t size = is_list(entry->d_name)
				      ? read_list(dirfd(dir), entry->d_name, buf, LIST_MAX)
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

/* ---- the archive of debug symbols ---- */

/* The fields of one entry of apt's lists that say where packages are from; borrowed texts. */
struct apt_source {
	char *uris[WORDS_MAX], *suites[WORDS_MAX];
	const char *signed_by; /* NULL: none */
	bool binary, disabled;
};

/* The archive of the debug symbols, as far as it is known. */
struct debug_archive {
	bool enabled;
	char *line; /* PACKAGES_ARCHIVE_MAX bytes; "": unknown */
};

static bool ends_with(const char *text, size_t size, const char *end)
{
	size_t n = strlen(end);

	return size >= n && !memcmp(text + size - n, end, n);
}

/* Return whether the text is fit for a line that is typed in a shell: no password, nothing to
 * quote.
 */
static bool is_plain(const char *text)
{
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && !strchr("/:.-_+~%", *text))
			return false;
	return true;
}

/*
 * Debian's archive X/debian with the suite Y has its debug symbols in X/debian-debug with the suite
 * Y-debug: https://wiki.debian.org/HowToGetABacktrace.
 */
static void take_source(struct debug_archive *a, const struct apt_source *s)
{
	if (!s->binary || s->disabled)
		return;
	for (int u = 0; u < WORDS_MAX && s->uris[u]; u++)
		for (int i = 0; i < WORDS_MAX && s->suites[i]; i++) {
			const char *uri = s->uris[u], *suite = s->suites[i];
			bool is_signed = s->signed_by && *s->signed_by == '/' &&
					 is_plain(s->signed_by);
			size_t size = strlen(uri);

			while (size && uri[size - 1] == '/')
				size--;
			a->enabled |= ends_with(suite, strlen(suite), "-debug");
			if (*a->line || strpbrk(suite, "-/") || !ends_with(uri, size, "/debian") ||
			    !is_plain(uri) || !is_plain(suite))
				continue;
			if (snprintf(a->line, PACKAGES_ARCHIVE_MAX,
				     "deb %s%s%s%.*s-debug %s-debug main",
				     is_signed ? "[signed-by=" : "", is_signed ? s->signed_by : "",
				     is_signed ? "] " : "", (int)size, uri,
				     suite) >= PACKAGES_ARCHIVE_MAX)
				*a->line = '\0';
		}
}

/* Split the text at blanks. */
static void split(char *text, char *words[static WORDS_MAX])
{
	char *save = NULL;
	int n = 0;

	for (char *w = strtok_r(text, " \t", &save); w && n < WORDS_MAX;
	     w = strtok_r(NULL, " \t", &save))
		words[n++] = w;
}

/* Take a line "deb [signed-by=FILE] URI SUITE main". */
static void take_line(struct debug_archive *a, char *line)
{
	struct apt_source s = { .binary = !strncmp(line, "deb", 3) && strchr(" \t[", line[3]) };
	char *options = strchr(line, '['), *end = options ? strchr(options, ']') : NULL;
	char *words[WORDS_MAX] = { NULL };

	if (!s.binary || (options && !end))
		return;
	if (end) {
		char *by;

		*end = '\0';
		by = strstr(options, "signed-by=");
		if (by)
			by[strcspn(by, " \t,")] = '\0';
		s.signed_by = by ? by + 10 : NULL;
	}
	split(end ? end + 1 : line + 3, words);
	s.uris[0] = words[0];
	s.suites[0] = words[1];
	if (words[0] && words[1])
		take_source(a, &s);
}

/* Take a line "Field: values" of a paragraph. */
static void take_field(struct apt_source *s, char *line)
{
	char *value = strchr(line, ':');

	if (!value)
		return;
	*value++ = '\0';
	value += strspn(value, " \t");
	if (!strcasecmp(line, "Types"))
		s->binary = !strncmp(value, "deb", 3) && (!value[3] || value[3] == ' ');
	else if (!strcasecmp(line, "URIs"))
		split(value, s->uris);
	else if (!strcasecmp(line, "Suites"))
		split(value, s->suites);
	else if (!strcasecmp(line, "Signed-By"))
		s->signed_by = value;
	else if (!strcasecmp(line, "Enabled"))
		s->disabled = !strcasecmp(value, "no");
}

/* Read one file of apt's: lines, or (@paragraphs) fields of paragraphs. sources.list(5) */
static void read_sources(struct debug_archive *a, int dir, const char *name, bool paragraphs)
{
	char *buf = malloc(SOURCE_MAX + 2), *at, *line;
	size_t size = buf ? read_list(dir, name, buf, SOURCE_MAX) : 0;
	struct apt_source s = { .binary = false };

	if (size) {
		buf[size] = '\0';
		at = buf + 1;
		while ((line = strsep(&at, "\n"))) {
			if (!paragraphs)
				line[strcspn(line, "#")] = '\0';
			if (paragraphs && !*line) {
				take_source(a, &s);
				s = (struct apt_source){ .binary = false };
			} else if (paragraphs && *line != '#') {
				take_field(&s, line);
			} else if (!paragraphs) {
				take_line(a, line);
			}
		}
		take_source(a, &s);
	}
	free(buf);
}

/* Write the line for sources.list that packages of debug symbols need; "": none, or unknown. */
static void find_archive(const char *sources, char line[static PACKAGES_ARCHIVE_MAX])
{
	struct debug_archive a = { .line = line };
	DIR *top = opendir(sources), *dir = NULL;
	int fd = top ? openat(dirfd(top), "sources.list.d", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
		     : -1;
	const struct dirent *entry;

	*line = '\0';
	if (top)
		read_sources(&a, dirfd(top), "sources.list", false);
	dir = fd >= 0 ? fdopendir(fd) : NULL;
	for (int i = 0; dir && i < SOURCES_MAX && (entry = readdir(dir)); i++) {
		size_t size = strlen(entry->d_name);
		bool paragraphs = ends_with(entry->d_name, size, ".sources");

		if (paragraphs || ends_with(entry->d_name, size, ".list"))
			read_sources(&a, dirfd(dir), entry->d_name, paragraphs);
	}
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	if (top)
		closedir(top);
	if (a.enabled)
		*line = '\0';
}

static void *run(void *arg)
{
	struct packages_job *job = arg;

	search(job);
	/* The package of the C library is in the main archive. */
	if (job->found && ends_with(job->name, strlen(job->name), "-dbgsym"))
		find_archive(job->sources, job->archive);
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
		memcpy(a->archive, p->job->archive, sizeof(a->archive));
	}
	job_put(p->job);
	p->job = NULL;
}

static void start(struct packages *p, const char *path)
{
	struct packages_job *job = calloc(1, sizeof(*job));
	pthread_t thread;

	if (!job)
		return;
	atomic_init(&job->nr_owners, 2);
	memcpy(job->dir, p->dir, sizeof(job->dir));
	memcpy(job->sources, p->sources, sizeof(job->sources));
	snprintf(job->path, sizeof(job->path), "%s", path);
	if (thread_start(&thread, 0, run, job)) {
		free(job);
		return;
	}
	pthread_detach(thread);
	p->job = job;
}

enum packages_result packages_find(struct packages *p, const char *path,
				   char name[static PACKAGES_NAME_MAX],
				   char archive[static PACKAGES_ARCHIVE_MAX])
{
	*name = *archive = '\0';
	if (!p || path[0] != '/' || strlen(path) >= PATH_CAP || strchr(path, '\n'))
		return PACKAGES_NONE;
	take(p);
	for (uint32_t i = 0; i < p->nr; i++) {
		if (strcmp(p->answers[i]->path, path))
			continue;
		snprintf(name, PACKAGES_NAME_MAX, "%s", p->answers[i]->name);
		memcpy(archive, p->answers[i]->archive, PACKAGES_ARCHIVE_MAX);
		return *name ? PACKAGES_FOUND : PACKAGES_NONE;
	}
	if (!p->job)
		start(p, path);
	return PACKAGES_PENDING;
}
