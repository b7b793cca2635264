// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two tables of names: of the kernel, and of C libraries and runtimes; one of system calls. Pure.
 *
 * The innermost frame with a meaning decides, with three exceptions. A page fault is one whatever
 * the kernel waits for in it. A futex is a lock, unless the program calls it something else. A lock
 * of a database or of a runtime is one, whether it waits with a semaphore, a condition or epoll.
 */
#include "symbols/name/name.h"

#include <assert.h>
#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"

struct name {
	const char *name; /* with a star at the end: any name that begins so */
	uint8_t kind;
};

#define SCHEDULER WAIT_NR	/* as a kind: no kind, but left out */
#define KTHREAD	  (WAIT_NR + 1) /* no kind, but of a kernel thread */

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
	{ "__arm64_sys_flock", WAIT_LOCK },
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
	{ "fanotify_read", WAIT_POLL },
	{ "__x64_sys_pause", WAIT_POLL },
	{ "io_sq_thread", WAIT_POLL },
	{ "signalfd_*", WAIT_POLL },
	{ "worker_thread", WAIT_KTHREAD },
	{ "rescuer_thread", WAIT_KTHREAD },
	{ "smpboot_thread_fn", WAIT_KTHREAD },
	{ "kthread", KTHREAD },
	{ "kthreadd", WAIT_KTHREAD },
	{ "kthread_worker_fn", WAIT_KTHREAD },
	{ "rcu_gp_*", WAIT_KTHREAD },
	{ "kswapd", WAIT_KTHREAD },
	{ "kcompactd", WAIT_KTHREAD },
	{ "khugepaged", WAIT_KTHREAD },
	{ "irq_thread", WAIT_KTHREAD },
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
	{ "do_msgrcv", WAIT_PIPE },
	{ "do_msgsnd", WAIT_PIPE },
	{ "wq_sleep*", WAIT_PIPE },
	{ "do_mq_*", WAIT_PIPE },
	{ "packet_recvmsg", WAIT_PIPE },
	{ "request_wait_answer", WAIT_DISK },
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
	{ "handle_userfault", WAIT_FAULT },
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
	{ "sem_clockwait", WAIT_CONDITION },
	{ "__sem_wait*", WAIT_CONDITION },
	{ "__sem_timedwait*", WAIT_CONDITION },
	{ "__sem_clockwait*", WAIT_CONDITION },
	{ "__new_sem_wait*", WAIT_CONDITION },
	{ "runtime.notesleep", WAIT_CONDITION },
	{ "runtime.notetsleep*", WAIT_CONDITION },
	{ "pthread_join", WAIT_CHILD },
	{ "pthread_timedjoin_np", WAIT_CHILD },
	{ "pthread_clockjoin_np", WAIT_CHILD },
	{ "thrd_join", WAIT_CHILD },
	{ "__pthread_clockjoin_ex", WAIT_CHILD },
	{ "pthread_mutex_*", WAIT_LOCK },
	{ "___pthread_mutex_*", WAIT_LOCK },
	{ "__pthread_mutex_*", WAIT_LOCK },
	{ "__lll_lock_wait*", WAIT_LOCK },
	{ "pthread_rwlock_*", WAIT_LOCK },
	{ "___pthread_rwlock_*", WAIT_LOCK },
	{ "take_gil", WAIT_LOCK },
};

/* Locks that programs make of other waits, with a sentence about the holder. */
static const struct {
	const char *name, *holder;
} own_locks[] = {
#define PG_LOCK "a lock of PostgreSQL: SELECT pg_blocking_pids(PID) names its holders"
	{ "ProcSleep", PG_LOCK },
	{ "LWLock*", "an LWLock of PostgreSQL has no owner; wait_event in pg_stat_activity is its "
		     "name" },
	{ "s_lock", "a spinlock of PostgreSQL has no owner" },
#define JAVA_MONITOR "a monitor of Java: 'jstack PID' shows which thread has locked it"
	{ "ObjectMonitor::enter*", JAVA_MONITOR },
	{ "ObjectMonitor::EnterI", JAVA_MONITOR },
#define JAVA_LOCK "a lock of java.util.concurrent: 'jstack -l PID' shows which thread owns it"
	{ "java.util.concurrent.locks.ReentrantLock*", JAVA_LOCK },
	{ "java.util.concurrent.locks.ReentrantReadWriteLock*", JAVA_LOCK },
	{ "java.util.concurrent.locks.StampedLock*", "a StampedLock of Java has no owner" },
};

