// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The user and pid of a process, for the files that it writes.
 *
 * Runs on: the loader.
 */
#include "symbols/process/code_owner.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/foreign.h"
#include "symbols/process/procfs.h"

#define PROC_TEXT_MAX (64U << 10)

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
	if (!procfs_stat_field(text, size, 22, start))
		*start = 0;
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
	o->inner_pid = (uint64_t)pid;
	procfs_status_inner(text, size, &o->inner_pid);
	free(text);
	return 0;
}

void code_owner_ours(pid_t pid, struct code_owner *o)
{
	*o = (struct code_owner){ .dir_fd = -1,
				  .uid = geteuid(),
				  .inner_pid = (uint64_t)MAX(pid, 0) };
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
