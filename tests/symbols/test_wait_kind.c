// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Kinds of waits of stacks as kernels 6.1 and 6.18 have them.
 */
#include "symbols/name/wait_kind.h"

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

static void test_kinds(void **state)
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
		{ WAIT_CHILD, "schedule do_wait kernel_wait4 __do_sys_wait4 | waitpid" },
		{ WAIT_LOCK, "schedule_preempt_disabled __mutex_lock.constprop.0 ext4_file_write" },
		{ WAIT_NO, "schedule exit_to_user_mode_loop do_syscall_64 | main" },
		/* A function of the program that has the name of one of the kernel. */
		{ WAIT_NO, "| do_nanosleep ep_poll" },
	};

	for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++)
		if (kind_of(stacks[i].stack) != stacks[i].kind)
			fail_msg("%s: %s", stacks[i].stack,
				 wait_kind_name(kind_of(stacks[i].stack)));
}

static void test_scheduler(void **state)
{
	assert_true(wait_hint("__schedule", 10, true).scheduler);
	assert_true(wait_hint("schedule_timeout", 16, true).scheduler);
	assert_false(wait_hint("schedule", 8, false).scheduler);
	assert_false(wait_hint("schedules", 9, true).scheduler);
}

static void test_names(void **state)
{
	for (int i = WAIT_RUNNING; i < WAIT_NR; i++) {
		assert_int_equal(wait_kind_name((enum wait_kind)i)[0], '[');
		assert_true(wait_kind_key((enum wait_kind)i)[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_scheduler),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
