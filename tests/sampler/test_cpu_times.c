// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * CPU time by clocks: exact whatever the samples say; of threads, of tasks without samples, of
 * processes that begin and end, of other processes with the same number.
 * Live: waits for threads or processes.
 */
#include "sampler/internal.h"

#include "tests/prelude.h"

#include <time.h>
#include <unistd.h>
#include <urcu-qsbr.h>

#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/image/image.h"
#include "symbols/process/process.h"
#include "sampler/ring/ring.h"
#include "sampler/count/count.h"

#define PIDS	 64
#define SLICE_NS 100000000ULL
#define MS	 1000000ULL

/* Clocks of tasks by their number; 0: there is none. Thread @tid of process @pid is @tid. */
struct world {
	struct objects *objects;
	struct maps *maps;
	struct cpu_times *times;
	uint64_t process[PIDS], thread[PIDS];
	uint32_t task[PIDS]; /* id by tid */
	unsigned int nr_reads;
	uint64_t children[PIDS], late_ns;
	uint64_t busy_ns;
	uint32_t nr_cpus;
	pid_t forked;	     /* in the next slices; 0: none */
	double slices[4096]; /* by their number, as it was added */
	uint64_t now_ns;
	uint64_t all_ns; /* of the next tick, by events */
	bool threads, cgroup;
	/* Sums of what was counted. */
	double cpu[PIDS], rest[PIDS]; /* by tid, by pid */
	double all;
	uint32_t nr; /* counts */
};

static bool of_process(void *ctx, pid_t pid, uint64_t *ns)
{
	struct world *w = ctx;

	*ns = w->process[pid];
	return *ns;
}

static bool of_thread(void *ctx, pid_t pid, pid_t tid, uint64_t *ns)
{
	struct world *w = ctx;

	w->nr_reads++;
	*ns = w->thread[tid];
	return *ns;
}

static bool of_children(void *ctx, pid_t pid, uint64_t *ns)
{
	struct world *w = ctx;

	*ns = w->children[pid];
	return true;
}

static uint32_t list_noted(void *ctx, pid_t *pids, uint32_t max)
{
	struct world *w = ctx;
	uint32_t nr = 0;

	for (pid_t pid = 1; pid < PIDS && nr < max; pid++)
		if (w->process[pid])
			pids[nr++] = pid;
	return nr;
}

static uint64_t at_now(void *ctx)
{
	struct world *w = ctx;

	return w->now_ns + w->late_ns;
}

static void name_task(struct world *w, pid_t pid, pid_t tid)
{
	struct maps_hit hit;

	maps_publish(w->maps, w->now_ns, 1);
	maps_find(w->maps, maps_tasks(w->maps), pid, tid, w->now_ns, &hit);
	assert_int_not_equal(hit.task, TASK_UNKNOWN);
	w->task[tid] = hit.task;
}

/* Processes 3 to 9 are of before the start; 3 has the threads 30 and 31. */
static void open_world(struct world *w)
{
	memset(w, 0, sizeof(*w));
	w->now_ns = 1000 * SLICE_NS;
	assert_int_equal(objects_new(&w->objects), 0);
	assert_int_equal(maps_new(&w->maps, w->objects, 4096), 0);
	maps_no_proc(w->maps);
	for (pid_t pid = 3; pid < 10; pid++) {
		maps_on_comm(w->maps, pid, pid, "task", 4, true, 1);
		name_task(w, pid, pid);
	}
	for (pid_t tid = 30; tid < 32; tid++) {
		maps_on_fork(w->maps, 3, 3, tid, 3, 2);
		name_task(w, 3, tid);
	}
	w->times = cpu_times_new(&(struct cpu_times_clocks){ of_process, of_thread, w, of_children,
							     at_now, list_noted });
	assert_non_null(w->times);
}

static void close_world(struct world *w)
{
	cpu_times_free(w->times);
	maps_free(w->maps);
	objects_free(w->objects);
}

/* End a slice with one count for each of @tids, of @samples milliseconds each; a tick with @tick.
 */
