// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * :lock, of a mutex that a thread of this process waits for and this thread holds; its box.
 * Live: waits for threads or processes.
 */
#include "ui/command.c"
#include "ui/outputs.c"

#include "ui/internal.h"
#include "tests/ui/golden.h"

#include "symbols/base/base.h"
#include "symbols/code/code.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "ui/state/state.h"
#include "ui/view/view.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int waiter;

static void *take(void *arg)
{
	waiter = (int)syscall(SYS_gettid);
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

/* Wait until the thread is asleep. */
static void wait_for_sleep(void)
{
	char path[64], text[256], state = 'R';

	while (!waiter || state != 'S') {
		FILE *f;

		usleep(1000);
		snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)waiter);
		f = fopen(path, "r");
		if (f && fgets(text, sizeof(text), f) && strrchr(text, ')'))
			state = strrchr(text, ')')[2];
		if (f)
			fclose(f);
	}
}

/* Return the entry of the open box that begins with @text; NULL: there is none. */
static const struct dialog_entry *find_entry(const struct bench *b, const char *text)
{
	for (uint32_t i = 0; i < b->st.dialog.nr; i++)
		if (!strncmp(b->st.dialog.entries[i].name, text, strlen(text)))
			return &b->st.dialog.entries[i];
	return NULL;
}

/* The arrays of the made profile are static. */
static void drop_made(void *asked)
{
	struct asked_stacks *a = asked;

	free(a->stacks->profile);
	a->stacks->profile = NULL;
	outputs_stacks_drop(asked);
}

TEST(test_owner)
{
	struct profile *p = fake_profile(2, NULL);
	const struct dialog_entry *entry;
	char address[32], owner[64];
	pthread_t thread;
	struct bench b;

	bench_init(&b, 150, 30, false);
	model_take(&b.st, p);
	type(&b, ":lock\r");
	assert_non_null(strstr(b.st.message, "waits are not measured"));
	p = fake_profile(2, NULL);
	fake_waits(p);
	for (uint32_t i = 0; i < p->nr_processes; i++)
		p->processes[i].pid = getpid();
	pthread_mutex_lock(&mutex);
	pthread_create(&thread, NULL, take, NULL);
	wait_for_sleep();
	for (uint32_t i = 0; i < p->nr_tasks; i++)
		p->tasks[i].tid = waiter;
	model_take(&b.st, p);
	type(&b, "^:lock\r");
	snprintf(address, sizeof(address), "0x%llx", (unsigned long long)(uintptr_t)&mutex);
	snprintf(owner, sizeof(owner), "held by test_lock %d", (int)syscall(SYS_gettid));
	assert_ptr_equal(b.st.dialog.ops, &dialog_lock);
	entry = find_entry(&b, "mutex ");
	assert_non_null(entry);
	if (!strstr(entry->detail, address) || !strstr(entry->detail, "1 waiter"))
		fail_msg("%s, not %s", entry->detail, address);
	assert_non_null(find_entry(&b, owner));
	assert_non_null(find_entry(&b, "waits: test_lock"));
	type(&b, "\x1b");
	assert_null(b.st.dialog.ops);
	pthread_mutex_unlock(&mutex);
	pthread_join(thread, NULL);
	type(&b, "$");
	if (!strstr(b.st.message, "no thread waits for a mutex at this moment (1 looked at)"))
		fail_msg("%s", b.st.message);
	bench_fini(&b);
}

static sem_t semaphore;
static volatile int sink;

/* The name of a lock of PostgreSQL, which waits with a semaphore. */
__attribute__((noinline, noclone)) static void LWLockAcquire(void)
{
	sem_wait(&semaphore);
	sink = 1;
}

static void *take_own(void *arg)
{
	waiter = (int)syscall(SYS_gettid);
	LWLockAcquire();
	return arg;
}

/* A lock that is no mutex: its waiters, and a sentence about the holder. Without one: another
 * sentence. */
TEST(test_own_lock)
{
	struct profile *p = fake_profile(2, NULL);
	pthread_t thread;
	struct bench b;

	bench_init(&b, 150, 30, false);
	fake_waits(p);
	waiter = 0;
	sem_init(&semaphore, 0, 0);
	pthread_create(&thread, NULL, take_own, NULL);
	wait_for_sleep();
	for (uint32_t i = 0; i < p->nr_processes; i++)
		p->processes[i].pid = getpid();
	for (uint32_t i = 0; i < p->nr_tasks; i++)
		p->tasks[i].tid = waiter;
	model_take(&b.st, p);
	type(&b, "^:lock\r");
	assert_ptr_equal(b.st.dialog.ops, &dialog_lock);
	assert_non_null(find_entry(&b, "a lock that is no mutex"));
	assert_non_null(find_entry(&b, "an LWLock of PostgreSQL has no owner"));
	assert_non_null(find_entry(&b, "waits: test_lock"));
	type(&b, "\x1b");
	sem_post(&semaphore);
	pthread_join(thread, NULL);
	type(&b, "$");
	if (!strstr(b.st.message, "no thread waits for a mutex at this moment (1 looked at); ^W"))
		fail_msg("%s", b.st.message);
	bench_fini(&b);
}

