// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Processes, threads and mappings over time: from events, read from /proc, and found while both go
 * on.
 * Live: waits for threads or processes.
 */
#include "symbols/process/maps.c"

#include "tests/prelude.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/thread.h"
#include "tests/yardstick.h"
#include "symbols/image/image.h"
#include "symbols/script/script.h"

#define PAGE 4096ull
#define KEEP 1000ull
#define LATE (UINT64_MAX - 1)

static struct objects *objects;
static struct maps *maps;

static int setup(void **state)
{
	rcu_register_thread();
	return objects_new(&objects) || maps_new(&maps, objects, 4096) ? -1 : 0;
}

static int teardown(void **state)
{
	maps_free(maps);
	objects_free(objects);
	rcu_unregister_thread();
	return 0;
}

static void tell_mmap(pid_t pid, uint64_t start, uint64_t pages, const char *name, uint64_t ino,
		      uint64_t time)
{
	struct maps_mmap ev = {
		.pid = pid,
		.tid = pid,
		.start = start,
		.size = pages * PAGE,
		.pgoff = PAGE,
		.time_ns = time,
		.prot = PROT_READ | PROT_EXEC,
		.filename = name,
		.filename_size = strlen(name) + 1,
		.identity = { .maj = 8, .min = 1, .ino = ino },
	};

	maps_on_mmap(maps, &ev);
}

static void tell_comm(pid_t pid, pid_t tid, const char *comm, bool exec, uint64_t time)
{
	char padded[16] = "";

	memcpy(padded, comm, strlen(comm));
	maps_on_comm(maps, pid, tid, padded, sizeof(padded), exec, time);
}

static void publish(uint64_t now)
{
	maps_publish(maps, now, KEEP);
	reclaim_reader_done();
	rcu_quiescent_state();
}

static struct maps_hit find_at(pid_t pid, pid_t tid, uint64_t time)
{
	struct maps_hit hit;

	maps_find(maps, maps_tasks(maps), pid, tid, time, &hit);
	return hit;
}

static const struct task *task_of(pid_t pid, pid_t tid, uint64_t time)
{
	return maps_task(maps, find_at(pid, tid, time).task);
}

/* The name of the mapping at @addr; "" for none. */
static const char *name_at(pid_t pid, uint64_t addr, uint64_t time)
{
	const struct mapping *m = space_find(find_at(pid, pid, time).space, addr, time);

	return m ? m->object->name.str : "";
}

static uint64_t offset_at(pid_t pid, uint64_t addr, uint64_t time)
{
	const struct mapping *m = space_find(find_at(pid, pid, time).space, addr, time);

	assert_non_null(m);
	assert_true(addr >= m->start && addr < m->end);
	return addr - m->start + m->offset;
}

/* A process complete by its exec at @time. */
static void tell_exec(pid_t pid, const char *comm, uint64_t time)
{
	tell_comm(pid, pid, comm, true, time);
	tell_mmap(pid, 0x400000, 16, comm, 1000 + (unsigned char)comm[0], time + 1);
}

static struct lang_desc *desc_new(const char *reason)
{
	struct lang_desc *desc = calloc(1, sizeof(*desc));

	atomic_init(&desc->refs, 1);
	desc->info.kind = LANG_NODE;
	desc->info.reason = reason;
	return desc;
}

/* Whichever file of an interpreter is described first: the one that can be read counts. */
TEST(test_described_twice, setup, teardown)
{
	struct maps_hit hit;

	tell_exec(7, "node", 10);
	publish(20);
	hit = find_at(7, 7, LATE);
	assert_null(hit.lang);
	maps_describe(maps, 7, hit.process, desc_new("unknown"));
	hit = find_at(7, 7, LATE);
	assert_string_equal(hit.lang->reason, "unknown");
	maps_describe(maps, 7, hit.process, desc_new("unknown as well"));
	assert_string_equal(find_at(7, 7, LATE).lang->reason, "unknown");
	maps_describe(maps, 7, hit.process, desc_new(NULL));
	assert_null(find_at(7, 7, LATE).lang->reason);
	assert_string_equal(hit.lang->reason, "unknown"); /* still in use */
	maps_describe(maps, 7, hit.process, desc_new("unknown"));
	assert_null(find_at(7, 7, LATE).lang->reason);
	/* A child has the description of its parent. */
	maps_on_fork(maps, 8, 7, 8, 7, 30);
	publish(40);
	assert_ptr_equal(find_at(8, 8, LATE).lang, find_at(7, 7, LATE).lang);
}

/* A thread of V8 that compiles is known by its name, in a process that runs V8 only. */
TEST(test_own_thread, setup, teardown)
{
	struct maps_hit hit;

	tell_exec(7, "node", 10);
	maps_on_fork(maps, 7, 7, 9, 7, 15);
	tell_comm(7, 9, "V8Worker", false, 16);
	publish(20);
	hit = find_at(7, 9, LATE);
	assert_int_equal(hit.own_thread, 0);
	maps_describe(maps, 7, hit.process, desc_new(NULL));
	assert_int_equal(find_at(7, 9, LATE).own_thread, LANG_VM);
	assert_int_equal(find_at(7, 7, LATE).own_thread, LANG_NO_FRAMES);
}

/* A file is found to be an interpreter after processes have mapped it. */
TEST(test_interpreter_late, setup, teardown)
{
	struct maps_interpreter in;
	struct object *object;
	uint32_t nr = 0;

	tell_exec(7, "service", 10);
	tell_exec(8, "service", 11);
	tell_exec(9, "another", 12);
	publish(20);
	assert_false(maps_next_interpreter(maps, &in));
	object = space_find(find_at(7, 7, LATE).space, 0x400000, LATE)->object;
	atomic_store(&object->loop, 1);
	for (int i = 0; i < 2; i++) /* noted once */
		maps_note_object(maps, object);
	while (maps_next_interpreter(maps, &in)) {
		assert_true(in.pid == 7 || in.pid == 8);
		assert_ptr_equal(in.mapping.object, object);
		assert_int_equal(in.mapping.start, 0x400000);
		object_put(in.mapping.object);
		nr++;
	}
	assert_int_equal(nr, 2);
	/* A process that maps it later. */
	tell_exec(10, "service", 30);
	publish(40);
	assert_true(maps_next_interpreter(maps, &in));
	assert_int_equal(in.pid, 10);
	object_put(in.mapping.object);
}

TEST(test_unknown, setup, teardown)
{
	struct maps_hit hit = find_at(77, 77, 5);

	assert_false(hit.known);
	assert_null(hit.space);
	assert_int_equal(hit.task, TASK_UNKNOWN);
	assert_int_equal(maps_task(maps, TASK_UNKNOWN)->pid, -1);
	assert_null(maps_task(maps, 4000));
	hit = find_at(0, 0, 5);
	assert_true(hit.known && hit.kernel_thread && !hit.space);
	assert_string_equal(maps_task(maps, hit.task)->comm.str, "swapper");
	assert_false(maps_ask(maps, 0, 5));
	assert_null(space_find(NULL, 1, 1));
}

TEST(test_exec_by_time, setup, teardown)
{
	const struct task *a, *b;

	tell_exec(10, "aaa", 100);
	tell_exec(10, "bbb", 200);
	assert_false(find_at(10, 10, 150).known); /* not published yet */
	publish(300);
	assert_true(find_at(10, 10, 150).known);
	assert_string_equal(name_at(10, 0x400123, 150), "aaa");
	assert_string_equal(name_at(10, 0x400123, 250), "bbb");
	assert_string_equal(name_at(10, 0x400123, 201), "bbb");
	assert_string_equal(name_at(10, 0x410000, 250), ""); /* just behind the end */
	assert_string_equal(name_at(10, 0x40ffff, 250), "bbb");
	assert_int_equal(offset_at(10, 0x400123, 250), PAGE + 0x123);
	a = task_of(10, 10, 150);
	b = task_of(10, 10, 250);
	assert_string_equal(a->comm.str, "aaa");
	assert_string_equal(b->comm.str, "bbb");
	assert_int_not_equal(a->process, b->process);
	assert_int_equal(b->start_ns, 200);
	/* Slightly before all that is known: the oldest. */
	assert_string_equal(task_of(10, 10, 50)->comm.str, "aaa");
	assert_int_equal(find_at(10, 10, 150).task, find_at(10, 10, 160).task);
	/* The old image is forgotten after the keep time, and only then. */
	publish(200 + KEEP);
	assert_string_equal(name_at(10, 0x400123, 150), "aaa");
	publish(201 + KEEP);
	assert_string_equal(task_of(10, 10, 150)->comm.str, "bbb");
	assert_string_equal(a->comm.str, "aaa"); /* tasks are kept */
}

TEST(test_comm_change, setup, teardown)
{
	struct maps_hit before, after;

	tell_exec(11, "java", 100);
	maps_on_fork(maps, 11, 11, 12, 11, 110);
	tell_comm(11, 12, "GC\033[31m", false, 120);
	tell_comm(11, 12, "GC\033[31m", false, 125);
	publish(130);
	assert_string_equal(task_of(11, 12, 115)->comm.str, "java");
	assert_string_equal(task_of(11, 12, 121)->comm.str, "GC\xc2\xb7[31m");
	before = find_at(11, 12, 115);
	after = find_at(11, 12, 121);
	assert_int_not_equal(before.task, after.task);
	assert_int_equal(find_at(11, 12, 126).task, after.task); /* the same name is no news */
	assert_int_equal(maps_task(maps, before.task)->process,
			 maps_task(maps, after.task)->process);
	/* A thread without a record is shown as the main one until it is read. */
	after = find_at(11, 13, 126);
	assert_true(after.known && after.ask);
	assert_int_equal(maps_task(maps, after.task)->tid, 11);
}

#define LOOPER 15

/* A process that does the same in a loop, one step each ns. */
struct loop {
	const char *steps; /* their name */
	void (*step)(uint64_t time);
	uint32_t nr;	  /* steps that are timed together */
	uint32_t rounds;  /* of @nr steps */
	uint32_t publish; /* after that number of steps */
};

/* Return the CPU time of one round, from @at on. */
static uint64_t round_ns(const struct loop *l, uint64_t *at)
{
	uint64_t begin_ns = time_thread_ns();

	for (uint64_t end = *at + l->nr; *at < end; ++*at) {
		l->step(*at);
		if (*at % l->publish == 0) {
			maps_publish(maps, *at, LATE); /* nothing is old enough to be forgotten */
			find_at(LOOPER, LOOPER, *at);
			rcu_quiescent_state();
		}
	}
	return time_thread_ns() - begin_ns;
}