static void slice(struct world *w, const pid_t *tids, const uint64_t *samples, uint32_t nr,
		  bool tick)
{
	struct count *counts = calloc(nr + 1, sizeof(*counts));
	const struct cpu_times_input in = { .maps = w->maps,
					    .begin_ns = w->now_ns,
					    .now_ns = w->now_ns + SLICE_NS,
					    .wait_slot = 1,
					    .threads = w->threads,
					    .cgroup = w->cgroup,
					    .tick = tick,
					    .all_ns = w->all_ns,
					    .busy_ns = w->busy_ns,
					    .nr_cpus = w->nr_cpus,
					    .parents = &w->forked,
					    .nr_parents = w->forked > 0 };
	uint32_t all = nr;

	for (uint32_t i = 0; i < nr; i++)
		counts[i] = (struct count){ 7,		w->task[tids[i]], 0,
					    samples[i], samples[i] * MS,  tables_slice(w->now_ns) };
	w->now_ns += SLICE_NS;
	cpu_times_add(w->times, &in, &counts, &all);
	for (uint32_t i = nr; i < all; i++) {
		const struct task *task = maps_task(w->maps, counts[i].task);

		assert_int_equal(counts[i].stack, STACK_NONE);
		assert_int_equal(counts[i].count, 0);
		assert_true(counts[i].event == PROFILE_CPU || counts[i].event == PROFILE_CPU_REST);
		w->slices[counts[i].slice % 4096] += (double)counts[i].weight / MS;
		if (counts[i].task != TASK_UNKNOWN)
			*(counts[i].event == PROFILE_CPU
				  ? &w->cpu[task->tid]
				  : &w->rest[task->pid]) += (double)counts[i].weight / MS;
		w->all += (double)counts[i].weight / MS;
	}
	w->nr += all - nr;
	free(counts);
}

#define SLICE(w, tick, ...)                                                                        \
	slice((w), (const pid_t[]){ __VA_ARGS__ }, (const uint64_t[8]){ 1, 1, 1, 1, 1, 1, 1, 1 },  \
	      sizeof((const pid_t[]){ __VA_ARGS__ }) / sizeof(pid_t), (tick))

/* A task in short pieces has a third of the samples that its time is worth. */
static void test_short_pieces(void **state)
{
	struct world w;

	open_world(&w);
	w.process[4] = 5000 * MS;
	SLICE(&w, false, 4);
	/* It was there before: its first slice is by samples. */
	assert_float_equal(w.cpu[4], 1, 0.01);
	for (int i = 0; i < 100; i++) {
		w.process[4] += 3 * MS;
		SLICE(&w, i % 10 == 9, 4);
	}
	assert_float_equal(w.cpu[4], 301, 0.01);
	assert_float_equal(w.all, 301, 0.01);
	assert_int_equal(w.nr_reads, 0); /* of one thread */
	close_world(&w);
}

/* Time of slices without a sample is counted at the end of the tick. */
static void test_without_samples(void **state)
{
	struct world w;

	open_world(&w);
	w.process[4] = 10 * MS;
	SLICE(&w, false, 4);
	w.process[4] += 20 * MS;
	slice(&w, NULL, NULL, 0, false);
	assert_float_equal(w.cpu[4], 1, 0.01);
	slice(&w, NULL, NULL, 0, true);
	assert_float_equal(w.cpu[4], 21, 0.01);
	/* After a minute it is forgotten; then it begins again, by samples. */
	for (int i = 0; i < 601; i++)
		slice(&w, NULL, NULL, 0, true);
	w.process[4] += 50 * MS;
	slice(&w, NULL, NULL, 0, true);
	SLICE(&w, true, 4);
	assert_float_equal(w.cpu[4], 22, 0.01);
	close_world(&w);
}

/*
 * A task that runs for a moment in each tick has one count in it, not one for each slice, and over
 * time all slices have the same.
 */
