// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * crowd SLEEPERS ACTIVE [THREADS]: SLEEPERS processes that only sleep, ACTIVE ones that work and
 * nap by turns, and one more process with THREADS threads that do the same, each under a separate
 * name. Prints "ready" when all are there; they end with it.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define STACK_SIZE (64 << 10)

static volatile uint64_t sink;

__attribute__((noinline)) static void short_work(void)
{
	uint64_t x = 1;

	for (int i = 0; i < 200000; i++)
		x = x * 6364136223846793005U + 1442695040888963407U;
	sink = x;
}

__attribute__((noreturn)) static void work_and_nap(void)
{
	const struct timespec nap = { .tv_nsec = 50000000 };

	for (;;) {
		short_work();
		nanosleep(&nap, NULL);
	}
}

static void name_it(const char *kind, int i)
{
	char name[16];

	snprintf(name, sizeof(name), "%s-%d", kind, i);
	prctl(PR_SET_NAME, name);
}

static void *thread_main(void *arg)
{
	name_it("crowd-t", (int)(intptr_t)arg);
	work_and_nap();
}

/* The process with the threads. */
static void run_threads(int nr)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	for (int i = 0; i < nr; i++)
		if (pthread_create(&thread, &attr, thread_main, (void *)(intptr_t)i))
			_exit(1);
}

/* One process more, which ends with us; false: there can be no more. */
static int add(const char *kind, int i, int threads)
{
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid > 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	name_it(kind, i);
	run_threads(threads);
	if (kind[6] == 'a')
		work_and_nap();
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	int nr_sleepers = argc > 1 ? atoi(argv[1]) : 0, nr_active = argc > 2 ? atoi(argv[2]) : 0;
	int nr_threads = argc > 3 ? atoi(argv[3]) : 0;

	for (int i = 0; i < nr_sleepers; i++)
		if (!add("crowd-s", i, 0))
			return 77;
	for (int i = 0; i < nr_active; i++)
		if (!add("crowd-a", i, 0))
			return 77;
	if (nr_threads && !add("crowd-m", 0, nr_threads))
		return 77;
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