/* A box of made stacks: the owner, its functions, the one that waits; Enter opens a thread. */
TEST(test_box)
{
	static struct profile_function functions[] = {
		{ .name = { "usleep", 6, 6 }, .module = { "libc.so.6", 9, 9 } },
		{ .name = { "refund_batch", 12, 12 }, .module = { "shop", 4, 4 } },
		{ .name = { "take_order", 10, 10 }, .module = { "shop", 4, 4 } },
	};
	static struct profile_stack stacks[] = { { 0, 2 }, { 2, 1 } };
	static uint32_t frames[] = { 0, 1, 2 };
	struct profile *p = fake_profile(2, NULL), *made = xcalloc(1, sizeof(*made));
	struct asked_stacks *a = xcalloc(1, sizeof(*a));
	struct bench b;

	bench_init(&b, 80, 24, false);
	fake_waits(p);
	model_take(&b.st, p);
	*made = (struct profile){ .functions = functions,
				  .nr_functions = 3,
				  .stacks = stacks,
				  .nr_stacks = 2,
				  .frames = frames,
				  .nr_frames = 3 };
	a->is_lock = true;
	a->pid = a->lock.pid = p->processes[p->tasks[0].process].pid;
	a->lock.address = 0x55d0c0de;
	a->lock.owner = p->tasks[0].tid;
	a->lock.nr_waiters = 1;
	a->lock.waiters[0] = 4711;
	snprintf(a->lock.symbol, sizeof(a->lock.symbol), "accounts_lock (shop)");
	snprintf(a->more, sizeof(a->more), "2 more mutexes");
	a->stacks = xcalloc(1, sizeof(*a->stacks));
	a->stacks->profile = made;
	a->stacks->nr = 2;
	a->stacks->list = xcalloc(2, sizeof(*a->stacks->list));
	a->stacks->list[0] = (struct task_stack){ .tid = a->lock.owner,
						  .comm = { "refunder", 8, 8 },
						  .state = 'S',
						  .kernel = "hrtimer_nanosleep\n" };
	a->stacks->list[1] = (struct task_stack){ .tid = 4711,
						  .comm = { "worker-1", 8, 8 },
						  .state = 'S',
						  .stack = 1,
						  .result = TASK_STACKS_CUT };
	dialog_open(&b.st, &dialog_lock, a, drop_made);
	golden(&b, "lock-80x24");
	/* The thread that waits has no samples. */
	type(&b, "worker\r");
	assert_non_null(strstr(b.st.message, "thread 4711 has no samples"));
	type(&b, "\x15held\r");
	assert_null(b.st.dialog.ops);
	assert_true(b.st.scope.in_thread);
	assert_int_equal(b.st.scope.thread, p->tasks[0].id);
	bench_fini(&b);
}

/* A process that sleeps has no row: its PID is typed, as a command or in the picker. */
TEST(test_stacks_of_a_sleeper)
{
	struct bench b;
	char pid[16];

	bench_init(&b, 100, 30, false);
	model_take(&b.st, fake_profile(4, NULL));
	command_run(&b.st, "stacks 4194303");
	assert_null(b.st.dialog.ops);
	assert_non_null(strstr(look(&b), "there is no process 4194303"));
	command_run(&b.st, "stacks x");
	assert_null(b.st.dialog.ops);
	command_run(&b.st, "stacks 1");
	assert_ptr_equal(b.st.dialog.ops, &dialog_stacks);
	press(&b, K_ESC);
	press(&b, 'p');
	for (const char *c = "no such name"; *c; c++)
		press(&b, (uint32_t)*c);
	press(&b, K_ENTER);
	assert_non_null(strstr(look(&b), "no process with samples matches"));
	press(&b, K_ESC);
	press(&b, 'p');
	/* Of the test itself: it has no samples. */
	snprintf(pid, sizeof(pid), "%d", getpid());
	for (const char *c = pid; *c; c++)
		press(&b, (uint32_t)*c);
	press(&b, K_ENTER);
	assert_ptr_equal(b.st.dialog.ops, &dialog_stacks);
	bench_fini(&b);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