static void test_few_counts(void **state)
{
	double at[20] = { 0 };
	struct world w;

	open_world(&w);
	w.process[4] = 10 * MS;
	SLICE(&w, true, 4);
	memset(w.slices, 0, sizeof(w.slices));
	w.nr = 0;
	for (int i = 0; i < 40; i++) {
		w.process[4] += 1 * MS;
		for (int k = 1; k <= 10; k++)
			slice(&w, NULL, NULL, 0, k == 10);
	}
	assert_in_range(w.nr, 40, 60);
	for (uint32_t i = 0; i < ARRAY_SIZE(w.slices); i++)
		at[i % 20] += w.slices[i];
	for (uint32_t i = 0; i < ARRAY_SIZE(at); i++)
		assert_float_equal(at[i], 2, 1.01);
	/* One that runs for long is in each slice. */
	memset(w.slices, 0, sizeof(w.slices));
	w.process[4] += 500 * MS;
	for (int k = 1; k <= 10; k++)
		slice(&w, NULL, NULL, 0, k == 10);
	for (uint32_t i = 0; i < 20; i++)
		assert_float_equal(w.slices[(w.now_ns / COUNTS_SLICE_NS - 20 + i) % 4096], 25, 0.1);
	close_world(&w);
}

/* Threads have clocks; the time of threads without samples is that of the process. */
static void test_threads(void **state)
{
	struct world w;

	open_world(&w);
	w.process[3] = 100 * MS;
	w.thread[3] = 10 * MS;
	w.thread[30] = 20 * MS;
	w.thread[31] = 30 * MS;
	SLICE(&w, true, 3, 30, 31);
	memset(w.cpu, 0, sizeof(w.cpu));
	w.rest[3] = 0;
	for (int i = 0; i < 100; i++) {
		w.thread[3] += 1 * MS;
		w.thread[30] += 5 * MS;
		w.thread[31] += 2 * MS;
		w.process[3] += 10 * MS;
		/* 31 has a sample now and then. */
		if (i % 10 == 9)
			SLICE(&w, true, 3, 30, 31);
		else
			SLICE(&w, false, 3, 30);
	}
	assert_float_equal(w.cpu[3], 100, 0.01);
	assert_float_equal(w.cpu[30], 500, 0.01);
	assert_float_equal(w.cpu[31], 200, 0.01);
	assert_float_equal(w.rest[3], 200, 0.01);
	close_world(&w);
}

/* Without clocks of threads, these share the time of the process by samples. */
static void test_no_thread_clocks(void **state)
{
	struct world w;

	open_world(&w);
	w.process[3] = 100 * MS;
	SLICE(&w, true, 3, 30);
	memset(w.cpu, 0, sizeof(w.cpu));
	w.rest[3] = 0;
	w.process[3] += 40 * MS;
	slice(&w, (const pid_t[]){ 3, 30 }, (const uint64_t[]){ 1, 3 }, 2, true);
	assert_float_equal(w.cpu[3], 10, 0.01);
	assert_float_equal(w.cpu[30], 30, 0.01);
	assert_float_equal(w.rest[3], 0, 0.01);
	close_world(&w);
}

/* A thread for each request, that ends: the process has its time, whatever the samples stand for.
 */
static void test_threads_that_end(void **state)
{
	struct world w;

	open_world(&w);
	w.process[3] = 100 * MS;
	w.thread[3] = 10 * MS;
	SLICE(&w, true, 3, 30);
	memset(w.cpu, 0, sizeof(w.cpu));
	w.rest[3] = w.all = 0;
	for (int i = 0; i < 100; i++) {
		w.process[3] += 3 * MS;
		w.thread[3] += 1 * MS;
		/* 30 and 31 have no clock any more; their samples stand for 8 ms. */
		slice(&w, (const pid_t[]){ 3, 30, 31 }, (const uint64_t[]){ 1, 4, 4 }, 3,
		      i % 10 == 9);
	}
	assert_float_equal(w.cpu[3], 100, 0.1);
	assert_float_equal(w.cpu[30], 100, 0.1);
	assert_float_equal(w.all, 300, 10);
	close_world(&w);
}

/* Single threads are sampled: other threads of the process are not in the time. */
static void test_threads_alone(void **state)
{
	struct world w;

	open_world(&w);
	w.threads = true;
	w.process[3] = 100 * MS;
	w.thread[30] = 20 * MS;
	SLICE(&w, true, 30);
	w.process[3] += 90 * MS;
	w.thread[30] += 7 * MS;
	SLICE(&w, true, 30);
	assert_float_equal(w.all, 8, 0.01);
	assert_float_equal(w.cpu[30], 8, 0.01);
	close_world(&w);
}

