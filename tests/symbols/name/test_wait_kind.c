// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Kinds of waits of stacks as kernels 6.1 and 6.18 have them.
 */
#include "symbols/name/name.h"

#include <elf.h>
#include <sys/syscall.h>

#include "tests/prelude.h"

/* Return the kind of a stack: kernel functions, "|", functions of the program; innermost first. */
static enum wait_kind kind_of(const char *stack)
{
	struct wait_look look = { WAIT_NO, false };
	bool kernel = true;
	size_t size;

	for (; *stack; stack += size + (stack[size] == ' ')) {
		size = strcspn(stack, " ");
		if (*stack == '|')
			kernel = false;
		else
			wait_look_at(&look, wait_hint(stack, size, kernel), kernel);
	}
	return look.kind;
}

TEST(test_kinds)
{
	static const struct {
		enum wait_kind kind;
		const char *stack;
	} stacks[] = {
		{ WAIT_LOCK, "schedule futex_do_wait __futex_wait futex_wait do_futex "
			     "__x64_sys_futex "
			     "do_syscall_64 | __GI___lll_lock_wait "
			     "pthread_mutex_lock@@GLIBC_2.2.5" },
		{ WAIT_CONDITION, "schedule futex_wait_queue futex_wait do_futex | "
				  "__futex_abstimed_wait_common pthread_cond_wait@@GLIBC_2.3.2 "
				  "work" },
		/* The mutex behind a condition variable, taken again. */
		{ WAIT_LOCK, "schedule futex_do_wait do_futex | __lll_lock_wait "
			     "__pthread_mutex_cond_lock pthread_cond_wait main" },
		{ WAIT_CHILD, "schedule futex_do_wait do_futex | __pthread_clockjoin_ex main" },
		{ WAIT_KTHREAD, "schedule worker_thread kthread ret_from_fork ret_from_fork_asm "
				"|" },
		{ WAIT_KTHREAD, "schedule kthreadd ret_from_fork |" },
		{ WAIT_POLL, "schedule_hrtimeout_range_clock ep_poll do_epoll_wait | epoll_wait" },
		{ WAIT_SLEEP, "schedule do_nanosleep hrtimer_nanosleep common_nsleep | usleep" },
		{ WAIT_PIPE, "schedule anon_pipe_read vfs_read ksys_read do_syscall_64 | read" },
		{ WAIT_PIPE, "schedule pipe_read vfs_read | __GI___libc_read" },
		{ WAIT_PIPE, "schedule schedule_timeout unix_stream_data_wait "
			     "unix_stream_read_generic" },
		{ WAIT_DISK, "schedule io_schedule folio_wait_bit_common filemap_fdatawait_range "
			     "ext4_sync_file do_fsync __x64_sys_fsync | fsync" },
		{ WAIT_FAULT, "schedule io_schedule folio_wait_bit_common filemap_fault __do_fault "
			      "handle_mm_fault do_user_addr_fault exc_page_fault | memcpy" },
		{ WAIT_CONDITION, "schedule futex_do_wait do_futex | do_futex_wait "
				  "__new_sem_wait_slow64.constprop.0 sem_wait@@GLIBC_2.34" },
		{ WAIT_CONDITION, "schedule futex_do_wait do_futex | sem_clockwait@@GLIBC_2.34" },
		{ WAIT_POLL, "schedule schedule_hrtimeout_range ep_poll do_epoll_wait "
			     "__x64_sys_epoll_pwait2 | epoll_pwait2" },
		{ WAIT_POLL, "schedule io_cqring_wait __do_sys_io_uring_enter | io_uring_wait" },
		{ WAIT_LOCK, "schedule futex_sleep_multiple futex_wait_multiple "
			     "__x64_sys_futex_waitv | wait" },
		{ WAIT_POLL, "schedule_hrtimeout_range poll_schedule_timeout.constprop.0 do_poll "
			     "do_sys_poll __x64_sys_ppoll | ppoll" },
		{ WAIT_PIPE, "schedule_timeout __skb_wait_for_more_packets __skb_recv_udp "
			     "udp_recvmsg do_recvmmsg | recvmmsg" },
		{ WAIT_SLEEP, "schedule do_nanosleep hrtimer_nanosleep __arm64_sys_nanosleep | "
			      "nanosleep" },
		{ WAIT_CHILD, "schedule do_wait kernel_waitid __do_sys_waitid | waitid" },
		{ WAIT_CHILD, "schedule do_wait kernel_wait4 __do_sys_wait4 | waitpid" },
		{ WAIT_LOCK, "schedule_preempt_disabled __mutex_lock.constprop.0 ext4_file_write" },
		{ WAIT_NO, "schedule exit_to_user_mode_loop do_syscall_64 | main" },
		/* Locks of PostgreSQL and Java, which wait with something else. */
		{ WAIT_LOCK, "schedule ep_poll do_epoll_wait | epoll_wait WaitEventSetWait "
			     "WaitLatch ProcSleep LockAcquireExtended XactLockTableWait" },
		{ WAIT_POLL, "schedule ep_poll do_epoll_wait | epoll_wait WaitEventSetWait "
			     "secure_read PostgresMain" },
		{ WAIT_LOCK, "schedule futex_do_wait do_futex | __new_sem_wait_slow64 "
			     "PGSemaphoreLock LWLockAcquire LockBuffer" },
		{ WAIT_LOCK, "do_nanosleep | clock_nanosleep pg_usleep perform_spin_delay s_lock" },
		{ WAIT_LOCK, "schedule futex_do_wait do_futex | pthread_cond_wait "
			     "os::PlatformEvent::park ObjectMonitor::enter Blk.enterMonitor" },
		{ WAIT_LOCK, "schedule futex_do_wait do_futex | pthread_cond_wait Parker::park "
			     "java.util.concurrent.locks.AbstractQueuedSynchronizer.acquire "
			     "java.util.concurrent.locks.ReentrantLock.lock" },
		{ WAIT_CONDITION, "schedule futex_do_wait do_futex | pthread_cond_wait "
				  "Parker::park "
				  "java.util.concurrent.locks.AbstractQueuedSynchronizer.acquire "
				  "java.util.concurrent.CountDownLatch.await" },
		/* A page that the holder of a lock reads is no wait for it. */
		{ WAIT_DISK, "schedule io_schedule folio_wait_bit_common | pread64 LWLockFoo" },
		/* A function of the program that has the name of one of the kernel. */
		{ WAIT_NO, "| do_nanosleep ep_poll" },
	};

	for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++)
		if (kind_of(stacks[i].stack) != stacks[i].kind)
			fail_msg("%s: %s", stacks[i].stack,
				 wait_kind_name(kind_of(stacks[i].stack)));
}

