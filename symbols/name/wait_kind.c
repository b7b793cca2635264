// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two tables of names: of the kernel, and of C libraries and runtimes. Pure.
 *
 * The innermost frame with a meaning decides, with two exceptions. A page fault is one whatever the
 * kernel waits for in it. A futex is a lock, unless the program calls it something else.
 */
#include "symbols/name/wait_kind.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"

struct name {
	const char *name; /* with a star at the end: any name that begins so */
	uint8_t kind;
};

#define SCHEDULER WAIT_NR /* as a kind: no kind, but left out */

static const struct name kernel_names[] = {
	{ "__schedule", SCHEDULER },
	{ "schedule", SCHEDULER },
	{ "preempt_schedule*", SCHEDULER },
	{ "__cond_resched", SCHEDULER },
	{ "schedule_timeout*", SCHEDULER },
	{ "schedule_hrtimeout*", SCHEDULER },
	{ "schedule_preempt_disabled", SCHEDULER },
	{ "__traceiter_sched_switch", SCHEDULER },
	{ "perf_trace_sched_switch", SCHEDULER },
	{ "do_futex", WAIT_LOCK },
	{ "futex_*", WAIT_LOCK },
	{ "__futex_wait*", WAIT_LOCK },
	{ "mutex_lock*", WAIT_LOCK },
	{ "__mutex_lock*", WAIT_LOCK },
	{ "ww_mutex_lock*", WAIT_LOCK },
	{ "rwsem_down_*", WAIT_LOCK },
	{ "down_read*", WAIT_LOCK },
	{ "down_write*", WAIT_LOCK },
	{ "down_interruptible", WAIT_LOCK },
	{ "rt_mutex_*", WAIT_LOCK },
	{ "rt_spin_lock*", WAIT_LOCK },
	{ "percpu_rwsem_wait", WAIT_LOCK },
	{ "fcntl_setlk*", WAIT_LOCK },
	{ "locks_lock_inode_wait", WAIT_LOCK },
	{ "__x64_sys_flock", WAIT_LOCK },
	{ "do_semtimedop", WAIT_LOCK },
	{ "do_poll*", WAIT_POLL },
	{ "do_sys_poll", WAIT_POLL },
	{ "do_select", WAIT_POLL },
	{ "do_epoll_*", WAIT_POLL },
	{ "ep_poll*", WAIT_POLL },
	{ "poll_schedule_timeout*", WAIT_POLL },
	{ "io_cqring_wait*", WAIT_POLL },
	{ "io_wq_worker", WAIT_POLL },
	{ "do_sigtimedwait", WAIT_POLL },
	{ "sigsuspend", WAIT_POLL },
	{ "inotify_read", WAIT_POLL },
	{ "signalfd_*", WAIT_POLL },
	{ "worker_thread", WAIT_POLL },
	{ "rescuer_thread", WAIT_POLL },
	{ "smpboot_thread_fn", WAIT_POLL },
	{ "kthreadd", WAIT_POLL },
	{ "rcu_gp_*", WAIT_POLL },
	{ "kswapd", WAIT_POLL },
	{ "kcompactd", WAIT_POLL },
	{ "khugepaged", WAIT_POLL },
	{ "irq_thread", WAIT_POLL },
	{ "do_nanosleep", WAIT_SLEEP },
	{ "hrtimer_nanosleep*", WAIT_SLEEP },
	{ "common_nsleep*", WAIT_SLEEP },
	{ "msleep*", WAIT_SLEEP },
	{ "usleep_range*", WAIT_SLEEP },
	{ "timerfd_read*", WAIT_SLEEP },
	{ "anon_pipe_*", WAIT_PIPE },
	{ "pipe_*", WAIT_PIPE },
	{ "wait_for_partner", WAIT_PIPE },
	{ "fifo_open", WAIT_PIPE },
	{ "unix_*", WAIT_PIPE },
	{ "tcp_*", WAIT_PIPE },
	{ "udp_*", WAIT_PIPE },
	{ "inet_*", WAIT_PIPE },
	{ "netlink_*", WAIT_PIPE },
	{ "sk_wait_data", WAIT_PIPE },
	{ "sk_stream_wait_*", WAIT_PIPE },
	{ "sock_*", WAIT_PIPE },
	{ "__skb_*", WAIT_PIPE },
	{ "skb_*", WAIT_PIPE },
	{ "vsock_*", WAIT_PIPE },
	{ "n_tty_*", WAIT_PIPE },
	{ "tty_*", WAIT_PIPE },
	{ "wait_woken", WAIT_NO },
	{ "eventfd_read", WAIT_PIPE },
	{ "io_schedule*", WAIT_DISK },
	{ "blk_*", WAIT_DISK },
	{ "blkdev_*", WAIT_DISK },
	{ "submit_bio_wait", WAIT_DISK },
	{ "folio_wait_*", WAIT_DISK },
	{ "wait_on_page_*", WAIT_DISK },
	{ "__wait_on_buffer", WAIT_DISK },
	{ "filemap_*", WAIT_DISK },
	{ "file_write_and_wait*", WAIT_DISK },
	{ "balance_dirty_pages*", WAIT_DISK },
	{ "rq_qos_wait", WAIT_DISK },
	{ "jbd2_*", WAIT_DISK },
	{ "xlog_*", WAIT_DISK },
	{ "xfs_log_*", WAIT_DISK },
	{ "btrfs_*", WAIT_DISK },
	{ "nfs_*", WAIT_DISK },
	{ "rpc_wait_*", WAIT_DISK },
	{ "vfs_fsync*", WAIT_DISK },
	{ "do_fsync", WAIT_DISK },
	{ "ksys_sync*", WAIT_DISK },
	{ "sync_inodes*", WAIT_DISK },
	{ "read_events", WAIT_DISK },
	{ "do_io_getevents", WAIT_DISK },
	{ "asm_exc_page_fault", WAIT_FAULT },
	{ "exc_page_fault", WAIT_FAULT },
	{ "do_user_addr_fault", WAIT_FAULT },
	{ "handle_mm_fault", WAIT_FAULT },
	{ "do_page_fault", WAIT_FAULT },
	{ "do_wait", WAIT_CHILD },
	{ "__do_wait", WAIT_CHILD },
	{ "kernel_wait4", WAIT_CHILD },
	{ "kernel_waitid", WAIT_CHILD },
	{ "wait_for_vfork_done", WAIT_CHILD },
};