/* A process that begins in a slice has all of its time in it; one that ends its samples. */
static void test_begin_and_end(void **state)
{
	struct world w;

	open_world(&w);
	w.now_ns += SLICE_NS;
	maps_on_fork(w.maps, 40, 4, 40, 4, w.now_ns + 1);
	w.now_ns += 2;
	name_task(&w, 40, 40);
	w.now_ns -= 2;
	w.process[40] = 30 * MS;
	SLICE(&w, false, 40);
	assert_float_equal(w.cpu[40], 30, 0.01);
	w.process[40] += 10 * MS;
	SLICE(&w, false, 40);
	w.process[40] = 0;
	slice(&w, (const pid_t[]){ 40 }, (const uint64_t[]){ 6 }, 1, true);
	assert_float_equal(w.cpu[40], 46, 0.01);
	/* It is forgotten: another process with its number begins like all. */
	w.process[40] = 7000 * MS;
	SLICE(&w, true, 40);
	assert_float_equal(w.cpu[40], 47, 0.01);
	close_world(&w);
}

/* Another process got the number between two slices: its clock is behind. */
static void test_number_used_again(void **state)
{
	struct world w;

	open_world(&w);
	w.process[4] = 9000 * MS;
	SLICE(&w, true, 4);
	w.process[4] = 4 * MS;
	SLICE(&w, true, 4);
	assert_float_equal(w.cpu[4], 2, 0.01);
	w.process[4] += 8 * MS;
	SLICE(&w, true, 4);
	assert_float_equal(w.cpu[4], 10, 0.01);
	close_world(&w);
}

/* Time of all tasks that no clock has is of processes that ended, also if none was sampled. */
static void test_time_left(void **state)
{
	struct world w;

	open_world(&w);
	w.process[4] = 50 * MS;
	w.all_ns = 1;
	SLICE(&w, true, 4, 5);
	memset(w.cpu, 0, sizeof(w.cpu));
	w.all = 0;
	/* 4 ran for 30 ms, 5 has ended after 1 ms by its samples; all ran for 70 ms. */
	w.process[4] += 30 * MS;
	w.all_ns = 70 * MS;
	SLICE(&w, true, 4, 5);
	assert_float_equal(w.cpu[4], 30, 0.01);
	assert_float_equal(w.all, 70, 2.1); /* the first tick was ahead by 2 ms */
	assert_float_equal(w.cpu[5], 40, 2.1);
	w.process[4] += 10 * MS;
	w.all_ns = 25 * MS;
	SLICE(&w, true, 4);
	assert_float_equal(w.cpu[4], 40, 0.01);
	assert_float_equal(w.all, 95, 2.1);
	/* Events that are read before clocks are behind: the next tick makes up for it. */
	w.all = 0;
	w.process[4] += 15 * MS;
	w.all_ns = 10 * MS;
	SLICE(&w, true, 4);
	w.process[4] += 5 * MS;
	w.all_ns = 10 * MS;
	SLICE(&w, true, 4);
	assert_float_equal(w.all, 20, 0.01);
	close_world(&w);
}

/* The time while nothing was sampled is of no slice; nor is that of an earlier target. */
static void test_restart(void **state)
{
	struct world w;

	open_world(&w);
	w.process[4] = 10 * MS;
	SLICE(&w, true, 4);
	w.process[4] += 5000 * MS;
	cpu_times_restart(w.times);
	w.process[4] += 3 * MS;
	SLICE(&w, true, 4);
	assert_float_equal(w.cpu[4], 4, 0.01);
	cpu_times_restart(w.times);
	w.process[4] += 500 * MS;
	slice(&w, NULL, NULL, 0, true);
	assert_float_equal(w.cpu[4], 4, 0.01);
	close_world(&w);
}

