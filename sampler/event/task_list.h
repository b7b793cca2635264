/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lists of tasks and of CPUs, read from /proc and /sys. Any thread.
 */
#ifndef SAMPLER_EVENT_TASK_LIST_H
#define SAMPLER_EVENT_TASK_LIST_H

#include <sys/types.h>

#include "symbols/base/base.h"

/* All threads of the processes that exist now. Returns nr, *tids malloc'ed; -ESRCH with a sentence.
 */
int task_list_threads(const pid_t *pids, uint32_t nr, pid_t **tids, struct err *e);
/* The threads of all these tasks' processes, and of their descendants. Returns nr, as above. */
int task_list_tree(const pid_t *tids, uint32_t nr, pid_t **out);
/* Read a small file of /proc/@pid as a string, cut at @size. Return 0 or -errno; -ENODATA: empty.
 */
int task_list_read(pid_t pid, const char *name, char *text, size_t size);
/* Set the message for a process that is not there. Return -ESRCH. */
int task_list_no_process(pid_t pid, struct err *e);
/* All tasks of a real uid. */
int task_list_user(uid_t uid, pid_t **tids, struct err *e);
/* "0-3,5" of /sys/devices/system/cpu/online. Returns nr, *cpus malloc'ed. */
int task_list_cpus(const char *text, int **cpus);
int task_list_online_cpus(int **cpus, struct err *e);

#endif
