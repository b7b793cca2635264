// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lists of tasks and CPUs that counters are opened on; a cgroup's directory in the perf_event
 * hierarchy. /proc changes while it is read.
 *
 * Set-up and builder. /proc changes while it is read: tasks that are gone are left out, new ones
 * are found by reading until there are none.
 */
#include "sampler/event/internal.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/table.h"

#define CPU_MAX 65536

/* Threads of a process may start as fast as they are listed: most readings of its list, and tasks.
 */
#define ROUNDS_MAX 8U

#define TASKS_MAX (1U << 18)

/* A growing set of tasks, in the order they were found. */
struct task_list {
	pid_t *tids;
	uint32_t nr, room;
	struct hashset index;
};

static bool list_has(const struct task_list *l, pid_t tid)
{
	uint32_t at = 0, i;

	while ((i = hashset_next(&l->index, keyhash_number((uint64_t)tid), &at)) != HASHSET_NONE)
		if (l->tids[i] == tid)
			return true;
	return false;
}

/* Add the task; returns false if it is in the list, or that is full. */
static bool task_list_list_add(struct task_list *l, pid_t tid)
{
	if (l->nr == TASKS_MAX || list_has(l, tid))
		return false;
	if (!array_reserve(&l->tids, &l->room, l->nr + 1ULL) || hashset_reserve(&l->index, 1))
		out_of_memory();
	assert(l->nr < l->room);
	hashset_add(&l->index, keyhash_number((uint64_t)tid), l->nr);
	l->tids[l->nr++] = tid;
	return true;
}

/* Give the array away. */
static int list_take(struct task_list *l, pid_t **out)
{
	hashset_fini(&l->index);
	*out = l->tids;
	return (int)l->nr;
}

static pid_t parse_pid(const char *text)
{
	char *end;
	long pid = strtol(text, &end, 10);

	return isdigit((unsigned char)text[0]) && !*end && pid > 0 && pid <= INT32_MAX ? (pid_t)pid
										       : 0;
}

/* All threads of the process of @pid. The number of new ones, or -errno. */
static int add_threads(struct task_list *l, pid_t pid)
{
	struct dirent *entry;
	char path[64];
	int added = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while (l->nr < TASKS_MAX && (entry = readdir(dir))) {
		pid_t tid = parse_pid(entry->d_name);

		if (tid && task_list_list_add(l, tid))
			added++;
	}
	closedir(dir);
	return added;
}

/*
 * Threads may start threads while we read: repeat until there are no new ones. Later ones inherit
 * the events of the one that starts them.
 */
static int add_process(struct task_list *l, pid_t pid)
{
	int added = 1;

	for (unsigned int round = 0; added && round < ROUNDS_MAX; round++) {
		added = add_threads(l, pid);
		if (added < 0)
			return round ? 0 : added;
	}
	return 0;
}

int task_list_no_process(pid_t pid, struct err *e)
{
	return err_set(e, -ESRCH,
		       "no process with pid %d\n"
		       "  it has exited, or never existed\n"
		       "  'ps -e' lists the running processes",
		       (int)pid);
}

int task_list_threads(const pid_t *pids, uint32_t nr, pid_t **tids, struct err *e)
{
	struct task_list l = { 0 };

	assert(tids && (pids || !nr));
	*tids = NULL;
	for (uint32_t i = 0; i < nr; i++) {
		int code = add_process(&l, pids[i]);

		if (!code)
			continue;
		list_take(&l, tids);
		free(*tids);
		*tids = NULL;
		if (code == -ENOENT || code == -ESRCH)
			return task_list_no_process(pids[i], e);
		return err_set(e, code,
			       "cannot read /proc/%d/task: %s\n"
			       "  /proc may be mounted with hidepid\n"
			       "  run as root, or choose another process",
			       pids[i], strerror(-code));
	}
	return list_take(&l, tids);
}

/* The children of one thread: "12 34 …", as long as it may be. */
static void add_children(struct task_list *l, pid_t tid)
{
	char path[64], word[16];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", tid, tid);
	f = fopen(path, "re");
	if (!f)
		return;
	while (fscanf(f, "%15s", word) == 1) {
		pid_t pid = parse_pid(word);

		if (pid && task_list_list_add(l, pid))
			add_process(l, pid);
	}
	fclose(f);
}

int task_list_tree(const pid_t *tids, uint32_t nr, pid_t **out)
{
	struct task_list l = { 0 };

	assert(out && (tids || !nr));
	/* One look into each process is enough: it finds all the threads. */
	for (uint32_t i = 0; i < nr; i++)
		if (!list_has(&l, tids[i]))
			add_process(&l, tids[i]);
	/* The list grows under us: children are appended, and their threads. */
	for (uint32_t i = 0; i < l.nr; i++)
		add_children(&l, l.tids[i]);
	return list_take(&l, out);
}