/* Children that live shorter than a sample: their parent has their time, less what was counted. */
static void test_short_children(void **state)
{
	uint64_t birth_ns;
	pid_t parent;
	struct world w;

	open_world(&w);
	/* The parent has waited for children before; 5 is one of its children that has ended. */
	w.process[4] = 50 * MS;
	w.children[4] = 9000 * MS;
	w.forked = 4;
	w.busy_ns = 1000 * MS;
	maps_on_fork(w.maps, 40, 4, 40, 4, w.now_ns);
	name_task(&w, 40, 40);
	SLICE(&w, true, 4);
	memset(w.cpu, 0, sizeof(w.cpu));
	w.all = 0;
	/* One clock tick says nothing. */
	w.children[4] += 10 * MS;
	slice(&w, NULL, NULL, 0, true);
	assert_float_equal(w.all, 0, 0.01);
	w.children[4] += 40 * MS;
	slice(&w, NULL, NULL, 0, true);
	assert_float_equal(w.all, 50, 0.01);
	/* By the samples of 40, 6 ms were counted; it has the rest of the 80 ms. */
	w.children[4] += 80 * MS;
	slice(&w, (const pid_t[]){ 40 }, (const uint64_t[]){ 6 }, 1, true);
	assert_float_equal(w.all, 130, 0.01);
	assert_float_equal(w.cpu[40], 80, 0.01);
	/* More than the CPUs were busy for: it ran before. */
	w.children[4] += 70000 * MS;
	w.busy_ns = 60 * MS;
	slice(&w, NULL, NULL, 0, true);
	assert_float_equal(w.all, 190, 0.01);
	slice(&w, NULL, NULL, 0, true);
	assert_float_equal(w.all, 190, 0.01);
	/* 41 had 30 of the 90 ms, by its samples, and is forgotten before the tick. */
	w.busy_ns = 1000 * MS;
	maps_on_fork(w.maps, 41, 4, 41, 4, w.now_ns);
	name_task(&w, 41, 41);
	maps_on_exit(w.maps, 41, 41, w.now_ns);
	w.now_ns += SLICE_NS;
	maps_publish(w.maps, w.now_ns, 1);
	assert_false(maps_birth(w.maps, 41, w.now_ns, &birth_ns, &parent));
	w.children[4] += 90 * MS;
	slice(&w, (const pid_t[]){ 41 }, (const uint64_t[]){ 30 }, 1, true);
	assert_float_equal(w.all, 280, 0.01);
	close_world(&w);
}

/* The same with events of the tasks alone, which do not see all of a fork and of an exit. */
static void test_short_children_of_events(void **state)
{
	struct world w;

	open_world(&w);
	w.process[4] = 50 * MS;
	w.forked = 4;
	w.all_ns = 1;
	SLICE(&w, true, 4);
	w.all = 0;
	for (int i = 0; i < 100; i++) {
		w.all_ns = 22 * MS;
		w.children[4] += 30 * MS;
		slice(&w, NULL, NULL, 0, true);
	}
	assert_float_equal(w.all, 3000, 35);
	/* Not more than twice as much. */
	w.all = 0;
	for (int i = 0; i < 100; i++) {
		w.all_ns = 11 * MS;
		w.children[4] += 90 * MS;
		slice(&w, NULL, NULL, 0, true);
	}
	assert_float_equal(w.all, 2200, 35);
	/* Children that nobody waits for have the time of events. */
	w.all = 0;
	for (int i = 0; i < 100; i++)
		slice(&w, NULL, NULL, 0, true);
	assert_float_equal(w.all, 1100, 35);
	close_world(&w);
}

/* A process outside of the cgroup that forks, and its child, are none of ours. */
static void test_cgroup(void **state)
{
	struct world w;

	open_world(&w);
	w.cgroup = true;
	w.process[4] = w.process[5] = 50 * MS;
	w.all_ns = 10 * MS;
	SLICE(&w, true, 4);
	w.all = 0;
	for (int i = 0; i < 10; i++) {
		w.forked = 5;
		w.process[4] += 10 * MS;
		w.process[5] += 30 * MS;
		w.children[5] += 50 * MS;
		slice(&w, NULL, NULL, 0, true);
	}
	assert_float_equal(w.all, 100, 0.01);
	w.all = 0;
	w.forked = 4;
	w.children[4] += 20 * MS;
	w.all_ns = 20 * MS;
	slice(&w, NULL, NULL, 0, true);
	assert_float_equal(w.all, 20, 0.01);
	close_world(&w);
}