TEST(test_holder)
{
	assert_non_null(strstr(wait_hint("ProcSleep", 9, false).holder, "pg_blocking_pids"));
	assert_non_null(strstr(wait_hint("ObjectMonitor::enter", 20, false).holder, "jstack"));
	assert_null(wait_hint("ProcSleep", 9, true).holder);
	assert_null(wait_hint("pthread_mutex_lock", 18, false).holder);
}

TEST(test_scheduler)
{
	assert_true(wait_hint("__schedule", 10, true).scheduler);
	assert_true(wait_hint("schedule_timeout", 16, true).scheduler);
	assert_false(wait_hint("schedule", 8, false).scheduler);
	assert_false(wait_hint("schedules", 9, true).scheduler);
	assert_true(wait_hint("kthread", 7, true).kthread);
	assert_int_equal(wait_hint("kthread", 7, true).kind, WAIT_NO);
	assert_false(wait_hint("kthread", 7, false).kthread);
}

/* The numbers of <asm/unistd.h> of each CPU, written from the tables of the kernel. */
TEST(test_calls)
{
	static const struct {
		enum wait_kind kind;
		long x86_64, aarch64;
	} known[] = {
		{ WAIT_POLL, 441, 441 },  /* epoll_pwait2 */
		{ WAIT_POLL, 426, 426 },  /* io_uring_enter */
		{ WAIT_POLL, 271, 73 },	  /* ppoll */
		{ WAIT_LOCK, 449, 449 },  /* futex_waitv */
		{ WAIT_LOCK, 202, 98 },	  /* futex */
		{ WAIT_PIPE, 299, 243 },  /* recvmmsg */
		{ WAIT_SLEEP, 35, 101 },  /* nanosleep */
		{ WAIT_SLEEP, 230, 115 }, /* clock_nanosleep */
		{ WAIT_CHILD, 61, 260 },  /* wait4 */
		{ WAIT_CHILD, 247, 95 },  /* waitid */
		{ WAIT_NO, 0, 63 },	  /* read: of a pipe, a file, a terminal */
		{ WAIT_NO, 16, 29 },	  /* ioctl */
		{ WAIT_NO, -1, -1 },	  /* no call */
	};

	const uint16_t native = SYS_wait4 == 61 ? EM_X86_64 : EM_AARCH64;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		assert_int_equal(wait_kind_of_call(known[i].x86_64, EM_X86_64), known[i].kind);
		assert_int_equal(wait_kind_of_call(known[i].aarch64, EM_AARCH64), known[i].kind);
	}
	/* This machine's, by the headers of its compiler. */
	assert_int_equal(wait_kind_of_call(SYS_futex, native), WAIT_LOCK);
	assert_int_equal(wait_kind_of_call(SYS_ppoll, native), WAIT_POLL);
	assert_int_equal(wait_kind_of_call(SYS_epoll_pwait, native), WAIT_POLL);
	assert_int_equal(wait_kind_of_call(SYS_recvmmsg, native), WAIT_PIPE);
	assert_int_equal(wait_kind_of_call(SYS_clock_nanosleep, native), WAIT_SLEEP);
	assert_int_equal(wait_kind_of_call(SYS_waitid, native), WAIT_CHILD);
	assert_int_equal(wait_kind_of_call(SYS_accept4, native), WAIT_PIPE);
	assert_int_equal(wait_kind_of_call(SYS_fsync, native), WAIT_DISK);
	assert_int_equal(wait_kind_of_call(SYS_semtimedop, native), WAIT_LOCK);
}

TEST(test_names)
{
	for (int i = WAIT_RUNNING; i < WAIT_NR; i++) {
		assert_int_equal(wait_kind_name((enum wait_kind)i)[0], '[');
		assert_true(wait_kind_key((enum wait_kind)i)[0]);
	}
}

/* A kept wait is read again by its name; no two kinds have the same. */
TEST(test_named)
{
	for (unsigned int kind = WAIT_NO + 1; kind < WAIT_NR; kind++) {
		const char *name = wait_kind_name((enum wait_kind)kind);

		assert_int_equal(wait_kind_named(name, strlen(name)), kind);
	}
	assert_int_equal(wait_kind_named("[lock", 5), WAIT_OTHER);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
