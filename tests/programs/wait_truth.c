// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Known waits: one thread or more for each kind, each with its clocks around its waits.
 *
 * wait_truth SECONDS OUT FILE: writes a line for each thread to OUT: "tid kind wait_ns wall_ns
 * cpu_ns unsure_ns asked_ns switches stolen_ns". The thread "disk" syncs FILE. Busy threads share
 * one CPU: their wait is wall time less CPU time. The hypervisor took stolen_ns from all CPUs
 * together.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREADS 13

static pthread_mutex_t convoy_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t pool_wake = PTHREAD_COND_INITIALIZER;
static int pipe_fds[2], sync_fd;
static uint64_t end_ns;

struct thread {
	const char *kind;
	void (*once)(struct thread *t);
	pthread_t id;
	int tid;
	/* Its life begins between the first two, and ends between the last two. */
	uint64_t begin_ns, created_ns, last_ns, joined_ns;
	uint64_t wait_ns, cpu_ns;
	uint64_t asked_ns; /* of the sleeps that it waits for */
	uint64_t switches;
};

static uint64_t now_of(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* The time that the hypervisor took from all CPUs: the CPU clocks of threads are without it. */
static uint64_t steal_ns(void)
{
	FILE *f = fopen("/proc/stat", "r");
	unsigned long long ticks = 0;

	if (f && fscanf(f, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &ticks) != 1)
		ticks = 0;
	if (f)
		fclose(f);
	return ticks * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
}

static void nap_ms(long ms)
{
	const struct timespec ts = { 0, ms * 1000000 };

	nanosleep(&ts, NULL);
}

static void compute_ms(uint64_t ms)
{
	uint64_t end = now_of(CLOCK_THREAD_CPUTIME_ID) + ms * 1000000;

	while (now_of(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

/* The holder sleeps and computes: the others wait for the lock. */
static __attribute__((noinline)) void take_turn(struct thread *t)
{
	uint64_t from = now_of(CLOCK_MONOTONIC);

	pthread_mutex_lock(&convoy_lock);
	t->wait_ns += now_of(CLOCK_MONOTONIC) - from;
	nap_ms(30);
	compute_ms(1);
	pthread_mutex_unlock(&convoy_lock);
}

static __attribute__((noinline)) void read_message(struct thread *t)
{
	uint64_t from = now_of(CLOCK_MONOTONIC);
	char c;

	if (read(pipe_fds[0], &c, 1) != 1)
		abort();
	t->wait_ns += now_of(CLOCK_MONOTONIC) - from;
}

static __attribute__((noinline)) void wait_for_work(struct thread *t)
{
	uint64_t from = now_of(CLOCK_MONOTONIC);

	pthread_mutex_lock(&pool_lock);
	pthread_cond_wait(&pool_wake, &pool_lock);
	pthread_mutex_unlock(&pool_lock);
	t->wait_ns += now_of(CLOCK_MONOTONIC) - from;
}

/* It feeds the two above. */
static __attribute__((noinline)) void sleep_and_feed(struct thread *t)
{
	uint64_t from = now_of(CLOCK_MONOTONIC);

	nap_ms(10);
	t->wait_ns += now_of(CLOCK_MONOTONIC) - from;
	t->asked_ns += 10000000;
	if (write(pipe_fds[1], "x", 1) != 1)
		abort();
	pthread_mutex_lock(&pool_lock);
	pthread_cond_broadcast(&pool_wake);
	pthread_mutex_unlock(&pool_lock);
}

static __attribute__((noinline)) void sync_file(struct thread *t)
{
	uint64_t from, ran;

	if (pwrite(sync_fd, &t->wait_ns, sizeof(t->wait_ns), 0) < 0)
		abort();
	from = now_of(CLOCK_MONOTONIC);
	ran = now_of(CLOCK_THREAD_CPUTIME_ID);
	fsync(sync_fd);
	t->wait_ns += now_of(CLOCK_MONOTONIC) - from - (now_of(CLOCK_THREAD_CPUTIME_ID) - ran);
	nap_ms(1);
}

static __attribute__((noinline)) void compute(struct thread *t)
{
	for (volatile int i = 0; i < 1000000; i++)
		;
}

static void *run(void *arg)
{
	struct thread *t = arg;
	struct rusage usage;

	t->tid = (int)syscall(SYS_gettid);
	while (now_of(CLOCK_MONOTONIC) < end_ns)
		t->once(t);
	/* The last round of the threads that it feeds. */
	for (int i = 0; t->once == sleep_and_feed && i < 3; i++)
		sleep_and_feed(t);
	t->last_ns = now_of(CLOCK_MONOTONIC);
	t->cpu_ns = now_of(CLOCK_THREAD_CPUTIME_ID);
	getrusage(RUSAGE_THREAD, &usage);
	t->switches = (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
	return NULL;
}

int main(int argc, char **argv)
{
	struct thread threads[THREADS] = {
		{ "lock", take_turn },	  { "lock", take_turn },     { "lock", take_turn },
		{ "lock", take_turn },	  { "lock", take_turn },     { "lock", take_turn },
		{ "pipe", read_message }, { "cond", wait_for_work }, { "sleep", sleep_and_feed },
		{ "disk", sync_file },	  { "runq", compute },	     { "runq", compute },
		{ "runq", compute },
	};
	FILE *out = argc > 3 ? fopen(argv[2], "w") : NULL;
	uint64_t stolen_ns;
	cpu_set_t one;

	sync_fd = argc > 3 ? open(argv[3], O_RDWR | O_CREAT, 0600) : -1;
	if (!out || sync_fd < 0 || pipe(pipe_fds))
		return 2;
	stolen_ns = steal_ns();
	end_ns = now_of(CLOCK_MONOTONIC) + (uint64_t)(atof(argv[1]) * 1e9);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	for (int i = 0; i < THREADS; i++) {
		pthread_attr_t attr;

		pthread_attr_init(&attr);
		if (threads[i].once == compute)
			pthread_attr_setaffinity_np(&attr, sizeof(one), &one);
		threads[i].begin_ns = now_of(CLOCK_MONOTONIC);
		pthread_create(&threads[i].id, &attr, run, &threads[i]);
		threads[i].created_ns = now_of(CLOCK_MONOTONIC);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i].id, NULL);
		threads[i].joined_ns = now_of(CLOCK_MONOTONIC);
	}
	stolen_ns = steal_ns() - stolen_ns;
	for (int i = 0; i < THREADS; i++) {
		const struct thread *t = &threads[i];
		uint64_t wall_ns = t->last_ns - t->created_ns;
		uint64_t unsure_ns = t->joined_ns - t->last_ns + t->created_ns - t->begin_ns;

		fprintf(out, "%d %s %llu %llu %llu %llu %llu %llu %llu\n", t->tid, t->kind,
			(unsigned long long)(t->once == compute ? wall_ns - t->cpu_ns : t->wait_ns),
			(unsigned long long)wall_ns, (unsigned long long)t->cpu_ns,
			(unsigned long long)unsure_ns, (unsigned long long)t->asked_ns,
			(unsigned long long)t->switches, (unsigned long long)stolen_ns);
	}
	fclose(out);
	return 0;
}
