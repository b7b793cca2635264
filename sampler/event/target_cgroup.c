// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The folder of the sampled cgroup.
 *
 * Runs on: set-up, then the builder. Each controller is in one hierarchy: perf events in one of
 * version 1 if it has them, else in version 2. Events cannot be bound to a cgroup of another
 * hierarchy. A name without a slash may be that of a unit, or the begin of a container's id, as
 * docker ps shows it.
 */
#include "sampler/event/target_cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PATH_SIZE 1024
#define FIELDS	  6 /* source, path, type, options, two numbers */

/* One mount; a hierarchy may have several. */
struct mount {
	char path[PATH_SIZE]; /* "": none */
	bool v2, perf;	      /* perf: of version 1, with perf events */
};

/* The list of mounts, read line by line. */
struct mounts {
	FILE *f;
	char *line;
	size_t size;
};

static void open_mounts(struct mounts *l, const char *path)
{
	*l = (struct mounts){ .f = fopen(path, "re") };
}

static void close_mounts(struct mounts *l)
{
	if (l->f)
		fclose(l->f);
	free(l->line);
}

/* Split a line at each blank: a field may be empty. False: it has another number of fields. */
static bool split(char *line, char *fields[static FIELDS])
{
	size_t nr = 0;

	line[strcspn(line, "\n")] = '\0';
	for (char *at = line; at; nr++) {
		if (nr == FIELDS)
			return false;
		fields[nr] = strsep(&at, " ");
	}
	return nr == FIELDS;
}

/* Copy a path; the kernel writes blanks and backslashes as \040. False: it is too long. */
static bool unescape(char out[static PATH_SIZE], const char *path)
{
	size_t n = 0;

	for (; *path && n + 1 < PATH_SIZE; path++) {
		bool octal = path[0] == '\\' && strspn(path + 1, "01234567") >= 3;

		out[n++] = octal ? (char)((path[1] - '0') << 6 | (path[2] - '0') << 3 |
					  (path[3] - '0'))
				 : *path;
		path += octal ? 3 : 0;
	}
	out[n] = '\0';
	return !*path;
}

/*
 * Find the next mount of cgroups. Users can mount file systems at paths of any length and text, so
 * each line is split strictly: only its type is not chosen by them.
 */
static bool next_mount(struct mounts *l, struct mount *m)
{
	char *fields[FIELDS];

	while (l->f && getline(&l->line, &l->size, l->f) > 0) {
		if (!split(l->line, fields) || !unescape(m->path, fields[1]))
			continue;
		m->v2 = !strcmp(fields[2], "cgroup2");
		m->perf = !strcmp(fields[2], "cgroup") && strstr(fields[3], "perf_event");
		if (m->v2 || !strcmp(fields[2], "cgroup"))
			return true;
	}
	m->path[0] = '\0';
	return false;
}

/* The first mount of the hierarchy that perf events are of. */
static struct mount find_own(const char *mounts)
{
	struct mount found = { .path = "" }, m;
	struct mounts l;

	open_mounts(&l, mounts);
	while (!found.perf && next_mount(&l, &m))
		if (m.perf || (m.v2 && !found.path[0]))
			found = m;
	close_mounts(&l);
	return found;
}

/* Open a folder of cgroups: another file system may be mounted over it. An fd or -1. */
static int open_folder(const struct mount *m, const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs;

	if (fd < 0)
		return -1;
	if (!fstatfs(fd, &fs) &&
	    (unsigned long)fs.f_type == (m->v2 ? CGROUP2_SUPER_MAGIC : CGROUP_SUPER_MAGIC))
		return fd;
	close(fd);
	errno = ENOENT;
	return -1;
}

