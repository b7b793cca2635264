/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whose files may tell the names of a process's code: its user's and root's,
 * by the pid that the process itself knows (pid_namespaces(7)).
 *
 * Runs on: the loader. /proc may hang.
 */
#ifndef SYMBOLS_PROCESS_CODE_OWNER_H
#define SYMBOLS_PROCESS_CODE_OWNER_H

#include <sys/types.h>

#include "symbols/base/base.h"

struct code_owner {
	int dir_fd; /* of /proc/PID; -1: not asked */
	uid_t uid;
	uint64_t start; /* field 22 of /proc/PID/stat */
	uint64_t inner_pid;
};

/* Ask /proc who @pid is. 0 or -errno; code_owner_done() closes what it opened. */
int code_owner_ask(pid_t pid, struct code_owner *o);
/* For a recording, whose pids may be anybody's by now: files of ours and root's, by that pid. */
void code_owner_ours(pid_t pid, struct code_owner *o);
/* The last number of NSpid in the text of /proc/PID/status: the pid that the process itself knows.
 */
uint64_t code_owner_inner_pid(const char *status, uint64_t pid);
/* When it began, by the wall clock as it goes now; 0: not known. */
int64_t code_owner_began_ns(const struct code_owner *o);
/* Is the process still there? */
bool code_owner_lives(const struct code_owner *o);
void code_owner_done(struct code_owner *o);

#endif