/* A grandchild that has ended: its counted time is not counted again. */
static void test_grandchildren(void **state)
{
	struct world w;

	open_world(&w);
	w.busy_ns = 100000 * MS;
	w.process[4] = 50 * MS;
	w.forked = 4;
	maps_on_fork(w.maps, 40, 4, 40, 4, w.now_ns);
	maps_on_fork(w.maps, 41, 40, 41, 40, w.now_ns);
	name_task(&w, 40, 40);
	name_task(&w, 41, 41);
	w.process[40] = 10 * MS;
	w.process[41] = 700 * MS;
	SLICE(&w, true, 4, 40, 41);
	w.all = 0;
	w.process[41] += 100 * MS;
	SLICE(&w, true, 4, 41);
	assert_float_equal(w.all, 100, 0.01);
	/* 41 ends, then 40, after 5 ms and 90 ms. */
	w.process[41] = 0;
	w.forked = 40;
	w.children[40] = 805 * MS;
	w.process[40] = 100 * MS;
	slice(&w, (const pid_t[]){ 41 }, (const uint64_t[]){ 5 }, 1, true);
	assert_float_equal(w.all, 195, 0.01);
	w.process[40] = 0;
	w.children[4] = 905 * MS;
	slice(&w, NULL, NULL, 0, true);
	slice(&w, NULL, NULL, 0, true);
	assert_float_equal(w.all, 195, 0.01);
	close_world(&w);
}

/* The first tick has all time since the begin, of a process and of its children. */
static void test_first_tick(void **state)
{
	struct world w;

	for (int events = 0; events < 2; events++) {
		open_world(&w);
		w.process[4] = 5000 * MS;
		w.children[4] = 9000 * MS;
		cpu_times_restart(w.times);
		w.forked = 4;
		w.process[4] += 300 * MS;
		w.children[4] += 500 * MS;
		w.all_ns = events ? 600 * MS : 0;
		w.busy_ns = 2000 * MS;
		SLICE(&w, true, 4);
		assert_float_equal(w.cpu[4], 300, 0.01);
		assert_float_equal(w.all, 800, 0.01);
		close_world(&w);
	}
}

/* A process without samples and forks for long is counted from then on when it has some again. */
static void test_comes_back(void **state)
{
	struct world w;

	open_world(&w);
	w.busy_ns = 100000 * MS;
	maps_on_fork(w.maps, 40, 4, 40, 4, w.now_ns + 1);
	w.now_ns += 2;
	name_task(&w, 40, 40);
	w.now_ns -= 2;
	w.forked = 40;
	w.process[40] = 10 * MS;
	w.children[40] = 600 * MS;
	SLICE(&w, true, 40);
	assert_float_equal(w.all, 610, 0.01);
	w.forked = 0;
	for (int i = 0; i < 700; i++)
		slice(&w, NULL, NULL, 0, true);
	w.forked = 40;
	w.process[40] += 20 * MS;
	w.children[40] += 50 * MS;
	SLICE(&w, true, 40);
	assert_float_equal(w.all, 680, 0.01);
	close_world(&w);
}

/* Processes of 0.4 ms without a parent: some have a sample, of 1 ms. */
static void test_orphans(void **state)
{
	struct world w;

	open_world(&w);
	SLICE(&w, true, 4);
	w.all = 0;
	for (pid_t pid = 40; pid < PIDS; pid++) {
		maps_on_fork(w.maps, pid, 9, pid, 9, w.now_ns + 1);
		w.now_ns += 2;
		name_task(&w, pid, pid);
		w.now_ns -= 2;
		w.process[pid] = MS * 2 / 5;
		w.busy_ns = MS;
		SLICE(&w, true, pid);
		w.process[pid] = 0;
	}
	assert_float_equal(w.all, PIDS - 40, 1.01); /* the first tick was ahead by 1 ms */
	close_world(&w);
}

