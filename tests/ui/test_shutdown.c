// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ^C while proftop ends: that of before is discarded, one after it ends the process.
 * Live: reads a clock.
 */
#include "tests/prelude.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ui/internal.h"

/* End for ever, with stderr on @fd. A ^C came before. */
static void end(int fd)
{
	sigset_t set;

	dup2(fd, STDERR_FILENO);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGINT);
	shutdown_begin();
	for (;;)
		pause();
}

TEST(test_interrupt)
{
	char text[100] = "";
	int fds[2], status;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (!pid)
		end(fds[1]);
	close(fds[1]);
	n = read(fds[0], text, sizeof(text) - 1);
	assert_true(n > 0);
	assert_string_equal(text, "proftop: still ending: ^C leaves work that is not done\n");
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	kill(pid, SIGINT);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGINT);
	close(fds[0]);
}

int main(void)
{
	alarm(60);
	return run_unit_tests(NULL, NULL);
}
