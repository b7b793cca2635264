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

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/name/wait_kind.h"

#define ASLEEP_STACK 16384

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
/* Read the kind and the stack of a->tid. WAIT_NO of a task that ran in between. */
void asleep_read(struct asleep *a);

#endif