/* The begin is in the middle of a slice: that has half of its time at most. */
static void test_half_a_slice(void **state)
{
	struct world w;

	open_world(&w);
	w.nr_cpus = 2;
	w.now_ns += COUNTS_SLICE_NS / 2;
	w.process[4] = 1000 * MS;
	cpu_times_restart(w.times);
	w.process[4] += 5000 * MS;
	SLICE(&w, true, 4);
	assert_float_equal(w.all, 200, 0.01);
	assert_float_equal(w.slices[2000], 50, 0.01);
	assert_float_equal(w.slices[2001], 100, 0.01);
	assert_float_equal(w.slices[2002], 50, 0.01);
	close_world(&w);
}

/* Samples that are read late, of before the clock was read: the clock has their time. */
static void test_late_samples(void **state)
{
	struct world w;
	struct count *counts;
	uint32_t nr = 2;
	double ms = 0;

	open_world(&w);
	w.process[4] = 5000 * MS;
	SLICE(&w, false, 4);
	w.process[4] += 300 * MS;
	w.now_ns += 2 * SLICE_NS;
	SLICE(&w, false, 4);
	w.process[4] = 0;
	counts = calloc(nr, sizeof(*counts));
	counts[0] =
		(struct count){ 7, w.task[4], 0, 80, 80 * MS, tables_slice(w.now_ns - SLICE_NS) };
	counts[1] = (struct count){ 7, w.task[4], 0, 30, 30 * MS, tables_slice(w.now_ns) };
	cpu_times_add(w.times,
		      &(struct cpu_times_input){ .maps = w.maps,
						 .begin_ns = w.now_ns,
						 .now_ns = w.now_ns + SLICE_NS,
						 .wait_slot = 1 },
		      &counts, &nr);
	for (uint32_t i = 2; i < nr; i++)
		ms += (double)counts[i].weight / MS;
	assert_float_equal(ms, 30, 0.01);
	free(counts);
	close_world(&w);
}

/* The builder has no CPU before it reads the clocks: no slice has more than all of its CPUs. */
static void test_late_clocks(void **state)
{
	struct world w;
	double sum = 0;

	open_world(&w);
	w.nr_cpus = 2;
	w.process[4] = w.process[5] = 50 * MS;
	SLICE(&w, true, 4, 5);
	memset(w.slices, 0, sizeof(w.slices));
	for (int i = 0; i < 60; i++) {
		uint64_t ms = 100;

		/* 3 s pass; then an estimate by samples is far too high. */
		if (i == 20)
			ms += 3000;
		w.late_ns = (ms - 100) * MS;
		w.process[4] += ms * MS;
		w.process[5] += ms * MS;
		slice(&w, (const pid_t[]){ 4, 5, 6 },
		      (const uint64_t[]){ 1, 1, i == 40 ? 5000 : 0 }, 3, i % 10 == 9);
		w.now_ns += w.late_ns;
	}
	for (int i = 0; i < 4096; i++) {
		assert_true(w.slices[i] < 200.01);
		sum += w.slices[i];
	}
	/* The first slice, by samples, had place for some of the estimate. */
	assert_true(sum > 2 * 9000 - 1 && sum < 2 * 9000 + 200);
	close_world(&w);
}

/* After a restart, all time is of slices from then on. */
static void test_restart_slices(void **state)
{
	struct world w;
	uint64_t begin;

	open_world(&w);
	w.process[4] = 10 * MS;
	SLICE(&w, true, 4);
	w.now_ns += 50 * SLICE_NS;
	begin = w.now_ns / SLICE_NS;
	cpu_times_restart(w.times);
	memset(w.slices, 0, sizeof(w.slices));
	w.process[4] += 60 * MS;
	SLICE(&w, true, 4);
	for (uint64_t i = 0; i < 4096; i++)
		assert_true(i >= begin || w.slices[i] < 0.001);
	close_world(&w);
}

