/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A sleeping task from outside: the kind of its wait, and a copy of its user stack.
 *
 * For tasks that the kernel does not sample: they slept before the start, or the user may not
 * sample the kernel. On a thread that may hang: the memory of a process may be of a file system
 * that does not respond, and files of /proc/TID are read under a lock that the task has while it
 * executes a program, which may wait for such a file system.
 */
#ifndef SAMPLER_WAITS_ASLEEP_H
#define SAMPLER_WAITS_ASLEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/name/name.h"

#define ASLEEP_STACK	16384
#define ASLEEP_COPY_MAX (1U << 20)

struct asleep {
	pid_t pid, tid;
	enum wait_kind kind; /* WAIT_NO: it was not asleep all the time */
	uint64_t time_ns;    /* of the copy */
	uint64_t sp, pc;     /* of its user code */
	size_t size;	     /* bytes copied from @sp on; 0: none */
	uint8_t stack[ASLEEP_STACK];
};

/*
 * Return the kind of the wait that a task is in now, by its wait channel and system call; WAIT_NO:
 * it is in none.
 */
enum wait_kind asleep_kind(pid_t tid);
/* Read the stack pointer and the pc of a task that is in the kernel. False: it runs, or refused. */
bool asleep_registers(pid_t tid, uint64_t *sp, uint64_t *pc);
/* Read how often a task was switched in. */
bool asleep_runs(pid_t tid, uint64_t *nr);
/* Copy at most @max bytes, up to ASLEEP_COPY_MAX, from @sp to the first unreadable page. */
size_t asleep_copy_stack(pid_t pid, uint64_t sp, void *bytes, size_t max);
/* Read the kind and the stack of a->tid. WAIT_NO of a task that ran in between. */
void asleep_read(struct asleep *a);

#endif
