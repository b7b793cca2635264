/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes found by a regular expression, which matches the name of the first thread, or of the
 * program in the command line.
 *
 * The kernel reads a command line under the lock of the mappings of a process, which a file system
 * of any user can keep for ever. So a helper reads; one that hangs is left behind, and its process
 * then has the name of its thread alone, until the read ends.
 *
 * Threads: one owner at a time (set-up, then the builder), online for urcu-qsbr or not registered;
 * @read on helpers.
 */
#ifndef SAMPLER_PROCESS_NAMES_H
#define SAMPLER_PROCESS_NAMES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct process_names;

/* Read a file of a process: see task_list_read(). */
typedef int (*process_names_read_fn)(pid_t pid, const char *name, char *text, size_t size);

/* @guard: the guard of this process, which is never found; 0: none. NULL: out of memory. */
struct process_names *process_names_new(process_names_read_fn read, pid_t guard);
/* Return @n for one more user, until its process_names_put(). NULL is allowed in both. */
struct process_names *process_names_share(struct process_names *n);
void process_names_put(struct process_names *n);
/*
 * Get the processes that match @pattern, but for this one and its guard: *pids, until the next
 * call. Waits at most @wait_ns for a list, then takes the last one; where there is none, names of
 * threads alone. Returns their number or -ENOMEM.
 */
int process_names_look(struct process_names *n, const char *pattern, uint64_t wait_ns,
		       const pid_t **pids);
/* Return a process with a command line that was found to hang since the last call; 0: none. *@nr:
 * how many hang now. */
pid_t process_names_take_hung(struct process_names *n, uint32_t *nr);

#endif
