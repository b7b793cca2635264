// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * time_scope SECONDS COMMAND...: run a command in a time namespace: its clocks are ahead of the
 * kernel's by SECONDS; see time_namespaces(7). Exit status 77: not permitted.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

int main(int argc, char **argv)
{
	int status, fd;
	pid_t child;

	if (argc < 3 || unshare(CLONE_NEWTIME))
		return 77;
	fd = open("/proc/self/timens_offsets", O_WRONLY);
	if (fd < 0 || dprintf(fd, "monotonic %s 0\nboottime %s 0\n", argv[1], argv[1]) < 0)
		return 77;
	close(fd);
	/* Children are in it. */
	child = fork();
	if (!child) {
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}