/* Property: threads have their time, and the process the sum, whichever are sampled when. */
static void test_random(void **state)
{
	struct world w;
	double process = 0, busy[3] = { 0 };
	static const pid_t tids[] = { 3, 30, 31 };

	open_world(&w);
	srand(815);
	w.process[3] = 1000 * MS;
	for (int i = 0; i < 3; i++)
		w.thread[tids[i]] = 100 * MS;
	SLICE(&w, true, 3, 30, 31);
	memset(w.cpu, 0, sizeof(w.cpu));
	w.rest[3] = w.all = 0;
	for (int n = 0; n < 1000; n++) {
		pid_t sampled[3];
		uint32_t nr = 0;

		for (int i = 0; i < 3; i++) {
			uint64_t ns = (uint64_t)(rand() % 1000) * 1000 * (uint64_t)(i + 1);

			w.thread[tids[i]] += ns;
			w.process[3] += ns;
			busy[i] += (double)ns / MS;
			process += (double)ns / MS;
			if (rand() % 4 < i + 1)
				sampled[nr++] = tids[i];
		}
		slice(&w, sampled, (const uint64_t[]){ 1, 1, 1 }, nr, n % 10 == 9);
	}
	for (int i = 0; i < 3; i++)
		assert_float_equal(w.cpu[tids[i]], busy[i], 0.1);
	assert_float_equal(w.all, process, 0.1);
	close_world(&w);
}

/* Return the CPU time that is counted for this process in a slice with a sample of 1 ms, in ms. */
static double own_slice(struct cpu_times *times, struct world *w, uint32_t task)
{
	const struct cpu_times_input in = { .maps = w->maps, .now_ns = w->now_ns, .wait_slot = -1 };
	struct count *counts = calloc(1, sizeof(*counts));
	uint32_t nr = 1;
	double ms = 0;

	counts[0] = (struct count){ 7, task, 0, 1, MS, tables_slice(w->now_ns) };
	cpu_times_add(times, &in, &counts, &nr);
	assert_true(nr > 1);
	/* In pieces, by slice. */
	for (uint32_t i = 1; i < nr; i++)
		ms += (double)counts[i].weight / MS;
	free(counts);
	return ms;
}

static uint64_t own_ns(void)
{
	return time_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* The clock of the kernel, of this process. */
static void test_kernel(void **state)
{
	struct cpu_times *times = cpu_times_new(NULL);
	struct maps_hit hit;
	struct world w;
	uint64_t begin_ns;
	double ms;

	open_world(&w);
	maps_on_comm(w.maps, getpid(), getpid(), "self", 4, true, 1);
	maps_publish(w.maps, w.now_ns, 1);
	maps_find(w.maps, maps_tasks(w.maps), getpid(), getpid(), w.now_ns, &hit);
	own_slice(times, &w, hit.task);
	begin_ns = own_ns();
	while (own_ns() < begin_ns + 200 * MS)
		;
	ms = own_slice(times, &w, hit.task);
	assert_true(ms > 190 && ms < (double)(own_ns() - begin_ns) / MS + 20);
	cpu_times_free(times);
	close_world(&w);
}

static int start(void **state)
{
	rcu_register_thread();
	return 0;
}

static int end(void **state)
{
	rcu_unregister_thread();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_pieces),
		cmocka_unit_test(test_few_counts),
		cmocka_unit_test(test_without_samples),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_no_thread_clocks),
		cmocka_unit_test(test_threads_alone),
		cmocka_unit_test(test_begin_and_end),
		cmocka_unit_test(test_number_used_again),
		cmocka_unit_test(test_restart),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_time_left),
		cmocka_unit_test(test_threads_that_end),
		cmocka_unit_test(test_short_children),
		cmocka_unit_test(test_short_children_of_events),
		cmocka_unit_test(test_cgroup),
		cmocka_unit_test(test_grandchildren),
		cmocka_unit_test(test_first_tick),
		cmocka_unit_test(test_comes_back),
		cmocka_unit_test(test_orphans),
		cmocka_unit_test(test_half_a_slice),
		cmocka_unit_test(test_late_samples),
		cmocka_unit_test(test_late_clocks),
		cmocka_unit_test(test_restart_slices),
	};

	return cmocka_run_group_tests(tests, start, end);
}
