// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tasks: lists of CPUs, threads, process trees and users.
 * Live: reads a clock.
 */
#include "sampler/event/internal.h"

#include "tests/prelude.h"
#include "symbols/base/base.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void expect_cpus(const char *text, int nr, const int *expected)
{
	int *cpus, got = task_list_cpus(text, &cpus);

	if (got != nr)
		fail_msg("'%s': %d, not %d", text, got, nr);
	if (nr < 0)
		return;
	assert_memory_equal(cpus, expected, (size_t)nr * sizeof(int));
	free(cpus);
}

TEST(test_list_cpus)
{
	static const char *const bad[] = { "",	    "\n",      "a",	"1-",
					   "-1",    "3-1",     "1,",	",1",
					   "1 2",   "0-65536", "65536", "99999999999999999999",
					   "1-2-3", "1\n2",    "+1" };

	expect_cpus("0", 1, (int[]){ 0 });
	expect_cpus("0-3,5\n", 5, (int[]){ 0, 1, 2, 3, 5 });
	expect_cpus("7,1,1-2", 3, (int[]){ 1, 2, 7 });
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		expect_cpus(bad[i], -EINVAL, NULL);
}

TEST(test_online_cpus)
{
	int *cpus, nr = task_list_online_cpus(&cpus, NULL);

	assert_int_equal(nr, sysconf(_SC_NPROCESSORS_ONLN));
	free(cpus);
}

static void *wait_here(void *arg)
{
	pthread_barrier_wait(arg);
	pthread_barrier_wait(arg);
	return NULL;
}

static bool has(const pid_t *list, int nr, pid_t tid)
{
	for (int i = 0; i < nr; i++)
		if (list[i] == tid)
			return true;
	return false;
}

TEST(test_list_tasks)
{
	pthread_barrier_t barrier;
	pthread_t threads[5];
	pid_t *list, self = getpid(), child;
	struct err e = { "" };
	int nr;

	pthread_barrier_init(&barrier, NULL, 6);
	for (int i = 0; i < 5; i++)
		pthread_create(&threads[i], NULL, wait_here, &barrier);
	pthread_barrier_wait(&barrier);
	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	/* the same process twice is one process */
	assert_in_range(task_list_threads((pid_t[]){ self, self }, 2, &list, &e), 6, 8);
	free(list);
	nr = task_list_threads(&self, 1, &list, &e);
	assert_in_range(nr, 6, 8); /* a sanitiser may have a thread */
	assert_true(has(list, nr, self));
	assert_false(has(list, nr, child));
	free(list);
	nr = task_list_tree(&self, 1, &list);
	assert_true(has(list, nr, self) && has(list, nr, child));
	assert_in_range(nr, 7, 9);
	free(list);
	nr = task_list_user(getuid(), &list, &e);
	assert_true(nr >= 7 && has(list, nr, self) && has(list, nr, child));
	free(list);
	assert_int_equal(task_list_user(4294000001u, &list, &e), 0);
	free(list);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 5; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(task_list_threads((pid_t[]){ self, 2099999999 }, 2, &list, &e), -ESRCH);
	assert_non_null(strstr(e.text, "no process with pid 2099999999"));
	assert_null(list);
}

static pid_t next_tid; /* 0: none is made up */

/* In place of the C library's: each reading of a folder ends with ten more threads. */
struct dirent *readdir(DIR *dir)
{
	struct dirent *(*real)(DIR *) = (struct dirent * (*)(DIR *)) dlsym(RTLD_NEXT, "readdir");
	struct dirent *entry = real(dir);
	static struct dirent made_up;

	if (entry || !next_tid || !(++next_tid % 10))
		return entry;
	snprintf(made_up.d_name, sizeof(made_up.d_name), "%d", next_tid);
	return &made_up;
}

/* A process may start threads as fast as they are listed. */
TEST(test_new_threads)
{
	pid_t *list, self = getpid();
	int nr;

	next_tid = 1 << 22;
	alarm(60);
	nr = task_list_threads(&self, 1, &list, NULL);
	alarm(0);
	next_tid = 0;
	assert_true(has(list, nr, self));
	assert_in_range(nr, 10, 1000);
	free(list);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