/* Numbers of x86-64 and AArch64, as in <asm/unistd.h>; -1: that CPU has no such call. */
static const struct {
	uint8_t kind;
	short number[2];
} calls[] = {
	{ WAIT_LOCK, { 202, 98 } },   /* futex */
	{ WAIT_LOCK, { 449, 449 } },  /* futex_waitv */
	{ WAIT_LOCK, { 455, 455 } },  /* futex_wait */
	{ WAIT_LOCK, { 73, 32 } },    /* flock */
	{ WAIT_LOCK, { 65, 193 } },   /* semop */
	{ WAIT_LOCK, { 220, 192 } },  /* semtimedop */
	{ WAIT_POLL, { 7, -1 } },     /* poll */
	{ WAIT_POLL, { 271, 73 } },   /* ppoll */
	{ WAIT_POLL, { 23, -1 } },    /* select */
	{ WAIT_POLL, { 270, 72 } },   /* pselect6 */
	{ WAIT_POLL, { 232, -1 } },   /* epoll_wait */
	{ WAIT_POLL, { 281, 22 } },   /* epoll_pwait */
	{ WAIT_POLL, { 441, 441 } },  /* epoll_pwait2 */
	{ WAIT_POLL, { 426, 426 } },  /* io_uring_enter */
	{ WAIT_POLL, { 34, -1 } },    /* pause */
	{ WAIT_POLL, { 130, 133 } },  /* rt_sigsuspend */
	{ WAIT_POLL, { 128, 137 } },  /* rt_sigtimedwait */
	{ WAIT_SLEEP, { 35, 101 } },  /* nanosleep */
	{ WAIT_SLEEP, { 230, 115 } }, /* clock_nanosleep */
	{ WAIT_PIPE, { 43, 202 } },   /* accept */
	{ WAIT_PIPE, { 288, 242 } },  /* accept4 */
	{ WAIT_PIPE, { 42, 203 } },   /* connect */
	{ WAIT_PIPE, { 44, 206 } },   /* sendto */
	{ WAIT_PIPE, { 46, 211 } },   /* sendmsg */
	{ WAIT_PIPE, { 307, 269 } },  /* sendmmsg */
	{ WAIT_PIPE, { 45, 207 } },   /* recvfrom */
	{ WAIT_PIPE, { 47, 212 } },   /* recvmsg */
	{ WAIT_PIPE, { 299, 243 } },  /* recvmmsg */
	{ WAIT_PIPE, { 70, 188 } },   /* msgrcv */
	{ WAIT_PIPE, { 69, 189 } },   /* msgsnd */
	{ WAIT_PIPE, { 242, 182 } },  /* mq_timedsend */
	{ WAIT_PIPE, { 243, 183 } },  /* mq_timedreceive */
	{ WAIT_DISK, { 74, 82 } },    /* fsync */
	{ WAIT_DISK, { 75, 83 } },    /* fdatasync */
	{ WAIT_DISK, { 162, 81 } },   /* sync */
	{ WAIT_DISK, { 306, 267 } },  /* syncfs */
	{ WAIT_DISK, { 277, 84 } },   /* sync_file_range */
	{ WAIT_DISK, { 26, 227 } },   /* msync */
	{ WAIT_DISK, { 208, 4 } },    /* io_getevents */
	{ WAIT_CHILD, { 61, 260 } },  /* wait4 */
	{ WAIT_CHILD, { 247, 95 } },  /* waitid */
	{ WAIT_CHILD, { 58, -1 } },   /* vfork */
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
	[WAIT_KTHREAD] = { "[kernel thread]", "kthread" },
	[WAIT_OTHER] = { "[other wait]", "other" },
	[WAIT_ASLEEP] = { "[waiting]", "other" },
	[WAIT_LONG] = { "[waiting long]", "other" },
	[WAIT_FOUND] = { "[found asleep]", "other" },
	[WAIT_CUT] = { "[callers unknown]", "other" },
};

const char *wait_kind_name(enum wait_kind kind)
{
	return kind < WAIT_NR ? words[kind].name : "";
}

enum wait_kind wait_kind_named(const char *name, size_t size)
{
	assert(name || !size);
	for (unsigned int kind = WAIT_NO + 1; kind < WAIT_NR; kind++)
		if (strlen(words[kind].name) == size && !memcmp(words[kind].name, name, size))
			return (enum wait_kind)kind;
	return WAIT_OTHER;
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

	assert(name || !size);
	size = plain_size(name, size, kernel);
	for (size_t i = 0; i < nr; i++)
		/* Most names differ in their first byte; an empty one has none. */
		if (size && names[i].name[0] == name[0] && is_name(names[i].name, name, size))
			return (struct wait_hint){
				.kind = names[i].kind < WAIT_NR ? names[i].kind : WAIT_NO,
				.scheduler = names[i].kind == SCHEDULER,
				.kthread = names[i].kind == KTHREAD,
			};
	for (size_t i = 0; size && !kernel && i < ARRAY_SIZE(own_locks); i++)
		if (own_locks[i].name[0] == name[0] && is_name(own_locks[i].name, name, size))
			return (struct wait_hint){ .kind = WAIT_LOCK,
						   .holder = own_locks[i].holder };
	return (struct wait_hint){ .kind = WAIT_NO };
}

enum wait_kind wait_kind_of_call(long number, uint16_t machine)
{
	unsigned int at = machine == EM_AARCH64;

	if (number < 0 || (machine != EM_X86_64 && machine != EM_AARCH64))
		return WAIT_NO;
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i].number[at] == number)
			return (enum wait_kind)calls[i].kind;
	return WAIT_NO;
}

void wait_look_at(struct wait_look *look, struct wait_hint hint, bool kernel)
{
	if (!hint.kind)
		return;
	if (kernel && hint.kind == WAIT_FAULT)
		look->kind = WAIT_FAULT;
	else if (hint.holder && (look->kind == WAIT_POLL || look->kind == WAIT_CONDITION ||
				 look->kind == WAIT_SLEEP))
		look->kind = WAIT_LOCK;
	else if (!look->kind || (!kernel && !look->program && look->kind == WAIT_LOCK))
		look->kind = (enum wait_kind)hint.kind;
	look->program |= !kernel;
}
