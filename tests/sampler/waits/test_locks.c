// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Mutexes that threads of this process wait for: address, waiters, owner.
 * Live: waits for threads or processes.
 */
#include "sampler/waits/waits.h"

#include "tests/prelude.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WAITERS 3

/* With a name of C++. */
pthread_mutex_t plain __asm__("_ZN4shop12orders_mutexE") = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t inheriting;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static bool over;
static atomic_int tids[2 * WAITERS + 1], nr_tids;

static void announce(void)
{
	tids[nr_tids++] = (int)syscall(SYS_gettid);
}

static void *take(void *mutex)
{
	announce();
	pthread_mutex_lock(mutex);
	pthread_mutex_unlock(mutex);
	return NULL;
}

static void *wait_for_condition(void *arg)
{
	announce();
	pthread_mutex_lock(&guard);
	while (!over)
		pthread_cond_wait(&never, &guard);
	pthread_mutex_unlock(&guard);
	return NULL;
}

/* Return whether the task is in futex(2). */
static bool in_futex(int tid)
{
	char path[64], text[16] = "";
	FILE *f;
	int number = -1;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	f = fopen(path, "r");
	assert_non_null(f);
	if (fgets(text, sizeof(text), f))
		sscanf(text, "%d", &number);
	fclose(f);
	return number == SYS_futex;
}

/* Return the first of @tasks that waits for @mutex. */
static struct lock_task waiter_of(const void *mutex, const struct lock_task *tasks, uint32_t nr)
{
	struct lock found;

	for (uint32_t i = 0; i < nr; i++)
		if (locks_find(&tasks[i], 1, &found, 1) == 1 && found.address == (uintptr_t)mutex)
			return tasks[i];
	fail_msg("no task waits for %p", mutex);
	return tasks[0];
}

TEST(test_owner)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	struct lock_task tasks[2 * WAITERS + 3];
	pthread_t threads[2 * WAITERS + 1];
	pthread_mutexattr_t attr;
	struct lock found[4];
	struct lock_task waiter;
	uint32_t nr = 0;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&inheriting, &attr);
	pthread_mutex_lock(&plain);
	pthread_mutex_lock(&inheriting);
	for (int i = 0; i < 2 * WAITERS + 1; i++)
		pthread_create(&threads[i], NULL, i == 2 * WAITERS ? wait_for_condition : take,
			       i < WAITERS + 1 ? &plain : &inheriting);
	while (nr_tids < 2 * WAITERS + 1)
		nanosleep(&ms, NULL);
	for (; nr < 2 * WAITERS + 1; nr++) {
		while (!in_futex(tids[nr]))
			nanosleep(&ms, NULL);
		tasks[nr] = (struct lock_task){ getpid(), tids[nr] };
	}
	tasks[nr++] = (struct lock_task){ getpid(), getpid() }; /* running */
	tasks[nr++] = (struct lock_task){ getpid(), 0x7ffffff };
	assert_int_equal(locks_find(tasks, nr, found, 4), 2);
	assert_int_equal(found[0].address, (uintptr_t)&plain);
	assert_int_equal(found[0].nr_waiters, WAITERS + 1);
	assert_string_equal(found[0].symbol, "shop::orders_mutex (test_locks)");
	assert_int_equal(found[1].address, (uintptr_t)&inheriting);
	assert_int_equal(found[1].nr_waiters, WAITERS - 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(found[i].pid, getpid());
		assert_int_equal(found[i].owner, (int)syscall(SYS_gettid));
		assert_int_equal(found[i].state, 'R');
	}
	assert_int_equal(locks_find(tasks, nr, found, 1), 1);
	/* The owner's number is no task of the process. The tasks announced themselves in any
	 * order. */
	waiter = waiter_of(&plain, tasks, nr);
	((int *)&plain)[2] = 1;
	assert_int_equal(locks_find(&waiter, 1, found, 4), 1);
	assert_int_equal(found[0].owner, 0);
	((int *)&plain)[2] = (int)syscall(SYS_gettid);
	pthread_mutex_unlock(&plain);
	pthread_mutex_unlock(&inheriting);
	pthread_mutex_lock(&guard);
	over = true;
	pthread_cond_broadcast(&never);
	pthread_mutex_unlock(&guard);
	for (int i = 0; i < 2 * WAITERS + 1; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(locks_find(tasks, nr, found, 4), 0);
}

#define CONVOY 6
#define LOOKS  50

static pthread_mutex_t convoy = PTHREAD_MUTEX_INITIALIZER;
static atomic_int convoy_tids[CONVOY], holder; /* 0: none, or on its way */
static atomic_uint turn;
static atomic_bool convoy_over;

static void *take_turns(void *tid)
{
	const struct timespec ms = { .tv_nsec = 1000000 };

	atomic_store((atomic_int *)tid, (int)syscall(SYS_gettid));
	while (!convoy_over) {
		pthread_mutex_lock(&convoy);
		turn++;
		atomic_store(&holder, *(atomic_int *)tid);
		for (int i = 0; i < 3; i++)
			nanosleep(&ms, NULL);
		atomic_store(&holder, 0);
		pthread_mutex_unlock(&convoy);
	}
	return NULL;
}

/* In each look of one turn, the owner is the thread that says so itself. */
TEST(test_convoy)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	struct lock_task tasks[CONVOY];
	pthread_t threads[CONVOY];

	for (int i = 0; i < CONVOY; i++)
		pthread_create(&threads[i], NULL, take_turns, &convoy_tids[i]);
	for (int i = 0; i < CONVOY; i++) {
		while (!convoy_tids[i])
			nanosleep(&ms, NULL);
		tasks[i] = (struct lock_task){ getpid(), convoy_tids[i] };
	}
	for (int looks = 0; looks < LOOKS; nanosleep(&ms, NULL)) {
		unsigned int begun = turn;
		int owner = holder;
		struct lock found;
		uint32_t nr = locks_find(tasks, CONVOY, &found, 1);

		if (!nr || !owner || holder != owner || turn != begun)
			continue;
		assert_int_equal(found.address, (uintptr_t)&convoy);
		assert_int_equal(found.owner, owner);
		looks++;
	}
	convoy_over = true;
	for (int i = 0; i < CONVOY; i++)
		pthread_join(threads[i], NULL);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