int task_list_read(pid_t pid, const char *name, char *text, size_t size)
{
	char path[64];
	ssize_t nr;
	int fd;

	assert(name && text && size);
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	nr = read(fd, text, size - 1);
	close(fd);
	text[MAX(nr, 0)] = '\0';
	return nr > 0 ? 0 : -ENODATA;
}

/* The real uid of a process; false when it is gone. */
static bool real_uid(pid_t pid, uid_t *uid)
{
	char text[4096], *line;

	if (task_list_read(pid, "status", text, sizeof(text)))
		return false;
	/* Name: is the first line and has its newlines escaped: this line is the kernel's. */
	line = strstr(text, "\nUid:");
	return line && sscanf(line, "\nUid: %u", uid) == 1;
}

int task_list_user(uid_t uid, pid_t **tids, struct err *e)
{
	struct task_list l = { 0 };
	struct dirent *entry;
	DIR *dir = opendir("/proc");

	*tids = NULL;
	if (!dir)
		return err_set(e, -errno,
			       "cannot read /proc: %s\n"
			       "  without it the processes of a user cannot be found\n"
			       "  mount it: mount -t proc proc /proc",
			       strerror(errno));
	while ((entry = readdir(dir))) {
		pid_t pid = parse_pid(entry->d_name);
		uid_t owner;

		if (pid && real_uid(pid, &owner) && owner == uid)
			add_process(&l, pid);
	}
	closedir(dir);
	return list_take(&l, tids);
}

/* One "3" or "0-3" at *@text, marked in @set; false if it is neither. */
static bool parse_range(const char **text, uint8_t *set)
{
	unsigned long first, last;
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	first = last = strtoul(*text, &end, 10);
	if (*end == '-') {
		if (!isdigit((unsigned char)end[1]))
			return false;
		last = strtoul(end + 1, &end, 10);
	}
	if (first > last || last >= CPU_MAX)
		return false;
	for (unsigned long i = first; i <= last; i++)
		set[i] = 1;
	*text = end;
	return true;
}

/* Any order, with repetitions: the result is sorted, each once. */
int task_list_cpus(const char *text, int **cpus)
{
	uint8_t *set = xcalloc(CPU_MAX, 1);
	bool ok = parse_range(&text, set);
	int nr = 0;

	while (ok && *text == ',') {
		text++;
		ok = parse_range(&text, set);
	}
	if (!ok || (*text && strcmp(text, "\n"))) {
		free(set);
		return -EINVAL;
	}
	*cpus = xcalloc(CPU_MAX, sizeof(**cpus));
	for (int i = 0; i < CPU_MAX; i++)
		if (set[i])
			(*cpus)[nr++] = i;
	free(set);
	*cpus = xrealloc_array(*cpus, (size_t)nr, sizeof(**cpus));
	return nr;
}

int task_list_online_cpus(int **cpus, struct err *e)
{
	static const char path[] = "/sys/devices/system/cpu/online";
	char text[4096] = "";
	FILE *f = fopen(path, "re");
	int nr = -ENOENT;

	if (f) {
		nr = fgets(text, sizeof(text), f) ? task_list_cpus(text, cpus) : -EIO;
		fclose(f);
	}
	if (nr > 0)
		return nr;
	/* No /sys in here: the count is known at least. */
	snprintf(text, sizeof(text), "0-%ld", sysconf(_SC_NPROCESSORS_ONLN) - 1);
	nr = task_list_cpus(text, cpus);
	return nr > 0 ? nr : err_set(e, -ENOENT, "cannot read %s", path);
}

/*
 * Tasks in order of their tids: a copy, sorted once.
 */

static int by_tid(const void *a, const void *b)
{
	pid_t one = *(const pid_t *)a, other = *(const pid_t *)b;

	return (one > other) - (one < other);
}

void task_set_init(struct task_set *s, const pid_t *tids, uint32_t nr)
{
	assert(tids || !nr);
	s->tids = xcalloc(nr + 1ULL, sizeof(*s->tids));
	s->nr = nr;
	if (nr)
		memcpy(s->tids, tids, nr * sizeof(*tids));
	qsort(s->tids, nr, sizeof(*s->tids), by_tid);
}

void task_set_fini(struct task_set *s)
{
	free(s->tids);
	*s = (struct task_set){ 0 };
}

bool task_set_has(const struct task_set *s, pid_t tid)
{
	uint32_t at = search_split(s->nr, i, s->tids[i] < tid);

	return at < s->nr && s->tids[at] == tid;
}

uint32_t task_find(const pid_t *tids, uint32_t nr, pid_t tid)
{
	uint32_t i = 0;

	assert(tids || !nr);
	while (i < nr && tids[i] != tid)
		i++;
	return i;
}

/*
 * The folder of the sampled cgroup.
 *
 * Runs on: set-up, then the builder. Each controller is in one hierarchy: perf events in one of
 * version 1 if it has them, else in version 2. The kernel refuses a cgroup of another hierarchy. A
 * name without a slash may be that of a unit, or the begin of a container's id, as docker ps shows
 * it.
 */

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

int task_list_open_cgroup(const char *mounts, const char *name, bool *whole, struct err *e)
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
