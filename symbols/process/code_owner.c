// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The user and pid of a process, for the files that it writes.
 *
 * Runs on: the loader.
 */
#include "symbols/process/code_owner.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "symbols/base/foreign.h"

#define PROC_TEXT_MAX (64U << 10)

/* Return field 22 of /proc/PID/stat, the start of the process; 0: not readable. */
static uint64_t start_of(const char *text, size_t size)
{
	const char *at = size ? memrchr(text, ')', size) : NULL;

	for (int i = 0; at && i < 20; i++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

uint64_t code_owner_inner_pid(const char *text, uint64_t pid)
{
	const char *line = strstr(text, "\nNSpid:\t");
	const char *end = line ? strchr(line + 1, '\n') : NULL;

	if (!end)
		return pid;
	while (end[-1] >= '0' && end[-1] <= '9')
		end--;
	return strtoull(end, NULL, 10);
}

/*
 * Return the effective user in /proc/PID/status; the directory belongs to root after
 * a setuid(2).
 */
static uid_t uid_of(const char *text)
{
	const char *line = strstr(text, "\nUid:\t");
	const char *second = line ? strchr(line + 6, '\t') : NULL;

	return second ? (uid_t)strtoul(second, NULL, 10) : 0;
}

static int read_start(int dir_fd, uint64_t *start)
{
	char *text;
	size_t size;
	int rc = foreign_read_at(dir_fd, "stat", PROC_TEXT_MAX, &text, &size);

	if (rc)
		return rc;
	*start = start_of(text, size);
	free(text);
	return 0;
}

int code_owner_ask(pid_t pid, struct code_owner *o)
{
	char *text;
	size_t size;
	int rc;

	o->dir_fd = foreign_open_proc(pid);
	if (o->dir_fd < 0)
		return o->dir_fd;
	rc = read_start(o->dir_fd, &o->start);
	if (!rc)
		rc = foreign_read_at(o->dir_fd, "status", PROC_TEXT_MAX, &text, &size);
	if (rc) {
		code_owner_done(o);
		return rc;
	}
	o->uid = uid_of(text);
	o->inner_pid = code_owner_inner_pid(text, (uint64_t)pid);
	free(text);
	return 0;
}

void code_owner_ours(pid_t pid, struct code_owner *o)
{
	*o = (struct code_owner){ .dir_fd = -1,
				  .uid = geteuid(),
				  .inner_pid = (uint64_t)MAX(pid, 0) };
}

int64_t code_owner_began_ns(const struct code_owner *o)
{
	const int64_t second = 1000000000, tick = second / sysconf(_SC_CLK_TCK);
	struct timespec boot, wall;

	if (!o->start || clock_gettime(CLOCK_BOOTTIME, &boot) ||
	    clock_gettime(CLOCK_REALTIME, &wall))
		return 0;
	return (wall.tv_sec - boot.tv_sec) * second + (wall.tv_nsec - boot.tv_nsec) +
	       (int64_t)MIN(o->start, (uint64_t)(INT64_MAX / 4 / tick)) * tick;
}

bool code_owner_lives(const struct code_owner *o)
{
	uint64_t start;

	return !read_start(o->dir_fd, &start) && start == o->start;
}

void code_owner_done(struct code_owner *o)
{
	if (o->dir_fd >= 0)
		close(o->dir_fd);
	o->dir_fd = -1;
}
