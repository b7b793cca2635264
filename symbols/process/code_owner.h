/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Check the owner of files that name the code of a process: its user or root, with its pid in its
 * pid namespace (pid_namespaces(7)).
 *
 * Runs on: the loader. /proc may hang.
 */
#ifndef SYMBOLS_PROCESS_CODE_OWNER_H
#define SYMBOLS_PROCESS_CODE_OWNER_H

#include <sys/types.h>

#include "symbols/base/base.h"

struct code_owner {
	int dir_fd; /* of /proc/PID; -1: not open */
	uid_t uid;
	uint64_t start; /* field 22 of /proc/PID/stat */
	uint64_t inner_pid;
};

/* Read the owner of @pid from /proc. 0 or -errno; code_owner_done() closes dir_fd. */
int code_owner_ask(pid_t pid, struct code_owner *o);
/*
 * Owner for a recording (pids may be reused): files of this user and root, with that pid.
 */
void code_owner_ours(pid_t pid, struct code_owner *o);
/* Test whether the process is still alive. */
bool code_owner_lives(const struct code_owner *o);
void code_owner_done(struct code_owner *o);

#endif