/* Run @l beside a calm process: each round costs the same as the first. Return the time after. */
static uint64_t run_loop(const struct loop *l)
{
	uint64_t at = 200, first_ns, ns;

	tell_exec(LOOPER, "first", 100);
	tell_exec(16, "calm", 100);
	publish(110);
	first_ns = round_ns(l, &at);
	for (uint32_t i = 1; i < l->rounds; i++) {
		ns = round_ns(l, &at);
		if (ns > 5 * first_ns + 20000000)
			fail_msg("%u %s took %u us at first, after %u %s %u us", l->nr, l->steps,
				 (unsigned int)(first_ns / 1000), i * l->nr, l->steps,
				 (unsigned int)(ns / 1000));
	}
	maps_publish(maps, at, LATE);
	assert_string_equal(task_of(16, 16, at)->comm.str, "calm");
	return at;
}

static void rename_step(uint64_t time)
{
	char name[16];

	snprintf(name, sizeof(name), "n%u", (unsigned int)time);
	tell_comm(LOOPER, LOOPER, name, false, time);
}

/* A thread that renames itself in a loop: the 200,000th rename costs the same as the first ones. */
TEST(test_rename_storm, setup, teardown)
{
	static const struct loop renames = { "renames", rename_step, 2000, 100, 100 };
	uint64_t end = run_loop(&renames);
	struct maps_stats stats;
	char name[16];

	snprintf(name, sizeof(name), "n%u", (unsigned int)end - 1);
	assert_string_equal(task_of(LOOPER, LOOPER, end)->comm.str, name);
	maps_stats(maps, &stats);
	assert_true(stats.nr_names_dropped > renames.rounds * renames.nr - 300);
}

static void exec_step(uint64_t time)
{
	tell_exec(LOOPER, "loop", time);
}

static uint32_t looper_process(uint64_t time)
{
	return task_of(LOOPER, LOOPER, time)->process;
}

/* A process that executes programs in a loop: of each the last ones are known, at the same cost. */
TEST(test_exec_storm, setup, teardown)
{
	static const struct loop execs = { "execs", exec_step, 1000, 20, 20 };
	uint64_t end = run_loop(&execs);
	struct maps_stats stats;

	assert_string_equal(task_of(LOOPER, LOOPER, end)->comm.str, "loop");
	assert_int_not_equal(looper_process(end - 1), looper_process(end - 2));
	assert_int_not_equal(looper_process(end - 100), looper_process(end - 101));
	/* Too late: the oldest that is kept. */
	assert_int_equal(looper_process(300), looper_process(301));
	maps_stats(maps, &stats);
	assert_int_equal(stats.nr_processes, 3);
	assert_int_equal(stats.nr_programs_dropped, execs.rounds * execs.nr + 1 - INCARNATIONS_MAX);
}

/* Return the CPU time of telling and finding the processes @pids. */
static uint64_t processes_ns(const pid_t *pids, uint32_t nr)
{
	uint64_t begin_ns = time_thread_ns();

	for (uint32_t i = 0; i < nr; i++)
		tell_comm(pids[i], pids[i], "a", false, 100);
	publish(200);
	for (uint32_t i = 0; i < nr; i++)
		assert_true(find_at(pids[i], pids[i], 200).process);
	return time_thread_ns() - begin_ns;
}

#define CHAINED 4000u

/* Pids that hash_u64() has in one chain cost as much as others. */
TEST(test_chosen_pids, setup, teardown)
{
	pid_t others[CHAINED], chosen[CHAINED];
	uint64_t others_ns, chosen_ns;
	pid_t pid = 0;

	for (uint32_t i = 0; i < CHAINED; i++) {
		others[i] = 100000000 + (pid_t)i;
		do
			pid++;
		while (hash_u64((uint64_t)pid) & (PROCS_BUCKETS - 1));
		chosen[i] = pid;
	}
	others_ns = processes_ns(others, CHAINED);
	chosen_ns = processes_ns(chosen, CHAINED);
	print_message("%u us, chosen ones %u us\n", (unsigned int)(others_ns / 1000),
		      (unsigned int)(chosen_ns / 1000));
	assert_true(chosen_ns < 4 * others_ns + 10000000);
}

/* A recording may have any number of processes: some are known, with their last program. */
TEST(test_recorded_limit, setup, teardown)
{
	const pid_t nr = 300000;
	struct maps_stats stats;

	maps_no_proc(maps);
	for (pid_t pid = 1; pid <= nr; pid++) {
		tell_comm(pid, pid, "a", false, 100);
		if (pid % 1000 == 0)
			publish(200);
	}
	maps_stats(maps, &stats);
	assert_true(stats.nr_processes > 200000 && stats.nr_processes <= 1 << 18);
	assert_false(find_at(nr, nr, 200).process);
	assert_true(find_at(nr, nr, 200).full);
	assert_int_equal(find_at(nr, nr, 200).task, TASK_UNKNOWN);
	assert_string_equal(task_of(5, 5, 200)->comm.str, "a");
	tell_comm(5, 5, "next", true, 300);
	tell_comm(nr, nr, "none", true, 300);
	publish(400);
	assert_string_equal(task_of(5, 5, 400)->comm.str, "next");
	assert_false(find_at(nr, nr, 400).process);
	maps_stats(maps, &stats);
	assert_true(stats.nr_processes <= 1 << 18);
}

/* A limit for the test, and more than it has room for: a process is two nodes, a thread one. */
#define NODES	 (1 << 14)
#define FORKED	 9000
#define THREADED 17000

/* Fork children of process 1 in a recording, or threads. */
static void fork_recorded(bool threads)
{
	const pid_t last = threads ? THREADED : FORKED;

	maps_no_proc(maps);
	processes_limit(&maps->procs, NODES);
	tell_exec(1, "init", 100);
	for (pid_t id = 2; id <= last; id++) {
		maps_on_fork(maps, threads ? 1 : id, 1, id, 1, 110);
		if (id % 1000 == 0)
			publish(200);
	}
}

/* Processes that are only forked count as well, and so do their threads. */
TEST(test_recorded_forks, setup, teardown)
{
	struct maps_stats stats;

	fork_recorded(false);
	maps_stats(maps, &stats);
	assert_in_range(maps->procs.nr_nodes, NODES / 2, NODES);
	assert_in_range(stats.nr_processes, NODES / 4, NODES / 2);
	assert_string_equal(task_of(5, 5, 200)->comm.str, "init");
	assert_string_equal(name_at(5, 0x400000, 200), "init");
	assert_false(find_at(FORKED, FORKED, 200).process);
	assert_true(find_at(FORKED, FORKED, 200).full);
}

/* Of too many threads of one process, the last ones are shown as its first. */
TEST(test_recorded_threads, setup, teardown)
{
	fork_recorded(true);
	assert_in_range(maps->procs.nr_nodes, NODES / 2, NODES);
	assert_int_equal(task_of(1, 5, 200)->tid, 5);
	assert_int_equal(task_of(1, THREADED, 200)->tid, 1);
}

/* Programs of one process that map files, without a sample between them, leave as others do. */
TEST(test_recorded_programs, setup, teardown)
{
	const uint64_t nr = 40000, begin_ns = yardstick_cpu_ns();
	struct maps_stats stats;

	maps_no_proc(maps);
	for (uint64_t i = 1; i <= nr; i++)
		exec_step(10 * i);
	publish(10 * nr + 5);
	print_message("%u programs: %u ms\n", (unsigned int)nr,
		      (unsigned int)((yardstick_cpu_ns() - begin_ns) / 1000000));
	assert_true(yardstick_within(begin_ns, 1000));
	/* A thread each, and the idle task. */
	assert_in_range(maps->procs.nr_nodes, 2, 2 * INCARNATIONS_MAX + 2);
	assert_string_equal(name_at(LOOPER, 0x400000, 10 * nr + 1), "loop");
	assert_int_not_equal(looper_process(10 * nr), looper_process(10 * nr - 10));
	maps_stats(maps, &stats);
	assert_int_equal(stats.nr_programs_dropped, nr - INCARNATIONS_MAX);
	assert_in_range(stats.nr_spaces, 1, INCARNATIONS_MAX + 2);
}

/* Some renames are all kept; of many the latest is, and one every 10 ms. */
TEST(test_names_kept, setup, teardown)
{
	const uint64_t ms = 1000000;
	struct maps_stats stats;
	char name[16];

	tell_exec(17, "own", 100);
	for (uint64_t i = 1; i < 8; i++) {
		snprintf(name, sizeof(name), "early%u", (unsigned int)i);
		tell_comm(17, 17, name, false, 100 + i);
	}
	maps_publish(maps, 200, LATE);
	assert_string_equal(task_of(17, 17, 100)->comm.str, "own");
	assert_string_equal(task_of(17, 17, 104)->comm.str, "early4");
	assert_string_equal(task_of(17, 17, 200)->comm.str, "early7");
	for (uint64_t i = 1; i <= 1000; i++) {
		snprintf(name, sizeof(name), "n%u", (unsigned int)i);
		tell_comm(17, 17, name, false, i * ms);
	}
	maps_publish(maps, 1000 * ms, LATE);
	/* A record that arrives late goes before the latest name. */
	tell_comm(17, 17, "late", false, 1000 * ms - 1);
	maps_publish(maps, 1000 * ms, LATE);
	assert_string_equal(task_of(17, 17, 2000 * ms)->comm.str, "n1000");
	assert_string_equal(task_of(17, 17, 1000 * ms - 1)->comm.str, "late");
	for (uint64_t t = 955; t < 1000; t += 5) {
		unsigned int n = 0;

		assert_int_equal(sscanf(task_of(17, 17, t * ms)->comm.str, "n%u", &n), 1);
		assert_in_range(n, t - 11, t);
	}
	maps_stats(maps, &stats);
	assert_int_equal(stats.nr_names_dropped, 1001);
	/* Mappings that ended long before are not missed. */
	maps_publish(maps, 5000 * ms, 3000 * ms);
	for (uint64_t i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "slow%u", (unsigned int)i);
		tell_comm(17, 17, name, false, (5000 + 1000 * i) * ms);
		maps_publish(maps, (5000 + 1000 * i) * ms, 3000 * ms);
	}
	maps_stats(maps, &stats);
	assert_int_equal(stats.nr_names_dropped, 1001);
	assert_string_equal(task_of(17, 17, UINT64_MAX)->comm.str, "slow19");
}