/* @name as it is written, if that is in @m, or below it; an fd or -1. */
static int open_in(const struct mount *m, const char *name)
{
	size_t size = strlen(m->path);
	char path[PATH_SIZE];
	int fd = -1;

	if (!strncmp(name, m->path, size) && (!name[size] || name[size] == '/'))
		fd = open_folder(m, name);
	if (fd >= 0)
		return fd;
	if (snprintf(path, sizeof(path), "%s/%s", m->path, name) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return open_folder(m, path);
}

/* Open it in the mounts of @own's hierarchy, or of all others; @m is the mount. */
static int open_any(const char *mounts, const struct mount *own, bool others, const char *name,
		    struct mount *m)
{
	int fd = -1, error = ENOENT;
	struct mounts l;

	open_mounts(&l, mounts);
	while (fd < 0 && next_mount(&l, m)) {
		if ((m->v2 == own->v2 && m->perf == own->perf) == others)
			continue;
		fd = open_in(m, name);
		error = errno;
	}
	close_mounts(&l);
	errno = error;
	return fd;
}

/* ---- by the id of a container, or by the name of a unit ---- */

#define LEVELS_MAX  12	  /* of cgroups */
#define FOLDERS_MAX 65536 /* that are looked at */
#define ID_LEAST    6	  /* digits */

struct search {
	const char *name;
	bool id;	      /* it may be the begin of a container's id */
	bool users;	      /* also below the systemd of a user */
	char path[PATH_SIZE]; /* of the first match */
	unsigned int nr_found, nr_folders;
};

static bool is_hex(const char *text, size_t size)
{
	return strspn(text, "0123456789abcdef") >= size;
}

/* Return whether the folder has that name, or is of a container with an id that begins so. */
static bool is_match(const struct search *s, const char *folder)
{
	size_t size = strlen(s->name);

	if (!strcmp(folder, s->name))
		return true;
	for (const char *at = folder; s->id && *at; at++) {
		size_t run = strspn(at, "0123456789abcdef");

		/* docker-3fa1c2d4e5f6....scope, or the id alone. */
		if (run >= 12 && run >= size && !strncmp(at, s->name, size))
			return true;
		at += run ? run - 1 : 0;
	}
	return false;
}

/* Return whether the folder is of the systemd of a user, who makes any folders in it. */
static bool is_user(const char *folder)
{
	static const char begin[] = "user@", end[] = ".service";
	size_t size = strlen(folder);

	return !strncmp(folder, begin, sizeof(begin) - 1) && size >= sizeof(end) &&
	       !strcmp(folder + size - (sizeof(end) - 1), end);
}

static void search_in(struct search *s, const char *path, unsigned int level)
{
	DIR *d = opendir(path);
	struct dirent *entry;

	while (d && s->nr_folders < FOLDERS_MAX && (entry = readdir(d))) {
		char below[PATH_SIZE];
		int n;

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		s->nr_folders++;
		n = snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);
		if (n < 0 || (size_t)n >= sizeof(below))
			continue;
		/* Cgroups below a match belong to it. */
		if (is_match(s, entry->d_name)) {
			if (!s->nr_found++)
				memcpy(s->path, below, (size_t)n + 1);
		} else if (level < LEVELS_MAX && (s->users || !is_user(entry->d_name))) {
			search_in(s, below, level + 1);
		}
	}
	if (d)
		closedir(d);
}

/* Open the only cgroup of that container or unit. Return an fd; -1: none; -ESRCH: several. */
static int open_by_name(const struct mount *own, const char *name, struct err *e)
{
	struct search s = { .name = name };
	size_t size = strlen(name);

	if (!size || strchr(name, '/'))
		return -1;
	s.id = size >= ID_LEAST && is_hex(name, size);
	search_in(&s, own->path, 1);
	if (!s.nr_found) {
		s.users = true;
		s.nr_folders = 0;
		search_in(&s, own->path, 1);
	}
	if (s.nr_found > 1)
		return err_set(e, -ESRCH,
			       "'%.100s' is not one cgroup but %u\n"
			       "  the first is %.300s\n"
			       "  give more of the id, or the path below %s",
			       name, s.nr_found, s.path, own->path);
	return s.nr_found ? open_folder(own, s.path) : -1;
}

static int explain(const char *mounts, const struct mount *own, const char *name, int error,
		   struct err *e)
{
	struct mount other;
	int fd;

	if (!own->path[0])
		return err_set(e, -ESRCH,
			       "no cgroup '%.100s': no cgroups with perf events are mounted\n"
			       "  %s has none of type cgroup2, nor one with perf_event\n"
			       "  mount -t cgroup2 none /sys/fs/cgroup; or choose another target",
			       name, mounts);
	fd = open_any(mounts, own, true, name, &other);
	if (fd < 0)
		return err_set(e, -ESRCH,
			       "no cgroup '%.100s': %s\n"
			       "  looked for below %s\n"
			       "  the line '%s' of /proc/PID/cgroup has that of a process",
			       name, strerror(error), own->path, own->v2 ? "0::" : "perf_event");
	close(fd);
	return err_set(e, -ESRCH,
		       "'%.100s' is a cgroup of %.100s, and perf events are of %s\n"
		       "  the kernel binds events to cgroups of one hierarchy alone\n"
		       "  give a path below %s: the line '%s' of /proc/PID/cgroup has that of a "
		       "process",
		       name, other.path, own->path, own->path, own->v2 ? "0::" : "perf_event");
}

int target_cgroup_open(const char *mounts, const char *name, bool *whole, struct err *e)
{
	struct mount own = find_own(mounts), m;
	int fd = own.path[0] ? open_any(mounts, &own, false, name, &m) : -1, error = errno;

	if (fd < 0 && own.path[0])
		fd = open_by_name(&own, name, e);
	if (fd == -ESRCH)
		return fd;
	if (fd < 0)
		return explain(mounts, &own, name, error, e);
	/* These files are in all folders but the root's; in the root's alone. */
	*whole = own.v2 ? faccessat(fd, "cgroup.type", F_OK, 0) != 0
			: faccessat(fd, "release_agent", F_OK, 0) == 0;
	return fd;
}
