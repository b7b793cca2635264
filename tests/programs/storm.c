// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * storm [SECONDS]: fork and exec as fast as one CPU can, each child a short piece of work under a
 * separate name; print how many there were.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

__attribute__((noinline)) static uint64_t short_work(uint64_t x)
{
	for (int i = 0; i < 200000; i++)
		x = x * 6364136223846793005U + 1442695040888963407U;
	return x;
}

static int child(const char *number)
{
	char name[16];

	snprintf(name, sizeof(name), "storm-%s", number);
	prctl(PR_SET_NAME, name);
	return short_work(strlen(number)) == 42;
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 5);
	unsigned int nr = 0;

	if (argc > 2)
		return child(argv[2]);
	while (time(NULL) < end) {
		char number[12];
		pid_t pid = fork();

		if (pid < 0)
			return 1;
		if (!pid) {
			snprintf(number, sizeof(number), "%u", nr % 100);
			execl("/proc/self/exe", argv[0], "0", number, (char *)NULL);
			_exit(127);
		}
		waitpid(pid, NULL, 0);
		nr++;
	}
	printf("%u children\n", nr);
	return 0;
}