TEST(test_fork, setup, teardown)
{
	uint64_t spaces;
	struct maps_stats stats;

	tell_exec(20, "sh", 100);
	publish(110);
	maps_stats(maps, &stats);
	spaces = stats.nr_spaces;
	maps_on_fork(maps, 21, 20, 21, 20, 120);
	publish(125);
	maps_stats(maps, &stats);
	assert_int_equal(stats.nr_spaces, spaces); /* shared */
	assert_true(find_at(21, 21, 121).known);
	assert_ptr_equal(find_at(21, 21, 121).space, find_at(20, 20, 121).space);
	assert_string_equal(name_at(21, 0x400000, 121), "sh");
	assert_string_equal(task_of(21, 21, 121)->comm.str, "sh");
	assert_int_not_equal(task_of(21, 21, 121)->process, task_of(20, 20, 121)->process);
	/* Then they differ. */
	tell_mmap(21, 0x7000000, 1, "/lib/child.so", 5, 130);
	tell_mmap(20, 0x7000000, 1, "/lib/parent.so", 6, 131);
	publish(140);
	assert_string_equal(name_at(21, 0x7000000, 135), "child.so");
	assert_string_equal(name_at(20, 0x7000000, 135), "parent.so");
	/* A mapping of the parent in the same drain, but before the fork, is also the child's. */
	tell_mmap(20, 0x8000000, 1, "/lib/early.so", 7, 150);
	maps_on_fork(maps, 22, 20, 22, 20, 151);
	tell_mmap(20, 0x9000000, 1, "/lib/late.so", 8, 152);
	publish(160);
	assert_string_equal(name_at(22, 0x8000000, 155), "early.so");
	assert_string_equal(name_at(22, 0x9000000, 155), "");
	assert_string_equal(name_at(20, 0x9000000, 155), "late.so");
	/* A child of someone unknown must be read. */
	maps_on_fork(maps, 24, 23, 24, 23, 170);
	publish(180);
	assert_false(find_at(24, 24, 175).known);
}

/* Mappings that were replaced before a fork are of the parent only. */
TEST(test_fork_past, setup, teardown)
{
	const uint64_t at = 0x7000000;

	tell_exec(26, "sh", 100);
	tell_mmap(26, at, 1, "/first.so", 5, 110);
	tell_mmap(26, at, 1, "/second.so", 6, 120);
	maps_on_fork(maps, 27, 26, 27, 26, 130);
	tell_mmap(26, at, 1, "/third.so", 7, 140);
	publish(150);
	assert_string_equal(name_at(26, at, 115), "first.so");
	assert_string_equal(name_at(26, at, 125), "second.so");
	assert_string_equal(name_at(26, at, 145), "third.so");
	assert_string_equal(name_at(27, at, 145), "second.so");
	assert_string_equal(name_at(27, at, 115), "");
	/* Also when they were published before the fork; children without a change share a space.
	 */
	maps_on_fork(maps, 28, 26, 28, 26, 160);
	maps_on_fork(maps, 29, 26, 29, 26, 161);
	publish(170);
	assert_string_equal(name_at(26, at, 125), "second.so");
	assert_string_equal(name_at(28, at, 165), "third.so");
	assert_string_equal(name_at(28, at, 125), "");
	assert_ptr_equal(find_at(28, 28, 165).space, find_at(29, 29, 165).space);
	/* A fork that is reported late needs the mapping that was replaced after it. */
	maps_on_fork(maps, 25, 26, 25, 26, 125);
	publish(180);
	assert_string_equal(name_at(25, at, 130), "second.so");
}

/* Above the limit of bytes children have the space that their parent had before the drain. */
TEST(test_fork_limit, setup, teardown)
{
	struct maps_stats stats;

	tell_exec(26, "sh", 100);
	publish(110);
	atomic_fetch_add(&maps->spaces.bytes, SPACE_BYTES_MAX);
	tell_mmap(26, 0x7000000, 1, "/late.so", 5, 120);
	maps_on_fork(maps, 27, 26, 27, 26, 130);
	/* One without any. */
	tell_exec(28, "ls", 131);
	maps_on_fork(maps, 29, 28, 29, 28, 140);
	publish(150);
	atomic_fetch_sub(&maps->spaces.bytes, SPACE_BYTES_MAX);
	assert_string_equal(name_at(26, 0x7000000, 145), "late.so");
	assert_string_equal(name_at(27, 0x7000000, 145), "");
	assert_string_equal(name_at(27, 0x400000, 145), "sh");
	assert_string_equal(name_at(29, 0x400000, 145), "ls");
	maps_stats(maps, &stats);
	assert_int_equal(stats.nr_forks_shared, 1);
}

/* Two CPUs' rings: the child's exec is read before its fork. */
TEST(test_out_of_order, setup, teardown)
{
	struct maps_stats before, stats;

	tell_exec(30, "make", 100);
	publish(110);
	tell_exec(31, "cc1", 130);
	maps_on_fork(maps, 31, 30, 31, 30, 120);
	publish(140);
	assert_string_equal(task_of(31, 31, 125)->comm.str, "make");
	assert_string_equal(task_of(31, 31, 135)->comm.str, "cc1");
	assert_string_equal(name_at(31, 0x400000, 125), "make");
	assert_string_equal(name_at(31, 0x400000, 135), "cc1");
	/* The same, in two drains. */
	tell_exec(32, "as", 160);
	publish(165);
	maps_on_fork(maps, 32, 30, 32, 30, 150);
	publish(170);
	assert_string_equal(task_of(32, 32, 155)->comm.str, "make");
	assert_string_equal(task_of(32, 32, 162)->comm.str, "as");
	assert_string_equal(name_at(32, 0x400000, 162), "as");
	/* A fork reported after the end of the child: of the past only. */
	tell_exec(33, "ld", 180);
	maps_on_exit(maps, 33, 33, 190);
	publish(191);
	maps_stats(maps, &before);
	maps_on_fork(maps, 33, 30, 33, 30, 175);
	publish(192);
	maps_stats(maps, &stats);
	assert_int_equal(stats.nr_processes, before.nr_processes);
	assert_string_equal(task_of(33, 33, 176)->comm.str, "make");
	assert_string_equal(task_of(33, 33, 200)->comm.str, "ld");
	/* A mapping reported late does not cover a younger one. */
	tell_mmap(32, 0x7000000, 2, "/young.so", 5, 200);
	publish(205);
	tell_mmap(32, 0x7000000, 4, "/older.so", 6, 190);
	publish(210);
	assert_string_equal(name_at(32, 0x7001000, 208), "young.so");
	assert_string_equal(name_at(32, 0x7001000, 195), "older.so");
	assert_string_equal(name_at(32, 0x7002000, 208), "older.so");
	assert_int_equal(offset_at(32, 0x7002010, 208), PAGE + 0x2010);
}

TEST(test_exit_and_reuse, setup, teardown)
{
	struct maps_stats before, stats;

	maps_stats(maps, &before);
	tell_exec(40, "old", 100);
	maps_on_fork(maps, 40, 40, 41, 40, 105);
	tell_exec(45, "init", 100);
	publish(110);
	maps_on_exit(maps, 40, 40, 120); /* the leader goes first */
	publish(130);
	assert_string_equal(task_of(40, 41, 130)->comm.str, "old");
	maps_stats(maps, &stats);
	assert_int_equal(stats.nr_processes, before.nr_processes + 2);
	maps_on_exit(maps, 40, 41, 140);
	publish(150);
	maps_stats(maps, &stats);
	assert_int_equal(stats.nr_processes, before.nr_processes + 1);
	/* Late samples still find it, and a dying task may be sampled after its end. */
	assert_string_equal(name_at(40, 0x400000, 115), "old");
	assert_string_equal(task_of(40, 41, 145)->comm.str, "old");
	/* The pid is used again. */
	maps_on_fork(maps, 40, 45, 40, 45, 160);
	publish(165);
	assert_string_equal(task_of(40, 40, 115)->comm.str, "old");
	assert_string_equal(task_of(40, 40, 161)->comm.str, "init");
	assert_int_not_equal(task_of(40, 40, 115)->process, task_of(40, 40, 161)->process);
	/* The tid of a thread of the old one means nothing in the new one. */
	assert_true(find_at(40, 41, 161).ask);
	assert_int_equal(task_of(40, 41, 161)->tid, 40);
	publish(141 + KEEP);
	assert_string_equal(task_of(40, 40, 115)->comm.str, "init");
	maps_on_exit(maps, 40, 40, 2000);
	maps_on_exit(maps, 45, 45, 2000);
	publish(2001 + KEEP);
	maps_stats(maps, &stats);
	assert_int_equal(stats.nr_processes, before.nr_processes);
	assert_int_equal(stats.nr_mappings, before.nr_mappings);
	assert_false(find_at(40, 40, 2005).known);
}

/* Of very many processes that end the last ones are kept, and the ones of the last half second. */
TEST(test_many_end, setup, teardown)
{
	const uint64_t second = 1000000000, at = 10 * second;
	const pid_t first = 100000, last = first + 9999;

	for (pid_t pid = first; pid <= last; pid++) {
		tell_comm(pid, pid, "short", true, at + (uint64_t)(pid - first) * 10);
		maps_on_exit(maps, pid, pid, at + (uint64_t)(pid - first) * 10 + 5);
	}
	maps_publish(maps, at + second / 4, 3 * second);
	assert_true(find_at(first, first, at + 1).known);
	maps_publish(maps, at + second, 3 * second);
	rcu_quiescent_state();
	assert_false(find_at(first, first, at + 1).known);
	/* A process and its thread are two nodes. */
	assert_true(find_at(last - 4000, last - 4000, at + second).known);
	assert_true(find_at(last, last, at + second).known);
	maps_publish(maps, at + 4 * second, 3 * second);
	rcu_quiescent_state();
	assert_false(find_at(last, last, at + second).known);
}

/* Reuse without an exit (lost), and an exit reported twice. */
TEST(test_reuse_without_exit, setup, teardown)
{
	tell_exec(50, "first", 100);
	tell_exec(51, "other", 100);
	maps_on_fork(maps, 50, 51, 50, 51, 200);
	maps_on_exit(maps, 50, 50, 300);
	maps_on_exit(maps, 50, 50, 300);
	maps_on_exit(maps, 999, 999, 300);
	publish(310);
	assert_string_equal(task_of(50, 50, 150)->comm.str, "first");
	assert_string_equal(task_of(50, 50, 250)->comm.str, "other");
	publish(2000);
	assert_false(find_at(50, 50, 250).known);
	assert_true(find_at(51, 51, 250).known);
}

