/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process to look at. */
#ifndef TESTS_SLEEPER_H
#define TESTS_SLEEPER_H

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Start a process of @uid (0: this user) that does nothing. */
static inline pid_t sleeper(uid_t uid)
{
	pid_t parent = getpid(), pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	if (uid && setresuid(uid, uid, uid))
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getpid() != 1 && getppid() != parent) /* 1: the first of a namespace */
		_exit(1);
	for (;;)
		pause();
}

static inline void end_sleeper(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

#endif
