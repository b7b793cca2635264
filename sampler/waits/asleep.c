// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Files of /proc/TID, and its memory. Pure but for these reads.
 *
 * Invariant: a stack is used only if the task was not switched in between the first read and the
 * last one, by its count of runs in schedstat.
 */
#include "sampler/waits/asleep.h"

#include <inttypes.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>

#include "symbols/base/base.h"
#include "symbols/base/foreign.h"
#include "symbols/process/procfs.h"
#include "unwind/unwind.h"

#define PAGE	  4096U
#define PAGES_MAX (ASLEEP_COPY_MAX / PAGE + 1)
/* Stack pointers of 32-bit programs: their stacks are not unwound. */
#define SP_MIN (1ULL << 32)

/* A system call in progress. */
struct call {
	long number; /* -1: the task sleeps outside of system calls */
	uint64_t op; /* second argument */
	uint64_t sp, pc;
};

/* Read the system call of a task. */
static bool read_call(pid_t tid, struct call *out)
{
	uint64_t a[7];
	char text[256];

	if (!foreign_read_task(text, sizeof(text), tid, tid, "syscall"))
		return false;
	if (sscanf(text, "%ld", &out->number) != 1)
		return false; /* "running" */
	out->op = 0;
	if (out->number < 0)
		return sscanf(text, "%*d %" SCNx64 " %" SCNx64, &out->sp, &out->pc) == 2;
	if (sscanf(text,
		   "%*d %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
		   " %" SCNx64 " %" SCNx64,
		   &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &out->sp, &out->pc) != 8)
		return false;
	out->op = a[1];
	return true;
}

/* Report whether @tid is a kernel thread. */
static bool is_kthread(pid_t tid)
{
	char text[512];
	size_t size = foreign_read_task(text, sizeof(text), tid, tid, "stat");
	uint64_t flags;

	return size && procfs_stat_flags(text, size, &flags) && flags & PROCFS_PF_KTHREAD;
}

/* Read the kind of a wait from its wait channel alone: any futex is a WAIT_LOCK. */
static enum wait_kind kind_of_channel(pid_t tid)
{
	char text[64];
	size_t size = foreign_read_task(text, sizeof(text), tid, tid, "wchan");
	enum wait_kind kind;

	if (!size || !strcmp(text, "0"))
		return WAIT_NO;
	kind = (enum wait_kind)wait_hint(text, size, true).kind;
	if (kind)
		return kind;
	return is_kthread(tid) ? WAIT_KTHREAD : WAIT_OTHER;
}

enum wait_kind asleep_kind(pid_t tid)
{
	enum wait_kind kind = kind_of_channel(tid);
	struct utsname us;
	struct call call;

	if ((kind != WAIT_LOCK && kind != WAIT_OTHER) || !read_call(tid, &call))
		return kind;
	/* glibc's mutexes wait without a bit set, its conditions with one. */
	if (kind == WAIT_LOCK)
		return call.number == SYS_futex && (call.op & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET
			       ? WAIT_CONDITION
			       : WAIT_LOCK;
	/* Kernel threads have no registers of a program. */
	if (!call.sp && !call.pc)
		return WAIT_KTHREAD;
	kind = uname(&us) ? WAIT_NO : wait_kind_of_call(call.number, unwind_machine(us.machine));
	return kind ? kind : WAIT_OTHER;
}

bool asleep_registers(pid_t tid, uint64_t *sp, uint64_t *pc)
{
	struct call call;

	if (!read_call(tid, &call) || call.sp < SP_MIN || !call.pc)
		return false;
	*sp = call.sp;
	*pc = call.pc;
	return true;
}

bool asleep_runs(pid_t tid, uint64_t *nr)
{
	char text[96];

	return foreign_read_task(text, sizeof(text), tid, tid, "schedstat") &&
	       sscanf(text, "%*u %*u %" SCNu64, nr) == 1;
}

size_t asleep_copy_stack(pid_t pid, uint64_t sp, void *bytes, size_t max)
{
	struct iovec ours = { bytes, max }, theirs[PAGES_MAX];
	uint64_t at = sp, end = sp + max;
	unsigned int nr = 0;
	ssize_t size;

	for (; at < end && nr < PAGES_MAX; nr++) {
		uint64_t next = MIN((at / PAGE + 1) * PAGE, end);

		theirs[nr] = (struct iovec){ (void *)(uintptr_t)at, next - at };
		at = next;
	}
	size = process_vm_readv(pid, &ours, 1, theirs, nr, 0);
	return size > 0 ? (size_t)size : 0;
}

void asleep_read(struct asleep *a)
{
	uint64_t before, after;
	struct call call;

	a->kind = WAIT_NO;
	a->size = 0;
	a->time_ns = time_now_ns();
	if (!asleep_runs(a->tid, &before))
		return;
	a->kind = asleep_kind(a->tid);
	if (a->kind && read_call(a->tid, &call) && call.sp >= SP_MIN && call.pc) {
		a->sp = call.sp;
		a->pc = call.pc;
		a->size = asleep_copy_stack(a->pid, a->sp, a->stack, sizeof(a->stack));
	}
	if (asleep_runs(a->tid, &after) && before == after)
		return;
	a->kind = WAIT_NO;
	a->size = 0;
}