static const struct name user_names[] = {
	{ "pthread_cond_*", WAIT_CONDITION },
	{ "__pthread_cond_*", WAIT_CONDITION },
	{ "___pthread_cond_*", WAIT_CONDITION },
	{ "cnd_wait", WAIT_CONDITION },
	{ "cnd_timedwait", WAIT_CONDITION },
	{ "pthread_barrier_wait", WAIT_CONDITION },
	{ "__pthread_barrier_wait", WAIT_CONDITION },
	{ "sem_wait", WAIT_CONDITION },
	{ "sem_timedwait", WAIT_CONDITION },
	{ "__new_sem_wait*", WAIT_CONDITION },
	{ "runtime.notesleep", WAIT_CONDITION },
	{ "runtime.notetsleep*", WAIT_CONDITION },
	{ "pthread_join", WAIT_CHILD },
	{ "__pthread_clockjoin_ex", WAIT_CHILD },
	{ "pthread_mutex_*", WAIT_LOCK },
	{ "___pthread_mutex_*", WAIT_LOCK },
	{ "__pthread_mutex_*", WAIT_LOCK },
	{ "__lll_lock_wait*", WAIT_LOCK },
	{ "pthread_rwlock_*", WAIT_LOCK },
	{ "___pthread_rwlock_*", WAIT_LOCK },
	{ "take_gil", WAIT_LOCK },
};

static const struct {
	const char *name, *key;
} words[WAIT_NR] = {
	[WAIT_NO] = { "", "" },
	[WAIT_RUNNING] = { "[running]", "cpu" },
	[WAIT_QUEUE] = { "[run queue]", "runq" },
	[WAIT_LOCK] = { "[lock]", "lock" },
	[WAIT_CONDITION] = { "[condition]", "cond" },
	[WAIT_POLL] = { "[poll]", "poll" },
	[WAIT_SLEEP] = { "[sleep]", "sleep" },
	[WAIT_PIPE] = { "[pipe or socket]", "pipe" },
	[WAIT_DISK] = { "[disk]", "disk" },
	[WAIT_FAULT] = { "[page fault]", "fault" },
	[WAIT_CHILD] = { "[child]", "child" },
	[WAIT_OTHER] = { "[other wait]", "other" },
	[WAIT_ASLEEP] = { "[waiting]", "other" },
	[WAIT_LONG] = { "[waiting]", "other" },
};

const char *wait_kind_name(enum wait_kind kind)
{
	return kind < WAIT_NR ? words[kind].name : "";
}

const char *wait_kind_key(enum wait_kind kind)
{
	return kind < WAIT_NR ? words[kind].key : "";
}

static bool is_name(const char *pattern, const char *name, size_t size)
{
	size_t n = strlen(pattern);

	if (pattern[n - 1] == '*')
		return size >= n - 1 && !memcmp(pattern, name, n - 1);
	return size == n && !memcmp(pattern, name, n);
}

/* Cut the suffix of the compiler or the library: ".isra.0", "@@GLIBC_2.34". */
static size_t plain_size(const char *name, size_t size, bool kernel)
{
	const char *end = memchr(name, kernel ? '.' : '@', size);

	return end ? (size_t)(end - name) : size;
}

struct wait_hint wait_hint(const char *name, size_t size, bool kernel)
{
	const struct name *names = kernel ? kernel_names : user_names;
	size_t nr = kernel ? ARRAY_SIZE(kernel_names) : ARRAY_SIZE(user_names);

	size = plain_size(name, size, kernel);
	for (size_t i = 0; i < nr; i++)
		if (is_name(names[i].name, name, size))
			return names[i].kind == SCHEDULER
				       ? (struct wait_hint){ WAIT_NO, true }
				       : (struct wait_hint){ names[i].kind, false };
	return (struct wait_hint){ WAIT_NO, false };
}

void wait_look_at(struct wait_look *look, struct wait_hint hint, bool kernel)
{
	if (!hint.kind)
		return;
	if (kernel && hint.kind == WAIT_FAULT)
		look->kind = WAIT_FAULT;
	else if (!look->kind || (!kernel && !look->program && look->kind == WAIT_LOCK))
		look->kind = (enum wait_kind)hint.kind;
	look->program |= !kernel;
}
