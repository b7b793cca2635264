// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lists of tasks and CPUs that counters are opened on.
 *
 * Set-up and builder. /proc changes while it is read: tasks that are gone are left out, new ones
 * are found by reading until there are none.
 */
#include "sampler/event/task_list.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/array.h"
#include "symbols/base/hashset.h"
#include "symbols/base/keyhash.h"

#define CPU_MAX 65536
/* Threads of a process may start as fast as they are listed: most readings of its list, and tasks.
 */
#define ROUNDS_MAX 8U
#define TASKS_MAX  (1U << 18)

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
static bool list_add(struct task_list *l, pid_t tid)
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

		if (tid && list_add(l, tid))
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

		if (pid && list_add(l, pid))
			add_process(l, pid);
	}
	fclose(f);
}

int task_list_tree(const pid_t *tids, uint32_t nr, pid_t **out)
{
	struct task_list l = { 0 };

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