TEST(test_overlap, setup, teardown)
{
	const uint64_t base = 0x10000000;

	tell_comm(60, 60, "p", true, 100);
	tell_mmap(60, base, 10, "/a.so", 1, 110);
	tell_mmap(60, base + 3 * PAGE, 2, "/b.so", 2, 120); /* splits it */
	tell_mmap(60, base - PAGE, 2, "/c.so", 3, 130);	    /* trims its start */
	tell_mmap(60, base + 9 * PAGE, 5, "/d.so", 4, 140); /* trims its end */
	publish(150);
	assert_string_equal(name_at(60, base, 145), "c.so");
	assert_string_equal(name_at(60, base + PAGE, 145), "a.so");
	assert_string_equal(name_at(60, base + 3 * PAGE, 145), "b.so");
	assert_string_equal(name_at(60, base + 5 * PAGE, 145), "a.so");
	assert_string_equal(name_at(60, base + 9 * PAGE, 145), "d.so");
	assert_string_equal(name_at(60, base + 14 * PAGE, 145), "");
	assert_int_equal(space_nr_mappings(find_at(60, 60, 145).space), 5);
	/* Both halves still map the file as before. */
	assert_int_equal(offset_at(60, base + PAGE + 8, 145), 2 * PAGE + 8);
	assert_int_equal(offset_at(60, base + 8 * PAGE, 145), 9 * PAGE);
	/* And the past is as it was at each moment. */
	assert_string_equal(name_at(60, base + 4 * PAGE, 115), "a.so");
	assert_int_equal(offset_at(60, base + 4 * PAGE, 115), 5 * PAGE);
	assert_string_equal(name_at(60, base, 125), "a.so");
	assert_string_equal(name_at(60, base + 9 * PAGE, 139), "a.so");
	assert_string_equal(name_at(60, base + 11 * PAGE, 139), "");
	/* dlclose, dlopen at the same place, again and again. */
	for (uint64_t i = 0; i < 20; i++) {
		char name[16];

		snprintf(name, sizeof(name), "/gen%u.so", (unsigned int)i);
		tell_mmap(60, base, 20, name, 100 + i, 200 + 10 * i);
	}
	publish(400);
	assert_string_equal(name_at(60, base + 4 * PAGE, 199), "b.so");
	assert_string_equal(name_at(60, base + 4 * PAGE, 255), "gen5.so");
	assert_string_equal(name_at(60, base + 19 * PAGE, 391), "gen19.so");
	assert_int_equal(space_nr_mappings(find_at(60, 60, 145).space), 2); /* c.so sticks out */
	/* Old ones are forgotten with time. */
	tell_mmap(60, base, 20, "/last.so", 200, 5000);
	publish(5000 + KEEP / 2);
	assert_string_equal(name_at(60, base + 4 * PAGE, 255), "");
	assert_string_equal(name_at(60, base + 4 * PAGE, 4999), "gen19.so");
}

/* Text that the program moves to other memory while it is watched, or recorded, is its file's. */
TEST(test_text_moves, setup, teardown)
{
	const uint64_t lib = 0x7f0000000000;

	tell_comm(61, 61, "p", true, 100);
	tell_mmap(61, 0x400000, 10, "/p", 1, 101);
	tell_mmap(61, lib, 10, "/lib.so", 2, 102);
	tell_mmap(61, 0x402000, 4, "//anon", 0, 110);
	tell_mmap(61, 0x407000, 1, "/memfd:text (deleted)", 0, 110);
	/* A library may have been unmapped, and more than its code is not its code. */
	tell_mmap(61, lib + PAGE, 2, "//anon", 0, 110);
	tell_mmap(61, 0x409000, 2, "//anon", 0, 110);
	publish(150);
	assert_string_equal(name_at(61, 0x403000, 120), "p");
	assert_int_equal(offset_at(61, 0x403008, 120), 4 * PAGE + 8);
	assert_string_equal(name_at(61, 0x407000, 120), "p");
	assert_string_equal(name_at(61, lib + PAGE, 120), "[anon]");
	assert_string_equal(name_at(61, lib + PAGE, 105), "lib.so");
	assert_string_equal(name_at(61, 0x409000, 120), "[anon]");
	assert_true(find_at(61, 61, 120).ask); /* the maps file is read again */
	/* It was moved long ago: the file is on both sides. */
	tell_comm(62, 62, "q", true, 100);
	tell_mmap(62, lib, 2, "/lib.so", 2, 101);
	tell_mmap(62, lib + 2 * PAGE, 2, "//anon", 0, 101);
	maps_on_mmap(maps, &(struct maps_mmap){ .pid = 62,
						.tid = 62,
						.start = lib + 4 * PAGE,
						.size = 2 * PAGE,
						.pgoff = 5 * PAGE,
						.time_ns = 101,
						.prot = PROT_READ | PROT_EXEC,
						.filename = "/lib.so",
						.filename_size = 8,
						.identity = { .maj = 8, .min = 1, .ino = 2 } });
	tell_mmap(62, lib + 6 * PAGE, 2, "//anon", 0, 101);
	tell_mmap(62, lib + 8 * PAGE, 2, "/lib.so", 2, 101); /* another part */
	publish(150);
	assert_string_equal(name_at(62, lib + 3 * PAGE, 120), "lib.so");
	assert_int_equal(offset_at(62, lib + 3 * PAGE, 120), 4 * PAGE);
	assert_string_equal(name_at(62, lib + 6 * PAGE, 120), "[anon]");
}

TEST(test_kinds, setup, teardown)
{
	const struct mapping *m;
	struct maps_mmap ev = { .pid = 70,
				.tid = 70,
				.start = 0x5000,
				.size = PAGE,
				.time_ns = 110,
				.prot = PROT_READ,
				.filename = "/data",
				.filename_size = 6 };

	tell_comm(70, 70, "jit", true, 100);
	maps_on_mmap(maps, &ev); /* holds no code */
	ev.prot = PROT_EXEC;
	ev.size = UINT64_MAX;
	maps_on_mmap(maps, &ev); /* wraps */
	tell_mmap(70, 0x100000, 4, "//anon", 0, 110);
	tell_mmap(70, 0x200000, 4, "/memfd:doublemapper (deleted)", 9, 110);
	tell_mmap(70, 0x7f0000300000, 2, "[vdso]", 0, 110);
	tell_mmap(70, 0x300000, 2, "[vdso]", 0, 110); /* of 32 bits: another one */
	tell_mmap(70, 0x400000, 1, "[vsyscall]", 0, 110);
	tell_comm(71, 71, "jit2", true, 100);
	tell_mmap(71, 0x100000, 4, "//anon", 0, 110);
	publish(120);
	assert_string_equal(name_at(70, 0x5000, 115), "");
	m = space_find(find_at(70, 70, 115).space, 0x101234, 115);
	assert_int_equal(m->object->identity.kind, OBJECT_ANON);
	assert_int_equal(m->object->identity.owner, task_of(70, 70, 115)->process);
	assert_int_equal(offset_at(70, 0x101234, 115), 0x101234);
	assert_int_equal(offset_at(70, 0x201234, 115), 0x201234);
	assert_int_equal(offset_at(70, 0x7f0000301234, 115), 0x1234);
	assert_string_equal(name_at(70, 0x7f0000300000, 115), "[vdso]");
	assert_int_equal(offset_at(70, 0x301234, 115), PAGE + 0x1234);
	assert_string_equal(name_at(70, 0x300000, 115), "[vdso]");
	assert_ptr_equal(space_find(find_at(70, 70, 115).space, 0x7f0000301234, 115)->object,
			 objects_at(objects, OBJECT_ID_VDSO));
	assert_ptr_not_equal(space_find(find_at(70, 70, 115).space, 0x301234, 115)->object,
			     objects_at(objects, OBJECT_ID_VDSO));
	assert_string_equal(name_at(70, 0x400000, 115), "[unknown]");
	assert_ptr_not_equal(m->object,
			     space_find(find_at(71, 71, 115).space, 0x101234, 115)->object);
	/* A JIT that makes pages executable again and again makes no new mappings. */
	for (int i = 0; i < 100; i++)
		tell_mmap(70, 0x101000, 1, "//anon", 0, 130 + (uint64_t)i);
	publish(300);
	assert_int_equal(space_nr_mappings(find_at(70, 70, 250).space), 5);
	assert_string_equal(name_at(70, 0x101000, 115), "[anon]");
}

static uint32_t layer_at(pid_t pid, uint64_t addr, uint64_t time)
{
	const struct mapping *m = space_find(find_at(pid, pid, time).space, addr, time);

	return m ? m->object->identity.layer : UINT32_MAX;
}

/* Code that replaced other code keeps its layer, whenever its memory grows. */
TEST(test_layers, setup, teardown)
{
	const struct mapping *m;

	tell_comm(70, 70, "jit", true, 100);
	tell_mmap(70, 0x100000, 4, "//anon", 0, 110);
	publish(120);
	m = space_find(find_at(70, 70, 115).space, 0x101234, 115);
	maps_on_code(maps, m->object, 1, 0x101000, 0x101100, 200);
	publish(210);
	assert_int_equal(layer_at(70, 0x101080, 150), 0);
	assert_int_equal(layer_at(70, 0x101080, 205), 1);
	assert_int_equal(layer_at(70, 0x101100, 205), 0);
	tell_mmap(70, 0x100000, 6, "//anon", 0, 250);
	publish(260);
	assert_int_equal(layer_at(70, 0x101080, 255), 1);
	/* The memory had grown before the code was known. */
	tell_mmap(70, 0x100000, 8, "//anon", 0, 350);
	publish(360);
	m = space_find(find_at(70, 70, 355).space, 0x102080, 355);
	maps_on_code(maps, m->object, 1, 0x102000, 0x102100, 340);
	publish(370);
	assert_int_equal(layer_at(70, 0x102080, 355), 1);
	assert_int_equal(layer_at(70, 0x101080, 355), 1);
	assert_int_equal(layer_at(70, 0x102100, 355), 0);
}

TEST(test_ask, setup, teardown)
{
	const uint64_t s = 1000000000;
	struct maps_stats before, stats;

	maps_stats(maps, &before);
	/* No process has this pid: above the largest possible. */
	assert_true(maps_ask(maps, 0x3ffffff0, 10 * s));
	assert_false(maps_ask(maps, 0x3ffffff0, 10 * s + 1));
	assert_false(maps_ask(maps, 0x3ffffff0, 10 * s - 1000)); /* another CPU's sample */
	assert_int_equal(maps_load_asked(maps), 1);
	assert_int_equal(maps_load_asked(maps), 0);
	assert_false(maps_ask(maps, 0, 10 * s));
	assert_false(maps_ask(maps, -1, 10 * s));
	/* It is gone, so there is nothing to wait for any more. */
	assert_true(find_at(0x3ffffff0, 0x3ffffff0, LATE).known);
	tell_exec(80, "known", 9 * s);
	publish(9 * s + 10);
	assert_true(maps_ask(maps, 80, 10 * s));
	assert_false(maps_ask(maps, 80, 10 * s + s - 1));
	assert_false(maps_ask(maps, 80, 11 * s - 5));
	assert_int_equal(maps_load_asked(maps), 1);
	assert_true(maps_ask(maps, 80, 11 * s));
	assert_int_equal(maps_load_asked(maps), 1);
	maps_stats(maps, &stats);
	assert_int_equal(stats.nr_reads, before.nr_reads + 3);
	/* A crowd: each once, and more than the loader's list holds is not lost for ever. */
	for (pid_t pid = 1000000; pid < 1002000; pid++)
		maps_ask(maps, pid, 20 * s);
	assert_in_range(maps_load_asked(maps), 900, 1024);
}

