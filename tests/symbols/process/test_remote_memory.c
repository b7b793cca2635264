// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * remote_memory: the memory of a process, not that of the program that it executes later.
 * Live: waits for threads or processes.
 */
#include "tests/prelude.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbols/process/process.h"

static uint64_t words[2] = { 42, 43 };

/* Fork a process that calls execve(2) when *@fd is closed. */
static pid_t start_child(int *fd)
{
	int ends[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ends[1]);
		while (read(ends[0], &byte, 1) > 0)
			;
		execlp("sleep", "sleep", "60", NULL);
		_exit(1);
	}
	close(ends[0]);
	*fd = ends[1];
	return pid;
}

TEST(exec)
{
	const uint64_t addr = (uintptr_t)words, addrs[] = { addr, 4096, addr + 8, 1ULL << 63 };
	struct remote r = { .fd = -1 };
	uint64_t got[4] = { 0 };
	bool is_read[4];
	char path[32];
	int fd, rc = 0;

	r.pid = start_child(&fd);
	snprintf(path, sizeof(path), "/proc/%d/mem", r.pid);
	r.fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(r.fd >= 0);
	assert_int_equal(remote_read_u64(&r, addr, &got[0]), 0);
	assert_int_equal(got[0], 42);
	assert_int_equal(remote_read_each(&r, addrs, 4, 8, (uint8_t *)got, is_read), 0);
	assert_true(is_read[0] && !is_read[1] && is_read[2] && !is_read[3]);
	assert_int_equal(got[2], 43);
	close(fd);
	for (int i = 0; i < 10000 && !rc; i++) {
		usleep(1000);
		rc = remote_read_u64(&r, addr, &got[0]);
	}
	assert_int_equal(rc, -ESRCH);
	assert_int_equal(kill(r.pid, SIGKILL), 0);
	assert_int_equal(waitpid(r.pid, NULL, 0), r.pid);
	close(r.fd);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
