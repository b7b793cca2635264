// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The begin of a read is one word: the end of the read and proc_watch_leave() exchange it, so that
 * one of two threads has the work.
 */
#include "symbols/process/proc_watch.h"

#include <stddef.h>
#include <stdlib.h>

#include "symbols/base/foreign.h"
#include "symbols/process/procfs.h"

#define STATUS_MAX (64U << 10)
#define LEFT	   UINT64_MAX

static _Thread_local struct proc_watch *own;

uid_t proc_user_of(pid_t pid)
{
	uint64_t user;
	char *text;
	size_t size;

	if (foreign_read_proc(pid, "status", STATUS_MAX, &text, &size))
		return (uid_t)-1;
	if (!procfs_status_number(text, size, "Uid", &user))
		user = (uid_t)-1;
	free(text);
	return (uid_t)user;
}

bool proc_hung_is_full(const struct proc_hung *h, uid_t user)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < PROC_HUNG_MAX; i++)
		nr += atomic_load_explicit(&h->pids[i], memory_order_relaxed) &&
		      atomic_load_explicit(&h->users[i], memory_order_relaxed) == user;
	return nr >= PROC_HUNG_OF_USER;
}

/* Test whether @pid is left out: its user is read only if there may be too many of that user. */
static bool is_left_out(const struct proc_hung *h, pid_t pid)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < PROC_HUNG_MAX; i++) {
		pid_t hung = atomic_load_explicit(&h->pids[i], memory_order_relaxed);

		if (hung == pid)
			return true;
		nr += hung != 0;
	}
	return nr >= PROC_HUNG_OF_USER && proc_hung_is_full(h, h->user_of(pid));
}

void proc_watch_use(struct proc_watch *w)
{
	own = w;
}

bool proc_watch_begin(pid_t pid)
{
	if (!own)
		return true;
	if (is_left_out(own->hung, pid))
		return false;
	atomic_store_explicit(&own->pid, pid, memory_order_relaxed);
	/* Release: the process; pairs with proc_watch_hangs(). */
	atomic_store_explicit(&own->since_ns, time_now_ns(), memory_order_release);
	return true;
}

bool proc_watch_end(void)
{
	if (!own)
		return true;
	/* Acquire and release: of two threads one has the work after the other. */
	own->left |= atomic_exchange_explicit(&own->since_ns, 0, memory_order_acq_rel) == LEFT;
	return !own->left;
}

bool proc_watch_is_mine(void)
{
	return !own || !own->left;
}

pid_t proc_watch_hangs(const struct proc_watch *w, uint64_t ns, uint64_t *since_ns)
{
	/* Acquire: pairs with proc_watch_begin(). */
	uint64_t since = atomic_load_explicit(&w->since_ns, memory_order_acquire);

	*since_ns = since;
	if (!since || since == LEFT || time_now_ns() < since + ns)
		return 0;
	return atomic_load_explicit(&w->pid, memory_order_relaxed);
}

bool proc_watch_leave(struct proc_watch *w, uint64_t since_ns)
{
	unsigned long long since = since_ns;

	/* As in proc_watch_end(). */
	return atomic_compare_exchange_strong_explicit(&w->since_ns, &since, LEFT,
						       memory_order_acq_rel, memory_order_relaxed);
}