static pid_t start_child(void)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "child) (x");
		for (;;)
			pause();
	}
	for (int i = 0; i < 1000; i++) {
		char path[64], comm[32] = "";
		int fd;

		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		fd = open(path, O_RDONLY);
		if (read(fd, comm, sizeof(comm) - 1) > 0 && !strncmp(comm, "child)", 6))
			i = 1000;
		close(fd);
		usleep(1000);
	}
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* An address in libc's code that no sanitizer intercepts. */
static uint64_t libc_code(void)
{
	return (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
}

/* A process that was there before us: everything from /proc. */
TEST(test_real_process, setup, teardown)
{
	pid_t pid = start_child();
	uint64_t libc = libc_code(), now = time_now_ns();
	const struct mapping *m;
	const struct task *task;
	struct maps_hit hit = find_at(pid, pid, now);
	struct stat st;

	assert_false(hit.known);
	assert_true(maps_ask(maps, pid, now));
	assert_int_equal(maps_load_asked(maps), 1);
	hit = find_at(pid, pid, now);
	assert_true(hit.known && !hit.kernel_thread && !hit.ask);
	/* The child is a copy of us: libc is where ours is. */
	m = space_find(hit.space, libc, now);
	assert_non_null(m);
	assert_non_null(strstr(m->object->name.str, "libc"));
	assert_int_equal(m->birth_ns, 0);
	assert_int_equal(stat(m->object->path.str, &st), 0);
	assert_int_equal(m->object->identity.ino, st.st_ino);
	assert_int_equal(m->object->identity.maj, major(st.st_dev));
	task = maps_task(maps, hit.task);
	assert_string_equal(task->comm.str, "child) (x");
	assert_int_equal(task->uid, getuid());
	/* Only code is kept: nothing at the stack or the heap. */
	assert_null(space_find(hit.space, (uint64_t)(uintptr_t)&st, now));
	/* Read again: the same. */
	assert_int_equal(maps_load(maps, pid), 0);
	assert_int_equal(space_nr_mappings(find_at(pid, pid, now).space),
			 space_nr_mappings(hit.space));
	end_child(pid);
	assert_int_equal(maps_load(maps, pid), -ESRCH);
	assert_true(find_at(pid, pid, now).known);
}

/* Compare /proc with the recorded events. */
TEST(test_merge, setup, teardown)
{
	pid_t pid = start_child();
	uint64_t libc = libc_code() & ~(PAGE - 1);
	const struct mapping *m;
	uint64_t now;

	/* An MMAP2 younger than the reading is kept, one older and contradicted yields. */
	tell_mmap(pid, libc, 1, "/plugin.so", 77, LATE - 5);
	tell_mmap(pid, libc + PAGE, 1, "/unmapped.so", 78, 50);
	tell_mmap(pid, 0x1000, 1, "/elsewhere.so", 79, 60);
	publish(100);
	assert_false(find_at(pid, pid, 100).known); /* events alone are not all */
	assert_string_equal(name_at(pid, libc + PAGE, 60), "unmapped.so");
	assert_int_equal(maps_load(maps, pid), 0);
	now = time_now_ns();
	assert_true(find_at(pid, pid, now).known);
	assert_string_equal(name_at(pid, libc, LATE), "plugin.so");
	m = space_find(find_at(pid, pid, now).space, libc, now);
	assert_true(m && strstr(m->object->name.str, "libc")); /* before the plugin */
	m = space_find(find_at(pid, pid, now).space, libc + PAGE, now);
	assert_true(m && strstr(m->object->name.str, "libc"));
	assert_string_equal(name_at(pid, libc + PAGE, 60), "unmapped.so");
	assert_string_equal(name_at(pid, 0x1000, now), "elsewhere.so");
	m = space_find(find_at(pid, pid, 1).space, libc + 2 * PAGE, 1);
	assert_true(m && m->birth_ns == 0);
	end_child(pid);
}

static void *thread_main(void *arg)
{
	prctl(PR_SET_NAME, "worker");
	atomic_store((atomic_int *)arg, (int)syscall(SYS_gettid));
	while (atomic_load((atomic_int *)arg))
		usleep(1000);
	return NULL;
}

/* Text that was moved to anonymous memory is known by the mappings of its file on both sides. */
TEST(test_moved_text, setup, teardown)
{
	const size_t page = 4096;
	int fd = memfd_create("none", 0), file;
	char path[] = "/tmp/proftop-moved-XXXXXX";
	uint8_t *at, *other;
	struct maps_hit hit;
	const struct mapping *m;

	file = mkstemp(path);
	assert_true(fd >= 0 && file >= 0 && !ftruncate(file, 8 * 4096) && !ftruncate(fd, 4096));
	at = mmap(NULL, 8 * page, PROT_READ, MAP_PRIVATE, file, 0);
	assert_true(at != MAP_FAILED);
	/* Anonymous, then shared memory; above them the file goes on. */
	mmap(at + page, page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
	     0);
	mmap(at + 2 * page, page, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED, fd, 0);
	/* Above this one is another part of the file. */
	other = at + 5 * page;
	mmap(other, page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	mmap(other + page, page, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0);
	assert_int_equal(maps_load(maps, getpid()), 0);
	maps_publish(maps, time_now_ns(), 0);
	maps_find(maps, maps_tasks(maps), getpid(), getpid(), time_now_ns(), &hit);
	for (size_t i = 1; i <= 2; i++) {
		m = space_find(hit.space, (uintptr_t)(at + i * page), time_now_ns());
		assert_true(m && m->exec && m->object->identity.kind == OBJECT_FILE);
		assert_string_equal(m->object->path.str, path);
		assert_int_equal(m->offset + ((uintptr_t)(at + i * page) - m->start), i * page);
	}
	m = space_find(hit.space, (uintptr_t)other, time_now_ns());
	assert_true(m && m->object->identity.kind == OBJECT_ANON);
	munmap(at, 8 * page);
	unlink(path);
	close(file);
	close(fd);
}

TEST(test_real_threads, setup, teardown)
{
	uint64_t now = time_now_ns();
	atomic_int tid = 0;
	struct maps_hit hit;
	pthread_t thread;
	int worker;

	/* Complete by an exec, with no thread reported (its fork was lost). */
	tell_comm(getpid(), getpid(), "main", true, now);
	publish(now + 1);
	assert_int_equal(pthread_create(&thread, NULL, thread_main, &tid), 0);
	while (!(worker = atomic_load(&tid)))
		usleep(100);
	hit = find_at(getpid(), worker, now + 1);
	assert_true(hit.known && hit.ask);
	assert_string_equal(maps_task(maps, hit.task)->comm.str, "main");
	assert_int_equal(maps_task(maps, hit.task)->uid, (uid_t)-1);
	assert_int_equal(maps_load(maps, getpid()), 0);
	hit = find_at(getpid(), worker, now + 1);
	assert_false(hit.ask);
	assert_string_equal(maps_task(maps, hit.task)->comm.str, "worker");
	assert_int_equal(maps_task(maps, hit.task)->uid, getuid());
	assert_int_equal(task_of(getpid(), getpid(), now + 1)->uid, getuid());
	/* Other code in the place of code of a file, which may have moved there: read once more. */
	now = time_now_ns();
	tell_mmap(getpid(), (uintptr_t)&thread_main & ~(PAGE - 1), 1, "//anon", 0, now);
	publish(now + 1);
	assert_true(find_at(getpid(), worker, now + 1).ask);
	assert_int_equal(maps_load(maps, getpid()), 0);
	assert_false(find_at(getpid(), worker, now + 1).ask);
	assert_string_equal(name_at(getpid(), (uintptr_t)&thread_main, time_now_ns()), "test_maps");
	/* The MMAP2s of an image that is complete by its exec may have been lost: read. */
	assert_non_null(
		strstr(name_at(getpid(), (uint64_t)(uintptr_t)test_real_threads, time_now_ns()),
		       "test_maps"));
	atomic_store(&tid, 0);
	pthread_join(thread, NULL);
}

TEST(test_kernel_thread, setup, teardown)
{
	char link[16];
	uint64_t now = time_now_ns();
	struct maps_hit hit;

	/* In a container pid 2 may be anything, or nothing. */
	if (access("/proc/2/exe", F_OK) == 0 || readlink("/proc/2/exe", link, sizeof(link)) > 0 ||
	    maps_load(maps, 2))
		skip_test("not on this machine: a kernel thread with pid 2");
	hit = find_at(2, 2, now);
	if (!hit.kernel_thread)
		skip_test("not on this machine: a kernel thread with pid 2");
	assert_true(hit.known && !hit.space);
	assert_string_equal(maps_task(maps, hit.task)->comm.str, "kthreadd");
	/* Its children are kernel threads without being read, until they exec. */
	maps_on_fork(maps, 3000000, 2, 3000000, 2, now + 1);
	tell_comm(3000000, 3000000, "kworker/9:9", false, now + 2);
	tell_comm(3000000, 3000000, "modprobe", true, now + 10);
	publish(now + 11);
	assert_true(find_at(3000000, 3000000, now + 5).kernel_thread);
	assert_string_equal(task_of(3000000, 3000000, now + 5)->comm.str, "kworker/9:9");
	assert_int_equal(task_of(3000000, 3000000, now + 5)->uid, 0);
	hit = find_at(3000000, 3000000, now + 12);
	assert_true(hit.known && !hit.kernel_thread && hit.space);
}

/* After lost side-band records nothing is known until /proc has been read again. */
TEST(test_lost, setup, teardown)
{
	pid_t pid = start_child();
	uint64_t now = time_now_ns();

	tell_comm(pid, pid, "child", true, now);
	tell_exec(3000001, "gone", now);
	publish(now + 1);
	assert_true(find_at(pid, pid, now + 2).known);
	maps_on_lost(maps);
	tell_exec(3000002, "new", now + 2);
	publish(now + 3);
	assert_false(find_at(pid, pid, now + 4).known);
	assert_false(find_at(3000002, 3000002, now + 4).known); /* its maps may be among the lost */
	assert_string_equal(task_of(pid, pid, now + 4)->comm.str, "child");
	tell_exec(3000003, "later", now + 5);
	publish(now + 6);
	assert_true(find_at(3000003, 3000003, now + 7).known);
	assert_true(maps_ask(maps, pid, now + 7));
	assert_int_equal(maps_load_asked(maps), 1); /* and checks which are alive */
	assert_true(find_at(pid, pid, time_now_ns()).known);
	/* An exec may be among them: it has the name of /proc, from the reading on. */
	assert_string_equal(task_of(pid, pid, now + 7)->comm.str, "child");
	assert_string_equal(task_of(pid, pid, time_now_ns())->comm.str, "child) (x");
	publish(time_now_ns() + 2 * KEEP);
	assert_false(find_at(3000001, 3000001, LATE).known);
	assert_int_equal(find_at(3000001, 3000001, LATE).task, TASK_UNKNOWN);
	end_child(pid);
}

/* Lose records, then exec; return true if even the new image is to be read again. */
static bool lose(uint64_t at_ns)
{
	maps_on_lost(maps);
	tell_exec(3000010, "storm", at_ns);
	publish(at_ns + 1);
	return !find_at(3000010, 3000010, at_ns + 1).known;
}

/* In a storm of losses processes are read again after 1, 2, 4 and 8 seconds, not each time. */
TEST(test_lost_often, setup, teardown)
{
	const uint64_t s = 1000000000, begin = time_now_ns() + 100 * s;
	unsigned int nr = 0;

	for (uint64_t i = 0; i < 600; i++)
		nr += lose(begin + i * s / 10);
	assert_int_equal(nr, 10); /* at 0, 1, 3, 7, 15, 23 ... 55 s */
	/* The last losses are not forgotten. */
	assert_false(maps_due(maps, begin + 62 * s));
	assert_true(maps_due(maps, begin + 64 * s));
	publish(begin + 64 * s);
	assert_false(find_at(3000010, 3000010, begin + 64 * s).known);
	assert_false(maps_due(maps, begin + 100 * s));
	/* After some calm a loss is handled immediately again. */
	assert_true(lose(begin + 100 * s));
	assert_false(lose(begin + 100 * s + s / 2));
	assert_true(lose(begin + 102 * s));
}

/* Renames of two threads in one drain: each keeps its names, all others are counted. */
TEST(test_renames_interleaved, setup, teardown)
{
	const uint64_t ms = 1000000;
	struct maps_stats before, after;
	char name[16];

	tell_exec(18, "one", 100);
	tell_exec(18 + 64, "two", 100); /* in the same slot as 18 */
	tell_exec(19, "three", 100);
	maps_publish(maps, 200, LATE);
	maps_stats(maps, &before);
	for (uint64_t i = 1; i <= 3000; i++) {
		pid_t pid = i % 3 == 0 ? 18 : i % 3 == 1 ? 19 : 18 + 64;

		snprintf(name, sizeof(name), "n%u", (unsigned int)i);
		tell_comm(pid, pid, name, false, ms + i);
	}
	maps_publish(maps, 2 * ms, LATE);
	maps_stats(maps, &after);
	assert_string_equal(task_of(18, 18, 2 * ms)->comm.str, "n3000");
	assert_string_equal(task_of(18 + 64, 18 + 64, 2 * ms)->comm.str, "n2999");
	assert_string_equal(task_of(19, 19, 2 * ms)->comm.str, "n2998");
	assert_string_equal(task_of(18, 18, 150)->comm.str, "one");
	/* Of 3,003 names each thread has 8. */
	assert_int_equal(after.nr_names_dropped - before.nr_names_dropped, 3003 - 24);
}

TEST(test_tasks_full, setup, teardown)
{
	struct maps *small;
	struct maps_hit hit;

	assert_int_equal(maps_new(&small, objects, 3), 0);
	maps_on_comm(small, 5, 5, "a", 2, true, 10);
	maps_on_comm(small, 6, 6, "b", 2, true, 10);
	maps_on_comm(small, 7, 7, "c", 2, true, 10);
	maps_publish(small, 20, 10);
	maps_find(small, maps_tasks(small), 5, 5, 15, &hit);
	assert_int_equal(hit.task, 1);
	maps_find(small, maps_tasks(small), 6, 6, 15, &hit);
	assert_int_equal(hit.task, 2);
	assert_false(hit.full);
	maps_find(small, maps_tasks(small), 7, 7, 15, &hit);
	assert_int_equal(hit.task, TASK_UNKNOWN);
	assert_true(hit.known && hit.full);
	assert_int_equal(maps_nr_tasks(small), 3);
	maps_free(small);
}

/* Another table: a live task has one id in it, for every kind of look-up; a dead one keeps its
 * name. */
TEST(test_tasks_renewed, setup, teardown)
{
	struct tasks *before = maps_tasks(maps), *old;
	struct maps_hit alive, gone, late, hit;
	uint32_t moved, number;

	maps_on_comm(maps, 70, 70, "alive", 6, true, 10);
	maps_on_comm(maps, 71, 71, "gone", 5, true, 10);
	maps_on_comm(maps, 72, 72, "late", 5, true, 10);
	publish(20);
	maps_find(maps, before, 70, 70, 15, &alive);
	maps_find(maps, before, 71, 71, 15, &gone);
	maps_find(maps, before, 72, 72, 15, &late);
	number = maps_task(maps, alive.task)->number;
	maps_on_exit(maps, 71, 71, 20);
	publish(LATE);
	old = maps_renew_tasks(maps);
	assert_ptr_equal(old, before);
	assert_int_equal(maps_nr_tasks(maps), 1);
	/* A batch that began before may still use the old one, another the new one: by turns. */
	maps_find(maps, maps_tasks(maps), 70, 70, 15, &hit);
	moved = hit.task;
	maps_find(maps, old, 70, 70, 15, &hit);
	assert_int_equal(hit.task, alive.task);
	maps_find(maps, maps_tasks(maps), 70, 70, 15, &hit);
	assert_int_equal(hit.task, moved);
	assert_int_equal(maps_move_task(maps, old, alive.task), moved);
	assert_int_equal(maps_task(maps, moved)->number, number);
	/* One that is moved first has the same id for samples. */
	moved = maps_move_task(maps, old, late.task);
	maps_find(maps, maps_tasks(maps), 72, 72, 15, &hit);
	assert_int_equal(hit.task, moved);
	moved = maps_move_task(maps, old, gone.task);
	assert_string_equal(maps_task(maps, moved)->comm.str, "gone");
	assert_int_equal(maps_task(maps, moved)->pid, 71);
	assert_int_equal(maps_move_task(maps, old, TASK_UNKNOWN), TASK_UNKNOWN);
	assert_int_equal(maps_nr_tasks(maps), 4);
	maps_drop_tasks(old);
}

static uint32_t merged(const struct tasks *old, uint32_t id)
{
	return maps_merge_task(maps, old, id, NULL, NULL);
}

/* Threads of processes that have ended are one for each name and user; others move as they are. */
TEST(test_tasks_merged, setup, teardown)
{
	struct maps_hit alive, hits[4];
	struct process_details d;
	struct tasks *old;
	uint32_t id, process = 0;

	maps_on_comm(maps, 70, 70, "alive", 6, true, 10);
	for (int i = 0; i < 4; i++)
		maps_on_comm(maps, 71 + i, 71 + i, "cc", 3, true, 10);
	/* A thread with another name. */
	maps_on_fork(maps, 73, 73, 93, 73, 11);
	maps_on_comm(maps, 73, 93, "worker", 7, false, 12);
	publish(20);
	maps_find(maps, maps_tasks(maps), 70, 70, 15, &alive);
	for (int i = 0; i < 4; i++) {
		maps_set_user(maps, 71 + i, i == 3 ? 8 : 9, 15);
		maps_find(maps, maps_tasks(maps), 71 + i, i == 2 ? 93 : 71 + i, 15, &hits[i]);
		maps_on_exit(maps, 71 + i, 71 + i, 20);
	}
	maps_on_exit(maps, 73, 93, 20);
	publish(LATE);
	for (int round = 0; round < 2; round++) {
		old = maps_renew_tasks(maps);
		alive.task = merged(old, alive.task);
		assert_int_equal(maps_task(maps, alive.task)->pid, 70);
		for (int i = 0; i < 4; i++)
			hits[i].task = merged(old, hits[i].task);
		maps_drop_tasks(old);
		id = hits[0].task;
		assert_int_equal(maps_task(maps, id)->pid, -1);
		assert_int_equal(maps_task(maps, id)->uid, 9);
		assert_string_equal(maps_task(maps, id)->comm.str, "cc");
		assert_int_equal(hits[1].task, id);
		/* Of the same process, and of another user. */
		assert_int_not_equal(hits[2].task, id);
		assert_string_equal(maps_task(maps, hits[2].task)->comm.str, "worker");
		assert_int_equal(maps_task(maps, hits[2].task)->process,
				 maps_task(maps, id)->process);
		assert_int_not_equal(maps_task(maps, hits[3].task)->process,
				     maps_task(maps, id)->process);
		/* As before: a view may show it. */
		assert_true(!round || process == maps_task(maps, id)->process);
		process = maps_task(maps, id)->process;
	}
	assert_true(maps_merged(maps, process, &d));
	assert_int_equal(d.uid, 9);
	/* Once for each process, in whichever round. */
	assert_int_equal(d.nr, 3);
	assert_false(maps_merged(maps, alive.process, &d));
	assert_int_equal(merged(maps_tasks(maps), TASK_UNKNOWN), TASK_UNKNOWN);
}

/* More names than there is room for: the rest has none. */
TEST(test_too_many_merged, setup, teardown)
{
	enum { NR = 4200 };
	uint32_t none = 0, nr = 0;
	struct maps_hit hit;
	struct tasks *old;
	struct maps *large;

	assert_int_equal(maps_new(&large, objects, 2 * NR), 0);
	for (pid_t pid = 100; pid < 100 + NR; pid++) {
		char comm[16];
		int size = snprintf(comm, sizeof(comm), "n%d", pid);

		maps_on_comm(large, pid, pid, comm, (size_t)size + 1, true, 10);
	}
	maps_publish(large, 20, 10);
	for (pid_t pid = 100; pid < 100 + NR; pid++) {
		if (pid % 512 == 0)
			maps_publish(large, 20, 10);
		maps_find(large, maps_tasks(large), pid, pid, 15, &hit);
		maps_on_exit(large, pid, pid, 20);
	}
	maps_publish(large, LATE, KEEP);
	old = maps_renew_tasks(large);
	for (uint32_t id = 1; id < tasks_nr(old); id++, nr++)
		none += maps_merge_task(large, old, id, NULL, NULL) == TASK_UNKNOWN;
	assert_int_equal(nr, NR);
	assert_int_equal(none, nr - 4096);
	maps_drop_tasks(old);
	maps_free(large);
}

#define MANY 60000

/* faults.md R5, and against a simple model: @order gives the place of the n-th mapping reported. */
static void many_mappings(pid_t pid, uint64_t (*order)(uint64_t i))
{
	uint64_t start_ns = yardstick_cpu_ns();
	const struct space *space;

	tell_comm(pid, pid, "many", true, 10);
	for (uint64_t i = 0; i < MANY; i++)
		tell_mmap(pid, (1 + 2 * order(i)) << 12, 1, order(i) & 1 ? "/odd.so" : "/even.so",
			  10 + (order(i) & 1), 20 + i);
	publish(MANY + 30);
	assert_true(yardstick_within(start_ns, 1000)); /* 100 ms, but for sanitizers */
	space = find_at(pid, pid, MANY + 30).space;
	assert_int_equal(space_nr_mappings(space), MANY);
	for (uint64_t i = 0; i < MANY; i++) {
		uint64_t addr = ((1 + 2 * order(i)) << 12) + (i & 0xfff);
		const struct mapping *m = space_find(space, addr, MANY + 30);

		assert_non_null(m);
		assert_int_equal(m->birth_ns, 20 + i);
		assert_null(space_find(space, addr + PAGE, MANY + 30));
		assert_null(space_find(space, addr, 19 + i));
	}
}

static uint64_t upwards(uint64_t i)
{
	return i;
}

static uint64_t downwards(uint64_t i)
{
	return MANY - 1 - i;
}

static uint64_t scattered(uint64_t i)
{
	return i * 7919 % MANY; /* 7919 is prime and does not divide MANY */
}

TEST(test_many, setup, teardown)
{
	many_mappings(90, upwards);
	many_mappings(91, downwards);
	many_mappings(92, scattered);
}

/* Far more mappings than a program has: SPACE_MAPPINGS_MAX are kept, and the rest costs no more. */
TEST(test_mapping_limit, setup, teardown)
{
	const uint32_t nr = SPACE_MAPPINGS_MAX + 20000;
	uint64_t start_ns = yardstick_cpu_ns();
	const struct space *space;

	tell_comm(95, 95, "bomb", true, 10);
	for (uint64_t i = 0; i < nr; i++)
		tell_mmap(95, (1 + 2 * i) << 12, 1, "/even.so", 10, 20 + i);
	publish(nr + 30);
	assert_true(yardstick_within(start_ns, 2000));
	space = find_at(95, 95, nr + 30).space;
	assert_int_equal(space_nr_mappings(space), SPACE_MAPPINGS_MAX);
	assert_non_null(space_find(space, 1 << 12, nr + 30));
	assert_null(space_find(space, (2ULL * nr - 1) << 12, nr + 30));
}

#define FORKER	 96
#define STRIDE	 (1ULL << 20)
#define FORK_AT	 (1ULL << 45)
#define FORKS	 500u
#define CHILD	 2000000
#define SPARSE	 80000u
#define FEW	 10u
#define NODE_MAX 64u

/* Map up to @nr files that leave little in a node, as a program that maps, unmaps and maps again.
 */
static void map_sparsely(uint32_t nr, uint64_t *at)
{
	uint64_t base = PAGE;

	for (uint32_t left = nr; left;) {
		uint32_t nodes =
			MAX(1, MIN(left / 2, (SPACE_MAPPINGS_MAX - (nr - left)) / NODE_MAX));

		for (uint32_t i = 0; i < nodes * NODE_MAX; i++)
			tell_mmap(FORKER, base + i / NODE_MAX * STRIDE + i % NODE_MAX * 2 * PAGE, 1,
				  "/one.so", 10, ++*at);
		publish(*at);
		for (uint32_t i = 0; i < nodes; i++)
			tell_mmap(FORKER, base + i * STRIDE + 2 * PAGE, 2 * (NODE_MAX - 1),
				  "/over.so", 11, ++*at);
		publish(*at);
		base += nodes * STRIDE;
		left -= MIN(left, 2 * nodes);
	}
}

/* Return the CPU time of FORKS forks, after a mapping each, that are applied together. */
static uint64_t fork_ns(uint64_t *at, pid_t *child)
{
	uint64_t begin_ns;

	for (uint32_t i = 0; i < FORKS; i++, ++*child) {
		tell_mmap(FORKER, FORK_AT, 1, "/even.so", 10 + (i & 1), ++*at);
		maps_on_fork(maps, *child, FORKER, *child, FORKER, ++*at);
	}
	begin_ns = time_thread_ns();
	maps_publish(maps, *at, LATE);
	return time_thread_ns() - begin_ns;
}

/* Return the CPU time, and the bytes of a child, of a process that forks. */
static uint64_t fork_storm(uint64_t *at, pid_t *child, uint64_t *bytes)
{
	struct maps_stats before, stats;
	uint64_t ns;

	/* More mappings that were replaced than are kept. */
	fork_ns(at, child);
	fork_ns(at, child);
	maps_stats(maps, &before);
	ns = fork_ns(at, child);
	maps_stats(maps, &stats);
	*bytes = (stats.space_bytes - before.space_bytes) / FORKS;
	rcu_quiescent_state();
	return ns;
}

/* A program that maps a file and forks, in a loop, costs little, however many mappings it has. */
TEST(test_fork_storm, setup, teardown)
{
	uint64_t at = 100, few_ns, ns, few, many;
	struct maps_stats stats;
	pid_t child = CHILD;

	tell_comm(FORKER, FORKER, "forker", true, 10);
	for (uint32_t i = 0; i < FEW; i++)
		tell_mmap(FORKER, (1 + 2 * i) * PAGE, 1, "/one.so", 10, ++at);
	publish(at);
	few_ns = fork_storm(&at, &child, &few);
	tell_comm(FORKER, FORKER, "forker", true, ++at);
	map_sparsely(SPARSE, &at);
	assert_in_range(space_nr_mappings(find_at(FORKER, FORKER, at).space), SPARSE - 100,
			SPARSE + 100);
	maps_stats(maps, &stats);
	/* A mapping has 48 bytes. */
	assert_in_range(stats.space_bytes, SPARSE * 48, SPARSE * 256);
	ns = fork_storm(&at, &child, &many);
	print_message("a fork: %u and %u ns, %u and %u bytes\n", (unsigned int)few_ns / FORKS,
		      (unsigned int)ns / FORKS, (unsigned int)few, (unsigned int)many);
	if (ns > 5 * few_ns + 20000000)
		fail_msg("%u forks took %u us with few mappings, %u us with many", FORKS,
			 (unsigned int)(few_ns / 1000), (unsigned int)(ns / 1000));
	assert_in_range(few, 100, 4096);
	assert_in_range(many, 100, 8192);
}

/* Random mappings against an array that knows the owner of each page at each time. */
TEST(test_random_overlaps, setup, teardown)
{
	enum { PAGES = 200, STEPS = 300 };
	static uint8_t model[STEPS + 1][PAGES];
	uint64_t seed = 42;

	for (pid_t pid = 100; pid < 110; pid++) {
		memset(model, 0, sizeof(model));
		tell_comm(pid, pid, "random", true, 1);
		for (int step = 1; step <= STEPS; step++) {
			uint64_t first, nr;
			char name[16];

			seed = hash_u64(seed + 1);
			first = seed % PAGES;
			nr = 1 + (seed >> 32) % MIN(40, PAGES - first);
			memcpy(model[step], model[step - 1], PAGES);
			memset(&model[step][first], 1 + step % 200, nr);
			snprintf(name, sizeof(name), "/f%d", step % 200);
			tell_mmap(pid, (first + 16) << 12, nr, name, 1000 + (uint64_t)step % 200,
				  10 * (uint64_t)step);
			if (step % 7 == 0)
				maps_publish(maps, 10, KEEP);
		}
		maps_publish(maps, 10, KEEP);
		/* Ends are remembered up to a limit, the present in full. */
		for (int step = STEPS - 20; step <= STEPS; step++)
			for (int page = 0; page < PAGES; page++) {
				char want[16] = "";
				const char *got =
					name_at(pid, (page + 16ull) << 12, 10 * (uint64_t)step + 5);

				if (model[step][page])
					snprintf(want, sizeof(want), "f%d", model[step][page] - 1);
				assert_string_equal(got, want);
			}
		publish(10);
	}
}

enum { WIDE_PAGES = 30000, WIDE_STEPS = 6000 };

static void assert_wide(pid_t pid, uint64_t now, const uint16_t *model)
{
	for (int page = 0; page < WIDE_PAGES; page++) {
		char want[16] = "";

		if (model[page])
			snprintf(want, sizeof(want), "f%d", model[page] - 1);
		assert_string_equal(name_at(pid, (page + 16ull) << 12, now), want);
	}
}

/* The same in a space of thousands of mappings; a child has it as it was at the fork. */
TEST(test_random_wide, setup, teardown)
{
	static uint16_t model[WIDE_PAGES], forked[WIDE_PAGES];
	uint64_t seed = 7, now = 0;

	tell_comm(110, 110, "random", true, 1);
	for (int step = 1; step <= WIDE_STEPS; step++) {
		uint64_t first, nr;
		char name[16];

		seed = hash_u64(seed + 1);
		first = seed % WIDE_PAGES;
		/* Mostly few pages; sometimes many, or all. */
		nr = 1 + (seed >> 32) % (step % 500 == 499 ? WIDE_PAGES
					 : step % 50 == 49 ? 500
							   : 4);
		nr = MIN(nr, WIDE_PAGES - first);
		for (uint64_t i = 0; i < nr; i++)
			model[first + i] = (uint16_t)(1 + step % 200);
		snprintf(name, sizeof(name), "/f%d", step % 200);
		now = 10 * (uint64_t)step;
		tell_mmap(110, (first + 16) << 12, nr, name, 1000 + (uint64_t)step % 200, now);
		if (step % 1500 == 1000) {
			maps_on_fork(maps, 111, 110, 111, 110, now + 1);
			memcpy(forked, model, sizeof(forked));
		}
		if (step % 70 == 0)
			publish(now + 2);
		if (step % 1500 == 1400) {
			publish(now + 2);
			assert_wide(110, now + 5, model);
			assert_wide(111, now + 5, forked);
		}
	}
	publish(now + 2);
	assert_wide(110, now + 5, model);
	assert_wide(111, now + 5, forked);
}

/* Beyond any pid_max: the loader reads /proc for these, and must not find them. */
#define STRESS_PID 4200500

struct stress {
	atomic_bool stop;
	atomic_ulong nr_found, nr_wrong;
};

/* Every task and every mapping found must be one that was reported for that moment. */
static void *stress_reader(void *arg)
{
	struct stress *s = arg;
	uint64_t seed = 1;
	unsigned long found = 0, wrong = 0;

	rcu_register_thread();
	while (!atomic_load_explicit(&s->stop, memory_order_relaxed)) {
		for (int i = 0; i < 100; i++) {
			const struct mapping *m;
			const struct task *task;
			struct maps_hit hit;
			uint64_t time;
			pid_t pid;

			seed = hash_u64(seed + 1);
			pid = STRESS_PID + (pid_t)(seed % 20);
			time = (seed >> 32) % 100000;
			maps_find(maps, maps_tasks(maps), pid, pid, time, &hit);
			task = maps_task(maps, hit.task);
			if (hit.task != TASK_UNKNOWN)
				wrong += !task || task->pid != pid || task->comm.str[0] != 's';
			m = hit.space ? space_find(hit.space, 0x400800, time) : NULL;
			if (m) {
				found++;
				wrong += m->birth_ns > time || m->start > 0x400800 ||
					 m->end <= 0x400800 || m->object->name.str[0] != 's';
			}
			if (!hit.known)
				maps_ask(maps, pid, time);
		}
		reclaim_reader_done();
		rcu_quiescent_state();
	}
	rcu_unregister_thread();
	atomic_fetch_add(&s->nr_found, found);
	atomic_fetch_add(&s->nr_wrong, wrong);
	return NULL;
}

static void *stress_loader(void *arg)
{
	struct stress *s = arg;

	while (!atomic_load_explicit(&s->stop, memory_order_relaxed)) {
		maps_load_asked(maps);
		maps_load(maps, getpid());
		usleep(500);
	}
	return NULL;
}

TEST(test_stress, setup, teardown)
{
	struct stress s = { .stop = false };
	pthread_t threads[4];
	uint64_t time = 0, until = time_now_ns() + 1500000000ull;

	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, stress_reader, &s);
	pthread_create(&threads[3], NULL, stress_loader, &s);
	while (time_now_ns() < until) {
		pid_t pid = STRESS_PID + (pid_t)(time % 20);

		time += 7;
		switch (time % 5) {
		case 0:
			tell_comm(pid, pid, "sexec", true, time);
			tell_mmap(pid, 0x400000, 2, "/s1.so", 1, time + 1);
			break;
		case 1:
			maps_on_fork(maps, pid, STRESS_PID + (pid_t)(time % 7), pid, STRESS_PID,
				     time);
			break;
		case 2:
			maps_on_exit(maps, pid, pid, time);
			break;
		case 3:
			tell_comm(pid, pid, time & 8 ? "sname" : "sother", false, time);
			break;
		default:
			tell_mmap(pid, 0x400000 + (time % 3) * PAGE / 2, 3, "/s2.so", 2, time + 2);
		}
		time %= 100000;
		if (time % 3 == 0)
			maps_publish(maps, time, 50);
		reclaim_reader_done();
		rcu_quiescent_state();
	}
	atomic_store(&s.stop, true);
	rcu_thread_offline();
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	rcu_thread_online();
	assert_true(atomic_load(&s.nr_found) > 1000);
	assert_int_equal(atomic_load(&s.nr_wrong), 0);
}

#define STORM_PIDS  8u
#define STORM_SLOTS 8u

/* The files that processes have mapped: inode numbers, 0: none; [0] is the first pid. */
struct storm {
	uint64_t inode[STORM_PIDS][STORM_SLOTS];
	uint64_t last, now;
};

static uint64_t slot_start(uint32_t slot)
{
	return 0x10000000 + slot * PAGE;
}

/* One process maps a new file, forks, executes or ends. */
static void storm_step(struct storm *st, uint64_t random)
{
	uint32_t i = random % STORM_PIDS, k = random / 8 % STORM_PIDS,
		 slot = random / 64 % STORM_SLOTS;
	pid_t pid = (pid_t)(20 + i), other = (pid_t)(20 + k);
	char name[32];

	st->now += 10;
	switch (random / 512 % 16) {
	case 0:
		if (i == k)
			break;
		maps_on_exit(maps, other, other, st->now - 2);
		maps_on_fork(maps, other, pid, other, pid, st->now);
		memcpy(st->inode[k], st->inode[i], sizeof(st->inode[k]));
		break;
	case 1:
		tell_comm(pid, pid, "new", true, st->now);
		memset(st->inode[i], 0, sizeof(st->inode[i]));
		break;
	default:
		st->inode[i][slot] = ++st->last;
		snprintf(name, sizeof(name), "/f%llu", (unsigned long long)st->last);
		tell_mmap(pid, slot_start(slot), 1, name, st->last, st->now);
	}
}

static void assert_storm(const struct storm *st)
{
	for (uint32_t i = 0; i < STORM_PIDS; i++) {
		for (uint32_t slot = 0; slot < STORM_SLOTS; slot++) {
			char name[32] = "";

			if (st->inode[i][slot])
				snprintf(name, sizeof(name), "f%llu",
					 (unsigned long long)st->inode[i][slot]);
			assert_string_equal(name_at((pid_t)(20 + i), slot_start(slot), st->now),
					    name);
		}
	}
}

/*
 * Files that no sample was in leave with their last mapping, of whichever process, and not before:
 * new ones get their ids.
 */
TEST(test_storm_of_files, setup, teardown)
{
	struct storm st = { .now = 1000 };
	uint64_t random = 3;

	for (uint32_t i = 0; i < STORM_PIDS; i++)
		tell_comm((pid_t)(20 + i), (pid_t)(20 + i), "first", true, 500);
	for (uint32_t round = 0; round < 150; round++) {
		for (uint32_t i = 0; i < 50; i++) {
			random = hash_u64(random + i);
			storm_step(&st, random);
		}
		publish(st.now);
		assert_storm(&st);
		reclaim_wait();
	}
	assert_true(st.last > 5000);
	/* 64 are mapped, and KEEP is the time of 100 steps. */
	assert_in_range(objects_nr(objects), 50, 500);
	for (uint32_t i = 0; i < STORM_PIDS; i++)
		maps_on_exit(maps, (pid_t)(20 + i), (pid_t)(20 + i), st.now + 1);
	publish(st.now + 1);
	publish(st.now + 3 * KEEP);
	reclaim_wait();
	for (uint32_t id = OBJECT_ID_FIRST; id < objects_nr(objects); id++)
		assert_string_equal(objects_at(objects, id)->name.str, "[unknown]");
}

static bool is_wanted(const void *name, const char *text)
{
	return strcmp(name, text) == 0;
}

static bool is_chosen(pid_t pid, uint64_t time)
{
	bool chosen = maps_is_chosen(maps, pid, time);

	rcu_quiescent_state();
	return chosen;
}

TEST(test_choose_by_name, setup, teardown)
{
	/* It ran before, unknown. */
	maps_choose(maps, 70, 90);
	assert_true(is_chosen(70, 100));
	maps_choose_by(maps, is_wanted, "wanted");
	assert_false(is_chosen(70, 100));
	tell_comm(71, 71, "shell", true, 100);
	maps_on_fork(maps, 72, 71, 72, 71, 110);
	tell_comm(72, 72, "wanted", true, 120);
	publish(130);
	assert_false(is_chosen(71, 130));
	assert_false(is_chosen(72, 115));
	assert_true(is_chosen(72, 125));
	/* Its children, also when they execute another program. A thread has the name. */
	maps_on_fork(maps, 73, 72, 73, 72, 140);
	tell_comm(73, 73, "other", true, 150);
	tell_comm(71, 74, "wanted", false, 150);
	publish(160);
	assert_true(is_chosen(73, 145));
	assert_true(is_chosen(73, 155));
	assert_false(is_chosen(71, 155));
	/* The exec of a child is read before its fork. */
	tell_comm(75, 75, "other", true, 180);
	publish(190);
	maps_on_fork(maps, 75, 72, 75, 72, 170);
	publish(200);
	assert_true(is_chosen(75, 185));
	/* The first thread is renamed. */
	tell_comm(71, 71, "wanted", false, 210);
	publish(220);
	assert_true(is_chosen(71, 215));
	maps_choose_by(maps, NULL, NULL);
	assert_false(is_chosen(72, 225) || is_chosen(73, 225) || is_chosen(71, 225));
}

TEST(test_choose_by_file, setup, teardown)
{
	maps_choose_by(maps, is_wanted, "a-name-of-20-letters");
	tell_comm(80, 80, "a-name-of-20-le", true, 100);
	tell_mmap(80, 0x1000, 1, "/usr/bin/a-name-of-20-letters", 80, 101);
	/* Another program of the same first letters; an interpreter; a library of that name. */
	tell_comm(81, 81, "a-name-of-20-le", true, 100);
	tell_mmap(81, 0x1000, 1, "/usr/bin/a-name-of-20-leaves", 81, 101);
	tell_mmap(81, 0x5000, 1, "/usr/lib/a-name-of-20-letters", 82, 102);
	tell_comm(82, 82, "short", true, 100);
	tell_mmap(82, 0x1000, 1, "/usr/bin/a-name-of-20-letters", 80, 101);
	publish(110);
	assert_true(is_chosen(80, 105));
	assert_false(is_chosen(81, 105));
	assert_false(is_chosen(82, 105));
}

/* Fork @nr processes from @first on, each with an exec, another name and another file. */
static void fork_many(pid_t first, pid_t nr, uint64_t time)
{
	char name[64];

	for (pid_t pid = first; pid < first + nr; pid++) {
		maps_on_fork(maps, pid, 1, pid, 1, time);
		tell_comm(pid, pid, "child", true, time + 1);
		snprintf(name, sizeof(name), "/usr/bin/name-%d", pid);
		tell_mmap(pid, 0x10000, 1, name, (uint64_t)pid, time + 2);
		tell_mmap(pid, 0x20000, 1, "/usr/lib/common.so", 7, time + 2);
		tell_mmap(pid, 0x10000, 1, "/usr/lib/common.so", 7, time + 3);
	}
	publish(time + 4);
}

/*
 * What sampler threads add is not in the heap of malloc(3): they would wait there for a thread
 * without CPU time, and samples would be lost.
 */
TEST(test_no_heap, setup, teardown)
{
	enum { NR = 300 };
	struct mallinfo2 before, after;

	tell_comm(1, 1, "parent", true, 1);
	fork_many(1000, NR, 100);
	before = mallinfo2();
	fork_many(2000, NR, 200);
	after = mallinfo2();
	assert_string_equal(name_at(2000 + NR - 1, 0x20000, 250), "common.so");
	/* A table that doubles, 27 bytes each. */
	assert_true(after.uordblks < before.uordblks + NR * 40);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
