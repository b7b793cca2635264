// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The system call of a task shows the address of its futex. A mutex of glibc has its lock word
 * there, and its owner 8 bytes on; one with priority inheritance has the owner in the lock word.
 * An owner that is no task of the process is refused.
 */
#include "sampler/waits/locks.h"

#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/foreign.h"
#include "symbols/process/remote_memory.h"

/* The lock word of glibc's mutex with waiters; they wait for it to change from that. */
#define LOCKED_WITH_WAITERS 2
#define OWNER_OFFSET	    8

/* Get the address of the mutex that a task waits for; false: it does not. */
static bool find_address(const struct lock_task *task, uint64_t *address, bool *inherits)
{
	unsigned long long addr, op, value;
	char text[256];
	int number;

	if (!foreign_read_task(text, sizeof(text), task->pid, task->tid, "syscall") ||
	    sscanf(text, "%d %llx %llx %llx", &number, &addr, &op, &value) != 4 ||
	    number != SYS_futex)
		return false;
	op &= FUTEX_CMD_MASK;
	*inherits = op == FUTEX_LOCK_PI;
	*address = addr;
	return *inherits || (op == FUTEX_WAIT && value == LOCKED_WITH_WAITERS);
}

/* Read the owner of a mutex; 0: not known. */
static pid_t find_owner(pid_t pid, uint64_t address, bool inherits)
{
	int dir_fd = foreign_open_proc(pid);
	struct remote r = { .fd = dir_fd < 0 ? -1 : remote_open(dir_fd) };
	uint32_t word = 0, owner = 0;
	char text[16];

	if (r.fd >= 0) {
		if (!remote_read_u32(&r, address, &word) && inherits)
			owner = word & FUTEX_TID_MASK;
		else if (word && remote_read_u32(&r, address + OWNER_OFFSET, &owner))
			owner = 0;
		close(r.fd);
	}
	if (dir_fd >= 0)
		close(dir_fd);
	return owner && owner <= INT32_MAX &&
			       foreign_read_task(text, sizeof(text), pid, (pid_t)owner, "comm")
		       ? (pid_t)owner
		       : 0;
}

/* Read the state and the wait channel of the owner. */
static void look_at_owner(struct lock *lock)
{
	char text[512], *state;

	if (!foreign_read_task(text, sizeof(text), lock->pid, lock->owner, "stat"))
		return;
	state = strrchr(text, ')');
	if (state && state[1] == ' ')
		lock->state = state[2];
	if (foreign_read_task(lock->wchan, sizeof(lock->wchan), lock->pid, lock->owner, "wchan") &&
	    !strcmp(lock->wchan, "0"))
		lock->wchan[0] = '\0';
}

static int compare(const void *a, const void *b)
{
	const struct lock *x = a, *y = b;

	return (x->nr_waiters < y->nr_waiters) - (x->nr_waiters > y->nr_waiters);
}

uint32_t locks_find(const struct lock_task *tasks, uint32_t nr, struct lock *out, uint32_t max)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < nr; i++) {
		uint64_t address;
		bool inherits;
		uint32_t at = 0;

		if (!find_address(&tasks[i], &address, &inherits))
			continue;
		while (at < found && (out[at].pid != tasks[i].pid || out[at].address != address))
			at++;
		if (at == max)
			continue;
		if (at == found)
			out[found++] = (struct lock){
				.pid = tasks[i].pid,
				.address = address,
				.owner = find_owner(tasks[i].pid, address, inherits),
			};
		out[at].nr_waiters++;
	}
	for (uint32_t i = 0; i < found; i++)
		if (out[i].owner)
			look_at_owner(&out[i]);
	if (found)
		qsort(out, found, sizeof(*out), compare);
	return found;
}
