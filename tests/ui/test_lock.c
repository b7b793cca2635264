// SPDX-License-Identifier: GPL-2.0-or-later
/* :lock, of a mutex that a thread of this process waits for and this thread holds. */
#include "golden.h"

#include <pthread.h>
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

/* Replace the number after @before, which is another one in each run. */
static void set_number(char *text, const char *before, const char *number)
{
	char rest[512], *at = strstr(text, before);

	assert_non_null(at);
	at += strlen(before);
	snprintf(rest, sizeof(rest), "%s", at + strspn(at, "0123456789abcdef"));
	sprintf(at, "%s%s", number, rest);
}

TEST(test_owner)
{
	struct profile *p = fake_profile(2, NULL);
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
	snprintf(address, sizeof(address), "mutex 0x%llx", (unsigned long long)(uintptr_t)&mutex);
	snprintf(owner, sizeof(owner), "1 waiter, held by thread %d (running)",
		 (int)syscall(SYS_gettid));
	if (!strstr(b.st.message, address) || !strstr(b.st.message, owner))
		fail_msg("%s, not %s, %s", b.st.message, address, owner);
	set_number(b.st.message, "mutex 0x", "55d0");
	set_number(b.st.message, "pid ", "4242");
	set_number(b.st.message, "thread ", "42");
	golden(&b, "lock-owner-150x30");
	pthread_mutex_unlock(&mutex);
	pthread_join(thread, NULL);
	type(&b, "$");
	if (!strstr(b.st.message, "no thread waits for a mutex at this moment (1 looked at)"))
		fail_msg("%s", b.st.message);
	bench_fini(&b);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
