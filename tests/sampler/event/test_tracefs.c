// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tracepoints without a mount: the screen, which has given up its rights, reads them as the command
 * line did.
 * Live: some parts need root.
 */
#include "sampler/event/event.h"

#include "tests/prelude.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbols/base/base.h"

#define SKIP 77

/* Look for a tracepoint after the rights are gone. The exit code. */
static int look(void)
{
	struct event events[EVENTS_MAX];
	uint32_t nr = 0;
	struct err e;
	int fd, mount_fd;

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return SKIP;
	while (!umount2("/sys/kernel/tracing", MNT_DETACH))
		;
	while (!umount2("/sys/kernel/debug", MNT_DETACH))
		;
	/* The rights of this thread suffice now. */
	mount_fd = (int)syscall(SYS_fsopen, "tracefs", 0);
	if (mount_fd < 0)
		return SKIP;
	close(mount_fd);
	limits_drop_thread_caps(LIMITS_UI);
	if (tracefs_open("", &fd) != TRACEFS_DETACHED)
		return 1;
	close(fd);
	if (event_parse_list(events, &nr, EVENTS_MAX, "syscalls:sys_enter_recvfrom", &e))
		fprintf(stderr, "%s\n", e.text);
	return nr == 1 ? 0 : 2;
}

TEST(test_after_rights)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(look());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == SKIP)
		skip_test("not permitted: a mount of tracefs");
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
