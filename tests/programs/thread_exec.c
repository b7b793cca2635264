// SPDX-License-Identifier: GPL-2.0-or-later
/* Calls exec in its second thread, and then naps twenty times a second. Ends after @argv[1] s. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *again(void *seconds)
{
	usleep(200000);
	execl("/proc/self/exe", "thread_exec", seconds, "again", (char *)NULL);
	perror("execl");
	_exit(1);
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc < 2)
		return 2;
	if (argc == 2 && !pthread_create(&thread, NULL, again, argv[1]))
		pause();
	for (int i = 0; i < 20 * atoi(argv[1]); i++)
		usleep(50000);
	return 0;
}
